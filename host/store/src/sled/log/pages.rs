//! Pages of a damaged log whose messages are lost.
//!
//! sled numbers pages without gaps, and panics when it opens a log that has no content of one of them. So one lost message could cost the
//! whole log. Here each such page gets a message that sled finds and cannot read. Then only reads that need the page fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::{FREE, HEADER, RED_ZONE, checksum, each_segment, lsn, messages, read_number, write_number, written_header};

/// The padding of a full segment. sled goes on with the next segment.
const PADDING: u8 = 2;

/// The page from which sled makes ids.
const COUNTER: u8 = 5;
const COUNTER_PAGE: u64 = 1;

/// The whole content of a page.
const NODE: u8 = 8;

/// Messages of this kind and later ones have a change of a page. Those between [`FREE`] and this one have the whole page, or say that
/// it is free.
const CHANGE: u8 = 10;

/// Adds a message for each page that has none but changes. Returns whether there were any such pages.
pub(in crate::sled) fn fill(log: &File, segment: usize) -> io::Result<bool> {
    let size = log.metadata()?.len();
    let (mut is_known, mut last) = (Vec::new(), None);
    each_segment(log, segment, 0, |start, number, bytes, pages| {
        let Some(number) = number else { return Ok(()) };
        let mut end = HEADER;
        for (_, at, length) in messages(bytes, HEADER, Some(number), pages).found {
            // sled reads no further in this segment.
            let Some((kind, page)) = page_of(&bytes[at..]).filter(|_| at == end) else { break };
            end = if kind == PADDING { segment } else { at + length };
            if kind >= FREE {
                let page = usize::try_from(page).map_err(io::Error::other)?;
                is_known.resize(is_known.len().max(page + 1), false);
                is_known[page] |= kind < CHANGE;
            }
        }
        last = last.max(Some((number, start, end)));
        Ok(())
    })?;
    let lost: Vec<u64> = (0..).zip(is_known).filter_map(|(page, is_known)| (!is_known).then_some(page)).collect();
    let Some((number, start, end)) = last.filter(|_| !lost.is_empty()) else { return Ok(false) };
    let fillers = |number: u64| lost.iter().flat_map(|page| filler(number, *page)).collect::<Vec<u8>>();
    let content = fillers(number);
    if end + content.len() + RED_ZONE <= segment {
        log.write_all_at(&content, start + end as u64)?;
    } else {
        let next = number + 1;
        let content = [written_header(lsn(segment, next, 0)), fillers(next)].concat();
        log.write_all_at(&content, size.next_multiple_of(segment as u64))?;
    }
    Ok(true)
}

/// The kind of an intact message, and its page.
fn page_of(message: &[u8]) -> Option<(u8, u64)> {
    let (&kind, mut rest) = message.get(size_of::<u32>()..)?.split_first()?;
    let [_length, _number, page] = [read_number(&mut rest)?, read_number(&mut rest)?, read_number(&mut rest)?];
    Some((kind, page))
}

/// A message for a page. Only the counter can be read.
fn filler(number: u64, page: u64) -> Vec<u8> {
    let (kind, content): (u8, &[u8]) = if page == COUNTER_PAGE { (COUNTER, &[0]) } else { (NODE, &[]) };
    let mut head = vec![kind];
    [content.len() as u64, number, page].into_iter().for_each(|number| write_number(number, &mut head));
    [&checksum(&head, content).to_le_bytes(), head.as_slice(), content].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::tree::attempt;
    use super::super::mend;
    use super::*;

    /// sled writes no page of these tests to a file of its own: each is smaller than a quarter of it.
    const SEGMENT: usize = 1 << 13;

    fn open(folder: &std::path::Path) -> Result<sled::Db, crate::fault::DatabaseError> {
        attempt(|| sled::Config::new().path(folder).segment_size(SEGMENT).flush_every_ms(None).open())
    }

    /// Each message of a database with a whole page: where it is, its length, and the page.
    fn whole_pages(bytes: &[u8]) -> Vec<(usize, usize, u64)> {
        let mut found = Vec::new();
        for (start, segment) in (0..).step_by(SEGMENT).zip(bytes.chunks(SEGMENT)) {
            let number = super::super::number_of(segment, SEGMENT);
            for (_, at, length) in messages(segment, HEADER, number, bytes.len() as u64).found {
                let (kind, page) = page_of(&segment[at..]).unwrap();
                found.extend((FREE..CHANGE).contains(&kind).then_some((start + at, length, page)));
            }
        }
        found
    }

    #[test]
    fn lost_page_costs_only_its_own_entries() {
        let whole = tempfile::tempdir().unwrap();
        let db = open(whole.path()).unwrap();
        for number in 0..400_u32 {
            db.insert(number.to_be_bytes(), vec![7; 20]).unwrap();
        }
        db.flush().unwrap();
        drop(db);
        let bytes = std::fs::read(whole.path().join("db")).unwrap();
        let messages = whole_pages(&bytes);
        let pages: BTreeSet<u64> =
            messages.iter().map(|(.., page)| *page).filter(|page| *page > COUNTER_PAGE).collect();
        let (mut refused, mut kept) = (0, Vec::new());
        for page in &pages {
            let mut damaged = bytes.clone();
            for (at, length, _) in messages.iter().filter(|(.., of)| of == page) {
                damaged[at + length - 1] ^= 4;
            }
            for is_filled in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("db");
                std::fs::copy(whole.path().join("conf"), folder.path().join("conf")).unwrap();
                std::fs::write(&path, &damaged).unwrap();
                let log = File::options().read(true).write(true).open(&path).unwrap();
                mend(&log, SEGMENT).unwrap();
                if is_filled {
                    let is_missing = fill(&log, SEGMENT).unwrap();
                    assert!(is_missing || Some(page) == pages.last(), "page {page} is lost");
                    assert!(!fill(&log, SEGMENT).unwrap(), "page {page} is not missing any more");
                }
                drop(log);
                match open(folder.path()) {
                    Ok(db) if is_filled => {
                        let is_there =
                            |number: &u32| attempt(|| db.get(number.to_be_bytes())).is_ok_and(|it| it.is_some());
                        kept.push((0..400_u32).filter(is_there).count());
                    }
                    Ok(_) => {}
                    Err(_) if is_filled => kept.push(0),
                    Err(_) => refused += 1,
                }
            }
        }
        // The others are the highest page, and those of the last segments, with whose loss sled drops what follows.
        assert!(refused * 10 > pages.len() * 8, "{refused} of {}", pages.len());
        // A page has up to 16 entries. Without an index, none is found.
        assert!(kept.iter().filter(|kept| **kept > 350).count() * 10 > pages.len() * 7, "{kept:?}");
    }

    #[test]
    fn whole_log_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path()).unwrap();
        for number in 0..400_u32 {
            db.insert((number % 90).to_be_bytes(), vec![7; number as usize % 40]).unwrap();
        }
        db.flush().unwrap();
        drop(db);
        let path = folder.path().join("db");
        let before = std::fs::read(&path).unwrap();
        let log = File::options().read(true).write(true).open(&path).unwrap();
        assert!(!fill(&log, SEGMENT).unwrap());
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
