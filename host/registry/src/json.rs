//! JSON in the form in which schemas are checked: values of calls, and declarations with all their duplicate keys. Also quotes
//! texts so that they can be printed.

use domain::json;
use serde_json::Value;

/// A parsed value, as the schema library takes it.
pub(crate) fn for_schema(value: &json::Value) -> Value {
    match value {
        json::Value::Null => Value::Null,
        json::Value::Bool(yes) => Value::Bool(*yes),
        json::Value::Number(number) => schema_number(number.as_str()),
        json::Value::Text(text) => Value::String(text.to_string()),
        json::Value::Array(items) => Value::Array(items.iter().map(for_schema).collect()),
        json::Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.to_owned(), for_schema(value))).collect())
        }
    }
}

/// A number beyond the range of a double stays a number: the largest one.
fn schema_number(text: &str) -> Value {
    let largest = || text.parse::<f64>().map_or(Value::Null, |number| number.clamp(f64::MIN, f64::MAX).into());
    text.parse().map_or_else(|_| largest(), Value::Number)
}

/// The nesting of a value: 0 for a scalar, 1 for an array of scalars.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A text in quotation marks, escaped so that it can forge neither a line nor a direction of writing. It is cut, so that
/// it cannot hide the text around it.
pub(crate) fn quoted(text: &str) -> String {
    escape::quoted(text, 80)
}

/// Reads part of a declaration, and the JSON Pointers of its duplicate keys. RFC 8259 does not say which of two values counts,
/// so two readers may see different documents.
///
/// # Errors
/// If the text is not JSON, or nested too deeply.
pub(crate) fn read(text: &str) -> Result<(Value, Vec<String>), json::Malformed> {
    json::Value::parse_reporting_duplicates(text).map(|(value, duplicates)| (for_schema(&value), duplicates))
}

#[cfg(test)]
mod tests {
    use dispatch::ports::CHECK_COST;

    use super::*;

    #[test]
    fn duplicate_keys_are_named() {
        let text = r#"{"a":{"x/y":1,"x/y":2},"b":[{"c":1,"\u0063":1},{"c":1}],"b":0}"#;
        let (value, duplicates) = read(text).expect("JSON");
        assert_eq!(value["a"]["x/y"], 2);
        assert_eq!(duplicates, ["/a/x~1y", "/b/0/c", "/b"]);
        assert!(read("{} {}").is_err());
        let many = format!(r#"{{"{}":{{{}"a":0}}}}"#, "ü".repeat(1_000), r#""a":0,"#.repeat(1_000));
        let (_, duplicates) = read(&many).expect("JSON");
        assert_eq!(duplicates.len(), 16);
        assert!(duplicates.iter().all(|pointer| pointer.len() <= 256 && pointer.starts_with("/ü")), "{duplicates:?}");
    }

    #[test]
    fn a_value_for_the_schema_is_what_the_library_reads() {
        let text = r#"{"b":[1,-2,2.5e-3,18446744073709551616,-0],"a":{"x":null,"y":[true,"\u00fc"]}}"#;
        let ours = for_schema(&json::Value::parse(text).unwrap());
        assert_eq!(ours.to_string(), serde_json::from_str::<Value>(text).unwrap().to_string());
    }

    /// The memory of a value for the library, with what an allocator adds.
    fn memory(value: &Value) -> usize {
        let block = |bytes: usize| if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) };
        let inside = |value: &Value| memory(value) - size_of::<Value>();
        let below = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => block(text.len()),
            Value::Array(items) => block(size_of_val(&**items)) + items.iter().map(inside).sum::<usize>(),
            Value::Object(members) => {
                // A list of the members with their hashes, and a hash table of their positions with a byte for each.
                let slots = if members.is_empty() { 0 } else { (members.len() * 8 / 7 + 1).next_power_of_two().max(4) };
                let table = if slots == 0 { 0 } else { block(slots * (size_of::<usize>() + 1) + 16) };
                let each = |(name, value): (&String, &Value)| block(name.len()) + inside(value);
                let list = block(members.len() * size_of::<(u64, String, Value)>());
                table + list + members.iter().map(each).sum::<usize>()
            }
        };
        size_of::<Value>() + below
    }

    #[test]
    fn memory_of_a_check_is_bounded_by_the_text() {
        let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
        for item in ["0", "[]", "[0]", "\"a\"", "{\"\":0}", "{\"a\":{}}", "{\"a\":0,\"b\":0}", "null", &deep, "[[],[]]"]
        {
            let text = format!("[{}]", vec![item; 10_000].join(","));
            let cost = memory(&for_schema(&json::Value::parse(&text).unwrap())).div_ceil(text.len());
            assert!(cost <= CHECK_COST, "{item:.20}: {cost}");
        }
    }

    #[test]
    fn a_quoted_text_is_one_short_line() {
        assert_eq!(quoted("a\u{202e}\n"), r#""a\u{202e}\n""#);
        assert_eq!(quoted(&"ü".repeat(100)).chars().count(), 80 + 2 + " and 40 bytes more".len());
    }
}
