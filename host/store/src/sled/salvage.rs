//! Reads what is intact of a damaged store into a new one. The damaged store stays as it is.
//!
//! The new store has the same chain of the audit: every position, and every hash that is still known. A commit whose
//! record is lost gets a tombstone, as after a removal (`removal.rs`), and its turn is left out as a whole: its call ids
//! stay, so none of its calls can run again. The last entry is a removal with the rule [`RemovalRule::Salvage`], which
//! covers all of them. So the cut is visible in the audit, and the chain can be verified.

mod commits;
mod opening;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use dispatch::ports::{FaultKind, Head, StoreFault, Tampering};
use domain::{Digest, Timestamp, TurnId};
use sled::IVec;

use self::opening::Opened;
use super::blobs::{self, Blobs};
use super::building::Building;
use super::folder::{self, Folder, OLDEST};
use super::tree::{Tree, attempt};
use super::verify::{VerifyError, verified};
use super::{VALUES, keys};
use crate::fault::{Cause, fault};
use crate::{OpenError, StoreSettings};

const SALVAGE: &str = "salvage a store";

/// The result of a salvage: what was kept, and what is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// The commits whose records are intact.
    pub commits: u64,
    /// The turns that are left out, because a record of each is lost.
    pub turns: BTreeSet<TurnId>,
    /// The positions of other commits that are lost.
    pub lost: Vec<u64>,
    /// Other entries that are lost, by their kind, as far as they are known.
    pub entries: BTreeMap<String, u64>,
    /// Kinds of entries that lost an unknown number.
    pub incomplete: BTreeSet<&'static str>,
    /// The values of plugins, and whether these are all.
    pub values: (u64, bool),
    /// The head of the new store.
    pub head: Head,
}

