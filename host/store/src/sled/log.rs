//! The log of sled, read without sled.
//!
//! sled replays its log from the last snapshot on. It ends at the first damaged byte and drops the rest without an error,
//! because a kill in the middle of a write looks the same. In a segment before the last it goes on with the next segment.
//! A salvage must neither lose what follows nor take the state before it for the newest one.
//!
//! The log consists of segments. A message in a segment begins with a checksum, its kind, and three numbers: the length of
//! its content, the number of its segment, and its page. Its position in the log (LSN) is the number of its segment times
//! the size of a segment, plus its offset there.

mod pages;

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;

pub(super) use self::pages::fill;

/// The size of the header of a segment.
const HEADER: usize = 20;

/// The kinds of messages. A zero marks damaged content.
const KINDS: RangeInclusive<u8> = 1..=11;

/// A message that sled skips.
const CANCELED: u8 = 1;

/// sled's numbers have a sign.
const MAX_LSN: u64 = i64::MAX.cast_unsigned();

/// The first message of a batch. The store syncs each batch before it begins the next one.
const BATCH: u8 = 3;

/// Messages of this kind and later ones name a page. sled makes a table of all pages up to the highest.
const FREE: u8 = 4;

/// No message begins in the last bytes of a segment. Before them, a full segment has messages or padding.
const RED_ZONE: usize = 32;

/// The work for a segment, in multiples of its size. Crafted content could ask for the checksums of more bytes.
const MAX_WORK: usize = 16;

/// A part of the log that is damaged. sled may lose the messages in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) lsns: RangeInclusive<u64>,
    /// Whether the header of a segment is damaged. A loss of power leaves an old header, a new one or zeros.
    is_header: bool,
}

/// Writes damaged headers again, and replaces damaged bytes between two messages of a segment by a message that sled skips.
/// Returns all damage that may hide a loss.
pub(super) fn mend(log: &File, segment: usize) -> io::Result<Vec<Damage>> {
    each_segment(log, segment, 0, |start, number, bytes, pages| {
        let found = messages(bytes, HEADER, number, pages).found;
        match found.first().map(|(found, ..)| lsn(segment, *found, 0)) {
            Some(lsn) if number.is_none() && lsn < MAX_LSN => log.write_all_at(&written_header(lsn), start),
            Some(_) | None => Ok(()),
        }
    })?;
    let (damages, _) = damages(log, segment, 0, |at, number, length| {
        let skipped = skipped(number, length);
        skipped.map(|skipped| log.write_all_at(&skipped, at)).transpose().map(|written| written.is_some())
    })?;
    Ok(damages)
}

/// Damage that makes sled drop intact messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No loss of power causes it: the messages from this LSN on had been synced.
    Synced(u64),
    /// A loss of power may have caused it: in what was written last, or in an old segment that was to be used again.
    Unclear,
}

/// Finds damage that would make sled drop intact messages. The newest snapshot ends at this LSN.
pub(super) fn loss(log: &File, segment: usize, snapshot: u64) -> io::Result<Option<Loss>> {
    // sled reads the whole segment in which the snapshot ends.
    let (damages, last) = damages(log, segment, snapshot / segment as u64 * segment as u64, |_, _, _| Ok(true))?;
    if let Some(header) = damages.iter().find(|damage| damage.is_header) {
        return Ok(Some(Loss::Synced(*header.lsns.start())));
    }
    let first_from = |from| damages.iter().map(|damage| *damage.lsns.start()).filter(|at| *at >= from).min();
    if let Some(first) = first_from(lsn(segment, last, 0)) {
        let batches = kinds_from(log, segment, first)?.into_iter().filter(|kind| *kind == BATCH).count();
        // The second batch began after a sync.
        if first < snapshot || batches >= 2 {
            return Ok(Some(Loss::Synced(first)));
        }
    }
    let Some(first) = first_from(0) else { return Ok(None) };
    Ok(reaches(log, segment, first)?.then_some(Loss::Unclear))
}

/// The kinds of the messages from this LSN on.
fn kinds_from(log: &File, segment: usize, from: u64) -> io::Result<Vec<u8>> {
    let mut kinds = Vec::new();
    each_segment(log, segment, from, |_, header, bytes, pages| {
        let Messages { found, has_more } = messages(bytes, HEADER, header, pages);
        let found = found.iter().filter(|(number, at, _)| lsn(segment, *number, *at) >= from);
        kinds.extend(found.filter_map(|(_, at, _)| bytes.get(at + size_of::<u32>())));
        // Unknown messages have the kind of damaged content.
        kinds.extend(has_more.then_some(0));
        Ok(())
    })?;
    Ok(kinds)
}

