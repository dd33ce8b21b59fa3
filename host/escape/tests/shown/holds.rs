//! Properties of every escaped text. The fuzz target `escaper` includes this file, so it checks the same.

use serde_json::Value;

/// Checks a text in every escaped form.
pub(crate) fn any_text(given: &str) {
    let line = escape::line(given);
    for shown in [&*line, &escape::excerpt(given, 20), &escape::quoted(given, 20), &escape::json_line(given)] {
        assert!(!shown.contains(is_dangerous), "{shown:?}");
    }
    for shown in [&*escape::lines(given), &escape::block(given, "| ")] {
        assert!(!shown.contains(|c| is_dangerous(c) && c != '\n'), "{shown:?}");
    }
    assert!(escape::block(given, "| ").split_terminator('\n').all(|line| line.starts_with("| ")));
    assert!(line.chars().count() >= given.chars().count(), "nothing is cut");
    if !given.contains('\\') {
        assert_eq!(unescaped(&line), given, "nothing is lost");
    }
    if given.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        assert_eq!(line, given, "plain text is left alone");
    }
    let written = Value::from(given).to_string();
    assert_eq!(serde_json::from_str::<Value>(&escape::json(&written)).ok(), Some(Value::from(given)));
    // Numbers can be too large for `Value`, and the escaper does not change them.
    if let Ok(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) = serde_json::from_str::<Value>(given) {
        assert_eq!(serde_json::from_str::<Value>(&escape::json(given)).ok().as_ref(), Some(&value));
        assert_eq!(serde_json::from_str::<Value>(&escape::json_line(given)).ok(), Some(value));
    }
}

/// Characters that are always escaped, from the Unicode charts and not from the escaper.
pub(crate) fn is_dangerous(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0d}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{10ffff}')
}

/// Reverses the escaping of a text without backslashes.
fn unescaped(shown: &str) -> String {
    let (mut text, mut rest) = (String::new(), shown);
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (kind, after) = rest[at + 1..].split_at(1);
        rest = after;
        match kind {
            "n" => text.push('\n'),
            "r" => text.push('\r'),
            "t" => text.push('\t'),
            _ => {
                let (code, after) = rest[1..].split_once('}').unwrap_or_default();
                text.extend(u32::from_str_radix(code, 16).ok().and_then(char::from_u32));
                rest = after;
            }
        }
    }
    text + rest
}
