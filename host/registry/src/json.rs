//! Reading JSON that somebody else wrote: nothing twice, nothing too deep, and quoted so that it can be printed.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The deepest nesting of a value that is looked at, one less than what `serde_json` reads: a value that passes here can be
/// read by everybody.
pub(crate) const MAX_NESTING: usize = 127;

/// A JSON text as a value, with the JSON Pointers of members that are there twice. RFC 8259 leaves open which of them
/// counts, so two readers may see two different documents.
pub(crate) fn read(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let twice = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { pointer: String::new(), twice: &twice }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, twice.into_inner()))
}

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

/// A step of a JSON Pointer (RFC 6901).
pub(crate) fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

/// Builds a value and notes each member that is there twice.
struct Strict<'a> {
    pointer: String,
    twice: &'a RefCell<Vec<String>>,
}

impl Strict<'_> {
    fn child(&self, step: &str) -> Strict<'_> {
        Strict { pointer: format!("{}/{}", self.pointer, escaped(step)), twice: self.twice }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self.child(&all.len().to_string()))? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let child = self.child(&key);
            let pointer = child.pointer.clone();
            let value = members.next_value_seed(child)?;
            if all.insert(key, value).is_some() {
                self.twice.borrow_mut().push(pointer);
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_there_twice_are_named() {
        let (value, twice) = read(r#"{"a":{"x/y":1,"x/y":2},"b":[{"c":1,"c":1}]}"#).expect("JSON");
        assert_eq!(value["a"]["x/y"], 2);
        assert_eq!(twice, ["/a/x~1y", "/b/0/c"]);
        assert!(read("{} {}").is_err());
    }

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
