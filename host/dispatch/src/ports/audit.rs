//! The chain of the audit. Every commit of a store is an entry: its hash covers the hash of the entry before, its
//! position, the source of its record, and the exact bytes of the record. A change of one entry changes every hash
//! after it. So one known hash proves that nothing before it was edited, removed, inserted or moved.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use domain::{Digest, TurnId, event::HostStarted, retention::Removal};

use super::fault::StoreFault;
use super::log::Facts;
use super::position::Position;

/// The prefix of every hashed text. It separates these hashes from all others.
const DOMAIN: &[u8] = b"toolgate audit 1";

/// Reads the chain.
///
/// Laws: every commit with facts is an entry, and no other commit is. Positions have no gaps. The same commits make the
/// same chain on every backend. Nothing removes or changes an entry. Records go only by
/// [`NewFacts::Removal`](super::NewFacts::Removal), and their digests stay.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Every commit after a position with its facts, oldest first, at most `limit`.
    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault>;

    /// The entries after a position, at most `limit`. Each has the digest that its record has now, even if that is not
    /// the digest that was committed.
    async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault>;

    /// The removals of turns after a position, with their positions, oldest first, at most `limit`. Those that cannot be read
    /// are left out.
    async fn removals(&self, after: Position, limit: usize) -> Result<Vec<(Position, Removal)>, StoreFault>;

    /// The last entry that is on disk.
    async fn head(&self) -> Result<Head, StoreFault>;

    /// The last start of a host.
    async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault>;
}

/// A point in the chain: a position, and the hash of everything up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The position of the last commit; 0 before the first.
    pub position: Position,
    pub hash: Digest,
}

impl Default for Head {
    fn default() -> Self {
        Self::START
    }
}

impl Head {
    /// The start of every chain.
    pub const START: Self = Self { position: Position(0), hash: Digest::from_bytes([0; 32]) };

    /// The head after one more commit, whose record has this digest.
    #[must_use]
    pub fn then(&self, source: Source, record: Digest) -> Self {
        let position = Position(self.position.0 + 1);
        let number = position.0.to_be_bytes();
        let parts = [DOMAIN, self.hash.as_bytes(), &number, &source.to_bytes(), record.as_bytes()];
        Self { position, hash: Digest::of_parts(&parts) }
    }
}

/// The form in logs, which [`Checkpoint`] reads.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.position.0, self.hash)
    }
}

/// Where the record of a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the log of a turn.
    Turn {
        turn: TurnId,
        /// The commit's number in it, from 0.
        number: u32,
    },
    /// Among the facts about plugins, under its position.
    Plugin,
    /// Among the starts of hosts, under its position.
    Started,
    /// Among the revoked standing approvals, under its position.
    Revoked,
    /// Among the removals, under its position.
    Removal,
}

impl Source {
    /// Its bytes in the chain and in a store.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Turn { turn, number } => {
                [b"e".as_slice(), &turn.bits().to_be_bytes(), &number.to_be_bytes()].concat()
            }
            Self::Plugin => b"h".to_vec(),
            Self::Started => b"n".to_vec(),
            Self::Revoked => b"r".to_vec(),
            Self::Removal => b"p".to_vec(),
        }
    }

    /// Reads [`Source::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'e', pointer) => {
                let (turn, number) = pointer.split_first_chunk::<16>()?;
                let turn = TurnId::from_bits(u128::from_be_bytes(*turn));
                Some(Self::Turn { turn, number: u32::from_be_bytes(number.try_into().ok()?) })
            }
            (b'h', []) => Some(Self::Plugin),
            (b'n', []) => Some(Self::Started),
            (b'r', []) => Some(Self::Revoked),
            (b'p', []) => Some(Self::Removal),
            _ => None,
        }
    }
}

/// A commit in the audit, with its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Its position, and its hash as it was stored.
    pub head: Head,
    /// The place of its record.
    pub source: Source,
    pub facts: Facts,
}

/// An entry of the chain, as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainEntry {
    /// Its position, and its hash as it was stored.
    pub head: Head,
    /// The place of its record.
    pub source: Source,
    pub record: Recorded,
}

