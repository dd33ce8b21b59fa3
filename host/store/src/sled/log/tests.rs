//! The parser of the log, on logs of sled and on written ones.

use super::*;

#[test]
fn skipped_messages_have_the_length_of_the_damage() {
    for number in [0, 240, 241, 70_000, 1 << 40] {
        let least = 7 + [1, 4, 9][usize::from(number > 240) + usize::from(number > 0xff_ffff)];
        for length in (least..600).chain([4_000, 1 << 20]) {
            let skipped = skipped(number, length).unwrap_or_else(|| panic!("{length} bytes of {number}"));
            assert_eq!(message(&skipped, Some(number), 0), Some((number, length)));
            assert!(is_intact(&skipped));
        }
        assert!(skipped(number, least - 1).is_none(), "{number}");
    }
}

/// The messages around the length from which on sled writes a length in more bytes.
#[test]
fn sled_reads_on_behind_damage_of_each_length() {
    let whole = tempfile::tempdir().unwrap();
    let segment = 1 << 17;
    let open = |folder: &std::path::Path| {
        sled::Config::new().path(folder).segment_size(segment).flush_every_ms(None).open().unwrap()
    };
    let last = 90_u32;
    let db = open(whole.path());
    for number in 0..=last {
        db.insert(number.to_be_bytes(), vec![7; 160 + number as usize]).unwrap();
        db.flush().unwrap();
    }
    drop(db);
    let bytes = std::fs::read(whole.path().join("db")).unwrap();
    let found = messages(&bytes, HEADER, Some(0), bytes.len() as u64).found;
    let mut lengths = std::collections::BTreeSet::new();
    for (_, at, length) in found.into_iter().filter(|(.., length)| (240..262).contains(length)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        std::fs::copy(whole.path().join("conf"), folder.path().join("conf")).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let log = File::options().read(true).write(true).open(&path).unwrap();
        log.write_all_at(&[!bytes[at + length - 1]], (at + length - 1) as u64).unwrap();
        mend(&log, segment).unwrap();
        drop(log);
        let value = open(folder.path()).get(last.to_be_bytes()).unwrap();
        assert!(value.is_some(), "sled ended at the {length} bytes at {at}");
        lengths.insert(length);
    }
    assert!([248, 250, 251, 252].iter().all(|length| lengths.contains(length)), "{lengths:?}");
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
    assert_eq!(mend(&open(), segment).unwrap(), []);
    assert!(std::fs::read(&path).unwrap() == whole);
    let bytes = &whole[..segment];
    let intact = |bytes: &[u8]| messages(bytes, HEADER, Some(0), whole.len() as u64).found;
    let found = intact(bytes);
    let (_, at, length) = found[2];
    open().write_all_at(&[!whole[at + length - 1]], (at + length - 1) as u64).unwrap();
    let lsns = at as u64..=(at + length - 1) as u64;
    assert_eq!(mend(&open(), segment).unwrap(), [Damage { lsns, is_header: false }]);
    let mended = std::fs::read(&path).unwrap();
    assert_eq!(intact(&mended[..segment]), found);
    let (_, last, _) = *found.last().unwrap();
    assert!(reaches(&open(), segment, last as u64).unwrap());
    assert!(!reaches(&open(), segment, 1 << 40).unwrap());
}

const SEGMENT: usize = 512;

/// The number of the first segment. It has two bytes, so that a message of sled can be shorter than one that replaces
/// it.
const FIRST: u64 = 300;

fn message_of(kind: u8, number: u64, page: u8, content: &[u8]) -> Vec<u8> {
    let (more, rest) = ((number - 240) / 256, (number - 240) % 256);
    let head = [kind, content.len() as u8, 241 + more as u8, rest as u8, page];
    let sum = checksum(&head, content);
    [&sum.to_le_bytes(), head.as_slice(), content].concat()
}

fn header_of(number: u64) -> Vec<u8> {
    let lsn = number * SEGMENT as u64;
    let rest = [lsn, lsn - 1].map(|lsn| (lsn ^ i64::MAX.cast_unsigned()).to_le_bytes()).concat();
    [(!crc32fast::hash(&rest)).to_le_bytes().as_slice(), &rest].concat()
}

/// Three segments of a message without content, four with 100 bytes each, and one that ends 17 bytes before the end.
fn three_segments(content: &[u8; 100]) -> Vec<u8> {
    let segment = |number| {
        let small = message_of(FREE, number, 1, &[]);
        let large = message_of(FREE, number, 1, content);
        let last = message_of(FREE, number, 1, &[7; 21]);
        let mut bytes = [header_of(number), small, large.repeat(4), last].concat();
        bytes.resize(SEGMENT, 0);
        bytes
    };
    (FIRST..FIRST + 3).flat_map(segment).collect()
}

/// Mends a log. Returns the damages, and the log.
fn mended(bytes: &[u8]) -> (Vec<u64>, Vec<u8>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let log = File::options().read(true).write(true).open(file.path()).unwrap();
    let ends = mend(&log, SEGMENT).unwrap().iter().map(|damage| *damage.lsns.end()).collect();
    (ends, std::fs::read(file.path()).unwrap())
}

