//! Makes small arguments that fit a schema. It does not support every schema: for patterns and conditions, the author's
//! examples have to show how to call the tool.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use domain::json::fragment;
use serde_json::{Map, Value, json};

/// Schemas nested more deeply get no sample.
const MAX_DEPTH: usize = 24;

/// Schemas that need more steps get no sample.
const MAX_STEPS: usize = 10_000;

/// The largest number of samples of one search. Each leaves out at least one more value that the schema gives.
const MAX_SAMPLES: usize = 256;

/// Values for a schema. One of them should fit it. The caller must validate them. Some are without the defaults or the examples
/// of the schema, because these need not fit it.
#[must_use]
pub fn of(schema: &Value) -> Vec<Value> {
    let words = [&["examples", "default"][..], &["examples"], &["default"], &[]];
    words.into_iter().filter_map(|given| Sampler::new(schema, given).value(schema, "", 0)).collect()
}

/// A value that fits a schema. `misfits` validates a value and gives the places that do not fit, as JSON Pointers. A default or
/// an example that does not fit is left out, and the others stay.
pub(crate) fn fitting(schema: &Value, misfits: impl Fn(&Value) -> Vec<String>) -> Option<Value> {
    let mut sampler = Sampler::new(schema, &["examples", "default"]);
    for _ in 0..MAX_SAMPLES {
        let Some(sample) = sampler.value(schema, "", 0) else { break };
        let places = misfits(&sample);
        if places.is_empty() {
            return Some(sample);
        }
        if !sampler.leave_out(&places) {
            break;
        }
    }
    of(schema).into_iter().find(|sample| misfits(sample).is_empty())
}

/// A keyword with a value, and the place in the sample for which the value was used.
type Used = (String, &'static str);

struct Sampler<'a> {
    root: &'a Value,
    /// The keywords with values that it uses.
    given: &'a [&'static str],
    /// The keywords that it does not use at their places.
    left_out: BTreeSet<Used>,
    used: RefCell<BTreeSet<Used>>,
    /// How many schemas were visited, each counted as often as it was. A hostile schema may be endless.
    steps: Cell<usize>,
}

impl<'a> Sampler<'a> {
    fn new(root: &'a Value, given: &'a [&'static str]) -> Self {
        Self { root, given, left_out: BTreeSet::new(), used: RefCell::default(), steps: Cell::new(0) }
    }

    /// Leaves out the values that may be why these places do not fit: the nearest one at or above each place, or else those
    /// below it. `false` if no value may be the reason. Then the next sample starts from the beginning.
    fn leave_out(&mut self, places: &[String]) -> bool {
        let used = self.used.take();
        let before = self.left_out.len();
        for place in places {
            let above = used.iter().filter(|(at, _)| is_within(place, at)).max_by_key(|(at, _)| at.len());
            match above {
                Some(above) => drop(self.left_out.insert(above.clone())),
                None => self.left_out.extend(used.iter().filter(|(at, _)| is_within(at, place)).cloned()),
            }
        }
        self.steps.set(0);
        self.left_out.len() > before
    }

    /// A value that the schema states itself: its constant, the first of the keywords that it uses, or its first choice.
    fn stated(&self, schema: &Map<String, Value>, at: &str) -> Option<Value> {
        let first = |keyword: &str| match (keyword, schema.get(keyword)?) {
            ("default", value) => Some(value.clone()),
            (_, values) => values.as_array()?.first().cloned(),
        };
        let given = |keyword: &&'static str| {
            let used = (at.to_owned(), *keyword);
            let value = first(keyword).filter(|_| !self.left_out.contains(&used))?;
            self.used.borrow_mut().insert(used);
            Some(value)
        };
        let constant = schema.get("const").cloned();
        constant.or_else(|| self.given.iter().find_map(given)).or_else(|| first("enum"))
    }
}

