//! The forms in which a server may echo a secret: as it is, and in the encodings of the web in any mixture. The host cannot
//! find other transformations, such as encryption or reversal. A server that gets a secret is trusted not to help a guest
//! that way.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter encoded texts are left alone: they would be found in unrelated texts.
const MIN_FORM: usize = 6;

/// Layers of escaping, each over the result of the previous one.
const MAX_LAYERS: usize = 4;

/// Digits of a character's number in HTML, with leading zeros: more than any serializer writes.
const MAX_DIGITS: usize = 8;

/// Bytes of the longest spelling of a character that `unit` knows: a character reference of HTML, or percent-encoding of
/// each of its bytes.
const fn longest_unit(c: char) -> usize {
    let entity = "&#x;".len() + MAX_DIGITS + "amp;".len() * (MAX_LAYERS - 1);
    let percent = c.len_utf8() * ("%25".len() + "25".len() * (MAX_LAYERS - 1) + "2f".len());
    if entity > percent { entity } else { percent }
}

/// Every form of one value.
pub(super) struct Forms {
    /// Matched character by character, each plain or escaped in any way that `unit` knows: the value, and its base64 at
    /// three offsets in two alphabets.
    spelled: Vec<Vec<char>>,
    /// Hexadecimal digits, matched without regard to case.
    hex: Vec<u8>,
    /// UTF-16 in both byte orders.
    literals: [Vec<u8>; 2],
}

/// Buffers for matching: the ends of the characters that are matched so far.
#[derive(Default)]
pub(super) struct Scratch {
    ends: Vec<usize>,
    next: Vec<usize>,
}

impl Forms {
    pub(super) fn of(value: &str) -> Self {
        let mut encoded: Vec<Vec<char>> = Vec::new();
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            encoded.extend((0..3).map(|offset| base64(&alphabet, value, offset).chars().collect()));
        }
        encoded.retain(|form| form.len() >= MIN_FORM);
        encoded.sort_unstable();
        encoded.dedup();
        encoded.insert(0, value.chars().collect());
        let utf16 = |bytes: fn(u16) -> [u8; 2]| value.encode_utf16().flat_map(bytes).collect();
        let hex = value.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
        Self { spelled: encoded, hex, literals: [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] }
    }

    /// The bytes with which a form can begin.
    pub(super) fn first(&self) -> impl Iterator<Item = u8> {
        let mut utf8 = [0; 4];
        let spelled = self.spelled.iter().filter_map(|form| form.first());
        let spelled: Vec<u8> = spelled.map(|c| c.encode_utf8(&mut utf8).as_bytes()[0]).collect();
        let hex = self.hex.first().map_or([0; 2], |digit| [*digit, digit.to_ascii_uppercase()]);
        let literals: Vec<u8> = self.literals.iter().filter_map(|form| form.first().copied()).collect();
        spelled.into_iter().chain(hex).chain(literals).chain(*b"%\\&+")
    }

    /// Bytes of the longest form.
    pub(super) fn longest(&self) -> usize {
        let spelled = self.spelled.iter().map(|form| form.iter().map(|c| longest_unit(*c)).sum());
        spelled.chain(self.literals.iter().map(Vec::len)).chain([self.hex.len()]).max().unwrap_or_default()
    }

    /// Whether a form can hold this byte. Any other byte divides a text.
    pub(super) fn has_byte(&self, byte: u8) -> bool {
        // No value has control characters, so only UTF-16 can hold one.
        !byte.is_ascii_control() || self.literals.iter().any(|form| form.contains(&byte))
    }

    /// The length of the longest form at the start of these bytes.
    pub(super) fn at(&self, bytes: &[u8], scratch: &mut Scratch) -> Option<usize> {
        let literal = |form: &Vec<u8>| bytes.starts_with(form).then_some(form.len());
        let head = bytes.get(..self.hex.len());
        let hex = head.filter(|head| head.eq_ignore_ascii_case(&self.hex)).map(<[u8]>::len);
        let spelled = self.spelled.iter().filter_map(|form| spelled(form, bytes, scratch)).max();
        self.literals.iter().filter_map(literal).chain(hex).chain(spelled).max()
    }
}

