//! The forms in which a server may echo a secret: as it is, and under the encodings of the web, mixed as serializers mix them.
//! Whatever else a server does to it (encrypts it, spells it backwards) is beyond what a host can find; a server that is
//! granted a secret is trusted not to help a guest in that way.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Encoded texts shorter than this are left alone: they would be found where nothing was meant by them.
const LEAST_FORM: usize = 6;

/// How often a text may have been escaped over again, each time with what the time before has written.
const MOST_LAYERS: usize = 4;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// No form of the value.
    No,
    /// The beginning of one, with so many of its characters; what follows has to be seen.
    Begun(usize),
    /// A whole one, of so many bytes.
    Whole(usize),
}

/// Every form of one value.
pub(super) struct Forms {
    /// Matched character by character, each as it is or escaped in any of the ways that `escapes` knows.
    value: Vec<char>,
    /// Matched as they are, without regard to case: hexadecimal digits.
    hex: Vec<u8>,
    /// Matched as they are: base64 at its three offsets in two alphabets, and UTF-16 in both orders.
    literals: Vec<Vec<u8>>,
}

impl Forms {
    pub(super) fn of(value: &str) -> Self {
        let mut literals: Vec<Vec<u8>> = Vec::new();
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            literals.extend((0..3).map(|offset| base64(&alphabet, value, offset)));
        }
        literals.push(value.encode_utf16().flat_map(u16::to_le_bytes).collect());
        literals.push(value.encode_utf16().flat_map(u16::to_be_bytes).collect());
        literals.retain(|form| form.len() >= LEAST_FORM);
        literals.sort_unstable();
        literals.dedup();
        let hex = value.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
        Self { value: value.chars().collect(), hex, literals }
    }

    /// The bytes that a form can begin with.
    pub(super) fn first(&self) -> impl Iterator<Item = u8> {
        let mut utf8 = [0; 4];
        let plain = self.value.first().map(|c| c.encode_utf8(&mut utf8).as_bytes()[0]);
        let hex = self.hex.first().map_or([0; 2], |digit| [*digit, digit.to_ascii_uppercase()]);
        let literals: Vec<u8> = self.literals.iter().filter_map(|form| form.first().copied()).collect();
        plain.into_iter().chain(hex).chain(literals).chain(*b"%\\&+")
    }

    /// What stands at the beginning of these bytes: the longest whole form, unless a longer one has begun.
    pub(super) fn at(&self, bytes: &[u8]) -> At {
        let literals = self.literals.iter().map(|form| prefix(bytes, form, |a, b| a == b));
        let hex = prefix(bytes, &self.hex, |a, b| a.eq_ignore_ascii_case(&b));
        let all = literals.chain([hex, spelled(&self.value, bytes)]);
        all.fold(At::No, |best, found| match (best, found) {
            (At::No, found) | (found, At::No) => found,
            (At::Whole(one), At::Whole(other)) => At::Whole(one.max(other)),
            (At::Begun(one), At::Begun(other)) => At::Begun(one.max(other)),
            // What has begun might be longer, and is waited for; at the end of everything it counts as not there.
            (At::Whole(whole), At::Begun(_)) | (At::Begun(_), At::Whole(whole)) => At::Whole(whole),
        })
    }
}

fn prefix(bytes: &[u8], form: &[u8], same: impl Fn(u8, u8) -> bool) -> At {
    let shared = bytes.iter().zip(form).take_while(|(a, b)| same(**a, **b)).count();
    match shared {
        shared if shared == form.len() && shared > 0 => At::Whole(shared),
        shared if shared == bytes.len() => At::Begun(0),
        _ => At::No,
    }
}

/// The value, character by character. Where a character can be read in two ways, both are followed.
fn spelled(value: &[char], bytes: &[u8]) -> At {
    let mut ends = vec![0];
    let mut begun = None;
    for (count, c) in value.iter().enumerate() {
        let mut next = Vec::new();
        for end in ends {
            if !unit(*c, &bytes[end..], &mut |length| next.push(end + length)) {
                continue;
            }
            begun = Some(count);
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return begun.map_or(At::No, At::Begun);
        }
        ends = next;
    }
    At::Whole(ends.last().copied().unwrap_or_default())
}

/// Tells the lengths of every spelling of a character that these bytes begin with, and whether they end within one.
fn unit(c: char, bytes: &[u8], found: &mut dyn FnMut(usize)) -> bool {
    let mut reader = Reader { bytes, ended: false };
    let mut utf8 = [0; 4];
    let utf8 = c.encode_utf8(&mut utf8).as_bytes();
    found_if(reader.text(0, utf8), found);
    if c == ' ' {
        found_if(reader.text(0, b"+"), found);
    }
    match bytes.first() {
        None => {}
        Some(b'%') => found_if(percent(&mut reader, utf8), found),
        Some(b'\\') => backslash(&mut reader, c, found),
        Some(b'&') => entity(&mut reader, c, found),
        Some(_) => {}
    }
    reader.ended
}

