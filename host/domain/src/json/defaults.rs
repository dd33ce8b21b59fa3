//! The defaults of a JSON Schema that apply to a value: what an approver must know about arguments that leave something out.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::value::{Members, Value, quote_into};
use super::{fragment, percent_decoded};
use crate::Json;

/// The maximum size of defaults, in bytes of their pointers and values. One default can apply at many places.
pub const MAX_DEFAULT_BYTES: usize = 64 << 10;

/// The maximum number of steps through a schema. References can lead to the same part again and again.
const MAX_STEPS: usize = 1_000_000;

/// How many references may follow each other without a step into the value.
const MAX_HOPS: usize = 8;

/// How deep the search goes. Each level of the value and each reference uses stack.
const MAX_LEVELS: usize = 300;

/// The keywords whose value is arbitrary JSON and no schema.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Whether a name matches a pattern of `patternProperties`: the pattern, then the name.
pub type NameMatches<'a> = &'a dyn Fn(&str, &str) -> bool;

/// The defaults that apply to a value, each with the JSON Pointer of the member that the value leaves out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Defaults<'a>(BTreeMap<String, &'a Value>);

/// The defaults cannot be shown: they are too long, or finding them takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the schema's defaults for these arguments are longer than {MAX_DEFAULT_BYTES} bytes, or take too long to find"
)]
pub struct TooManyDefaults;

impl<'a> Defaults<'a> {
    /// The defaults of `schema` that apply to a `value` that fits it, by the rules of the schema's draft. They are found
    /// through the keywords for members and items, `allOf`, and references inside the schema, because these always apply;
    /// and through an alternative of `anyOf` or `oneOf` if no other one allows a value of this type.
    ///
    /// # Errors
    /// [`TooManyDefaults`].
    pub fn of(schema: &'a Value, value: &Value, matches: NameMatches<'_>) -> Result<Self, TooManyDefaults> {
        let mut walk = Walk {
            root: schema,
            draft: Draft::of(schema),
            id: match schema.pointer("/$id") {
                Some(Value::Text(id)) => Some(id),
                _ => None,
            },
            anchors: OnceCell::new(),
            matches,
            found: BTreeMap::new(),
            bytes: 0,
            steps: 0,
            levels: 0,
        };
        walk.enter(schema, value, &mut String::new(), 0)?;
        Ok(Self(walk.found))
    }

    /// The default at a JSON Pointer, or inside a default.
    #[must_use]
    pub fn get(&self, pointer: &str) -> Option<&'a Value> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
        ends.map(|end| pointer.split_at(end)).find_map(|(at, inside)| self.0.get(at)?.pointer(inside))
    }

    /// A JSON object with the pointers as names. `None` if no default applies.
    #[must_use]
    pub fn to_json(&self) -> Option<Json> {
        let mut text = String::new();
        for (at, value) in &self.0 {
            text.push(if text.is_empty() { '{' } else { ',' });
            quote_into(at, &mut text);
            text.push(':');
            text.push_str(&value.to_json());
        }
        (!text.is_empty()).then(|| Json::unchecked(text + "}"))
    }
}

/// The differences between the drafts that matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    /// A reference makes its siblings mean nothing.
    Draft07,
    /// As later drafts, but `items` may be a list.
    Draft201909,
    Draft202012,
}

impl Draft {
    fn of(schema: &Value) -> Self {
        match schema.pointer("/$schema") {
            Some(Value::Text(name)) if name.contains("/draft-07/") => Self::Draft07,
            Some(Value::Text(name)) if name.contains("/2019-09/") => Self::Draft201909,
            _ => Self::Draft202012,
        }
    }

    /// The schema of the item at an index.
    fn item(self, keywords: &Members, index: usize) -> Option<&Value> {
        let (list, rest) =
            if self == Self::Draft202012 { ("prefixItems", "items") } else { ("items", "additionalItems") };
        match keywords.get(list) {
            Some(Value::Array(schemas)) => schemas.get(index).or_else(|| keywords.get(rest)),
            _ => keywords.get("items"),
        }
    }

    /// The names by which references may name a schema.
    fn anchors(self, keywords: &Members) -> impl Iterator<Item = &str> {
        let texts = ["$id", "$anchor", "$dynamicAnchor"].into_iter().zip(["#", "", ""]);
        texts.filter_map(move |(keyword, prefix)| match keywords.get(keyword) {
            Some(Value::Text(name)) if (self == Self::Draft07) == (keyword == "$id") => name.strip_prefix(prefix),
            _ => None,
        })
    }
}

