//! Verifies the audit in a folder: computes every hash of the chain again, and looks for every record in it.
//!
//! Reads nothing else of the folder, and assumes nothing about it: opening a store refuses a damaged one, and this has
//! to say where the damage is.

use std::sync::Arc;

use dispatch::ports::{Checkpoint, Head, Position, Source, StoreFault, Tampering, Walk};
use tokio::sync::watch;

use super::chain;
use super::durable::Durable;
use super::folder::Folder;
use super::keys;
use super::reader::Reader;
use super::remains::{self, Remains};
use super::set_aside::SetAside;
use super::tree::Tree;
use crate::OpenError;
use crate::fault::fault;

/// Why an audit could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The folder cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The disk cannot be read.
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error(transparent)]
    Tampered(#[from] Tampering),
}

/// Verifies the audit of an open folder: from the first commit to the head, with every checkpoint on the way.
pub(super) fn verified(folder: Folder, checkpoints: Vec<Checkpoint>) -> Result<Head, VerifyError> {
    // Dropped in reverse order.
    let Folder { folder_lock: _folder_lock, db, blobs, .. } = folder;
    let everything = watch::channel(Durable::Until(Position(u64::MAX))).1;
    let reader = Reader {
        tree: Tree::new((*db).clone()),
        blobs,
        durable: everything,
        recoveries: Arc::default(),
        set_aside: SetAside::default(),
    };
    walk(&reader, checkpoints)
}

fn walk(reader: &Reader, checkpoints: Vec<Checkpoint>) -> Result<Head, VerifyError> {
    let mut walk = Walk::new(checkpoints);
    for entry in reader.tree.scan_prefix([keys::AUDIT]) {
        let (key, value) = entry.map_err(fault("read the audit"))?;
        let next = Position(walk.head().position.0 + 1);
        let unreadable = |what: &str| Tampering::new(next, what);
        let position = key.get(1..).and_then(|position| position.try_into().ok()).map(u64::from_be_bytes);
        let position = position.ok_or_else(|| unreadable("behind it is a key that no host writes"))?;
        if keys::read_link(&value).is_none() {
            return Err(unreadable("its link is not one that a host writes").into());
        }
        walk.step(&reader.link(Position(position), &value)?)?;
    }
    let last = walk.head().position;
    let head = chain::head(&reader.tree).map_err(|_| Tampering::new(last, "the head is not one that a host writes"))?;
    let head = walk.end(head)?;
    match stray(reader)? {
        None => Ok(head),
        Some(stray) => Err(stray.into()),
    }
}

/// The first record that is not in the chain: a host would believe that it happened.
fn stray(reader: &Reader) -> Result<Option<Tampering>, StoreFault> {
    let mut first: Option<Tampering> = None;
    for index in [keys::LOG, keys::HOST_FEED, keys::STARTED, keys::REVOKED, keys::REMOVAL] {
        for entry in reader.tree.scan_prefix([index]) {
            let (key, value) = entry.map_err(fault("read what is stored"))?;
            let place = place(index, &key, &value);
            let position = place.map_or(Position(0), |(position, _)| position);
            let known = match place {
                Some((position, source)) => is_linked(reader, position, source)?,
                None => false,
            };
            if !known && first.as_ref().is_none_or(|first| position < first.at) {
                let what = format!("{} is not in the chain: it was inserted", keys::in_words(&key));
                first = Some(Tampering::new(position, what));
            }
        }
    }
    for entry in reader.tree.scan_prefix([keys::REMOVED]) {
        let (key, value) = entry.map_err(fault("read what is stored"))?;
        // The walk has found that an entry is damaged.
        let Some(((turn, begin), (_, remains))) = remains::read_key(&key).zip(Remains::read(&value)) else { continue };
        for (number, (position, _)) in (begin..).zip(remains.records()) {
            // A salvage does not know the positions of all commits.
            if position != Position::default() && !is_linked(reader, position, Source::Turn { turn, number })? {
                first = first.filter(|first| first.at <= position).or_else(|| {
                    let what = format!("a removed record of {turn} is not in the chain: it was inserted");
                    Some(Tampering::new(position, what))
                });
            }
        }
    }
    Ok(first)
}

/// Whether the chain says that the record at a position is in this place.
fn is_linked(reader: &Reader, position: Position, source: Source) -> Result<bool, StoreFault> {
    let link = reader.tree.get(keys::at(&[keys::AUDIT], position)).map_err(fault("read the audit"))?;
    Ok(link.and_then(|link| keys::read_link(&link)).is_some_and(|(_, found)| found == source))
}

/// The position in the chain that a record claims.
pub(super) fn place(index: u8, key: &[u8], value: &[u8]) -> Option<(Position, Source)> {
    let key = key.get(1..)?;
    let position = || key.try_into().ok().map(u64::from_be_bytes).map(Position);
    match index {
        keys::LOG => {
            let (turn, number) = keys::read_pointer(key)?;
            Some((keys::stamped(value)?.0, Source::Turn { turn, number }))
        }
        keys::HOST_FEED => Some((position()?, Source::Plugin)),
        keys::REVOKED => Some((position()?, Source::Revoked)),
        keys::REMOVAL => Some((position()?, Source::Removal)),
        _ => Some((position()?, Source::Started)),
    }
}