/// All damage in the segments that reach this LSN. `replace` gets the place in the file, the number of the segment, and the
/// length of damaged bytes between two messages. It says whether sled can now read the messages behind them. Returns the
/// number of the last segment too.
fn damages(
    log: &File,
    segment: usize,
    from: u64,
    mut replace: impl FnMut(u64, u64, usize) -> io::Result<bool>,
) -> io::Result<(Vec<Damage>, u64)> {
    let (mut damages, mut ends) = (Vec::new(), Vec::new());
    each_segment(log, segment, from, |start, header, bytes, pages| {
        let Messages { found, has_more } = messages(bytes, HEADER, header, pages);
        if found.first().is_some_and(|(number, ..)| lsn(segment, *number, segment) <= from) {
            return Ok(());
        }
        let (mut end, mut number, mut is_skipped) = (HEADER, header, header.is_none());
        for (of, at, length) in found {
            if at > end {
                let lsns = lsn(segment, of, end)..=lsn(segment, of, at - 1);
                damages.push(Damage { lsns, is_header: false });
                is_skipped |= !replace(start + end as u64, of, at - end)?;
            }
            (end, number) = (at + length, Some(of));
        }
        // A segment that is used again can have messages of its earlier use behind the new ones.
        let has_rest =
            bytes.iter().skip(end).any(|byte| *byte != 0) && messages(bytes, end, None, pages).found.is_empty();
        let is_header = header.is_none() && bytes.iter().take(HEADER).any(|byte| *byte != 0);
        let lsns = match number {
            Some(number) if has_more => Some(lsn(segment, number, end)..=u64::MAX),
            Some(number) if is_skipped => Some(lsn(segment, number, 0)..=lsn(segment, number, end - 1)),
            // Nothing says when it was written.
            None if is_header => Some(0..=u64::MAX),
            None if has_rest => Some(u64::MAX..=u64::MAX),
            Some(_) | None => None,
        };
        damages.extend(lsns.map(|lsns| Damage { lsns, is_header }));
        ends.extend(number.map(|number| (number, end, has_rest)));
        Ok(())
    })?;
    // The last segment may have space. Other bytes in it are the half of a message that a kill left, or a damaged one.
    let last = ends.iter().map(|(number, ..)| *number).max().unwrap_or(0);
    for (number, end, has_rest) in ends {
        if end + RED_ZONE < segment && (has_rest || number < last) {
            let lsns = lsn(segment, number, end)..=lsn(segment, number, segment - 1);
            damages.push(Damage { lsns, is_header: false });
        }
    }
    Ok((damages, last))
}

/// Whether the log has a message at this LSN or after it.
pub(super) fn reaches(log: &File, segment: usize, from: u64) -> io::Result<bool> {
    Ok(!kinds_from(log, segment, from)?.is_empty())
}

/// The number may be damaged.
fn lsn(segment: usize, number: u64, at: usize) -> u64 {
    number.saturating_mul(segment as u64).saturating_add(at as u64)
}

