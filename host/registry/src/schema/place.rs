//! Finds the first fault of a value, and its place, if a validation or a list of all faults might cost too much.
//!
//! The library explains `anyOf` and `oneOf` by the faults of each alternative, and copies the value for each fault. It
//! explains `not` and `if` by nothing. So this makes a schema that accepts the same values, has each `anyOf` and `oneOf` in an `if`, and
//! charges its work. If no alternative fits, and the value can fit only one of them by its type and the constants of its members, the
//! fault is that of this one. The first fault is found without copies.
//!
//! `unevaluatedProperties` and `unevaluatedItems` need the alternatives that are now in an `if`. So the schema is without them,
//! and without the keywords that would then accept less. It accepts more values, and each of its faults is a fault.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::Violation;
use domain::json::pointer_step;
use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::{Map, Value, json};

use super::Draft;
use super::charge::charging;
use super::choice::{self, conditions};
use super::graph::{Graph, MAPS, REFERENCES, VALUES, children, key};
use super::violation::violation;

const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];

/// The name of the keyword that has no fitting alternative, in a `not` that always fails.
const NONE_OF: &str = "toolgate:none-of";

/// The keywords that depend on what alternatives evaluate.
const UNEVALUATED: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];

/// The keywords that may accept less if a schema in them accepts more.
const NEGATIVE: [&str; 3] = ["if", "not", "oneOf"];

/// The keywords that a schema is without. If there are any, it accepts more values.
pub(super) type Without = BTreeSet<&'static str>;

/// The schema with its alternatives in an `if`, charging its work.
pub(super) fn findable(schema: &Value, draft: Draft) -> (Value, Without) {
    let graph = Graph::of(schema);
    let mut moved = HashMap::new();
    follow(schema, String::new(), &mut moved);
    let before: HashMap<usize, &str> = graph.schemas.iter().map(|(schema, at)| (key(schema), at.as_str())).collect();
    // References keep their text unless their target has moved.
    let stayed = moved.iter().filter(|(schema, at)| before.get(schema).is_none_or(|before| before == at));
    let stayed = stayed.map(|(schema, _)| *schema).collect();
    let widened = widened(&graph);
    let mut rewriting = Rewriting { graph, draft, moved, stayed, widened, without: Without::new() };
    (rewriting.schema(schema), rewriting.without)
}

/// The schemas that accept more without [`UNEVALUATED`]: those with these keywords, and those that lead to them.
fn widened(graph: &Graph<'_>) -> HashSet<usize> {
    let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut open = Vec::new();
    for (schema, _) in &graph.schemas {
        let held = children(schema).into_iter().map(|child| child.schema);
        for used in held.chain(graph.targets(schema)) {
            users.entry(key(used)).or_default().push(key(schema));
        }
        if UNEVALUATED.iter().any(|keyword| schema.get(keyword).is_some()) {
            open.push(key(schema));
        }
    }
    let mut widened = HashSet::new();
    while let Some(schema) = open.pop() {
        if widened.insert(schema) {
            open.extend(users.remove(&schema).unwrap_or_default());
        }
    }
    widened
}

/// The fault of a value that does not fit, if only these keywords can be the reason.
pub(super) fn unplaced(without: &Without) -> Violation {
    let keywords: Vec<_> = without.iter().map(|keyword| format!("`{keyword}`")).collect();
    let message = match &keywords[..] {
        [] => "it does not fit the schema".to_owned(),
        [only] => format!("it does not fit the keyword {only}"),
        all => format!("it does not fit one of the keywords {}", all.join(", ")),
    };
    Violation { pointer: String::new(), message }
}