/// The state of the record of a chain entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The record is there, and this is the digest that it has now.
    Kept(Digest),
    /// The record was removed, and this is the digest that it left.
    Removed {
        digest: Digest,
        /// The later entry that says so. `None` if there is no such entry.
        by: Option<Position>,
    },
    /// The record is missing or damaged, or belongs to another position.
    Missing,
}

impl Recorded {
    /// The digest of the record.
    #[must_use]
    pub fn digest(self) -> Option<Digest> {
        match self {
            Self::Kept(digest) | Self::Removed { digest, .. } => Some(digest),
            Self::Missing => None,
        }
    }
}

/// A head that was recorded outside the store. The chain is compared with it, because somebody who can write to a store
/// can compute all of its hashes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its position, if it was recorded with it.
    pub position: Option<Position>,
    pub hash: Digest,
}

/// Text that is not a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a checkpoint: expected `sha256:` and 64 lower-case hexadecimal digits, optionally after `POSITION:`")]
pub struct ParseCheckpointError;

impl FromStr for Checkpoint {
    type Err = ParseCheckpointError;

    fn from_str(text: &str) -> Result<Self, ParseCheckpointError> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (position, hash) = match text.split_once(':').filter(|(position, _)| digits(position)) {
            Some((position, hash)) => (Some(Position(position.parse().map_err(|_| ParseCheckpointError)?)), hash),
            None => (None, text),
        };
        Ok(Self { position, hash: hash.parse().map_err(|_| ParseCheckpointError)? })
    }
}

/// The first place where a chain is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("position {}: {what}", .at.0)]
pub struct Tampering {
    pub at: Position,
    /// The finding, and possible causes.
    pub what: String,
}

