//! Reading JSON that somebody else wrote: nothing twice, nothing too deep, and quoted so that it can be printed.

pub(crate) use capabilities::json::{escaped, read};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The deepest nesting of a value that is looked at, one less than what `serde_json` reads: a value that passes here can be
/// read by everybody.
pub(crate) const MAX_NESTING: usize = 127;

/// Whether a text is JSON that everybody can read. Allocates nothing for the usual text.
pub(crate) fn is_json(text: &str) -> bool {
    nesting(text) <= MAX_NESTING && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The deepest nesting of a text that may be JSON, found without reading it.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The nesting of a value: 0 for a scalar, 1 for an array of scalars.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A text in quotation marks, escaped so that it can forge neither a line nor a direction of writing, and cut so that it
/// cannot drown what stands around it.
pub(crate) fn quoted(text: &str) -> String {
    text::quoted(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_json_can_be_read_by_everybody() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (text, expected) in [
            ("1", true),
            ("", false),
            ("{\"a\":\"[[[\\\"[[[\"}", true),
            ("1 2", false),
            ("NaN", false),
            (&nested(MAX_NESTING), true),
            (&nested(MAX_NESTING + 1), false),
            (&nested(1_000_000), false),
        ] {
            assert_eq!(is_json(text), expected, "{}", quoted(text));
            if expected {
                assert!(serde_json::from_str::<Value>(text).is_ok(), "{}", quoted(text));
            }
        }
    }

    #[test]
    fn a_quoted_text_is_one_short_line() {
        assert_eq!(quoted("a\u{202e}\n"), r#""a\u{202e}\n""#);
        assert_eq!(quoted(&"ü".repeat(100)).chars().count(), 80 + 2 + " and 40 bytes more".len());
    }
}
