//! Makes small arguments that fit a schema. It does not support every schema: for patterns and conditions, the author's
//! examples have to show how to call the tool.

use std::cell::Cell;

use serde_json::{Map, Value, json};

/// Schemas nested more deeply get no sample.
const MAX_DEPTH: usize = 24;

/// Schemas that need more steps get no sample.
const MAX_STEPS: usize = 10_000;

/// Values for a schema. One of them should fit it. The caller must validate them. The second has no defaults and examples of
/// the schema, because these need not fit it.
#[must_use]
pub fn of(schema: &Value) -> Vec<Value> {
    let sample = |is_given| Sampler { root: schema, is_given, steps: Cell::new(0) }.value(schema, 0);
    [sample(true), sample(false)].into_iter().flatten().collect()
}

struct Sampler<'a> {
    root: &'a Value,
    /// Whether it uses the defaults and examples of the schema.
    is_given: bool,
    /// How many schemas were visited, each counted as often as it was. A hostile schema may be endless.
    steps: Cell<usize>,
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Option<Value> {
        let schema = match schema {
            _ if depth > MAX_DEPTH || self.steps.replace(self.steps.get() + 1) > MAX_STEPS => return None,
            Value::Bool(true) => return Some(json!("text")),
            Value::Object(schema) => schema,
            _ => return None,
        };
        if let Some(given) = given(schema, self.is_given) {
            return Some(given);
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            return self.value(self.root.pointer(reference.strip_prefix('#')?)?, depth + 1);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(word) {
                return choices.iter().find_map(|choice| self.value(choice, depth + 1));
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return self.all_of(schema, parts, depth);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "integer" | "number" => number(schema),
            "boolean" => Some(Value::Bool(true)),
            "null" => Some(Value::Null),
            _ => Some(Value::String(string(schema))),
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let mut members = Map::new();
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let of = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Bool(true));
            members.insert(name.to_owned(), self.value(of, depth + 1)?);
        }
        Some(Value::Object(members))
    }

    fn array(&self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(64);
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let rest = schema.get("items").unwrap_or(&Value::Bool(true));
        let least = usize::try_from(least).ok()?.max(first.map_or(0, Vec::len));
        let item = |n: usize| self.value(first.and_then(|first| first.get(n)).unwrap_or(rest), depth + 1);
        (0..least).map(item).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn all_of(&self, schema: &Map<String, Value>, parts: &[Value], depth: usize) -> Option<Value> {
        let mut own = schema.clone();
        own.remove("allOf");
        let mut members = Map::new();
        for part in parts.iter().chain([&Value::Object(own)]) {
            if let Value::Object(more) = self.value(part, depth + 1)? {
                members.extend(more);
            }
        }
        Some(Value::Object(members))
    }
}

/// A value that the schema states itself, also as an example or a default if `is_given`.
fn given(schema: &Map<String, Value>, is_given: bool) -> Option<Value> {
    let first = |word: &str| schema.get(word)?.as_array()?.first().cloned();
    let example = || first("examples").or_else(|| schema.get("default").cloned()).filter(|_| is_given);
    schema.get("const").cloned().or_else(example).or_else(|| first("enum"))
}

fn kind(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.contains_key("properties") || schema.contains_key("required") => "object",
        _ if schema.contains_key("items") => "array",
        _ if schema.contains_key("minimum") || schema.contains_key("maximum") => "number",
        _ => "string",
    }
}

fn number(schema: &Map<String, Value>) -> Option<Value> {
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let step = bound("multipleOf").unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + step));
    let max = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|max| max - step));
    let mut chosen = least.unwrap_or(1.0);
    if max.is_some_and(|max| chosen > max) {
        chosen = max?;
    }
    chosen = (chosen / step).ceil() * step;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
    let whole = (chosen.fract() == 0.0 && chosen.abs() < 1e15).then_some(chosen as i64);
    Some(whole.map_or_else(|| json!(chosen), |whole| json!(whole)))
}

fn string(schema: &Map<String, Value>) -> String {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("time") => "00:00:00Z",
        Some("duration") => "P1D",
        Some("email") => "a@example.com",
        Some("uri" | "url" | "iri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        _ => "text",
    };
    let bound = |word: &str| schema.get(word).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let least = bound("minLength").unwrap_or(0).min(1 << 16);
    let mut text = text.to_owned();
    while text.len() < least {
        text.push('x');
    }
    text.truncate(bound("maxLength").unwrap_or(usize::MAX).max(least));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value) {
        assert_eq!(of(&schema)[0], expected, "{schema}");
    }

    #[test]
    fn samples_fit_their_schemas() {
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}),
            json!({"a": "text"}),
        );
        check(
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 3}}}),
            json!({"n": 3}),
        );
        check(json!({"type": "number", "maximum": 0}), json!(0));
        check(json!({"type": "number", "exclusiveMinimum": 1, "multipleOf": 0.5}), json!(1.5));
        check(json!({"type": ["null", "boolean"]}), json!(true));
        check(json!({"enum": ["x", "y"]}), json!("x"));
        check(json!({"type": "array", "minItems": 2, "items": {"const": 7}}), json!([7, 7]));
        check(json!({"type": "string", "minLength": 6}), json!("textxx"));
        check(json!({"type": "string", "maxLength": 2}), json!("te"));
        check(json!({"type": "string", "format": "date"}), json!("2026-01-01"));
        check(json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), json!(true));
        check(json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), json!(null));
        check(
            json!({"allOf": [{"required": ["a"]}], "type": "object", "required": ["b"], "properties": {"b": {"type": "null"}}}),
            json!({"a": "text", "b": null}),
        );
    }

    #[test]
    fn another_sample_is_without_defaults_and_examples() {
        let schema = json!({"type": "object", "required": ["n", "t"], "properties": {
            "n": {"type": "integer", "minimum": 2, "default": "none"},
            "t": {"enum": ["a", "b"], "examples": ["z"]},
        }});
        assert_eq!(of(&schema), [json!({"n": "none", "t": "z"}), json!({"n": 2, "t": "a"})]);
    }

    #[test]
    fn endless_schemas_get_no_sample() {
        let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}});
        assert!(of(&endless).is_empty());
        assert!(of(&json!(false)).is_empty());
        let mut large = json!({"type": "array", "minItems": 64, "items": {"type": "null"}});
        for _ in 0..8 {
            large = json!({"type": "array", "minItems": 64, "items": large});
        }
        assert!(of(&large).is_empty());
    }
}
