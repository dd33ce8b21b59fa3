//! The remains of a removed turn: one entry under `W` (`keys.rs`), with the position and the digest of each record that
//! the turn had. A turn with more records than an entry may hold has further entries, each under the number of its first
//! record. Until format 7, some hosts wrote one entry of any size. sled writes a large one to a file that it does not sync
//! (`blobs.rs`).
//!
//! One entry for most turns, and none under `e`, so that the pages with the records go. sled merges a page only when it
//! has almost no entries, and writes it again as a whole only after ten changes. Until format 4, each record became a
//! tombstone in its place: a reserved first byte, which no record has, and the digest of the record, after the stamp.
//! Such pages stayed in the file with all that was removed from them. The entry of the turn, under `w`, had only the
//! conversation. A migration folds them (`migrate.rs`). Before that, they can be verified and salvaged.

use dispatch::ports::Position;
use domain::{Digest, TurnId};

use super::keys;

/// The first byte of a tombstone.
const REMOVED: u8 = u8::MAX;

/// The first byte of a lost record that belongs to no turn.
const LOST: u8 = u8::MAX - 1;

/// The size of the position and the digest of a record.
const RECORD: usize = 40;

/// The maximum number of records of an entry, so that it is not larger than any value in the tree.
const MAX_RECORDS: u32 = 1_600;

/// An entry under `W`, without its stamp.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remains<'a> {
    pub(super) conversation: &'a str,
    records: &'a [[u8; RECORD]],
}

impl<'a> Remains<'a> {
    /// Reads the value of an entry, with its stamp: the position of the removal.
    pub(super) fn read(value: &'a [u8]) -> Option<(Position, Self)> {
        let (by, value) = keys::stamped(value)?;
        let (&length, rest) = value.split_first()?;
        let (conversation, records) = rest.split_at_checked(usize::from(length))?;
        let (records, []) = records.as_chunks() else { return None };
        Some((by, Self { conversation: std::str::from_utf8(conversation).ok()?, records }))
    }

    /// The position and the digest of each record, in the order of their commits.
    pub(super) fn records(self) -> impl Iterator<Item = (Position, Digest)> {
        self.records.iter().map(record)
    }

    /// The position and the digest of the record of a commit.
    pub(super) fn record(self, number: u32) -> Option<(Position, Digest)> {
        self.records.get(usize::try_from(number).ok()?).map(record)
    }
}

fn record(bytes: &[u8; RECORD]) -> (Position, Digest) {
    let (mut position, mut digest) = ([0; 8], [0; 32]);
    position.copy_from_slice(&bytes[..8]);
    digest.copy_from_slice(&bytes[8..]);
    (Position(u64::from_be_bytes(position)), Digest::from_bytes(digest))
}

/// The key of the records of a removed turn from this number on.
fn key(turn: TurnId, number: u32) -> Vec<u8> {
    let mut key = keys::removed(turn);
    if number > 0 {
        key.extend_from_slice(&number.to_be_bytes());
    }
    key
}

/// Decodes the key of an entry: the turn, and the number of the first record.
pub(super) fn read_key(key: &[u8]) -> Option<(TurnId, u32)> {
    let (turn, number) = key.get(1..)?.split_first_chunk::<16>()?;
    let number = if number.is_empty() { 0 } else { u32::from_be_bytes(number.try_into().ok()?) };
    Some((TurnId::from_bits(u128::from_be_bytes(*turn)), number))
}

/// The entries of a removed turn. `by` is the position of the removal; a commit that gets its position later leaves it out.
pub(super) fn entries(
    turn: TurnId,
    by: Position,
    conversation: &[u8],
    records: &[(Position, Digest)],
) -> impl Iterator<Item = keys::Entry> {
    let (first, others) = records.split_at(records.len().min(MAX_RECORDS as usize));
    let entries = std::iter::once(first).chain(others.chunks(MAX_RECORDS as usize));
    (0..)
        .step_by(MAX_RECORDS as usize)
        .zip(entries)
        .map(move |(number, records)| (key(turn, number), remains(by, conversation, records.iter().copied())))
}