struct Walk<'a, 'm> {
    root: &'a Value,
    draft: Draft,
    /// The `$id` of the whole schema.
    id: Option<&'a str>,
    /// Collected when a reference first names one.
    anchors: OnceCell<HashMap<&'a str, &'a Value>>,
    matches: NameMatches<'m>,
    found: BTreeMap<String, &'a Value>,
    bytes: usize,
    steps: usize,
    levels: usize,
}

impl<'a> Walk<'a, '_> {
    fn enter(&mut self, schema: &'a Value, value: &Value, at: &mut String, hops: usize) -> Result<(), TooManyDefaults> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        self.steps += 1;
        self.levels += 1;
        if self.steps > MAX_STEPS || self.levels > MAX_LEVELS {
            return Err(TooManyDefaults);
        }
        self.apply(keywords, value, at, hops)?;
        self.levels -= 1;
        Ok(())
    }

    fn apply(
        &mut self,
        keywords: &'a Members,
        value: &Value,
        at: &mut String,
        hops: usize,
    ) -> Result<(), TooManyDefaults> {
        for same in self.same_place(keywords, hops) {
            self.enter(same, value, at, hops + 1)?;
        }
        for alternatives in self.alternatives(keywords, hops) {
            if let Some(only) = self.only(alternatives, value, hops)? {
                self.enter(only, value, at, hops + 1)?;
            }
        }
        if self.is_alone(keywords) {
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                if let Some(Value::Object(properties)) = keywords.get("properties") {
                    properties.iter().try_for_each(|(name, schema)| self.member(members, name, schema, at))?;
                }
                self.other_members(keywords, members, at)
            }
            Value::Array(items) => {
                let (draft, inside) = (self.draft, items.iter().enumerate().filter(|(_, item)| is_container(item)));
                inside
                    .filter_map(|(index, item)| Some((index.to_string(), item, draft.item(keywords, index)?)))
                    .try_for_each(|(index, item, schema)| below(at, &index, |at| self.enter(schema, item, at, 0)))
            }
            _ => Ok(()),
        }
    }

    /// The members that `patternProperties` or `additionalProperties` describes.
    fn other_members(
        &mut self,
        keywords: &'a Members,
        members: &Members,
        at: &mut String,
    ) -> Result<(), TooManyDefaults> {
        let object = |keyword| match keywords.get(keyword) {
            Some(Value::Object(schemas)) => Some(schemas),
            _ => None,
        };
        let (patterns, rest) = (object("patternProperties"), keywords.get("additionalProperties"));
        if patterns.is_none() && rest.is_none() {
            return Ok(());
        }
        let properties: HashSet<&str> =
            object("properties").into_iter().flat_map(Members::iter).map(|(name, _)| name).collect();
        for (name, value) in members.iter().filter(|(_, value)| is_container(value)) {
            let mut is_described = properties.contains(name);
            for (pattern, schema) in patterns.into_iter().flat_map(Members::iter) {
                // A match costs more the longer the name is.
                self.steps += 1 + name.len() / 16;
                if self.steps > MAX_STEPS {
                    return Err(TooManyDefaults);
                }
                if (self.matches)(pattern, name) {
                    is_described = true;
                    below(at, name, |at| self.enter(schema, value, at, 0))?;
                }
            }
            if let Some(rest) = rest.filter(|_| !is_described) {
                below(at, name, |at| self.enter(rest, value, at, 0))?;
            }
        }
        Ok(())
    }

    /// Whether only the reference of a schema counts.
    fn is_alone(&self, keywords: &Members) -> bool {
        self.draft == Draft::Draft07 && keywords.get("$ref").is_some()
    }

    fn member(
        &mut self,
        members: &Members,
        name: &str,
        schema: &'a Value,
        at: &mut String,
    ) -> Result<(), TooManyDefaults> {
        below(at, name, |at| match members.get(name) {
            Some(value) if is_container(value) => self.enter(schema, value, at, 0),
            Some(_) => Ok(()),
            None => {
                let Some(default) = self.default_of(schema, 0)? else { return Ok(()) };
                // The same member may be reached in several ways. The first default counts.
                if !self.found.contains_key(at) {
                    self.bytes += at.len() + default.to_json().len();
                    self.found.insert(at.clone(), default);
                }
                if self.bytes > MAX_DEFAULT_BYTES { Err(TooManyDefaults) } else { Ok(()) }
            }
        })
    }

    /// The default of a member that is left out.
    fn default_of(&mut self, schema: &'a Value, hops: usize) -> Result<Option<&'a Value>, TooManyDefaults> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(TooManyDefaults);
        }
        let Value::Object(keywords) = schema else { return Ok(None) };
        match keywords.get("default").filter(|_| !self.is_alone(keywords)) {
            Some(default) => Ok(Some(default)),
            None => {
                for same in self.same_place(keywords, hops) {
                    let default = self.default_of(same, hops + 1)?;
                    if default.is_some() {
                        return Ok(default);
                    }
                }
                Ok(None)
            }
        }
    }

    /// The other schemas that apply to the same value.
    fn same_place(&self, keywords: &'a Members, hops: usize) -> Vec<&'a Value> {
        if hops >= MAX_HOPS {
            return Vec::new();
        }
        let referred = match keywords.get("$ref") {
            Some(Value::Text(reference)) => fragment(self.id, reference).and_then(|fragment| self.target(fragment)),
            _ => None,
        };
        let all = match keywords.get("allOf") {
            Some(Value::Array(all)) if !self.is_alone(keywords) => &all[..],
            _ => &[],
        };
        referred.into_iter().chain(all).collect()
    }

    /// The lists of alternatives for the same value.
    fn alternatives(&self, keywords: &'a Members, hops: usize) -> impl Iterator<Item = &'a [Value]> + use<'a> {
        let counts = hops < MAX_HOPS && !self.is_alone(keywords);
        ["anyOf", "oneOf"].into_iter().filter_map(move |keyword| match keywords.get(keyword) {
            Some(Value::Array(alternatives)) if counts => Some(&alternatives[..]),
            _ => None,
        })
    }

    /// The one alternative that allows values of this type.
    fn only(
        &mut self,
        alternatives: &'a [Value],
        value: &Value,
        hops: usize,
    ) -> Result<Option<&'a Value>, TooManyDefaults> {
        let mut only = None;
        for alternative in alternatives {
            if is_container(value) && self.allows(alternative, value, hops + 1)? && only.replace(alternative).is_some()
            {
                return Ok(None);
            }
        }
        Ok(only)
    }

    /// Whether a schema allows values of the type of this object or array.
    fn allows(&mut self, schema: &'a Value, value: &Value, hops: usize) -> Result<bool, TooManyDefaults> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(TooManyDefaults);
        }
        let Value::Object(keywords) = schema else { return Ok(*schema != Value::Bool(false)) };
        if !self.is_alone(keywords) && !names_type_of(keywords, value) {
            return Ok(false);
        }
        for same in self.same_place(keywords, hops) {
            if !self.allows(same, value, hops + 1)? {
                return Ok(false);
            }
        }
        for alternatives in self.alternatives(keywords, hops) {
            let mut is_allowed = false;
            for alternative in alternatives {
                is_allowed = is_allowed || self.allows(alternative, value, hops + 1)?;
            }
            if !is_allowed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The schema that a fragment of this document names.
    fn target(&self, fragment: &str) -> Option<&'a Value> {
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&percent_decoded(fragment)?);
        }
        let collect = || {
            let mut anchors = HashMap::new();
            collect_anchors(self.root, self.draft, &mut anchors);
            anchors
        };
        self.anchors.get_or_init(collect).get(fragment).copied()
    }
}

