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

    #[test]
    fn a_value_for_the_schema_is_what_the_library_reads() {
        let text = r#"{"b":[1,-2,2.5e-3,18446744073709551616,-0],"a":{"x":null,"y":[true,"\u00fc"]}}"#;
        let ours = for_schema(&json::Value::parse(text).unwrap());
        assert_eq!(ours.to_string(), serde_json::from_str::<Value>(text).unwrap().to_string());
    }

    #[test]
    fn a_quoted_text_is_one_short_line() {
        assert_eq!(quoted("a\u{202e}\n"), r#""a\u{202e}\n""#);
        assert_eq!(quoted(&"ü".repeat(100)).chars().count(), 80 + 2 + " and 40 bytes more".len());
    }
}