/// The end of these characters, each plain or escaped. If a character can be read in two ways, both are followed.
fn spelled(form: &[char], bytes: &[u8], scratch: &mut Scratch) -> Option<usize> {
    let Scratch { ends, next } = scratch;
    ends.clear();
    ends.push(0);
    for c in form {
        next.clear();
        for end in ends.iter() {
            unit(*c, bytes.get(*end..).unwrap_or_default(), &mut |length| next.push(end + length));
        }
        if next.is_empty() {
            return None;
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(ends, next);
    }
    ends.last().copied()
}

/// Reports the length of every spelling of a character at the start of these bytes.
fn unit(c: char, bytes: &[u8], found: &mut dyn FnMut(usize)) {
    let reader = Reader(bytes);
    let mut utf8 = [0; 4];
    let utf8 = c.encode_utf8(&mut utf8).as_bytes();
    found_if(reader.text(0, utf8), found);
    if c == ' ' {
        found_if(reader.text(0, b"+"), found);
    }
    match bytes.first() {
        Some(b'%') => found_if(percent(&reader, utf8), found),
        Some(b'\\') => backslash(&reader, c, found),
        Some(b'&') => entity(&reader, c, found),
        _ => {}
    }
}

fn found_if(end: Option<usize>, found: &mut dyn FnMut(usize)) {
    if let Some(end) = end {
        found(end);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// The end of this text, if it is at this position.
    fn text(&self, at: usize, text: &[u8]) -> Option<usize> {
        let end = at + text.len();
        (self.0.get(at..end)? == text).then_some(end)
    }

    /// The value of this many hexadecimal digits.
    fn hex(&self, at: usize, digits: usize) -> Option<u32> {
        (at..at + digits).try_fold(0, |number, at| Some(number * 16 + char::from(self.byte(at)?).to_digit(16)?))
    }
}

/// `%XX` for each byte; the percent sign may be encoded itself, in several layers.
fn percent(reader: &Reader<'_>, utf8: &[u8]) -> Option<usize> {
    let mut at = 0;
    for byte in utf8 {
        at = reader.text(at, b"%")?;
        for _ in 0..MAX_LAYERS {
            match (reader.byte(at), reader.byte(at + 1), reader.byte(at + 2)) {
                // In `%2525` the first three bytes are the sign again; in `%25` they are a percent sign of the value.
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

/// Backslashes, and then the character or its number in the style of JSON and JavaScript.
fn backslash(reader: &Reader<'_>, c: char, found: &mut dyn FnMut(usize)) {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    for slashes in 1..=MAX_LAYERS {
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

/// A character reference of HTML; its ampersand may be encoded itself, in several layers.
fn entity(reader: &Reader<'_>, c: char, found: &mut dyn FnMut(usize)) {
    const NAMED: [(char, &[u8]); 5] = [('&', b"amp;"), ('<', b"lt;"), ('>', b"gt;"), ('"', b"quot;"), ('\'', b"apos;")];
    let mut at = 1;
    for _ in 0..MAX_LAYERS {
        let named = NAMED.iter().find(|(known, _)| *known == c);
        found_if(named.and_then(|(_, name)| reader.text(at, name)), found);
        if let Some(digits) = reader.text(at, b"#") {
            let is_hex = matches!(reader.byte(digits), Some(b'x' | b'X'));
            let (from, radix) = if is_hex { (digits + 1, 16) } else { (digits, 10) };
            let (mut end, mut number) = (from, 0_u32);
            while end - from < MAX_DIGITS
                && let Some(digit) = reader.byte(end).and_then(|byte| char::from(byte).to_digit(radix))
            {
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

/// The base64 digits of the value within a longer text such as `user:value`, for each of the three offsets: only the digits
/// that depend on the value alone.
fn base64(alphabet: &impl Engine, value: &str, offset: usize) -> String {
    let padded = [&vec![0; offset], value.as_bytes()].concat();
    let digits = alphabet.encode(&padded);
    // The first digits hold bits of the text before the value, and the last one may hold bits of the text after it.
    let first = [0, 2, 3][offset];
    let last = padded.len() / 3 * 4 + [0, 1, 2][padded.len() % 3];
    digits.get(first..last).unwrap_or_default().to_owned()
}