impl Tampering {
    pub fn new(at: Position, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// Walks a chain from its beginning and computes every hash again.
#[derive(Debug, Clone)]
pub struct Walk {
    head: Head,
    /// Checkpoints that were not reached yet.
    checkpoints: Vec<Checkpoint>,
    /// The entries to come that must be removals.
    removals: BTreeSet<Position>,
}

impl Walk {
    /// A walk that must reach these checkpoints.
    #[must_use]
    pub fn new(checkpoints: Vec<Checkpoint>) -> Self {
        let mut walk = Self { head: Head::START, checkpoints, removals: BTreeSet::new() };
        // The head of an empty store can be a checkpoint too.
        let is_start = |checkpoint: &Checkpoint| {
            checkpoint.hash == Head::START.hash && checkpoint.position.is_none_or(|at| at == Head::START.position)
        };
        walk.checkpoints.retain(|checkpoint| !is_start(checkpoint));
        walk
    }

    /// The last entry that was checked.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The last entry that the walk must still reach, because it says that records before it were removed.
    #[must_use]
    pub fn last_removal(&self) -> Option<Position> {
        self.removals.last().copied()
    }

    /// Checks the next entry.
    ///
    /// # Errors
    /// [`Tampering`]; the walk ends there.
    pub fn step(&mut self, link: &ChainEntry) -> Result<(), Tampering> {
        let next = Position(self.head.position.0 + 1);
        if link.head.position != next {
            return Err(Tampering::new(next, format!("it is missing; the next entry is {}", link.head.position.0)));
        }
        let is_removed = matches!(link.record, Recorded::Removed { .. });
        let record = match link.record {
            Recorded::Kept(record) => record,
            Recorded::Removed { digest, by: Some(by) } if by > next => {
                self.removals.insert(by);
                digest
            }
            Recorded::Removed { .. } => {
                return Err(Tampering::new(next, "its record was removed, and no later entry says so"));
            }
            Recorded::Missing => {
                return Err(Tampering::new(next, "its record is missing, damaged, or belongs to another position"));
            }
        };
        if self.removals.remove(&next) && link.source != Source::Removal {
            return Err(Tampering::new(next, "records were removed with it, and it is not the entry of a removal"));
        }
        // A salvage that did not find the digest of a record, or a hash, kept the hash that follows.
        let is_restart = self.head.hash == Head::START.hash && self.head.position > Head::START.position;
        let is_cut = is_removed && record == Head::START.hash;
        let head = if is_cut || is_restart { link.head } else { self.head.then(link.source, record) };
        if is_cut {
            let at = next.0;
            tracing::warn!(
                at,
                "the chain is cut: a salvage lost this record, so only older checkpoints prove what is before it"
            );
        }
        if head != link.head {
            let what = format!("its hash is {} and must be {}: edited, inserted or moved", link.head.hash, head.hash);
            return Err(Tampering::new(next, what));
        }
        self.head = head;
        self.meet()
    }

    /// Compares the head with the checkpoints.
    fn meet(&mut self) -> Result<(), Tampering> {
        let Head { position, hash } = self.head;
        if let Some(checkpoint) =
            self.checkpoints.iter().find(|checkpoint| checkpoint.position == Some(position) && checkpoint.hash != hash)
        {
            let what =
                format!("its hash is {hash}, and the checkpoint says {}: the chain was rebuilt", checkpoint.hash);
            return Err(Tampering::new(position, what));
        }
        self.checkpoints
            .retain(|checkpoint| checkpoint.hash != hash || checkpoint.position.is_some_and(|at| at != position));
        Ok(())
    }

    /// Ends the walk. `head` is the head according to the store.
    ///
    /// # Errors
    /// [`Tampering`]: the head differs, or a checkpoint was not reached.
    pub fn end(self, head: Head) -> Result<Head, Tampering> {
        let last = self.head.position;
        let next = Position(last.0 + 1);
        if head.position > last {
            return Err(Tampering::new(next, format!("it is missing, and the head is position {}", head.position.0)));
        }
        if head.position < last {
            let first = Position(head.position.0 + 1);
            return Err(Tampering::new(first, format!("it is after the head, which is position {}", head.position.0)));
        }
        if head.hash != self.head.hash {
            let what = format!("its hash is {} and the head's is {}", self.head.hash, head.hash);
            return Err(Tampering::new(last, what));
        }
        if let Some(removal) = self.removals.first() {
            let what = format!("it is missing: it says which records before it were removed; the head is {}", last.0);
            return Err(Tampering::new(*removal, what));
        }
        match self.checkpoints.first() {
            None => Ok(head),
            Some(Checkpoint { position: Some(at), .. }) => {
                let what = format!("it is missing: the audit ends before position {} of the checkpoint", at.0);
                Err(Tampering::new(next, what))
            }
            Some(Checkpoint { position: None, hash }) => {
                let what = format!("up to here, no commit has the hash {hash} of the checkpoint");
                Err(Tampering::new(last, format!("{what}: the end was cut off, or the chain was rebuilt")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(before: Head, number: u32) -> ChainEntry {
        let source = Source::Turn { turn: TurnId::from_bits(7), number };
        let record = Digest::of(number.to_be_bytes());
        ChainEntry { head: before.then(source, record), source, record: Recorded::Kept(record) }
    }

    fn chain(length: u32) -> Vec<ChainEntry> {
        let mut head = Head::START;
        let next = |number| {
            let link = link(head, number);
            head = link.head;
            link
        };
        (0..length).map(next).collect()
    }

    fn walk(links: &[ChainEntry], head: Head, checkpoints: &[&str]) -> Result<Head, Tampering> {
        let mut walk = Walk::new(checkpoints.iter().map(|checkpoint| checkpoint.parse().unwrap()).collect());
        links.iter().try_for_each(|link| walk.step(link))?;
        walk.end(head)
    }

    #[test]
    fn a_chain_equals_the_published_one() {
        let links = chain(5);
        let head = links[4].head;
        // Computed by another program from the description in docs/how-to/verify-the-audit.md.
        assert_eq!(head.to_string(), "5:sha256:d9d5a2642b7ed3fc71576dcd3e69bc962a99e65aabe5694ed8e7b4ac8a338c0c");
        assert_eq!(walk(&links, head, &[]), Ok(head));
        assert_eq!(walk(&[], Head::START, &[]), Ok(Head::START));
    }

    #[test]
    fn the_first_altered_entry_is_found() {
        let links = chain(5);
        let head = links[4].head;
        let other = Digest::of("other");
        let changed = |change: &dyn Fn(&mut Vec<ChainEntry>)| {
            let mut links = links.clone();
            change(&mut links);
            walk(&links, head, &[]).unwrap_err()
        };
        let found = [
            changed(&|links| links[2].record = Recorded::Kept(other)),
            changed(&|links| links[2].record = Recorded::Missing),
            changed(&|links| links[2].source = Source::Plugin),
            changed(&|links| links[2].head.hash = other),
            changed(&|links| {
                links.remove(2);
            }),
            changed(&|links| {
                let (a, b) = (links[2].head.position, links[3].head.position);
                (links[2].head.position, links[3].head.position) = (b, a);
                links.swap(2, 3);
            }),
            changed(&|links| links.truncate(2)),
        ];
        assert!(found.iter().all(|found| found.at == Position(3)), "{found:#?}");
        let inserted = walk(&links, links[2].head, &[]).unwrap_err();
        assert_eq!(inserted.to_string(), "position 4: it is after the head, which is position 3");
        let forged = Head { hash: other, ..head };
        assert_eq!(walk(&links, forged, &[]).unwrap_err().at, Position(5));
    }

    #[test]
    fn a_removed_record_needs_a_later_entry_of_a_removal() {
        let removed = |by: Option<u64>, last: Source| {
            let mut links = chain(3);
            let digest = links[1].record.digest().unwrap();
            links[1].record = Recorded::Removed { digest, by: by.map(Position) };
            let record = Digest::of("removal");
            links.push(ChainEntry {
                head: links[2].head.then(last, record),
                source: last,
                record: Recorded::Kept(record),
            });
            walk(&links, links[3].head, &[]).map_err(|found| found.to_string())
        };
        let unsaid = "position 2: its record was removed, and no later entry says so";
        assert!(removed(Some(4), Source::Removal).is_ok());
        assert_eq!(removed(None, Source::Removal).unwrap_err(), unsaid);
        assert_eq!(removed(Some(1), Source::Removal).unwrap_err(), unsaid);
        assert_eq!(
            removed(Some(4), Source::Started).unwrap_err(),
            "position 4: records were removed with it, and it is not the entry of a removal"
        );
        assert_eq!(
            removed(Some(9), Source::Removal).unwrap_err(),
            "position 9: it is missing: it says which records before it were removed; the head is 4"
        );
    }

    #[test]
    fn a_checkpoint_reveals_a_rebuilt_or_truncated_chain() {
        let links = chain(5);
        let (third, head) = (links[2].head, links[4].head);
        let hash = third.hash.to_string();
        for checkpoint in [third.to_string(), hash.clone(), third.hash.hex(), Head::START.to_string()] {
            assert_eq!(walk(&links, head, &[&checkpoint]), Ok(head), "{checkpoint}");
        }
        let mut rebuilt = chain(1);
        rebuilt.push(link(rebuilt[0].head, 7));
        rebuilt.push(link(rebuilt[1].head, 2));
        let last = rebuilt[2].head;
        assert_eq!(walk(&rebuilt, last, &[]), Ok(last), "without a checkpoint a rebuilt chain is valid");
        assert_eq!(walk(&rebuilt, last, &[&third.to_string()]).unwrap_err().at, Position(3));
        assert!(walk(&rebuilt, last, &[&hash]).unwrap_err().what.contains("cut off, or the chain was rebuilt"));
        let cut = &links[..2];
        let found = walk(cut, cut[1].head, &[&third.to_string()]).unwrap_err();
        assert_eq!(found.to_string(), "position 3: it is missing: the audit ends before position 3 of the checkpoint");
        assert!(walk(cut, cut[1].head, &[&hash]).is_err());
        let zeros = format!("3:{}", Head::START.hash);
        assert_eq!(walk(&links, head, &[&zeros]).unwrap_err().at, Position(3), "only the start has the hash of zeros");
        for text in ["", "x", "3:", "-1:sha256:00", &format!("x:{hash}"), &format!("99999999999999999999:{hash}")] {
            assert_eq!(text.parse::<Checkpoint>(), Err(ParseCheckpointError), "{text}");
        }
    }

    #[test]
    fn sources_round_trip_and_other_bytes_are_refused() {
        for source in [
            Source::Turn { turn: TurnId::from_bits(1 << 100), number: 9 },
            Source::Plugin,
            Source::Started,
            Source::Revoked,
            Source::Removal,
        ] {
            assert_eq!(Source::from_bytes(&source.to_bytes()), Some(source));
        }
        for bytes in [b"".as_slice(), b"x", b"hh", b"e", &[b'e'; 20], &[b'e'; 22]] {
            assert_eq!(Source::from_bytes(bytes), None);
        }
    }
}