#[test]
fn damage_that_sled_would_skip_is_noted() {
    let whole = three_segments(&[7; 100]);
    assert_eq!(mended(&whole), (vec![], whole.clone()));
    let lsn = |at: usize| FIRST * SEGMENT as u64 + at as u64;
    let (small, last, end) = (HEADER + 8, 465, 494);
    for (what, at, noted) in [
        ("a message that is too short to be replaced", small, vec![lsn(small), lsn(end)]),
        ("the last message of a segment", last + 20, vec![lsn(SEGMENT - 1)]),
    ] {
        for segment in 0..3 {
            let mut bytes = whole.clone();
            bytes[segment * SEGMENT + at] ^= 4;
            let noted: Vec<u64> = noted.iter().map(|lsn| lsn + (segment * SEGMENT) as u64).collect();
            assert_eq!(mended(&bytes), (noted, bytes), "{what} of {segment}");
        }
    }
    let mut bytes = whole.clone();
    // The last segment had another number before.
    let used_again = message_of(FREE, FIRST - 1, 1, &[7; 21]);
    let last = 2 * SEGMENT + 465;
    bytes[last..last + used_again.len()].copy_from_slice(&used_again);
    assert!(mended(&bytes).0.is_empty(), "earlier messages are no damage");
    let mut bytes = whole.clone();
    bytes[SEGMENT + 5] ^= 4;
    let (noted, mended_bytes) = mended(&bytes);
    assert!(noted.is_empty(), "a header is written again: {noted:?}");
    assert_eq!(number_of(&mended_bytes[SEGMENT..], SEGMENT), Some(FIRST + 1));
    let mut bytes = whole;
    bytes[SEGMENT..2 * SEGMENT].fill(9);
    assert_eq!(mended(&bytes).0, [u64::MAX], "a whole segment");
}

#[test]
fn damage_that_a_loss_of_power_can_cause_is_found_as_such() {
    let found = |bytes: &[u8], snapshot| {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        loss(&file, SEGMENT, snapshot).unwrap()
    };
    let whole = three_segments(&[7; 100]);
    let lsn = |number: u64, at: usize| number * SEGMENT as u64 + at as u64;
    assert_eq!(found(&whole, 0), None);
    let (small, last) = (HEADER, 465);
    let lost = Some(Loss::Unclear);
    for (what, at, in_last) in
        [("a message", small + 8, &lost), ("a header", 5, &lost), ("the last message", last + 20, &None)]
    {
        for segment in 0..3 {
            let mut bytes = whole.clone();
            bytes[segment * SEGMENT + at] ^= 4;
            let number = FIRST + segment as u64;
            let synced = Some(Loss::Synced(lsn(number, 0)));
            let expected = match what {
                "a header" => &synced,
                _ if segment < 2 => &lost,
                _ => in_last,
            };
            assert_eq!(found(&bytes, 0), *expected, "{what} of {segment}");
            assert_eq!(found(&bytes, lsn(number + 1, 0)), None, "{what} of {segment}: the snapshot has it");
        }
    }
    let mut bytes = whole;
    bytes[2 * SEGMENT + small + 8] ^= 4;
    let end = lsn(FIRST + 3, 0) - 1;
    assert_eq!(found(&bytes, end), Some(Loss::Synced(lsn(FIRST + 2, small))), "sled reads it again");
    bytes[2 * SEGMENT..2 * SEGMENT + HEADER].fill(0);
    assert_eq!(found(&bytes, 0), lost, "a segment that was to be used again");
}

#[test]
fn batches_show_that_damage_before_them_was_synced() {
    let batch = message_of(BATCH, FIRST, 0, &[0; 8]);
    for (batches, expected) in [(1, Loss::Unclear), (2, Loss::Synced(FIRST * SEGMENT as u64 + HEADER as u64))] {
        let mut bytes = [header_of(FIRST), message_of(FREE, FIRST, 1, &[7; 40]), batch.repeat(batches)].concat();
        bytes.resize(SEGMENT, 0);
        bytes[HEADER + 20] ^= 4;
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        assert_eq!(loss(&file, SEGMENT, 0).unwrap(), Some(expected));
    }
}

#[test]
fn messages_in_damaged_content_are_not_used() {
    let mut content = [0; 100];
    let forged = message_of(FREE, FIRST, 1, b"forged");
    content[40..40 + forged.len()].copy_from_slice(&forged);
    let mut bytes = three_segments(&content);
    let at = HEADER + 9;
    bytes[at + 99] ^= 4;
    let (_, mended) = mended(&bytes);
    let found = messages(&mended[..SEGMENT], HEADER, Some(FIRST), 1 << 20).found;
    assert_eq!(found[1], (FIRST, at, 109), "the damaged message is replaced as a whole");
    assert!(is_intact(&mended[at..at + 109]) && mended[at + 4] == CANCELED);
}

#[test]
fn messages_with_huge_numbers_are_not_used() {
    let page = message_of(FREE, FIRST, 200, &[]);
    assert_eq!((message(&page, None, 200), message(&page, None, 201)), (None, Some((FIRST, 9))));
    let mut far = vec![0, 0, 0, 0, CANCELED, 0];
    write_number(u64::MAX, &mut far);
    far.push(0);
    let sum = checksum(&far[4..], &[]);
    far[..4].copy_from_slice(&sum.to_le_bytes());
    far.resize(SEGMENT, 0);
    far.splice(0..0, [1; HEADER]);
    far.truncate(SEGMENT);
    assert_eq!(mended(&far).0, [u64::MAX]);
}

#[test]
fn crafted_content_costs_a_limited_time() {
    // Each of these bytes begins a message that is long and damaged.
    let crafted = [1, 2, 3, 4, 1, 249, 250, 0, 9, 0].repeat(SEGMENT * 20);
    assert!(messages(&crafted, HEADER, None, 0).has_more);
}
