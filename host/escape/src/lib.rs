//! Escapes text of plugins, models and callers before people see it. Characters that could move a cursor, set a colour,
//! hide, reverse text, forge a line or imitate other letters become `\u{…}`. Honest text in any one language stays as
//! it is. Nothing is cut silently, because an approver could otherwise approve what they do not see.
//! docs/hostile-text.md has the rules.

mod confusables;
mod invisible;
mod marks;
#[cfg(test)]
mod page;
mod refusal;
mod words;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use refusal::{Refusal, names};

/// Escapes a text for one line. Line breaks are escaped too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, &[])
}

/// Escapes a text of several lines. The line breaks stay.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        Cow::Owned(escape(&text.replace("\r\n", "\n"), &['\n']).into_owned())
    } else {
        escape(text, &['\n'])
    }
}

/// Escapes a text of several lines and puts `margin` before each, so that none of them looks like a line of ours.
#[must_use]
pub fn block(text: &str, margin: &str) -> String {
    lines(text).split('\n').map(|line| format!("{margin}{line}\n")).collect()
}

/// Escapes a JSON text and keeps its value: inside strings, deceptive characters become `\uXXXX`. Outside
/// strings, valid JSON has only visible ASCII and white space. A text that is not JSON is escaped too.
#[must_use]
pub fn json(text: &str) -> String {
    let keep = ['\n', '\r', '\t'];
    if is_plain(text, &keep) {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut must_escape = Vec::with_capacity(chars.len());
    let mut rest = chars.as_slice();
    let mut within = false;
    while !rest.is_empty() {
        let (part, next) = rest.split_at(if within { string_end(rest) } else { string_start(rest) });
        must_escape.extend(to_escape(&without_escapes(part, within)));
        // The quotation mark.
        must_escape.extend(next.first().map(|_| false));
        (rest, within) = (next.get(1..).unwrap_or_default(), !within);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for (c, must_escape) in chars.into_iter().zip(must_escape) {
        if !must_escape || keep.contains(&c) {
            safe.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        }
    }
    safe
}

/// Like [`json`], on one line. In valid JSON, raw line breaks are only white space.
#[must_use]
pub fn json_line(text: &str) -> String {
    json(text).replace(['\n', '\r', '\t'], " ")
}

/// The beginning of a text on one line, with the number of bytes that follow. It is for messages that quote a text.
#[must_use]
pub fn excerpt(text: &str, max_chars: usize) -> Cow<'_, str> {
    let (head, rest) = divided(text, max_chars);
    if rest.is_empty() { line(head) } else { Cow::Owned(format!("{} … and {} bytes more", line(head), rest.len())) }
}

/// Like [`excerpt`], in quotation marks that the text cannot close.
#[must_use]
pub fn quoted(text: &str, max_chars: usize) -> String {
    let (head, rest) = divided(text, max_chars);
    let mut quoted = format!("\"{}\"", line(&head.replace('\\', "\\\\").replace('"', "\\\"")));
    if !rest.is_empty() {
        let _ = write!(quoted, " and {} bytes more", rest.len());
    }
    quoted
}

/// Splits a text after `max` characters.
fn divided(text: &str, max_chars: usize) -> (&str, &str) {
    text.split_at(text.char_indices().nth(max_chars).map_or(text.len(), |(end, _)| end))
}

/// Escapes every deceptive character of a text, except those in `keep`.
fn escape<'a>(text: &'a str, keep: &[char]) -> Cow<'a, str> {
    if is_plain(text, keep) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let must_escape = to_escape(&chars);
    let mut written = String::with_capacity(text.len() + 16);
    for (c, must_escape) in chars.into_iter().zip(must_escape) {
        match c {
            c if !must_escape || keep.contains(&c) => written.push(c),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            c => written.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(written)
}

fn string_start(rest: &[char]) -> usize {
    rest.iter().position(|c| *c == '"').unwrap_or(rest.len())
}

/// The position of the quotation mark that ends a string.
fn string_end(rest: &[char]) -> usize {
    let mut after_backslash = false;
    for (at, c) in rest.iter().enumerate() {
        match c {
            _ if after_backslash => after_backslash = false,
            '\\' => after_backslash = true,
            '"' => return at,
            _ => {}
        }
    }
    rest.len()
}

/// The characters of a string with escapes replaced by spaces, because an existing escape is visible and ends a word.
fn without_escapes(part: &[char], within: bool) -> Vec<char> {
    let mut visible = part.to_vec();
    if !within {
        return visible;
    }
    let mut at = 0;
    while at < visible.len() {
        let length = match (visible[at], part.get(at + 1)) {
            ('\\', Some('u')) => 2 + part[at + 2..].iter().take(4).take_while(|c| c.is_ascii_hexdigit()).count(),
            ('\\', Some(c)) if c.is_ascii() && !c.is_ascii_control() => 2,
            _ => {
                at += 1;
                continue;
            }
        };
        visible[at..at + length].fill(' ');
        at += length;
    }
    visible
}

/// Whether a text is ordinary ASCII and needs no closer check.
fn is_plain(text: &str, keep: &[char]) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') || keep.contains(&char::from(byte)) && byte.is_ascii())
}

/// Which characters must be escaped.
fn to_escape(chars: &[char]) -> Vec<bool> {
    let mut must_escape = invisible::find(chars);
    words::find(chars, &mut must_escape);
    marks::find(chars, &mut must_escape);
    must_escape
}
