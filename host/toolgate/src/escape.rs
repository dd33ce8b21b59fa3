//! Text of plugins, models and people on a terminal. What could move the cursor, colour, hide, reorder or forge a line is
//! written out as `\u{…}`; nothing is ever cut, because what an approver does not see can still be what is approved.

use std::borrow::Cow;

/// Whether a terminal or its reader could be fooled by this character.
fn fools(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'      // control characters, and with them every escape sequence
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'                     // no width, and marks of direction
        | '\u{2028}'..='\u{202e}'                     // separators of lines, and changes of direction
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A text for one line: a line break in it is written out, too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    if text.contains(fools) {
        Cow::Owned(text.chars().map(Written).map(|c| c.to_string()).collect())
    } else {
        text.into()
    }
}

/// A text of several lines, each behind a margin of the given words, so that no line of it can pass for one of ours.
pub(crate) fn block(text: &str, margin: &str) -> String {
    text.split('\n').map(|text| format!("{margin}{}\n", line(text.strip_suffix('\r').unwrap_or(text)))).collect()
}

/// A JSON text that means the same and holds no such character: within strings they are written as `\uXXXX`, and outside of
/// strings only white space can be one.
pub(crate) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if !fools(c) || matches!(c, '\n' | '\r' | '\t') {
            safe.push(c);
        } else {
            let mut units = [0; 2];
            safe.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    safe
}

/// The same on one line: what breaks a line of a JSON text is white space that means nothing.
pub(crate) fn json_line(text: &str) -> String {
    json(text).replace(['\n', '\r', '\t'], " ")
}

/// A character, written out if it could fool somebody.
struct Written(char);

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            '\n' => f.write_str("\\n"),
            '\r' => f.write_str("\\r"),
            '\t' => f.write_str("\\t"),
            c if fools(c) => write!(f, "{}", c.escape_unicode()),
            c => write!(f, "{c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_move_the_cursor_or_turn_text_around() {
        for (text, expected) in [
            ("plain, ünïcode and 日本語", "plain, ünïcode and 日本語"),
            ("\u{1b}[2K\u{1b}[1Aapproved", "\\u{1b}[2K\\u{1b}[1Aapproved"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("pay\u{202e}001", "pay\\u{202e}001"),
            ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
            ("no\u{200b}width", "no\\u{200b}width"),
            ("two\nlines\r", "two\\nlines\\r"),
            ("hidden\u{e0041}tag", "hidden\\u{e0041}tag"),
        ] {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn every_line_of_a_block_is_behind_the_margin_and_none_is_cut() {
        let long = "x".repeat(10_000);
        let text = format!("one\r\ntwo\rthree\n{long}");
        assert_eq!(block(&text, "| "), format!("| one\n| two\\rthree\n| {long}\n"));
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{9b}z\u{e0041}", "b": ["\u{1b}[0m", "ü"]});
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let safe = json(&text);
        assert!(!safe.contains(['\u{202e}', '\u{9b}', '\u{e0041}', '\u{1b}']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), value);
        let one = json_line(&text);
        assert!(!one.contains('\n'), "{one}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&one).expect("JSON"), value);
    }
}
