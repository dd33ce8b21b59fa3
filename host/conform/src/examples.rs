//! Calls whose end the author of a plugin knows: `examples.json`, beside its source.

use std::collections::BTreeSet;

use domain::Tool;
use serde::Deserialize;
use serde_json::Value;

/// The most examples that are taken of one file.
const MOST: usize = 1_000;

/// How a call ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ends {
    /// With any result.
    Well,
    /// With this result.
    With(Value),
    /// With a failure of this kind.
    Badly(Kind),
}

/// The kinds of failure that a plugin can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The arguments fit the schema and make no sense.
    InvalidArguments,
    /// It did not work.
    Failed,
    /// What it needs cannot be reached now.
    Unavailable,
}

impl Kind {
    /// The name in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid-arguments",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// What it shows; its place in the file where the author gave it no name.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// An object.
    pub arguments: Value,
    /// How it ends.
    pub ends: Ends,
}

/// Those of one plugin, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Examples(Vec<Example>);

/// What is wrong with a file of examples.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExamples {
    /// It is not an array of examples.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// An example contradicts itself.
    #[error("example {0}: it names both a result and a failure; a call ends in one way")]
    Both(usize),
    /// There are too many.
    #[error("{0} examples; at most {MOST} are taken")]
    Many(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    tool: String,
    arguments: serde_json::Map<String, Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    failure: Option<Kind>,
}

/// A member that is there is a value, `null` too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Examples {
    /// Reads a file: a JSON array of objects with `tool`, `arguments`, and at most one of `result` and `failure`
    /// (`invalid-arguments`, `failed`, `unavailable`). With neither, any result will do. `name` is for people.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, InvalidExamples> {
        let written: Vec<Written> = serde_json::from_str(text)?;
        if written.len() > MOST {
            return Err(InvalidExamples::Many(written.len()));
        }
        let example = |(index, written): (usize, Written)| {
            let ends = match (written.result, written.failure) {
                (Some(_), Some(_)) => return Err(InvalidExamples::Both(index + 1)),
                (Some(value), None) => Ends::With(value),
                (None, Some(kind)) => Ends::Badly(kind),
                (None, None) => Ends::Well,
            };
            let name = written.name.unwrap_or_else(|| format!("example {}", index + 1));
            Ok(Example { name, tool: written.tool, arguments: Value::Object(written.arguments), ends })
        };
        written.into_iter().enumerate().map(example).collect::<Result<_, _>>().map(Self)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Example> {
        self.0.iter()
    }

    /// Those of a tool.
    pub fn of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Example> {
        self.0.iter().filter(move |example| example.tool == tool)
    }

    /// Names of tools that the plugin does not have, or that are not run by it.
    pub(crate) fn strangers(&self, tools: &[&Tool]) -> BTreeSet<&str> {
        let known = |name: &str| tools.iter().any(|tool| tool.name.as_str() == name);
        self.0.iter().map(|example| example.tool.as_str()).filter(|name| !known(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Examples::parse(text).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn what_an_example_may_say() {
        let text = r#"[{"tool": "a", "arguments": {}}, {"name": "none", "tool": "a", "arguments": {"n": 1}, "result": null},
            {"tool": "b", "arguments": {}, "failure": "invalid-arguments"}]"#;
        let examples = Examples::parse(text).unwrap_or_default();
        let ends: Vec<_> = examples.iter().map(|example| (example.name.as_str(), example.ends.clone())).collect();
        let expected = [
            ("example 1", Ends::Well),
            ("none", Ends::With(Value::Null)),
            ("example 3", Ends::Badly(Kind::InvalidArguments)),
        ];
        assert_eq!(ends, expected);
        assert_eq!(examples.of("a").count(), 2);
    }

    #[test]
    fn what_it_may_not_say() {
        assert!(refused(r#"[{"tool": "a", "arguments": {}, "result": 1, "failure": "failed"}]"#).contains("example 1"));
        assert!(refused(r#"[{"tool": "a", "arguments": []}]"#).contains("at line 1 column"));
        assert!(refused(r#"[{"tool": "a", "arguments": {}, "outcome": 1}]"#).contains("outcome"));
        assert!(refused(r#"[{"tool": "a", "arguments": {}, "failure": "trapped"}]"#).contains("trapped"));
        let many = format!("[{}]", vec![r#"{"tool": "a", "arguments": {}}"#; MOST + 1].join(","));
        assert!(refused(&many).contains("at most 1000"));
    }
}