/// The position and the digest of the record that a commit of a removed turn had.
pub(super) fn record_of<V: AsRef<[u8]>, E>(
    turn: TurnId,
    number: u32,
    get: impl Fn(&[u8]) -> Result<Option<V>, E>,
) -> Result<Option<(Position, Digest)>, E> {
    // The first entry may have all records.
    for first in [0, number - number % MAX_RECORDS] {
        let value = get(&key(turn, first))?;
        let remains = value.as_ref().and_then(|value| Remains::read(value.as_ref()));
        let record = remains.and_then(|(_, remains)| remains.record(number - first));
        if record.is_some() {
            return Ok(record);
        }
    }
    Ok(None)
}

/// The value of an entry.
fn remains(by: Position, conversation: &[u8], records: impl IntoIterator<Item = (Position, Digest)>) -> Vec<u8> {
    // A conversation's id has at most 128 bytes.
    let length = u8::try_from(conversation.len()).unwrap_or(u8::MAX);
    let mut value = [by.0.to_be_bytes().as_slice(), &[length], conversation].concat();
    for (position, digest) in records {
        value.extend_from_slice(&position.0.to_be_bytes());
        value.extend_from_slice(digest.as_bytes());
    }
    value
}

/// The digest of a removed record, if its place in the tree has a tombstone.
pub(super) fn tombstone(record: &[u8]) -> Option<Digest> {
    match record.split_first() {
        Some((&REMOVED, digest)) => digest.try_into().ok().map(Digest::from_bytes),
        _ => None,
    }
}

/// The value of a removed record of a turn. It keeps the stamp.
pub(super) fn tombstone_of(position: Position, digest: Digest) -> Vec<u8> {
    [position.0.to_be_bytes().as_slice(), &[REMOVED], digest.as_bytes()].concat()
}

/// Replaces a record outside of turns that salvage could not find. `by` is the removal entry that records this.
pub(super) fn lost_record(digest: Digest, by: Position) -> Vec<u8> {
    [&[LOST], digest.as_bytes().as_slice(), &by.0.to_be_bytes()].concat()
}

/// Reads [`lost_record`].
pub(super) fn lost(record: &[u8]) -> Option<(Digest, Position)> {
    let (&LOST, rest) = record.split_first()? else { return None };
    let (digest, by) = rest.split_first_chunk::<32>()?;
    Some((Digest::from_bytes(*digest), Position(u64::from_be_bytes(by.try_into().ok()?))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::blobs::MAX_INLINE;
    use super::*;

    #[test]
    fn no_entry_is_larger_than_a_value_in_the_tree() {
        let turn = TurnId::from_bits(1);
        for commits in [0, 1, 1_599, 1_600, 1_601, 10_000] {
            let records: Vec<_> = (0..commits).map(|n: u64| (Position(n + 1), Digest::of(n.to_string()))).collect();
            let entries: BTreeMap<_, _> = entries(turn, Position(9), &[b'c'; 128], &records).collect();
            assert!(entries.contains_key(&keys::removed(turn)), "{commits}");
            assert!(entries.values().all(|value| value.len() <= MAX_INLINE), "{commits}");
            let get = |key: &[u8]| Ok::<_, ()>(entries.get(key));
            let numbers = 0..u32::try_from(commits).unwrap() + 1;
            let read: Vec<_> = numbers.filter_map(|number| record_of(turn, number, get).unwrap()).collect();
            assert_eq!(read, records, "{commits}");
            let large = BTreeMap::from([(keys::removed(turn), remains(Position(9), b"c", records.iter().copied()))]);
            let get = |key: &[u8]| Ok::<_, ()>(large.get(key));
            let last = u32::try_from(commits).unwrap().wrapping_sub(1);
            assert_eq!(
                record_of(turn, last, get).unwrap(),
                records.last().copied(),
                "as older hosts wrote it: {commits}"
            );
        }
    }

    #[test]
    fn remains_are_read_as_they_were_written() {
        let records = [(Position(3), Digest::of("a")), (Position(7), Digest::of("b"))];
        let value = remains(Position(9), b"c", records);
        assert_eq!(value.len(), 8 + 2 + 2 * RECORD);
        let (by, read) = Remains::read(&value).unwrap();
        assert_eq!((by, read.conversation, read.records().collect::<Vec<_>>()), (Position(9), "c", records.to_vec()));
        assert_eq!((read.record(1), read.record(2)), (Some(records[1]), None));
        for length in [0, 8, 9, value.len() - 1] {
            assert_eq!(Remains::read(&value[..length]), None, "{length}");
        }
    }
}