/// Whether a place is another one or below it.
fn is_within(place: &str, other: &str) -> bool {
    place.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, at: &str, depth: usize) -> Option<Value> {
        let schema = match schema {
            _ if depth > MAX_DEPTH || self.steps.replace(self.steps.get() + 1) > MAX_STEPS => return None,
            Value::Bool(true) => return Some(json!("text")),
            Value::Object(schema) => schema,
            _ => return None,
        };
        if let Some(stated) = self.stated(schema, at) {
            return Some(stated);
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let id = self.root.get("$id").and_then(Value::as_str);
            return self.value(self.root.pointer(fragment(id, reference)?)?, at, depth + 1);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(word) {
                return choices.iter().find_map(|choice| self.value(choice, at, depth + 1));
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return self.all_of(schema, parts, at, depth);
        }
        match kind(schema) {
            "object" => self.object(schema, at, depth),
            "array" => self.array(schema, at, depth),
            "integer" | "number" => number(schema),
            "boolean" => Some(Value::Bool(true)),
            "null" => Some(Value::Null),
            _ => Some(Value::String(string(schema))),
        }
    }

    fn object(&self, schema: &Map<String, Value>, at: &str, depth: usize) -> Option<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let mut members = Map::new();
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let of = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Bool(true));
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            members.insert(name.to_owned(), self.value(of, &place, depth + 1)?);
        }
        Some(Value::Object(members))
    }

    fn array(&self, schema: &Map<String, Value>, at: &str, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(64);
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let rest = schema.get("items").unwrap_or(&Value::Bool(true));
        let least = usize::try_from(least).ok()?.max(first.map_or(0, Vec::len));
        let of = |n: usize| first.and_then(|first| first.get(n)).unwrap_or(rest);
        let item = |n: usize| self.value(of(n), &format!("{at}/{n}"), depth + 1);
        (0..least).map(item).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn all_of(&self, schema: &Map<String, Value>, parts: &[Value], at: &str, depth: usize) -> Option<Value> {
        let mut own = schema.clone();
        own.remove("allOf");
        let mut members = Map::new();
        for part in parts.iter().chain([&Value::Object(own)]) {
            if let Value::Object(more) = self.value(part, at, depth + 1)? {
                members.extend(more);
            }
        }
        Some(Value::Object(members))
    }
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
        check(json!({"$id": "x:s", "$ref": "x:s#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), json!(true));
        check(json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), json!(null));
        check(
            json!({"allOf": [{"required": ["a"]}], "type": "object", "required": ["b"], "properties": {"b": {"type": "null"}}}),
            json!({"a": "text", "b": null}),
        );
    }

    #[test]
    fn samples_have_only_required_members() {
        check(json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}), json!({}));
        let page = include_str!("../../../docs/conformance.md");
        assert!(page.contains("The arguments that the kit makes have only the required members."));
        for row in ["unicode", "empty", "largest", "numbers"] {
            let why = crate::Requirement::named(row).and_then(crate::Requirement::untested);
            assert!(why.is_some_and(|why| why.ends_with("a call has only required members")), "{row}");
        }
    }

    #[test]
    fn other_samples_are_without_defaults_or_examples() {
        let schema = json!({"type": "object", "required": ["n", "t"], "properties": {
            "n": {"type": "integer", "minimum": 2, "default": "none"},
            "t": {"enum": ["a", "b"], "examples": ["z"]},
        }});
        let (no, two) = (json!("none"), json!(2));
        let samples = [(&no, "z"), (&two, "z"), (&no, "a"), (&two, "a")];
        assert_eq!(of(&schema), samples.map(|(n, t)| json!({"n": n, "t": t})));
    }

    /// Integers must be numbers, and the member `code` must be the text of its default.
    fn misfits(value: &Value) -> Vec<String> {
        let members = value.as_object().into_iter().flatten();
        let wrong = |(name, value): &(&String, &Value)| match name.as_str() {
            "code" => **value != json!("ABC-0001"),
            _ => !value.is_number(),
        };
        members.filter(wrong).map(|(name, _)| format!("/{}", name.replace('/', "~1"))).collect()
    }

    #[test]
    fn search_leaves_out_each_value_that_does_not_fit() {
        let integer = |keyword: &str, value: Value| json!({"type": "integer", "minimum": 2, keyword: value});
        let mut schema = json!({"type": "object", "properties": {"code": {"type": "string", "default": "ABC-0001"}}});
        for n in 0..40 {
            schema["properties"][format!("a/{n}")] = integer("default", json!("none"));
            schema["properties"][format!("b{n}")] = integer("examples", json!([null]));
        }
        let names: Vec<_> = schema["properties"].as_object().expect("an object").keys().cloned().collect();
        schema["required"] = json!(names);
        let found = fitting(&schema, misfits).expect("a value fits");
        assert_eq!((&found["code"], &found["a/7"], &found["b39"]), (&json!("ABC-0001"), &json!(2), &json!(2)));
        // The validator names only the whole.
        assert_eq!(fitting(&integer("default", json!([])), misfit_of_root), Some(json!(2)));
        assert_eq!(fitting(&schema, |_| vec!["/b1".to_owned()]), None, "nothing fits");
    }

    fn misfit_of_root(value: &Value) -> Vec<String> {
        if value.is_number() { Vec::new() } else { vec![String::new()] }
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
