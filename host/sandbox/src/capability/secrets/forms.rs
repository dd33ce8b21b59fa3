//! The forms in which a server may echo a secret: as it is, and under the encodings of the web. Whatever else a server does
//! to it (encrypts it, spells it backwards) is beyond what a host can find; a server that is granted a secret is trusted
//! not to help a guest in that way.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// Encoded texts shorter than this are left alone: they would be found where nothing was meant by them.
const LEAST_FORM: usize = 6;

/// What stays as it is where a client encodes as little as it may.
const MODEST: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

/// What stays as it is where a client encodes all but the unreserved characters (RFC 3986).
const EAGER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Every form of a value, the longest first, none twice.
pub(super) fn of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for set in [MODEST, EAGER, NON_ALPHANUMERIC] {
        let encoded = utf8_percent_encode(value, set).to_string();
        forms.push(lower_escapes(&encoded));
        forms.push(encoded.replace("%20", "+"));
        forms.push(encoded);
    }
    let quoted = serde_json::Value::from(value).to_string();
    let quoted = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    for quoted in [quoted.to_owned(), escaped_beyond_ascii(quoted)] {
        forms.extend([quoted.replace('/', "\\/"), quoted]);
    }
    forms.extend(html(value));
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.extend([hex.to_uppercase(), hex]);
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.extend((0..3).map(|offset| base64(&alphabet, value, offset)));
    }
    forms.retain(|form| form.len() >= LEAST_FORM);
    forms.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

/// What base64 makes of the value within a longer text, such as `user:value`: the digits that depend on the value alone,
/// for each of the three ways in which groups of three bytes can fall.
fn base64(alphabet: &impl Engine, value: &str, offset: usize) -> String {
    let padded = [&vec![0; offset], value.as_bytes()].concat();
    let digits = alphabet.encode(&padded);
    // The first digits hold bits of what stands before, the last one may hold bits of what follows.
    let first = [0, 2, 3][offset];
    let last = padded.len() / 3 * 4 + [0, 1, 2][padded.len() % 3];
    digits.get(first..last).unwrap_or_default().to_owned()
}

fn lower_escapes(encoded: &str) -> String {
    let mut lower = String::with_capacity(encoded.len());
    let mut escaped = 0;
    for c in encoded.chars() {
        lower.push(if escaped > 0 { c.to_ascii_lowercase() } else { c });
        escaped = if c == '%' { 2 } else { usize::saturating_sub(escaped, 1) };
    }
    lower
}

/// JSON as those write it who keep to ASCII.
fn escaped_beyond_ascii(quoted: &str) -> String {
    let mut ascii = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            ascii.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    ascii
}

fn html(value: &str) -> [String; 2] {
    let modest = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    [modest.replace('\'', "&#39;"), modest.replace('\'', "&#x27;")]
}
