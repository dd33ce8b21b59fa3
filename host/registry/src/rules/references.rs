//! Checks the references of a schema: they stay inside it, end, and cost little.
//!
//! A recursive reference is fine below a step into the value (`properties`, `items`), because values are finite.
//! Without such a step (`{"$ref": "#"}`) it never ends. A few dozen `allOf` that each refer twice to the next would
//! take exponential time. Both would stop the host, not only the call.

use std::collections::HashMap;

use serde_json::Value;

use crate::LoadRule;
use crate::finding::Findings;
use crate::json::quoted;
use crate::schema::{Draft, Graph, REFERENCES, children, key};

/// The maximum number of schemas that may apply to one part of a value, each counted as often as it applies.
const MAX_WEIGHT: u32 = 10_000;

/// The maximum nesting of such schemas. Validation needs stack frames in proportion to this times the depth of the
/// value, and a stack overflow would kill the host.
const MAX_STEPS: usize = 16;

/// The maximum length of a chain through the whole schema. Compilation recurses about as deeply.
const MAX_CHAIN: usize = 128;

/// Checks the rules about references.
pub(crate) fn check(what: &str, schema: &Value, draft: Draft, findings: &mut Findings) {
    let graph = Graph::of(schema);
    let before = findings.len();
    check_targets(&graph, draft, what, findings);
    if findings.len() > before {
        return;
    }
    let mut weights = HashMap::new();
    for (schema, pointer) in &graph.schemas {
        if let Err(fault) = weigh(&graph, schema, &mut weights, 0) {
            findings.add(LoadRule::SchemaCycle, fault.message(what, pointer), fault.remedy());
            return;
        }
    }
    if !is_short(&graph, schema, &mut HashMap::new(), 0) {
        let message = format!("{what} has a chain of more than {MAX_CHAIN} nested or referenced schemas");
        findings.add(LoadRule::SchemaDepth, message, "shorten the chain");
    }
}

/// Why a schema costs too much to follow.
#[derive(Clone, Copy)]
enum Fault {
    Circle,
    Steps,
    Weight,
}

impl Fault {
    fn message(self, what: &str, pointer: &str) -> String {
        let place = if pointer.is_empty() { String::new() } else { format!(" at {}", quoted(pointer)) };
        match self {
            Self::Circle => format!("{what}{place} refers to itself without a step into the value, so it never ends"),
            Self::Steps => {
                format!("{what}{place} leads through more than {MAX_STEPS} schemas for one place of a value")
            }
            Self::Weight => format!("{what}{place} applies more than {MAX_WEIGHT} schemas to one place of a value"),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Circle => "let it refer to itself from inside `properties` or `items` only",
            Self::Steps | Self::Weight => "combine fewer schemas, and refer to each of them once",
        }
    }
}

/// Every reference must begin with `#`, or with the `$id` of the whole schema, and lead to one schema of the document. Only the whole schema may have an
/// `$id`, because that of a part would change the meaning of the references in it.
fn check_targets(graph: &Graph<'_>, draft: Draft, what: &str, findings: &mut Findings) {
    if let Some(anchor) = graph.ambiguous {
        let message = format!("{what} has the anchor {} twice", quoted(anchor));
        findings.add(LoadRule::SchemaInvalid, message, "rename one of the two");
    }
    for (schema, pointer) in &graph.schemas {
        if !pointer.is_empty() && schema.get("$schema").is_some() {
            let message = format!("{what} has a `$schema` at {}", quoted(pointer));
            findings.add(LoadRule::SchemaInvalid, message, "remove it: the whole schema is of one draft");
        }
        for keyword in REFERENCES {
            let Some(target) = schema.get(keyword).and_then(Value::as_str) else { continue };
            let place = quoted(&format!("{pointer}/{keyword}"));
            if graph.fragment(target).is_none() {
                let message = format!("{what} refers at {place} to {}, outside of itself", quoted(target));
                let remedy = "put what it refers to under `$defs` and refer to it as `#/$defs/NAME`";
                findings.add(LoadRule::SchemaRemote, message, remedy);
            } else if graph.target(target).is_none() {
                let message = format!("{what} refers at {place} to {}, which does not exist", quoted(target));
                findings.add(LoadRule::SchemaInvalid, message, "correct the reference");
            }
        }
        let id = schema.get("$id").filter(|_| !pointer.is_empty());
        if id.is_some_and(|id| !id.as_str().is_some_and(|id| draft.is_anchor(id))) {
            let message = format!("{what} has an `$id` at {}", quoted(pointer));
            let remedy = "remove it: references are within the schema and begin with `#`";
            findings.add(LoadRule::SchemaRemote, message, remedy);
        }
    }
}

/// The cost of applying one schema.
#[derive(Clone, Copy)]
struct Weight {
    /// How many schemas apply, each counted as often as it applies.
    schemas: u32,
    /// How many of them apply once more to mark evaluated members, because an `unevaluatedProperties` or
    /// `unevaluatedItems` around them needs that. Each level of such keywords doubles the count.
    marking: u32,
    /// How deeply they are nested.
    steps: usize,
}

/// Computes the cost of one schema. `None` in the map marks a schema whose cost is being computed.
fn weigh<'a>(
    graph: &Graph<'a>,
    schema: &'a Value,
    known: &mut HashMap<usize, Option<Weight>>,
    above: usize,
) -> Result<Weight, Fault> {
    match known.get(&key(schema)) {
        Some(Some(weight)) => return Ok(*weight),
        Some(None) => return Err(Fault::Circle),
        None if above == MAX_STEPS => return Err(Fault::Steps),
        None => known.insert(key(schema), None),
    };
    let mut weight = Weight { schemas: 1, marking: 1, steps: 1 };
    for child in graph.in_place(schema).collect::<Vec<_>>() {
        let child = weigh(graph, child, known, above + 1)?;
        weight.schemas = weight.schemas.saturating_add(child.schemas);
        weight.marking = weight.marking.saturating_add(child.schemas).saturating_add(child.marking);
        weight.steps = weight.steps.max(child.steps + 1);
    }
    if schema.get("unevaluatedProperties").is_some() || schema.get("unevaluatedItems").is_some() {
        weight.schemas = weight.schemas.saturating_add(weight.marking);
    }
    if weight.steps > MAX_STEPS {
        return Err(Fault::Steps);
    }
    if weight.schemas > MAX_WEIGHT {
        return Err(Fault::Weight);
    }
    known.insert(key(schema), Some(weight));
    Ok(weight)
}

/// Whether the chains from a schema through its parts and references are short. A reference back into the current chain
/// ends it. The map contains the longest chain from each schema.
fn is_short<'a>(graph: &Graph<'a>, schema: &'a Value, known: &mut HashMap<usize, usize>, above: usize) -> bool {
    if let Some(below) = known.get(&key(schema)) {
        return above + below <= MAX_CHAIN;
    }
    if above == MAX_CHAIN {
        return false;
    }
    known.insert(key(schema), 0);
    let mut longest = 0;
    let held = children(schema).into_iter().map(|child| child.schema);
    for child in graph.targets(schema).chain(held).collect::<Vec<_>>() {
        if !is_short(graph, child, known, above + 1) {
            return false;
        }
        longest = longest.max(known.get(&key(child)).copied().unwrap_or(0));
    }
    known.insert(key(schema), longest + 1);
    true
}
