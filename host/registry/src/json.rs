//! JSON that somebody else wrote, in the form in which schemas are checked, and quoted so that it can be printed.

pub(crate) use capabilities::json::{escaped, read};
use domain::json;
use serde_json::Value;

/// A parsed value, as the schema library takes it.
pub(crate) fn for_schema(value: &json::Value) -> Value {
    match value {
        json::Value::Null => Value::Null,
        json::Value::Bool(yes) => Value::Bool(*yes),
        json::Value::Number(number) => number.as_str().parse().map_or(Value::Null, Value::Number),
        json::Value::Text(text) => Value::String(text.to_string()),
        json::Value::Array(items) => Value::Array(items.iter().map(for_schema).collect()),
        json::Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.to_owned(), for_schema(value))).collect())
        }
    }
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

    /// The host's parser and the library's accept the same texts and read the same values.
    fn agrees(text: &str) {
        let (ours, theirs) = (json::Value::parse(text), serde_json::from_str::<Value>(text));
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(for_schema(ours), *theirs, "{text}");
                assert!(read(text).is_ok_and(|(_, twice)| twice.is_empty()), "{text}");
            }
            (Err(_), Ok(_)) => assert!(read(text).is_ok_and(|(_, twice)| !twice.is_empty()), "{text}: {ours:?}"),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn parsers_agree_on_chosen_texts() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for text in [
            "1",
            "",
            " ",
            "1 2",
            "NaN",
            "-",
            "-0",
            "0.10",
            "1.",
            ".5",
            "+1",
            "1e5",
            "1E+5",
            "1e",
            "1e999",
            "-1e-999",
            "0e999",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "\u{feff}1",
            "{\"a\":\"[[[\\\"[[[\"}",
            "{\"a\":1,}",
            "{,}",
            "[,]",
            "{\"a\":1,\"\\u0061\":2}",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83d\\u0061\"",
            "\"\\u00zz\"",
            "\"\\u12\"",
            "\"\u{1}\"",
            "\"\u{7f}\"",
            "\"\\/\\b\\f\\n\\r\\t\"",
            "tru",
            "truee",
            "nulll",
            "[true false]",
            "\u{b}1",
            "{\"a\"}",
            "[1}",
            &nested(127),
            &nested(128),
            &"9".repeat(308),
            &"9".repeat(310),
        ] {
            agrees(text);
        }
    }

    #[test]
    fn parsers_agree_on_texts_with_an_error() {
        let whole = r#"{"a":[1,-2.5e+3,"x\u00fc\n\"",true,{"b":null,"ü":[[],{}]}],"c":{"d":"\ud83d\ude00"}, "e" : 0 }"#;
        for (at, _) in whole.char_indices() {
            agrees(&whole[..at]);
            let next = at + whole[at..].chars().next().map_or(0, char::len_utf8);
            for other in ["", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", " ", "\n", "u", "a", "ü"] {
                agrees(&format!("{}{other}{}", &whole[..at], &whole[next..]));
            }
        }
    }

    #[test]
    fn a_quoted_text_is_one_short_line() {
        assert_eq!(quoted("a\u{202e}\n"), r#""a\u{202e}\n""#);
        assert_eq!(quoted(&"ü".repeat(100)).chars().count(), 80 + 2 + " and 40 bytes more".len());
    }
}
