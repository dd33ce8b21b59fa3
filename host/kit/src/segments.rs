//! Joins the data segments of a core module.
//!
//! Go's linker starts a new segment after eight zeros in a row. A plugin that counts words has 45,000 segments. They
//! take time to load, and a host accepts hardly more. Joining them across gaps of up to 32 bytes leaves some dozens.

/// Smaller gaps are filled with zeros, which is what memory contains there in any case.
const GAP: u64 = 32;

/// Identifiers of sections.
const CODE_COUNT: u8 = 12;
const DATA: u8 = 11;

/// `i32.const` and `end`.
const I32_CONST: u8 = 0x41;
const END: u8 = 0x0b;

/// The same module with fewer data segments. `None` if it has no data, or is not a module, or does not look like Go's:
/// passive segments, computed offsets, overlaps.
pub(crate) fn join(module: &[u8]) -> Option<Vec<u8>> {
    let mut out = module.get(..8)?.to_vec();
    let mut rest = &module[8..];
    let mut joined = false;
    while let Some((&id, tail)) = rest.split_first() {
        let (size, tail) = unsigned(tail)?;
        let (content, tail) = tail.split_at_checked(usize::try_from(size).ok()?)?;
        match id {
            // With this section, instructions may refer to segments by number.
            CODE_COUNT => return None,
            DATA => {
                section(&mut out, DATA, &written(&merged(segments(content)?)?));
                joined = true;
            }
            _ => section(&mut out, id, content),
        }
        rest = tail;
    }
    joined.then_some(out)
}

/// The address of a segment, and its bytes.
type Segment<'a> = (u64, &'a [u8]);

fn segments(content: &[u8]) -> Option<Vec<Segment<'_>>> {
    let (count, mut rest) = unsigned(content)?;
    let mut segments = Vec::new();
    for _ in 0..count {
        let [0, I32_CONST, tail @ ..] = rest else { return None };
        let (offset, tail) = signed(tail)?;
        let [END, tail @ ..] = tail else { return None };
        let (size, tail) = unsigned(tail)?;
        let (bytes, tail) = tail.split_at_checked(usize::try_from(size).ok()?)?;
        // An offset is an address: 32 bits without a sign.
        segments.push((offset & 0xffff_ffff, bytes));
        rest = tail;
    }
    rest.is_empty().then_some(segments)
}

fn merged(mut segments: Vec<Segment<'_>>) -> Option<Vec<(u64, Vec<u8>)>> {
    segments.sort_by_key(|(offset, _)| *offset);
    let mut merged: Vec<(u64, Vec<u8>)> = Vec::new();
    for (offset, bytes) in segments {
        let gap = merged.last().map(|(start, last)| offset.checked_sub(start + last.len() as u64));
        match (merged.last_mut(), gap) {
            (Some(_), Some(None)) => return None,
            (Some((_, last)), Some(Some(gap @ 0..=GAP))) => {
                last.extend(std::iter::repeat_n(0, usize::try_from(gap).ok()?));
                last.extend_from_slice(bytes);
            }
            _ => merged.push((offset, bytes.to_vec())),
        }
    }
    Some(merged)
}

fn written(segments: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut content = Vec::new();
    put(&mut content, segments.len() as u64);
    for (offset, bytes) in segments {
        content.extend([0, I32_CONST]);
        put_signed(&mut content, *offset);
        content.push(END);
        put(&mut content, bytes.len() as u64);
        content.extend_from_slice(bytes);
    }
    content
}

fn section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    put(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Reads a number in LEB128, and returns the bytes after it too.
fn unsigned(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

/// The same for a signed number, in two's complement of 64 bits.
fn signed(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (value, rest) = unsigned(bytes)?;
    let length = bytes.len() - rest.len();
    let negative = bytes[length - 1] & 0x40 != 0;
    Some((if negative { value | (u64::MAX << (7 * length)) } else { value }, rest))
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Writes an address as the signed number that `i32.const` takes.
fn put_signed(out: &mut Vec<u8>, address: u64) {
    let mut value = i64::from(u32::try_from(address).unwrap_or(u32::MAX).cast_signed());
    loop {
        let byte = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        let done = (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0);
        out.push(if done { byte } else { byte | 0x80 });
        if done {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with only these data segments.
    fn module(segments: &[(u64, &[u8])]) -> Vec<u8> {
        let owned: Vec<_> = segments.iter().map(|(offset, bytes)| (*offset, bytes.to_vec())).collect();
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        section(&mut module, 0, b"\x01x-");
        section(&mut module, DATA, &written(&owned));
        section(&mut module, 0, b"\x01y");
        module
    }

    #[test]
    fn segments_with_small_gaps_become_one() {
        let far = 0xffff_ff00;
        let apart = module(&[(1000, b"c"), (8, b"a"), (41, b"b"), (far, b"d"), (75, b"e")]);
        let together = module(&[(8, &[&b"a"[..], &[0; 32], b"b"].concat()), (75, b"e"), (1000, b"c"), (far, b"d")]);
        assert_eq!(join(&apart).unwrap(), together);
        assert_eq!(join(&together).unwrap(), together);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 27, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let (mut plain, mut with_sign) = (Vec::new(), Vec::new());
            put(&mut plain, value);
            put_signed(&mut with_sign, value);
            assert_eq!(unsigned(&plain).unwrap(), (value, &[][..]));
            assert_eq!(signed(&with_sign).map(|(value, rest)| (value & 0xffff_ffff, rest)).unwrap(), (value, &[][..]));
        }
    }

    #[test]
    fn other_modules_are_left_alone() {
        let mut counted = module(&[(0, b"a")]);
        section(&mut counted, CODE_COUNT, b"\x01");
        let mut passive = b"\0asm\x01\0\0\0".to_vec();
        section(&mut passive, DATA, b"\x01\x01\x01a");
        let mut cut = module(&[(0, b"abc")]);
        cut.truncate(cut.len() - 5);
        let overlapping = module(&[(0, b"abc"), (2, b"d")]);
        let without = b"\0asm\x01\0\0\0".to_vec();
        for other in [counted, passive, cut, overlapping, without, b"\0asm".to_vec(), Vec::new()] {
            assert_eq!(join(&other), None, "{other:?}");
        }
    }
}
