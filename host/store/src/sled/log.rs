//! The log of sled, read without sled.
//!
//! sled replays its log from the last snapshot on. It ends at the first damaged byte and drops the rest without an error,
//! because a kill in the middle of a write looks the same. A salvage must neither lose what follows nor take the state
//! before it for the newest one.
//!
//! The log consists of segments. A message in a segment begins with a checksum, its kind, and three numbers: the length of
//! its content, the number of its segment, and its page. Its position in the log (LSN) is the number of its segment times
//! the size of a segment, plus its offset there.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;

use super::rebuild::crc32;

/// The size of the header of a segment.
const HEADER: usize = 20;

/// The kinds of messages. A zero marks damaged content.
const KINDS: RangeInclusive<u8> = 1..=11;

/// A message that sled skips.
const CANCELED: u8 = 1;

/// Replaces damaged bytes between two messages of a segment by a message that sled skips. Returns the LSN of each.
pub(super) fn mend(log: &File, segment: usize) -> io::Result<Vec<u64>> {
    let mut mended = Vec::new();
    each_segment(log, segment, |start, bytes| {
        let mut end = HEADER;
        for (number, at, length) in messages(bytes, segment) {
            if let Some(skipped) = skipped(number, at - end) {
                mended.push(number * segment as u64 + end as u64);
                log.write_all_at(&skipped, start + end as u64)?;
            }
            end = at + length;
        }
        Ok(())
    })?;
    Ok(mended)
}

/// Whether the log has a message at this LSN or after it.
pub(super) fn reaches(log: &File, segment: usize, lsn: u64) -> io::Result<bool> {
    let mut reaches = false;
    each_segment(log, segment, |_, bytes| {
        reaches |= messages(bytes, segment).any(|(number, at, _)| number * segment as u64 + at as u64 >= lsn);
        Ok(())
    })?;
    Ok(reaches)
}

fn each_segment(log: &File, segment: usize, mut each: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let size = log.metadata()?.len();
    for start in (0..size).step_by(segment) {
        let length = usize::try_from(size - start).map_or(segment, |rest| rest.min(segment));
        let mut bytes = vec![0; length];
        log.read_exact_at(&mut bytes, start)?;
        each(start, &bytes)?;
    }
    Ok(())
}

/// The intact messages of a segment: the number of the segment, the offset and the length of each. A segment that is used
/// again can have messages of its earlier use behind the new ones. They have another number and are left out.
fn messages(bytes: &[u8], segment: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let (mut next, mut number) = (HEADER, number_of(bytes, segment));
    // The end of the last segment is not used yet.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    std::iter::from_fn(move || {
        let intact = |at| message(&bytes[at..], number).map(|(number, length)| (number, at, length));
        let (found, at, length) = (next..used).find_map(intact)?;
        (next, number) = (at + length, Some(found));
        Some((found, at, length))
    })
}

/// The number of a segment, if its header is intact. The header has a checksum and the LSN of its first byte.
fn number_of(bytes: &[u8], segment: usize) -> Option<u64> {
    let (sum, rest) = bytes.get(..HEADER)?.split_first_chunk::<4>()?;
    let lsn = u64::from_le_bytes(*rest.first_chunk()?) ^ i64::MAX.cast_unsigned();
    (u32::from_le_bytes(*sum) == !crc32(rest)).then_some(lsn / segment as u64)
}

/// The number of the segment and the length of the message that begins here, if it is intact.
fn message(bytes: &[u8], expected: Option<u64>) -> Option<(u64, usize)> {
    let (sum, after) = bytes.split_first_chunk::<4>()?;
    let (kind, mut rest) = after.split_first()?;
    if !KINDS.contains(kind) {
        return None;
    }
    let length = usize::try_from(read_number(&mut rest)?).ok()?;
    let number = read_number(&mut rest)?;
    read_number(&mut rest)?;
    if expected.is_some_and(|expected| expected != number) {
        return None;
    }
    let content = rest.get(..length)?;
    let head = &after[..after.len() - rest.len()];
    let is_intact = u32::from_le_bytes(*sum) == !crc32(content.iter().chain(head));
    is_intact.then_some((number, sum.len() + head.len() + length))
}

