//! The defaults of a JSON Schema that apply to a value: what an approver must know about arguments that leave something out.

use std::collections::BTreeMap;

use super::value::{Members, Value, quote_into};
use crate::Json;

/// The maximum size of defaults, in bytes of their pointers and values. One default can apply at many places.
pub const MAX_DEFAULT_BYTES: usize = 64 << 10;

/// The maximum number of steps through a schema. References can lead to the same part again and again.
const MAX_STEPS: usize = 1_000_000;

/// How many references may follow each other without a step into the value.
const MAX_HOPS: usize = 8;

/// How deep the search goes. Each level of the value and each reference uses stack.
const MAX_LEVELS: usize = 300;

/// The defaults that apply to a value, each with the JSON Pointer of the member that the value leaves out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Defaults<'a>(BTreeMap<String, &'a Value>);

/// The defaults cannot be shown: they are too long, or finding them takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the schema's defaults for these arguments are longer than {MAX_DEFAULT_BYTES} bytes, or too many to find")]
pub struct TooManyDefaults;

impl<'a> Defaults<'a> {
    /// The defaults of `schema` (draft 2020-12) that apply to `value`. They are found through `properties`, `items`, `allOf`
    /// and references inside the schema, because these always apply. A default of `null` says nothing and is left out.
    ///
    /// # Errors
    /// [`TooManyDefaults`].
    pub fn of(schema: &'a Value, value: &Value) -> Result<Self, TooManyDefaults> {
        let mut walk = Walk { root: schema, found: BTreeMap::new(), bytes: 0, steps: 0, levels: 0 };
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
        (!text.is_empty()).then(|| Json::new(text + "}"))
    }
}

struct Walk<'a> {
    root: &'a Value,
    found: BTreeMap<String, &'a Value>,
    bytes: usize,
    steps: usize,
    levels: usize,
}

impl<'a> Walk<'a> {
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
        match (value, keywords.get("properties"), keywords.get("items")) {
            (Value::Object(members), Some(Value::Object(properties)), _) => {
                properties.iter().try_for_each(|(name, schema)| self.member(members, name, schema, at))
            }
            (Value::Array(items), _, Some(schema)) => {
                let inside = items.iter().enumerate().filter(|(_, item)| is_container(item));
                inside
                    .map(|(index, item)| (index.to_string(), item))
                    .try_for_each(|(index, item)| below(at, &index, |at| self.enter(schema, item, at, 0)))
            }
            _ => Ok(()),
        }
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
        match keywords.get("default") {
            Some(Value::Null) => Ok(None),
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
            Some(Value::Text(reference)) => reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)),
            _ => None,
        };
        let all = match keywords.get("allOf") {
            Some(Value::Array(all)) => &all[..],
            _ => &[],
        };
        referred.into_iter().chain(all).collect()
    }
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
mod tests {
    use super::*;

    fn defaults(schema: &str, value: &str) -> String {
        let (schema, value) = (Value::parse(schema).unwrap(), Value::parse(value).unwrap());
        match Defaults::of(&schema, &value) {
            Ok(defaults) => defaults.to_json().map_or_else(|| "none".to_owned(), |json| json.as_str().to_owned()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn defaults_of_what_is_left_out_are_found() {
        let nested = r##"{"properties": {
            "a/b": {"default": [1, 2.50]},
            "opts": {"$ref": "#/$defs/opts"},
            "whole": {"$ref": "#/$defs/opts", "default": {"depth": 9}},
            "lines": {"items": {"allOf": [{"$ref": "#/$defs/opts"}]}},
            "kind": {"allOf": [{"$ref": "#/$defs/kind"}]},
            "memo": {"default": null}, "free": {}
        }, "$defs": {"opts": {"properties": {"depth": {"default": 3}}}, "kind": {"default": "plain"}}}"##;
        for (schema, value, expected) in [
            (r#"{"properties": {"n": {"default": 5}}}"#, "{}", r#"{"/n":5}"#),
            (r#"{"properties": {"n": {"default": 5}}}"#, r#"{"n": null}"#, "none"),
            (r#"{"properties": {"n": {"default": 5}}}"#, "[]", "none"),
            (r#"{"anyOf": [{"properties": {"n": {"default": 5}}}]}"#, "{}", "none"),
            (nested, "{}", r#"{"/a~1b":[1,2.50],"/kind":"plain","/whole":{"depth":9}}"#),
            (
                nested,
                r#"{"a/b": 0, "opts": {}, "whole": {"depth": 1}, "kind": "", "lines": [{}, {"depth": 2}, 7]}"#,
                r#"{"/lines/0/depth":3,"/opts/depth":3}"#,
            ),
            (r##"{"$ref": "#"}"##, "{}", "none"),
            ("true", "{}", "none"),
        ] {
            assert_eq!(defaults(schema, value), expected, "{schema} {value}");
        }
    }

    #[test]
    fn defaults_are_limited_in_bytes_and_steps() {
        let long = format!(r#"{{"items": {{"properties": {{"n": {{"default": "{}"}}}}}}}}"#, "x".repeat(1_000));
        let items = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert!(defaults(&long, &items(60)).starts_with(r#"{"/0/n":"#));
        assert_eq!(defaults(&long, &items(70)), TooManyDefaults.to_string());
        // Each level refers to the next one twice.
        let level = |n: usize| format!(r##""l{n}": {{"allOf": [{{"$ref": "#/l{0}"}}, {{"$ref": "#/l{0}"}}]}}"##, n + 1);
        let levels: Vec<_> = (0..4).map(level).collect();
        let wide = format!(r##"{{"items": {{"$ref": "#/l0"}}, {}, "l4": {{}}}}"##, levels.join(","));
        assert_eq!(defaults(&wide, &items(10_000)), "none");
        assert_eq!(defaults(&wide, &items(40_000)), TooManyDefaults.to_string());
        let absent = format!(
            r##"{{"items": {{"properties": {{"n": {{"$ref": "#/l0"}}}}}}, {}, "l4": {{}}}}"##,
            levels.join(",")
        );
        assert_eq!(defaults(&absent, &items(10_000)), "none");
        assert_eq!(defaults(&absent, &items(40_000)), TooManyDefaults.to_string());
        // Each level of the value leads through four references.
        let chain = r##"{"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/c"}, "c": {"items": {"$ref": "#"}}}"##;
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(defaults(chain, &deep(50)), "none");
        assert_eq!(defaults(chain, &deep(100)), TooManyDefaults.to_string());
    }

    #[test]
    fn values_inside_a_default_are_found() {
        let schema = Value::parse(r#"{"properties": {"o": {"default": {"depth": [7]}}}}"#).unwrap();
        let value = Value::parse("{}").unwrap();
        let defaults = Defaults::of(&schema, &value).unwrap();
        let at = |pointer: &str| defaults.get(pointer).map(Value::to_json);
        assert_eq!(at("/o/depth/0").as_deref(), Some("7"));
        assert_eq!(at("/o").as_deref(), Some(r#"{"depth":[7]}"#));
        assert_eq!((at("/other"), at("/o/none"), at("/o2")), (None, None, None));
    }
}
