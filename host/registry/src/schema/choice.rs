//! Which alternatives of `anyOf` and `oneOf` a value can fit, by its type and the constants of its members.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use super::Draft;
use super::charge::charging;
use super::cost::MAX_COST;
use super::graph::Graph;
use super::pattern::Work;

/// The keyword for schemas that are only there to find a fault. Its value is the name of a [`Find`].
pub(super) const KEYWORD: &str = "toolgate:find";

/// When a fault is looked for.
enum Find {
    /// Only where a value is known to have one. Where the question is whether a value fits, this fails at once.
    Place,
    /// While half of the work is left. Then there is enough to look at the same part of the value again.
    Room,
}

/// Makes the keyword.
///
/// # Errors
/// If its value is another, because a plugin wrote it.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match value.as_str() {
        Some("place") => Ok(Box::new(Find::Place)),
        Some("room") => Ok(Box::new(Find::Room)),
        _ => Err(ValidationError::schema(format!("the keyword `{KEYWORD}` is the host's own"))),
    }
}

impl<'i> Keyword<'i> for Find {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        match self {
            Self::Place => false,
            Self::Room => Work::left_now() > MAX_COST / 2,
        }
    }
}

/// How many references and `allOf` are followed from an alternative.
const MAX_HOPS: usize = 3;

/// The maximum number of schemas in a condition, and of members with constants in each.
const MAX_PARTS: usize = 4;

/// The maximum number of constants of a member, and the size of each in bytes. Conditions are short, also those of large schemas.
const MAX_CONSTANTS: usize = 16;
const MAX_TEXT: usize = 64;

/// For each alternative, a schema that accepts all values that the alternative accepts. It charges its work.
pub(super) fn conditions(graph: &Graph<'_>, draft: Draft, alternatives: &[Value]) -> Vec<Value> {
    let condition = |alternative| {
        let mut parts = Vec::new();
        collect(graph, draft, alternative, 0, &mut parts);
        if parts.is_empty() { Value::Bool(true) } else { json!({"allOf": parts}) }
    };
    alternatives.iter().map(condition).collect()
}

fn collect(graph: &Graph<'_>, draft: Draft, schema: &Value, hops: usize, parts: &mut Vec<Value>) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    // In draft-07, a reference makes its siblings mean nothing.
    let is_alone = reference.is_some() && draft == Draft::Draft07;
    if let Some(own) = own(schema).filter(|_| !is_alone) {
        parts.push(charging(&own, own.clone()));
    }
    let all = schema.get("allOf").and_then(Value::as_array).filter(|_| !is_alone);
    let same = reference.and_then(|reference| graph.target(reference)).into_iter().chain(all.into_iter().flatten());
    for same in same.take(MAX_PARTS) {
        if hops < MAX_HOPS && parts.len() < MAX_PARTS {
            collect(graph, draft, same, hops + 1, parts);
        }
    }
}

/// The types of a schema, and the constants of its members.
fn own(schema: &Value) -> Option<Value> {
    let mut own = Map::new();
    if let Some(types) = schema.get("type") {
        own.insert("type".to_owned(), types.clone());
    }
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let members = properties.filter(|(name, _)| name.len() <= MAX_TEXT);
    let constants = members.filter_map(|(name, schema)| Some((name.clone(), constants(schema)?)));
    let constants: Map<String, Value> = constants.take(MAX_PARTS).collect();
    if !constants.is_empty() {
        own.insert("properties".to_owned(), constants.into());
    }
    (!own.is_empty()).then(|| own.into())
}

fn constants(schema: &Value) -> Option<Value> {
    if schema.get("$ref").is_some() {
        return None;
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => text.len() <= MAX_TEXT,
        value => !value.is_array() && !value.is_object(),
    };
    let are_short = |values: &Value| {
        values.as_array().is_some_and(|all| (1..=MAX_CONSTANTS).contains(&all.len()) && all.iter().all(is_short))
    };
    let constant = schema.get("const").filter(|value| is_short(value)).map(|value| json!({"const": value}));
    let constants = constant
        .or_else(|| schema.get("enum").filter(|values| are_short(values)).map(|values| json!({"enum": values})))?;
    Some(charging(&constants, constants.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::place;
    use super::*;

    #[test]
    fn choosing_an_alternative_accepts_the_same_values() {
        let lists = [
            json!([{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]),
            json!([{"type": ["integer", "array"]}, {"type": "number", "minimum": 2}]),
            json!([{"$ref": "#/$defs/a"}, {"properties": {"k": {"const": "b"}}, "required": ["n"]}]),
            json!([{"$ref": "#/$defs/a", "type": "array"}, {"type": "object"}, true]),
            json!([{"properties": {"k": {"enum": ["a", 1]}}, "type": "object"}, {"properties": {"k": {"const": 1.0}}}]),
            json!([{"allOf": [{"$ref": "#/$defs/a"}, {"type": "object"}]}, {"not": {"type": "object"}}]),
            json!([false, {"type": "string"}]),
            json!([true]),
        ];
        let values =
            ["null", "1", "1.0", "2.5", "[1]", r#"["a"]"#, "{}", r#"{"k":"a"}"#, r#"{"k":"b"}"#, r#"{"k":"b","n":1}"#]
                .into_iter()
                .chain([r#"{"k":1}"#, r#"{"k":"a","n":"x"}"#, r#"{"k":2,"n":1}"#, r#""a""#, "true"]);
        let values: Vec<Value> = values.map(|value| serde_json::from_str(value).unwrap()).collect();
        let (mut accepted, mut refused) = (0, 0);
        for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
            for (list, keyword) in lists.iter().flat_map(|list| [(list, "anyOf"), (list, "oneOf")]) {
                let a = json!({"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}});
                let schema = json!({"$schema": draft, keyword: list, "$defs": {"a": a}});
                let draft = Draft::of(&schema).unwrap();
                let unnamed = super::super::unnamed(&schema, draft);
                let compile = |schema| super::super::validator(schema, draft).unwrap();
                let (plain, found) = (compile(&unnamed), compile(&place::findable(&unnamed, draft).0));
                for value in &values {
                    let first = super::super::Work::within(MAX_COST, || place::first(&found, value)).0;
                    assert_eq!(first.is_none(), plain.is_valid(value), "{schema} {value}: {first:?}");
                    *if first.is_none() { &mut accepted } else { &mut refused } += 1;
                }
            }
        }
        assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
    }
}