/// The place of a fault that [`first`] does not find: the innermost part without which the value fits. `fits` returns nothing
/// once it would take too long.
pub(super) fn narrowed(mut value: Value, mut fits: impl FnMut(&Value) -> Option<bool>) -> String {
    let mut at = String::new();
    loop {
        let steps: Vec<String> = match value.pointer(&at) {
            Some(Value::Object(members)) => members.keys().cloned().collect(),
            Some(Value::Array(items)) => (0..items.len()).map(|n| n.to_string()).collect(),
            _ => return at,
        };
        let found = steps.iter().map_while(|step| Some((step, fits_without(&mut value, &at, step, &mut fits)?)));
        let Some((step, _)) = found.into_iter().find(|(_, fits)| *fits) else { return at };
        at = format!("{at}/{}", pointer_step(step));
    }
}

/// Whether a value fits without one member or item of the part at `at`.
fn fits_without(
    value: &mut Value,
    at: &str,
    step: &str,
    fits: &mut impl FnMut(&Value) -> Option<bool>,
) -> Option<bool> {
    let child = match value.pointer_mut(at)? {
        Value::Object(members) => members.remove(step)?,
        Value::Array(items) => items.remove(step.parse().ok()?),
        _ => return None,
    };
    let fits = fits(value);
    match value.pointer_mut(at)? {
        Value::Object(members) => _ = members.insert(step.to_owned(), child),
        Value::Array(items) => items.insert(step.parse().ok()?, child),
        _ => {}
    }
    fits
}

/// The first fault of a value, with its place.
pub(super) fn first(validator: &Validator, value: &Value) -> Option<Violation> {
    validator.validate(value).err().map(|error| placed(&error))
}

fn placed(error: &ValidationError<'_>) -> Violation {
    let message = match error.kind() {
        ValidationErrorKind::Not { schema } if schema[NONE_OF] == "anyOf" => {
            "it does not fit any of the alternatives of `anyOf`"
        }
        ValidationErrorKind::Not { schema } if schema[NONE_OF] == "oneOf" => {
            "it does not fit exactly one of the alternatives of `oneOf`"
        }
        _ => return violation(error),
    };
    Violation { pointer: error.instance_path().as_str().to_owned(), message: message.to_owned() }
}

/// The alternatives of a schema, each with its keyword and its index in the new `allOf`.
fn alternatives(schema: &Value) -> impl Iterator<Item = (usize, &'static str)> {
    let before = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
    let present = ALTERNATIVES.into_iter().filter(|keyword| schema.get(keyword).is_some_and(Value::is_array));
    present.enumerate().map(move |(n, keyword)| (before + n, keyword))
}

/// Notes the new place of each schema. Recurses as deeply as the document is nested.
fn follow(schema: &Value, mut at: String, moved: &mut HashMap<usize, String>) {
    moved.insert(key(schema), at.clone());
    if schema.is_object() {
        at.push_str("/allOf/1");
    }
    for child in children(schema) {
        let keyword = child.step[1..].split('/').next().unwrap_or_default();
        let behind = alternatives(schema).find(|(_, moving)| *moving == keyword);
        let to = behind.map_or_else(String::new, |(index, _)| format!("/allOf/{index}/if"));
        follow(child.schema, format!("{at}{to}{}", child.step), moved);
    }
}

struct Rewriting<'a> {
    graph: Graph<'a>,
    draft: Draft,
    /// The new places of the schemas.
    moved: HashMap<usize, String>,
    /// Those whose places are the old ones.
    stayed: HashSet<usize>,
    widened: HashSet<usize>,
    without: Without,
}

