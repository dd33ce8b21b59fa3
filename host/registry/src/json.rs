//! JSON in the form in which schemas are checked: values of calls, and declarations with all their duplicate keys. Also quotes
//! texts so that they can be printed.

use std::cell::RefCell;
use std::fmt;

use domain::json;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

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

/// Duplicate keys that are reported, and the bytes of the pointer to each. Many of them below a long key would need far more
/// memory than the text.
const MAX_DUPLICATES: (usize, usize) = (16, 256);

/// Reads part of a declaration and reports duplicate keys: the JSON Pointers of the first 16, shortened if they are long. RFC 8259 does
/// not say which of two values counts, so two readers may see different documents.
///
/// This is not the parser of [`domain::json`], which stops at the first duplicate key. An author fixes all of them at once. The
/// bound of `serde_json`, 128 levels, protects the stack; the rules allow fewer.
///
/// # Errors
/// If the text is not JSON, or nested too deeply for `serde_json`.
pub(crate) fn read(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { above: None, duplicates: &duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates.into_inner()))
}

/// A step of a JSON Pointer (RFC 6901).
#[must_use]
pub(crate) fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

/// Builds a value and notes duplicate keys.
struct Strict<'a> {
    /// The value that holds this one, and the step to this one.
    above: Option<(&'a Strict<'a>, Step<'a>)>,
    duplicates: &'a RefCell<Vec<String>>,
}

enum Step<'a> {
    Item(usize),
    Member(&'a str),
}

impl Strict<'_> {
    fn child<'a>(&'a self, step: Step<'a>) -> Strict<'a> {
        Strict { above: Some((self, step)), duplicates: self.duplicates }
    }

    fn pointer(&self) -> String {
        match &self.above {
            None => String::new(),
            Some((above, Step::Item(index))) => format!("{}/{index}", above.pointer()),
            Some((above, Step::Member(name))) => format!("{}/{}", above.pointer(), escaped(name)),
        }
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
        while let Some(item) = items.next_element_seed(self.child(Step::Item(all.len())))? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let child = self.child(Step::Member(&name));
            if all.contains_key(&name) && self.duplicates.borrow().len() < MAX_DUPLICATES.0 {
                let mut pointer = child.pointer();
                pointer.truncate(pointer.floor_char_boundary(MAX_DUPLICATES.1));
                self.duplicates.borrow_mut().push(pointer);
            }
            let value = members.next_value_seed(child)?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
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
