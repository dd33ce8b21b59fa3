//! Where the references of a schema lead: nowhere outside of it, and never round in a circle.
//!
//! A reference back is fine where it lies behind a step into the value (`properties`, `items`), since values end. One that
//! does not (`{"$ref": "#"}`) never does, and a few dozen `allOf` that each refer twice to the next cost more than the
//! universe has time: both would be the end of the host and not of the call.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::LoadRule;
use crate::finding::Findings;
use crate::json::{escaped, quoted};

/// How many schemas may apply to one place of a value, counted as often as they do.
const MAX_WEIGHT: u32 = 10_000;

/// How many of them may lie inside each other, and how long a chain through the whole schema may be: every link is a frame
/// or more on the stack of whoever follows it.
const MAX_STEPS: usize = 32;
const MAX_CHAIN: usize = 128;

/// Members that hold a map of schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Members that hold values, whatever those look like.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Members whose schemas apply to the same place of a value as the schema they stand in.
const IN_PLACE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Applies the rules about references.
pub(crate) fn judge(what: &str, schema: &Value, findings: &mut Findings) {
    let mut graph = Graph { root: schema, anchors: HashMap::new(), schemas: Vec::new() };
    graph.survey(schema, String::new());
    let before = findings.len();
    graph.judge_targets(what, findings);
    if findings.len() > before {
        return;
    }
    let mut weights = HashMap::new();
    for (schema, pointer) in &graph.schemas {
        if let Err(fault) = graph.weigh(schema, &mut weights, 0) {
            findings.add(LoadRule::SchemaCycle, fault.message(what, pointer), fault.remedy());
            return;
        }
    }
    if !graph.is_short(schema, &mut HashSet::new(), 0) {
        let message = format!("{what} has a chain of more than {MAX_CHAIN} schemas that lie in or refer to each other");
        findings.add(LoadRule::SchemaDepth, message, "shorten the chain");
    }
}

/// Why following a schema has no end worth waiting for.
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
            Self::Steps | Self::Weight => "refer to each schema once",
        }
    }
}

/// A schema and what its references may name.
struct Graph<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    schemas: Vec<(&'a Value, String)>,
}

impl<'a> Graph<'a> {
    /// Collects every schema in the document. The document's depth is bounded, and so is this recursion.
    fn survey(&mut self, schema: &'a Value, pointer: String) {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                self.anchors.insert(name, schema);
            }
        }
        for (step, child, _) in children(schema) {
            self.survey(child, format!("{pointer}{step}"));
        }
        self.schemas.push((schema, pointer));
    }

    /// Every reference must begin with `#` and lead somewhere; and no part of the schema has an address of its own, which
    /// would change what its references mean.
    fn judge_targets(&self, what: &str, findings: &mut Findings) {
        for (schema, pointer) in &self.schemas {
            for keyword in ["$ref", "$dynamicRef"] {
                let Some(target) = schema.get(keyword).and_then(Value::as_str) else { continue };
                let place = quoted(&format!("{pointer}/{keyword}"));
                if !target.starts_with('#') {
                    let message = format!("{what} refers at {place} to {}, outside of itself", quoted(target));
                    let remedy = "put what it refers to under `$defs` and refer to it as `#/$defs/NAME`";
                    findings.add(LoadRule::SchemaRemote, message, remedy);
                } else if self.target(target).is_none() {
                    let message = format!("{what} refers at {place} to {}, which is not there", quoted(target));
                    findings.add(LoadRule::SchemaInvalid, message, "correct the reference");
                }
            }
            if schema.get("$id").is_some() {
                let message = format!("{what} has an `$id` at {}", quoted(pointer));
                let remedy = "remove it: references are within the schema and begin with `#`";
                findings.add(LoadRule::SchemaRemote, message, remedy);
            }
        }
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decoded(reference.strip_prefix('#')?)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_str()).copied()
        }
    }

    fn targets(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let of = |keyword| schema.get(keyword).and_then(Value::as_str).and_then(|text| self.target(text));
        [of("$ref"), of("$dynamicRef")].into_iter().flatten()
    }

    /// How many schemas apply where this one does. `None` in the map: this one is being counted.
    fn weigh(&self, schema: &'a Value, known: &mut HashMap<usize, Option<u32>>, steps: usize) -> Result<u32, Fault> {
        let key = std::ptr::from_ref(schema).addr();
        match known.get(&key) {
            Some(Some(weight)) => return Ok(*weight),
            Some(None) => return Err(Fault::Circle),
            None if steps == MAX_STEPS => return Err(Fault::Steps),
            None => known.insert(key, None),
        };
        let in_place = children(schema).into_iter().filter(|(_, _, in_place)| *in_place).map(|(_, child, _)| child);
        let mut weight = 1_u32;
        for child in in_place.chain(self.targets(schema)) {
            weight = weight.saturating_add(self.weigh(child, known, steps + 1)?);
        }
        if weight > MAX_WEIGHT {
            return Err(Fault::Weight);
        }
        known.insert(key, Some(weight));
        Ok(weight)
    }

    /// Whether the way to every schema is short, going through what each holds and refers to, and through none twice.
    fn is_short(&self, schema: &'a Value, seen: &mut HashSet<usize>, steps: usize) -> bool {
        if !seen.insert(std::ptr::from_ref(schema).addr()) {
            return true;
        }
        let held = children(schema).into_iter().map(|(_, child, _)| child);
        steps < MAX_CHAIN && self.targets(schema).chain(held).all(|child| self.is_short(child, seen, steps + 1))
    }
}

/// The schemas that a schema holds: the way there as a JSON Pointer, and whether they apply to the same place of a value.
fn children(schema: &Value) -> Vec<(String, &Value, bool)> {
    let mut all = Vec::new();
    let Value::Object(members) = schema else { return all };
    for (keyword, value) in members {
        let in_place = IN_PLACE.contains(&keyword.as_str());
        let step = format!("/{}", escaped(keyword));
        match value {
            _ if VALUES.contains(&keyword.as_str()) => {}
            Value::Object(map) if MAPS.contains(&keyword.as_str()) => {
                all.extend(map.iter().map(|(name, child)| (format!("{step}/{}", escaped(name)), child, in_place)));
            }
            Value::Object(_) => all.push((step, value, in_place)),
            Value::Array(list) => {
                let schemas = list.iter().enumerate().filter(|(_, child)| child.is_object());
                all.extend(schemas.map(|(index, child)| (format!("{step}/{index}"), child, in_place)));
            }
            _ => {}
        }
    }
    all
}

/// Decodes the escapes of a URI's fragment (RFC 3986). `None` where they are none, or not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail.get(2..)?;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}