/// Recurses as deeply as the document is nested.
fn collect_anchors<'a>(value: &'a Value, draft: Draft, anchors: &mut HashMap<&'a str, &'a Value>) {
    match value {
        Value::Object(keywords) => {
            anchors.extend(draft.anchors(keywords).map(|name| (name, value)));
            let schemas = keywords.iter().filter(|(keyword, _)| !VALUES.contains(keyword));
            schemas.for_each(|(_, value)| collect_anchors(value, draft, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_anchors(item, draft, anchors)),
        _ => {}
    }
}

/// Whether the keywords for types and constants allow values of the type of this object or array.
fn names_type_of(keywords: &Members, value: &Value) -> bool {
    let name = if matches!(value, Value::Object(_)) { "object" } else { "array" };
    let is_it = |named: &Value| matches!(named, Value::Text(named) if **named == *name);
    let is_alike = |constant: &Value| std::mem::discriminant(constant) == std::mem::discriminant(value);
    let types = match keywords.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_it),
        Some(one) => is_it(one),
        None => true,
    };
    let listed = match keywords.get("enum") {
        Some(Value::Array(constants)) => constants.iter().any(is_alike),
        _ => true,
    };
    types && listed && keywords.get("const").is_none_or(is_alike)
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

/// Calls `then` with the pointer of a member.
fn below<R>(at: &mut String, name: &str, then: impl FnOnce(&mut String) -> R) -> R {
    let length = at.len();
    at.push('/');
    at.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let result = then(at);
    at.truncate(length);
    result
}

#[cfg(test)]
mod tests;
