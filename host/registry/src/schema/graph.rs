//! A schema as a graph: what it holds, what it refers to, and what of that applies to the same place of a value.

use std::collections::HashMap;

use serde_json::Value;

use crate::json::escaped;

/// Members that hold a map of schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Members that hold values of any form.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Members whose schemas apply to the same place of a value as the schema they stand in.
const IN_PLACE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// How a schema relates to the one that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// It applies to the same place of a value.
    Same,
    /// It applies to one named member, so of all in the same map one applies to any place.
    Member,
    /// It applies somewhere inside.
    Inside,
    /// It applies where it is referred to.
    Nowhere,
}

/// A schema inside of another one.
pub(crate) struct Child<'a> {
    /// The way there, as a JSON Pointer.
    pub(crate) step: String,
    /// The schema.
    pub(crate) schema: &'a Value,
    /// To what it applies.
    pub(crate) place: Nesting,
}

/// A schema and what its references may name.
pub(crate) struct Graph<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// Every schema in the document, each after those inside of it, with the JSON Pointer to it.
    pub(crate) schemas: Vec<(&'a Value, String)>,
}

impl<'a> Graph<'a> {
    /// The graph of a document. Recurses as deeply as the document is nested.
    pub(crate) fn of(root: &'a Value) -> Self {
        let mut graph = Self { root, anchors: HashMap::new(), schemas: Vec::new() };
        graph.survey(root, String::new());
        graph
    }

    fn survey(&mut self, schema: &'a Value, pointer: String) {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                self.anchors.insert(name, schema);
            }
        }
        for child in children(schema) {
            self.survey(child.schema, format!("{pointer}{}", child.step));
        }
        self.schemas.push((schema, pointer));
    }

    /// What a reference leads to.
    pub(crate) fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decoded(reference.strip_prefix('#')?)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_str()).copied()
        }
    }

    /// What the references of one schema lead to.
    pub(crate) fn targets(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let of = |keyword| schema.get(keyword).and_then(Value::as_str).and_then(|text| self.target(text));
        [of("$ref"), of("$dynamicRef")].into_iter().flatten()
    }

    /// The schemas that apply wherever one does: those it refers to, and those it holds for the same place.
    pub(crate) fn in_place(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let held = children(schema).into_iter().filter(|child| child.place == Nesting::Same).map(|child| child.schema);
        self.targets(schema).chain(held)
    }
}

/// Tells two schemas of one document apart: values that are equal are different schemas.
pub(crate) fn key(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// The schemas that a schema holds.
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
        let step = format!("/{}", escaped(keyword));
        match value {
            Value::Object(map) if MAPS.contains(&keyword.as_str()) => {
                let step_to = |name: &str| format!("{step}/{}", escaped(name));
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

/// Decodes the escapes of a URI's fragment (RFC 3986). `None` where they are not escapes, or not UTF-8.
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