impl Rewriting<'_> {
    fn schema(&mut self, schema: &Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let mut written = Map::new();
        for (keyword, value) in members {
            match self.dropped(members, keyword, value) {
                Some(dropped) => _ = self.without.insert(dropped),
                None => _ = written.insert(keyword.clone(), self.keyword(keyword, value)),
            }
        }
        for (index, keyword) in alternatives(schema) {
            let Some(list) = written.remove(keyword) else { continue };
            let entry = self.alternatives(schema, (index, keyword), list);
            let all = written.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.push(entry.clone()));
        }
        charging(schema, Value::Object(written))
    }

    /// The entry of `allOf` for a list of alternatives.
    fn alternatives(&self, schema: &Value, (index, keyword): (usize, &str), list: Value) -> Value {
        let original = schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let conditions = conditions(&self.graph, self.draft, original);
        let (any, none) = (json!({keyword: list}), json!({"not": {NONE_OF: keyword}}));
        // Each value can fit two alternatives without a condition.
        let can_choose = conditions.iter().filter(|condition| condition.is_boolean()).count() < 2;
        let Some(above) = self.moved.get(&key(schema)).filter(|_| can_choose && !conditions.is_empty()) else {
            return json!({"if": any, "else": none});
        };
        let at = format!("#{}", percent_encoded(&format!("{above}/allOf/1/allOf/{index}")));
        let only = |n: usize| {
            let (condition, fit) =
                (format!("{at}/else/allOf/1/if/allOf/1/oneOf/{n}"), format!("{at}/if/{keyword}/{n}"));
            json!({"if": {"$ref": condition}, "then": {"$ref": fit}})
        };
        let then: Vec<Value> = (0..conditions.len()).map(only).collect();
        let is_one = json!({"allOf": [{choice::KEYWORD: "room"}, {"oneOf": conditions}]});
        let explained = json!({"if": is_one, "then": {"allOf": then}});
        json!({"if": any, "else": {"allOf": [{choice::KEYWORD: "place"}, explained, none]}})
    }

    /// The keyword, if the new schema is without it.
    fn dropped(&self, members: &Map<String, Value>, keyword: &str, value: &Value) -> Option<&'static str> {
        let is_widened = |value: &Value| self.widened.contains(&key(value));
        let known = |keywords: &[&'static str]| keywords.iter().copied().find(|known| *known == keyword);
        known(&UNEVALUATED)
            .or_else(|| {
                known(&NEGATIVE)
                    .filter(|_| is_widened(value) || value.as_array().is_some_and(|all| all.iter().any(is_widened)))
            })
            .or_else(|| known(&["maxContains"]).filter(|_| members.get("contains").is_some_and(is_widened)))
    }

    fn keyword(&mut self, keyword: &str, value: &Value) -> Value {
        match value {
            _ if VALUES.contains(&keyword) => value.clone(),
            // It has lists of names. A draft that does not know it may have a schema there.
            Value::Object(map) if keyword == "dependentRequired" && map.values().all(is_list_of_names) => value.clone(),
            Value::String(reference) if REFERENCES.contains(&keyword) => {
                let target = self.graph.target(reference).map(key).filter(|target| !self.stayed.contains(target));
                let target = target.and_then(|target| self.moved.get(&target));
                target.map_or_else(|| value.clone(), |at| format!("#{}", percent_encoded(at)).into())
            }
            Value::Object(map) if MAPS.contains(&keyword) => {
                map.iter().map(|(name, schema)| (name.clone(), self.schema(schema))).collect::<Map<_, _>>().into()
            }
            Value::Object(_) => self.schema(value),
            Value::Array(list) => list.iter().map(|item| self.schema(item)).collect(),
            _ => value.clone(),
        }
    }
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// Encodes a JSON Pointer as a URI fragment (RFC 3986).
fn percent_encoded(pointer: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' | b'$' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    pointer.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema without its charges.
    fn plain(schema: &Value) -> Value {
        match schema {
            Value::Object(members) => match members.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([charge, schema]) if charge.get(super::super::charge::KEYWORD).is_some() => plain(schema),
                _ => members.iter().map(|(name, value)| (name.clone(), plain(value))).collect::<Map<_, _>>().into(),
            },
            Value::Array(items) => items.iter().map(plain).collect(),
            value => value.clone(),
        }
    }

    /// The entry of `allOf` for alternatives.
    fn choice(at: &str, conditions: &Value, keyword: &str, list: &Value) -> Value {
        let only = |n| json!({"if": {"$ref": format!("{at}/else/allOf/1/if/allOf/1/oneOf/{n}")}, "then": {"$ref": format!("{at}/if/{keyword}/{n}")}});
        let then: Vec<Value> = (0..conditions.as_array().map_or(0, Vec::len)).map(only).collect();
        json!({"if": {keyword: list}, "else": {"allOf": [
            {"toolgate:find": "place"},
            {"if": {"allOf": [{"toolgate:find": "room"}, {"oneOf": conditions}]}, "then": {"allOf": then}},
            {"not": {"toolgate:none-of": keyword}},
        ]}})
    }

    #[test]
    fn alternatives_move_and_references_follow() {
        let schema = json!({
            "properties": {
                "a b": {"anyOf": [{"type": "null"}, {"$ref": "#"}], "oneOf": [true]},
                "c": {"$ref": "#/properties/a%20b/anyOf/1"},
            },
            "allOf": [{"anyOf": [{"enum": [{"anyOf": []}]}]}],
            "anyOf": [{"$ref": "#/allOf/0/anyOf/0"}],
        });
        let (one, other) =
            ("#/allOf/1/properties/a%20b/allOf/1/allOf/0/if/anyOf/1", "#/allOf/1/allOf/0/allOf/1/allOf/0/if/anyOf/0");
        let both = json!([{"allOf": [{"type": "null"}]}, true]);
        let ab = "#/allOf/1/properties/a%20b/allOf/1/allOf";
        let expected = json!({
            "properties": {
                "a b": {"allOf": [
                    choice(&format!("{ab}/0"), &both, "anyOf", &json!([{"type": "null"}, {"$ref": "#"}])),
                    choice(&format!("{ab}/1"), &json!([true]), "oneOf", &json!([true])),
                ]},
                "c": {"$ref": one},
            },
            "allOf": [
                {"allOf": [choice("#/allOf/1/allOf/0/allOf/1/allOf/0", &json!([true]), "anyOf", &json!([{"enum": [{"anyOf": []}]}]))]},
                choice("#/allOf/1/allOf/1", &json!([true]), "anyOf", &json!([{"$ref": other}])),
            ],
        });
        let (found, without) = findable(&schema, Draft::Draft202012);
        assert_eq!((plain(&found), without), (expected, Without::new()));
        for reference in [one, other] {
            let target = found.pointer(&reference[1..].replace("%20", " ")).expect("a schema");
            assert!(target["allOf"][0].get(super::super::charge::KEYWORD).is_some(), "{target}");
        }
    }

    #[test]
    fn only_keywords_that_could_accept_less_are_left_out() {
        let strict = json!({"$ref": "#/$defs/strict"});
        let schema = json!({
            "$defs": {"strict": {"type": "object", "unevaluatedProperties": false}, "free": {"not": {}}},
            "allOf": [{"not": strict}, {"not": {"$ref": "#/$defs/free"}}, {"if": strict, "then": false}],
            "anyOf": [strict], "oneOf": [{"items": strict}],
            "contains": strict, "maxContains": 1, "dependentRequired": {"a": ["b"]},
        });
        let (found, without) = findable(&schema, Draft::Draft202012);
        let strict = json!({"$ref": "#/allOf/1/$defs/strict"});
        let any = choice("#/allOf/1/allOf/3", &json!([{"allOf": [{"type": "object"}]}]), "anyOf", &json!([strict]));
        let expected = json!({
            "$defs": {"strict": {"type": "object"}, "free": {"not": {}}},
            "allOf": [{}, {"not": {"$ref": "#/allOf/1/$defs/free"}}, {"then": false}, any],
            "contains": strict, "dependentRequired": {"a": ["b"]},
        });
        assert_eq!(plain(&found), expected);
        assert_eq!(
            without.into_iter().collect::<Vec<_>>(),
            ["if", "maxContains", "not", "oneOf", "unevaluatedProperties"]
        );
    }
}