fn found_if(end: Option<usize>, found: &mut dyn FnMut(usize)) {
    if let Some(end) = end {
        found(end);
    }
}

/// Reads on, and remembers whether the end came in between.
struct Reader<'a> {
    bytes: &'a [u8],
    ended: bool,
}

impl Reader<'_> {
    fn byte(&mut self, at: usize) -> Option<u8> {
        let byte = self.bytes.get(at).copied();
        self.ended |= byte.is_none();
        byte
    }

    /// The end of this text, if it stands here; letters without regard to case.
    fn text(&mut self, at: usize, text: &[u8]) -> Option<usize> {
        for (n, expected) in text.iter().enumerate() {
            if self.byte(at + n)? != *expected {
                return None;
            }
        }
        Some(at + text.len())
    }

    /// The number that so many hexadecimal digits stand for.
    fn hex(&mut self, at: usize, digits: usize) -> Option<u32> {
        (at..at + digits).try_fold(0, |number, at| Some(number * 16 + char::from(self.byte(at)?).to_digit(16)?))
    }
}

/// `%XX` for each byte, the percent sign itself encoded as often as may be.
fn percent(reader: &mut Reader<'_>, utf8: &[u8]) -> Option<usize> {
    let mut at = 0;
    for byte in utf8 {
        at = reader.text(at, b"%")?;
        for _ in 0..MOST_LAYERS {
            match (reader.byte(at), reader.byte(at + 1), reader.byte(at + 2)) {
                // Of `%2525` the first is the sign again; `%25` alone is a percent sign of the value.
                (Some(b'2'), Some(b'5'), Some(c)) if c.is_ascii_hexdigit() && *byte != b'%' => at += 2,
                _ => break,
            }
        }
        if reader.hex(at, 2)? != u32::from(*byte) {
            return None;
        }
        at += 2;
    }
    Some(at)
}

/// Backslashes, and then the character, or its number as JSON and JavaScript write it.
fn backslash(reader: &mut Reader<'_>, c: char, found: &mut dyn FnMut(usize)) {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    for slashes in 1..=MOST_LAYERS {
        if reader.byte(slashes - 1) != Some(b'\\') {
            return;
        }
        let Some(next) = reader.byte(slashes) else { return };
        if c.is_ascii_punctuation() && u32::from(next) == u32::from(c) {
            found(slashes + 1);
        }
        if next == b'x' && reader.hex(slashes + 1, 2) == Some(u32::from(c)) {
            found(slashes + 3);
        }
        if next != b'u' || reader.hex(slashes + 1, 4) != Some(u32::from(units[0])) {
            continue;
        }
        let end = slashes + 5;
        match units.get(1) {
            None => found(end),
            Some(low) => {
                let again = (end..end + slashes).all(|at| reader.byte(at) == Some(b'\\'));
                let follows = again && reader.byte(end + slashes) == Some(b'u');
                if follows && reader.hex(end + slashes + 1, 4) == Some(u32::from(*low)) {
                    found(end + slashes + 5);
                }
            }
        }
    }
}

/// A reference of HTML, its ampersand itself encoded as often as may be.
fn entity(reader: &mut Reader<'_>, c: char, found: &mut dyn FnMut(usize)) {
    const NAMED: [(char, &[u8]); 5] = [('&', b"amp;"), ('<', b"lt;"), ('>', b"gt;"), ('"', b"quot;"), ('\'', b"apos;")];
    let mut at = 1;
    for _ in 0..MOST_LAYERS {
        let named = NAMED.iter().find(|(known, _)| *known == c);
        found_if(named.and_then(|(_, name)| reader.text(at, name)), found);
        if let Some(digits) = reader.text(at, b"#") {
            let is_hex = matches!(reader.byte(digits), Some(b'x' | b'X'));
            let (from, radix) = if is_hex { (digits + 1, 16) } else { (digits, 10) };
            let (mut end, mut number) = (from, 0_u32);
            while let Some(digit) = reader.byte(end).and_then(|byte| char::from(byte).to_digit(radix)) {
                number = number.saturating_mul(radix).saturating_add(digit);
                end += 1;
            }
            if number == u32::from(c) {
                found_if(reader.text(end, b";"), found);
            }
        }
        match reader.text(at, b"amp;") {
            Some(next) => at = next,
            None => return,
        }
    }
}

/// What base64 makes of the value within a longer text, such as `user:value`: the digits that depend on the value alone,
/// for each of the three ways in which groups of three bytes can fall.
fn base64(alphabet: &impl Engine, value: &str, offset: usize) -> Vec<u8> {
    let padded = [&vec![0; offset], value.as_bytes()].concat();
    let digits = alphabet.encode(&padded);
    // The first digits hold bits of what stands before, the last one may hold bits of what follows.
    let first = [0, 2, 3][offset];
    let last = padded.len() / 3 * 4 + [0, 1, 2][padded.len() % 3];
    digits.get(first..last).unwrap_or_default().as_bytes().to_vec()
}
