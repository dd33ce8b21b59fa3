//! `examples.json`: calls of a plugin's tools with their expected outcomes.
//!
//! ```json
//! [{"name": "three words", "tool": "count", "arguments": {"text": "a b c"}, "result": 3},
//!  {"tool": "count", "arguments": {}, "failure": "invalid-arguments"},
//!  {"tool": "now", "arguments": {}},
//!  {"tool": "deploy", "arguments": {}, "answers": [{"environment": "live"}, "approve", "healthy"]}]
//! ```
//!
//! The answers of an example are for the waits of a durable tool, in their order: a choice or JSON for a question, `approve`,
//! `deny` with a comment, or the edited value for an approval, and JSON for the result of an external system.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Failed;

/// The name of the file in a plugin's folder.
pub const FILE: &str = "examples.json";

/// The greatest number of examples in a file.
const MAX_EXAMPLES: usize = 1000;

/// The greatest number of characters of a value in a message.
const MAX_QUOTED: usize = 300;

/// One call with its expected outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The name of the example.
    pub name: Option<String>,
    /// The tool to call.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
    /// The answers of people and external systems, for a durable tool.
    pub answers: Vec<Value>,
    /// The expected outcome.
    pub expected: Expected,
}

/// The expected outcome of an example.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// Any result.
    Success,
    /// This result.
    Result(Value),
    /// A failure of this kind.
    Failure(Failure),
}

/// The kinds of failure that a plugin can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The arguments break the schema, or make no sense.
    InvalidArguments,
    /// The attempt failed.
    Failed,
    /// Something that the tool needs is unavailable now.
    Unavailable,
}

impl Failure {
    /// The name in the interface.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid-arguments",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
        }
    }

    /// The code of a call that ended with it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::Failed => "tool_failed",
            Self::Unavailable => "tool_unavailable",
        }
    }
}

/// An example as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    answers: Vec<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    failure: Option<Failure>,
}

/// Tells a result that is null from one that is absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a file of examples.
///
/// # Errors
/// When the file cannot be read, or has another form.
pub fn read(file: &Path) -> Result<Vec<Example>, Failed> {
    let text = fs::read_to_string(file).map_err(Failed::reading(file))?;
    let form = "it is an array of {\"tool\", \"arguments\", and \"result\" or \"failure\" or neither}";
    let wrong = |what: String| Failed::project(format!("{}: {what}", file.display()), form);
    let written: Vec<Written> = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if written.len() > MAX_EXAMPLES {
        return Err(wrong(format!("there are {} examples, and the limit is {MAX_EXAMPLES}", written.len())));
    }
    let example = |(number, written): (usize, Written)| {
        let Written { name, tool, arguments, answers, result, failure } = written;
        let expected = match (result, failure) {
            (None, None) => Expected::Success,
            (Some(result), None) => Expected::Result(result),
            (None, Some(failure)) => Expected::Failure(failure),
            (Some(_), Some(_)) => {
                return Err(wrong(format!("the example {} has both a result and a failure", number + 1)));
            }
        };
        Ok(Example { name, tool, arguments, answers, expected })
    };
    written.into_iter().enumerate().map(example).collect()
}

impl Example {
    /// The tool, with the name of the example if it has one.
    #[must_use]
    pub fn title(&self) -> String {
        self.name.as_ref().map_or_else(|| self.tool.clone(), |name| format!("{}: {name}", self.tool))
    }

    /// How the outcome of a call differs from the expected one. A failure is the host's code, such as `invalid_arguments`, and a
    /// message.
    #[must_use]
    pub fn difference(&self, outcome: Result<&Value, (&str, &str)>) -> Option<String> {
        match (&self.expected, outcome) {
            (Expected::Success, Ok(_)) => None,
            (Expected::Result(expected), Ok(found)) if same(expected, found) => None,
            (Expected::Result(expected), Ok(found)) => {
                Some(format!("expected {}, got {}", short(expected), short(found)))
            }
            (Expected::Failure(expected), Ok(found)) => {
                Some(format!("expected the failure {}, got {}", expected.as_str(), short(found)))
            }
            (Expected::Failure(expected), Err((code, _))) if code == expected.code() => None,
            (Expected::Failure(expected), Err((code, message))) => {
                Some(format!("expected the failure {}, got {code}: {message}", expected.as_str()))
            }
            (Expected::Success, Err((code, message))) => Some(format!("expected a result, got {code}: {message}")),
            (Expected::Result(expected), Err((code, message))) => {
                Some(format!("expected {}, got {code}: {message}", short(expected)))
            }
        }
    }
}

