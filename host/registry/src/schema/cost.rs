//! What it would cost to say how a value breaks a schema.
//!
//! Whether a value fits is found at a bounded cost, since the validator remembers what each reference came to. Collecting
//! what is wrong follows every alternative to its end, each as often as it is reached: for a schema that leads back to itself
//! in two ways that doubles with every level of the value, and the frames on the stack add up. Such a pair of schema and
//! value would take the host down, so the cost is worked out before.

use std::collections::HashMap;

use serde_json::Value;

use super::graph::{Graph, Place, children, key};
use crate::json;

/// The deepest value of which it is told what is wrong. A schema has up to a dozen schemas inside each other for one place,
/// so this bounds the stack.
const MAX_DEPTH: usize = 32;

/// How often schemas may be applied, all places of the value together.
const MAX_VISITS: u64 = 1_000_000;

/// Whether what is wrong with a value can be collected.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let depth = json::depth(value);
    depth <= MAX_DEPTH && visits(schema, depth).saturating_mul(places(value)) <= MAX_VISITS
}

/// How many schemas are applied on the way from a value's root to its deepest place, at most. Worked out from the deepest
/// level up: what a level costs is known once the one below it is.
fn visits(schema: &Value, depth: usize) -> u64 {
    let graph = Graph::of(schema);
    let mut below = HashMap::new();
    for _ in 0..=depth {
        let mut level = HashMap::new();
        for (schema, _) in &graph.schemas {
            count(&graph, schema, &below, &mut level);
        }
        if level.get(&key(schema)).is_some_and(|visits| *visits > MAX_VISITS) {
            return u64::MAX;
        }
        below = level;
    }
    below.get(&key(schema)).copied().unwrap_or(u64::MAX)
}

/// Counts for one schema. Recurses through what applies to the same place, which the rules keep short and free of circles.
fn count<'a>(
    graph: &Graph<'a>,
    schema: &'a Value,
    below: &HashMap<usize, u64>,
    level: &mut HashMap<usize, u64>,
) -> u64 {
    if let Some(known) = level.get(&key(schema)) {
        return *known;
    }
    let inside = |place: Place| {
        let of = move |child: super::graph::Child<'_>| below.get(&key(child.schema)).copied().unwrap_or(0);
        children(schema).into_iter().filter(move |child| child.place == place).map(of)
    };
    let members = inside(Place::Member).max().unwrap_or(0);
    let mut visits = inside(Place::Inside).fold(members.saturating_add(1), u64::saturating_add);
    for child in graph.in_place(schema).collect::<Vec<_>>() {
        visits = visits.saturating_add(count(graph, child, below, level));
    }
    level.insert(key(schema), visits);
    visits
}

/// The places in a value: itself, and everything inside of it.
fn places(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(places).fold(1, u64::saturating_add),
        Value::Object(members) => members.values().map(places).fold(1, u64::saturating_add),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_applied_is_counted_along_the_most_costly_way() {
        let tree = json!({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}});
        let twice = json!({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}});
        for (schema, depth, expected) in [
            (json!({}), 5, 1),
            (json!(true), 5, 1),
            (json!({"properties": {"a": {}, "b": {"items": {}}}}), 5, 3),
            (json!({"allOf": [{}, {}], "items": {}}), 5, 4),
            (json!({"properties": {"a": {}}, "additionalProperties": {}}), 1, 3),
            (tree, 10, 21),
            (twice.clone(), 1, 6),
            (twice, 40, u64::MAX),
        ] {
            assert_eq!(visits(&schema, depth), expected, "{schema} {depth}");
        }
    }
}
