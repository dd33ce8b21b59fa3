//! A schema as a graph. The edges are its subschemas and its references. Some of them apply to the same location of a
//! value as the schema itself. The graph has the edges of all drafts, because the library follows some of them in every
//! draft: more edges can only make a schema look more expensive.

use std::collections::{HashMap, HashSet};

use domain::json::{fragment, percent_decoded, pointer_step};
use serde_json::Value;

use super::Draft;

/// The keywords whose value is a map of schemas.
pub(super) const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The keywords whose value is arbitrary JSON and no schema.
pub(super) const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// The in-place applicators: their subschemas apply to the same location of a value as the schema that contains them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The keywords that refer to another schema.
pub(crate) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The location that a subschema applies to, relative to the schema that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// The subschema applies to the same location of a value.
    Same,
    /// The subschema applies to one named member. At most one schema of the same map applies to each location.
    Member,
    /// The subschema applies to some location inside the value.
    Inside,
    /// The subschema applies only where a reference names it.
    Nowhere,
}

/// A schema that another schema contains.
pub(crate) struct Child<'a> {
    /// The JSON Pointer from the containing schema to this one.
    pub(crate) step: String,
    pub(crate) schema: &'a Value,
    pub(crate) place: Nesting,
}

/// A document, its schemas, and the anchors that its references may name.
pub(crate) struct Graph<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// An anchor that two schemas have. The library may find another of them than this graph.
    pub(crate) ambiguous: Option<&'a str>,
    /// The keys of `schemas`.
    known: HashSet<usize>,
    /// Every schema in the document with its JSON Pointer. Each schema comes after the schemas inside it.
    pub(crate) schemas: Vec<(&'a Value, String)>,
}

impl<'a> Graph<'a> {
    /// Recurses as deeply as the document is nested.
    pub(crate) fn of(root: &'a Value) -> Self {
        let (anchors, known) = (HashMap::new(), HashSet::new());
        let mut graph = Self { root, anchors, ambiguous: None, known, schemas: Vec::new() };
        graph.survey(root, Draft::of(root).unwrap_or(Draft::Draft202012), String::new());
        graph.known = graph.schemas.iter().map(|(schema, _)| key(schema)).collect();
        graph
    }

    fn survey(&mut self, schema: &'a Value, draft: Draft, pointer: String) {
        for name in draft.anchors(schema) {
            let other = self.anchors.insert(name, schema);
            if other.is_some_and(|other| key(other) != key(schema)) {
                self.ambiguous = Some(name);
            }
        }
        for child in children(schema) {
            self.survey(child.schema, draft, format!("{pointer}{}", child.step));
        }
        self.schemas.push((schema, pointer));
    }

    /// The fragment of a reference into this document.
    pub(crate) fn fragment<'r>(&self, reference: &'r str) -> Option<&'r str> {
        fragment(self.root.get("$id").and_then(Value::as_str), reference)
    }

    /// Resolves a reference to a schema of the document. Other parts, such as a `default`, are no targets: the rules and
    /// the costs do not know what is in them.
    pub(crate) fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = self.fragment(reference)?;
        let target = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&percent_decoded(fragment)?)?
        } else {
            self.anchors.get(fragment).copied()?
        };
        self.known.contains(&key(target)).then_some(target)
    }

    /// Resolves the references of one schema.
    pub(crate) fn targets(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let of = |keyword| schema.get(keyword).and_then(Value::as_str).and_then(|text| self.target(text));
        REFERENCES.into_iter().filter_map(of)
    }

    /// Returns the schemas that apply to the same location as `schema`: the targets of its references, and its in-place
    /// subschemas.
    pub(crate) fn in_place(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let held = children(schema).into_iter().filter(|child| child.place == Nesting::Same).map(|child| child.schema);
        self.targets(schema).chain(held)
    }
}

/// Identifies a schema of a document by its address, because two schemas with equal content are different schemas.
pub(crate) fn key(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// Returns the schemas that a schema contains directly.
pub(crate) fn children(schema: &Value) -> Vec<Child<'_>> {
    let mut all = Vec::new();
    let Value::Object(members) = schema else { return all };
    for (keyword, value) in members {
        let place = match keyword.as_str() {
            keyword if VALUES.contains(&keyword) => continue,
            keyword if IN_PLACE.contains(&keyword) => Nesting::Same,
            "properties" => Nesting::Member,
            "$defs" | "definitions" => Nesting::Nowhere,
            _ => Nesting::Inside,
        };
        let step = format!("/{}", pointer_step(keyword));
        match value {
            Value::Object(map) if MAPS.contains(&keyword.as_str()) => {
                let step_to = |name: &str| format!("{step}/{}", pointer_step(name));
                all.extend(map.iter().map(|(name, schema)| Child { step: step_to(name), schema, place }));
            }
            Value::Object(_) => all.push(Child { step, schema: value, place }),
            Value::Array(list) => {
                let schemas = list.iter().enumerate().filter(|(_, schema)| schema.is_object());
                all.extend(schemas.map(|(index, schema)| Child { step: format!("{step}/{index}"), schema, place }));
            }
            _ => {}
        }
    }
    all
}