/// Whether two values are equal as in JSON Schema: the keys of an object have no order, and 1 equals 1.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(MAX_QUOTED).collect();
    if cut.len() < text.len() { format!("{cut}… ({} bytes)", text.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> Result<Vec<Example>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path()).map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn examples_are_read_strictly() {
        let examples = parse(
            r#"[{"tool":"a","arguments":{"x":1},"result":null,"name":"n"},{"tool":"b"},
                {"tool":"c","failure":"invalid-arguments"}]"#,
        );
        let examples = examples.unwrap();
        assert_eq!(examples[0].expected, Expected::Result(Value::Null));
        assert_eq!((examples[0].title(), examples[1].title()), ("a: n".into(), "b".into()));
        assert_eq!(examples[1].expected, Expected::Success);
        assert_eq!(examples[2].expected, Expected::Failure(Failure::InvalidArguments));
        let both = parse(r#"[{"tool":"a","result":1,"failure":"failed"}]"#);
        assert_eq!(both.unwrap_err(), "FILE: the example 1 has both a result and a failure");
        for wrong in [
            r#"{}"#,
            r#"[{"tool":"a","arguments":[]}]"#,
            r#"[{"tool":"a","resullt":1}]"#,
            r#"[{"tool":"a","failure":"odd"}]"#,
        ] {
            assert!(parse(wrong).unwrap_err().starts_with("FILE: "), "{wrong}");
        }
    }

    #[track_caller]
    fn check(expected: Expected, outcome: Result<Value, (&str, &str)>, difference: Option<&str>) {
        let example = Example { name: None, tool: "t".into(), arguments: Map::new(), answers: Vec::new(), expected };
        assert_eq!(example.difference(outcome.as_ref().map_err(|error| *error)).as_deref(), difference);
    }

    #[test]
    fn difference_names_both_values() {
        check(Expected::Success, Ok(json!(1)), None);
        check(Expected::Success, Err(("failed", "no")), Some("expected a result, got failed: no"));
        check(Expected::Result(json!(4)), Ok(json!(4.0)), None);
        check(Expected::Result(json!(4)), Ok(json!(5)), Some("expected 4, got 5"));
        check(Expected::Result(json!({"a": [1], "b": 2})), Ok(json!({"b": 2.0, "a": [1]})), None);
        check(Expected::Result(json!({"a": 1})), Ok(json!({})), Some(r#"expected {"a":1}, got {}"#));
        check(Expected::Result(json!([1])), Ok(json!([1, 2])), Some("expected [1], got [1,2]"));
        check(Expected::Result(json!(1)), Err(("failed", "no")), Some("expected 1, got failed: no"));
        check(Expected::Failure(Failure::InvalidArguments), Err(("invalid_arguments", "")), None);
        check(
            Expected::Failure(Failure::Failed),
            Err(("trapped", "unreachable")),
            Some("expected the failure failed, got trapped: unreachable"),
        );
        check(Expected::Failure(Failure::Failed), Err(("tool_failed", "")), None);
        check(Expected::Failure(Failure::Unavailable), Err(("tool_unavailable", "")), None);
        check(Expected::Failure(Failure::Unavailable), Ok(json!(1)), Some("expected the failure unavailable, got 1"));
        let large = json!(9_007_199_254_740_993_u64);
        check(
            Expected::Result(large),
            Ok(json!(9_007_199_254_740_992_u64)),
            Some("expected 9007199254740993, got 9007199254740992"),
        );
    }

    #[test]
    fn long_values_are_cut_and_show_their_size() {
        let long = short(&json!("x".repeat(1000)));
        assert!(long.ends_with("… (1002 bytes)") && long.chars().count() < 330, "{long}");
    }
}