/// A message that sled skips, of exactly this length. Too short a length has no such message.
fn skipped(number: u64, length: usize) -> Option<Vec<u8>> {
    // The length of the content has one byte or four, and the page is number 0.
    let head = |content: usize| {
        let mut head = vec![CANCELED];
        write_number(content as u64, &mut head);
        write_number(number, &mut head);
        head.push(0);
        head
    };
    let sum = size_of::<u32>();
    let fits = |at_most: usize| {
        let content = length.checked_sub(sum + head(at_most).len())?;
        (sum + head(content).len() + content == length).then_some(content)
    };
    let content = fits(0).or_else(|| fits(0xff_ffff))?;
    let (head, content) = (head(content), vec![0; content]);
    let sum = !crc32(content.iter().chain(&head));
    Some([&sum.to_le_bytes(), head.as_slice(), &content].concat())
}

/// Reads a number as sled writes it: in one byte, or behind a byte that says how many follow.
fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let more = match first {
        0..=240 => 0,
        241..=248 => 1,
        249 => 2,
        first => usize::from(first) - 247,
    };
    let (more, rest) = rest.split_at_checked(more)?;
    *bytes = rest;
    let of = |at: usize| u64::from(more[at]);
    Some(match first {
        0..=240 => first.into(),
        241..=248 => 240 + 256 * (u64::from(first) - 241) + of(0),
        249 => 2_288 + 256 * of(0) + of(1),
        _ => more.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    })
}

/// Writes a number so that sled reads it: in one byte, in four, or in nine.
fn write_number(number: u64, out: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    match number {
        0..=240 => out.push(bytes[0]),
        241..=0xff_ffff => out.extend([&[250], &bytes[..3]].concat()),
        _ => out.extend([&[255], bytes.as_slice()].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_messages_have_the_length_of_the_damage() {
        for number in [0, 240, 241, 70_000, 1 << 40] {
            let least = 7 + [1, 4, 9][usize::from(number > 240) + usize::from(number > 0xff_ffff)];
            for length in [least, least + 1, 255, 256, 257, 4_000, 1 << 20] {
                let skipped = skipped(number, length);
                // Between the two ways to write a length there are gaps of three bytes.
                let Some(skipped) = skipped else { continue };
                assert_eq!(message(&skipped, Some(number)), Some((number, length)));
            }
            assert!(skipped(number, least).is_some(), "{number}");
            assert!(skipped(number, 6).is_none(), "{number}");
        }
    }

    #[test]
    fn only_damage_between_messages_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let segment = 1 << 10;
        let config = || sled::Config::new().path(folder.path()).segment_size(segment).flush_every_ms(None);
        let db = config().open().unwrap();
        for number in 0..40_u32 {
            db.insert(number.to_be_bytes(), vec![7; 20]).unwrap();
        }
        db.flush().unwrap();
        drop(db);
        let path = folder.path().join("db");
        let whole = std::fs::read(&path).unwrap();
        let open = || File::options().read(true).write(true).open(&path).unwrap();
        assert_eq!(mend(&open(), segment).unwrap(), [0_u64; 0]);
        assert!(std::fs::read(&path).unwrap() == whole);
        let bytes = &whole[..segment];
        let found: Vec<_> = messages(bytes, segment).collect();
        let (_, at, length) = found[2];
        open().write_all_at(&[!whole[at + length - 1]], (at + length - 1) as u64).unwrap();
        assert_eq!(mend(&open(), segment).unwrap(), [at as u64]);
        let mended = std::fs::read(&path).unwrap();
        assert!(messages(&mended[..segment], segment).map(|(_, at, _)| at).eq(found.iter().map(|(_, at, _)| *at)));
        let (_, last, _) = *found.last().unwrap();
        assert!(reaches(&open(), segment, last as u64).unwrap());
        assert!(!reaches(&open(), segment, 1 << 40).unwrap());
    }
}