/// Calls `each` with the place, the number and the bytes of each segment that reaches this LSN, and with a number that no
/// page of the log has. A segment with a damaged header has no number.
fn each_segment(
    log: &File,
    segment: usize,
    from: u64,
    mut each: impl FnMut(u64, Option<u64>, &[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let size = log.metadata()?.len();
    let mut bytes = Vec::new();
    for start in (0..size).step_by(segment) {
        let length = usize::try_from(size - start).map_or(segment, |rest| rest.min(segment));
        bytes.resize(length.min(HEADER), 0);
        log.read_exact_at(&mut bytes, start)?;
        let number = number_of(&bytes, segment);
        if number.is_some_and(|number| lsn(segment, number, segment) <= from) {
            continue;
        }
        bytes.resize(length, 0);
        log.read_exact_at(&mut bytes, start)?;
        // Each page has a message of more than a byte, and their numbers have no gaps.
        each(start, number, &bytes, size)?;
    }
    Ok(())
}

struct Messages {
    /// The number of the segment, the offset and the length of each intact message.
    found: Vec<(u64, usize, usize)>,
    /// Whether there may be more, because the search took too long.
    has_more: bool,
}

/// The intact messages of a segment from this offset on, all of the same number.
///
/// The content of a damaged message can look like messages: plugins choose it. So the search first believes the length of
/// the damaged message.
fn messages(bytes: &[u8], from: usize, mut number: Option<u64>, pages: u64) -> Messages {
    let (mut found, mut next, mut work) = (Vec::new(), from, bytes.len() * MAX_WORK);
    // The end of the last segment is not used yet.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    while next < used {
        let mut intact = |at: usize| {
            let (number, length) = message(bytes.get(at..)?, number, pages).filter(|(_, length)| *length <= work)?;
            let message = bytes.get(at..at + length)?;
            if is_intact(message) {
                return Some((number, at, length));
            }
            work -= length;
            None
        };
        let own = message(&bytes[next..], number, pages).map(|(_, length)| next + length);
        let first = intact(next).or_else(|| own.and_then(&mut intact));
        let Some(first) = first.or_else(|| (next + 1..used).find_map(&mut intact)) else { break };
        found.push(first);
        (number, next) = (Some(first.0), first.1 + first.2);
    }
    Messages { found, has_more: work < bytes.len() }
}

/// The number of a segment, if its header is intact: a checksum, the LSN of the first byte, and the stable LSN.
fn number_of(bytes: &[u8], segment: usize) -> Option<u64> {
    let (sum, rest) = bytes.get(..HEADER)?.split_first_chunk::<4>()?;
    let lsn = u64::from_le_bytes(*rest.first_chunk()?) ^ i64::MAX.cast_unsigned();
    (u32::from_le_bytes(*sum) == !crc32fast::hash(rest)).then_some(lsn / segment as u64)
}

/// The header of a segment with this LSN. It names no stable LSN.
fn written_header(lsn: u64) -> Vec<u8> {
    let numbers = [lsn, u64::MAX].map(|lsn| (lsn ^ i64::MAX.cast_unsigned()).to_le_bytes()).concat();
    [(!crc32fast::hash(&numbers)).to_le_bytes().as_slice(), &numbers].concat()
}

/// The number of the segment and the length of the message that begins here, if it can be one.
fn message(bytes: &[u8], expected: Option<u64>, pages: u64) -> Option<(u64, usize)> {
    let (kind, mut rest) = bytes.get(size_of::<u32>()..)?.split_first()?;
    if !KINDS.contains(kind) {
        return None;
    }
    let length = usize::try_from(read_number(&mut rest)?).ok()?;
    let number = read_number(&mut rest)?;
    let page = read_number(&mut rest)?;
    let is_other = expected.is_some_and(|expected| expected != number);
    if is_other || (*kind >= FREE && page >= pages) || length > rest.len() {
        return None;
    }
    Some((number, bytes.len() - rest.len() + length))
}

/// Whether the checksum of a message fits.
fn is_intact(message: &[u8]) -> bool {
    let Some((sum, after)) = message.split_first_chunk::<4>() else { return false };
    let mut content = after.get(1..).unwrap_or_default();
    let has_head = (0..3).all(|_| read_number(&mut content).is_some());
    let head = &after[..after.len() - content.len()];
    has_head && u32::from_le_bytes(*sum) == checksum(head, content)
}

/// The checksum of a message covers the content first, and then the numbers.
fn checksum(head: &[u8], content: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(content);
    sum.update(head);
    !sum.finalize()
}

/// A message that sled skips, of exactly this length. Too short a length has no such message.
fn skipped(number: u64, length: usize) -> Option<Vec<u8>> {
    let mut after = Vec::new();
    write_number(number, &mut after);
    // The page is number 0.
    after.push(0);
    let rest = length.checked_sub(size_of::<u32>() + 1 + after.len())?;
    // The length of the content has one byte or four. sled reads a small number in four bytes too.
    let mut head = vec![CANCELED];
    let content = match rest.checked_sub(1)? {
        content @ 0..=ONE_BYTE => {
            write_number(content as u64, &mut head);
            content
        }
        _ => {
            let content = rest.checked_sub(4)?;
            head.extend(four_bytes(content as u64)?);
            content
        }
    };
    head.extend(after);
    let content = vec![0; content];
    let sum = checksum(&head, &content);
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

/// The largest number that sled reads in one byte.
const ONE_BYTE: usize = 240;

/// Writes a number so that sled reads it: in one byte, in four, or in nine.
fn write_number(number: u64, out: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    match (number <= ONE_BYTE as u64, four_bytes(number)) {
        (true, _) => out.push(bytes[0]),
        (false, Some(four)) => out.extend(four),
        (false, None) => out.extend([&[255], bytes.as_slice()].concat()),
    }
}

/// A number in four bytes, if it is small enough.
fn four_bytes(number: u64) -> Option<Vec<u8>> {
    let bytes = number.to_le_bytes();
    (number <= 0xff_ffff).then(|| [&[250], &bytes[..3]].concat())
}

#[cfg(test)]
mod tests;