/// Why a store was not salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    #[error("{} exists; name a folder that does not", .0.display())]
    Exists(PathBuf),
    /// A killed salvage may have left it, or it belongs to somebody else.
    #[error("{} exists; a salvage that was killed may have left it: look into it, and remove it", .0.display())]
    Unfinished(PathBuf),
    /// Call ids of lost turns are unknown, so their calls could be submitted and run again.
    #[error(
        "cannot salvage: call ids of lost turns are lost too, so a caller could submit such a call again, and it would run again"
    )]
    CallIds,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error("the salvaged store cannot be verified")]
    Unverified(#[source] Tampering),
    #[error("cannot copy what is intact to {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Salvages a store that no host uses. The target must not exist, and does not exist after an error or a kill.
/// `forget_call_ids`: goes on if call ids of lost turns are unknown.
///
/// # Errors
/// [`SalvageError`].
pub fn salvage(
    source: &Path,
    target: &Path,
    settings: &StoreSettings,
    at: Timestamp,
    forget_call_ids: bool,
) -> Result<Salvaged, SalvageError> {
    if target.exists() {
        return Err(SalvageError::Exists(target.to_owned()));
    }
    let mut work = target.as_os_str().to_owned();
    work.push(".unfinished");
    let work = PathBuf::from(work);
    let failed = |source| SalvageError::Io { path: work.clone(), source };
    if work.exists() {
        return Err(SalvageError::Unfinished(work));
    }
    fs::create_dir_all(&work).map_err(failed)?;
    let salvaged = salvaged(source, &work, settings, at, forget_call_ids).and_then(|salvaged| {
        fs::rename(work.join("store"), target).map_err(failed)?;
        File::open(target.parent().unwrap_or(target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(salvaged)
    });
    fs::remove_dir_all(&work).map_err(failed)?;
    salvaged
}

fn salvaged(
    source: &Path,
    work: &Path,
    settings: &StoreSettings,
    at: Timestamp,
    forget_call_ids: bool,
) -> Result<Salvaged, SalvageError> {
    let lock = folder::lock(source)?;
    // sled writes when it opens a folder, so it gets a copy.
    let copy = work.join("copy");
    let Opened { db, format, is_cut } = opening::opened(source, &copy, settings)?;
    let new = work.join("store");
    let Folder { folder_lock, db: new_db, file, blobs, .. } = Folder::open(&new, settings, |_, _| Ok(()))?;
    let values = attempt(|| new_db.open_tree(VALUES)).map_err(fault(SALVAGE))?;
    let mut salvage = Salvage {
        source: Tree::new((*db).clone()),
        source_blobs: source.join("blobs"),
        out: Building::new(Tree::new((*new_db).clone()), SALVAGE),
        blobs,
        found: Salvaged::default(),
        has_unknown: is_cut,
        is_cut,
    };
    salvage.rows()?;
    salvage.values(&db, &Tree::new(values))?;
    salvage.commits(at)?;
    salvage.derived()?;
    // Later formats have indexes that follow from the rest. The first open makes them.
    salvage.out.finish(format.clamp(OLDEST, 3), &file)?;
    File::open(new.join("blobs")).and_then(|blobs| blobs.sync_all()).map_err(fault(SALVAGE))?;
    let (found, has_unknown) = (salvage.found, salvage.has_unknown);
    drop((salvage.source, salvage.out, salvage.blobs, new_db, file, db));
    drop((folder_lock, lock));
    let is_lost = has_unknown || !found.turns.is_empty();
    if found.incomplete.contains(rows::CALLS) && is_lost && !forget_call_ids {
        return Err(SalvageError::CallIds);
    }
    match verified(Folder::open(&new, settings, |_, _| Ok(()))?, Vec::new()) {
        Ok(_) => Ok(found),
        Err(VerifyError::Tampered(tampering)) => Err(SalvageError::Unverified(tampering)),
        Err(VerifyError::Open(error)) => Err(error.into()),
        Err(VerifyError::Store(fault)) => Err(fault.into()),
    }
}

struct Salvage {
    source: Tree,
    source_blobs: PathBuf,
    out: Building,
    blobs: Blobs,
    found: Salvaged,
    /// Whether a commit is lost and nothing is known about it.
    has_unknown: bool,
    /// Whether the end of the log may be lost, with any number of commits and values.
    is_cut: bool,
}

impl Salvage {
    /// The value under a key of the damaged store. `None` if it is missing or damaged.
    fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreFault> {
        unless_damaged(self.source.get(key)).map(Option::flatten)
    }

    /// Copies the large record that a value may refer to. Returns its bytes, or those of the record itself; `None` if the
    /// large record is lost.
    fn whole(&self, record: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        let Some(digest) = blobs::referred(record) else { return Ok(Some(record.to_vec())) };
        let file = self.source_blobs.join(digest.hex());
        let named = |fault: StoreFault| StoreFault { reason: format!("{}: {}", file.display(), fault.reason), ..fault };
        let bytes = unless_damaged(fs::read(&file)).map_err(named)?;
        let Some(bytes) = bytes.filter(|bytes| Digest::of(bytes) == digest) else { return Ok(None) };
        self.blobs.write_one(digest, &bytes).map_err(fault(SALVAGE))?;
        Ok(Some(bytes))
    }

    fn count_lost(&mut self, key: &[u8]) {
        *self.found.entries.entry(keys::in_words(key)).or_default() += 1;
    }
}

/// `None` if the content is damaged or no longer there: then it is lost. Any other error ends the salvage, because the
/// content may be intact, and the new store would lack it for good.
fn unless_damaged<T, E: Cause>(read: Result<T, E>) -> Result<Option<T>, StoreFault> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == FaultKind::Damaged => Ok(None),
        Err(error) => Err(fault("read the damaged store")(error)),
    }
}

/// Reads the entries with a prefix: from the first up to damage, and from the last back to damage. Returns whether these
/// are all.
fn scan(
    tree: &Tree,
    prefix: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreFault>,
) -> Result<bool, StoreFault> {
    let mut last: Option<IVec> = None;
    for entry in tree.scan_prefix(prefix) {
        let Some((key, value)) = unless_damaged(entry)? else {
            for entry in tree.scan_prefix(prefix).rev() {
                match unless_damaged(entry)? {
                    Some((key, value)) if last.as_ref().is_none_or(|last| key > *last) => each(&key, &value)?,
                    Some(_) | None => break,
                }
            }
            return Ok(false);
        };
        each(&key, &value)?;
        last = Some(key);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_damage_is_a_loss() {
        let folder = tempfile::tempdir().unwrap();
        let db = sled::open(folder.path()).unwrap();
        for (kind, is_loss) in [
            (FaultKind::Damaged, true),
            (FaultKind::Disk, false),
            (FaultKind::NoSpace, false),
            (FaultKind::Program, false),
        ] {
            let tree = Tree::new((*db).clone());
            tree.close(kind);
            let scanned = scan(&tree, &[], |_, _| Ok(()));
            assert_eq!(scanned.map_err(|fault| fault.kind), if is_loss { Ok(false) } else { Err(kind) });
            assert_eq!(
                unless_damaged(tree.get("key")).map_err(|fault| fault.kind),
                if is_loss { Ok(None) } else { Err(kind) }
            );
        }
    }
}
