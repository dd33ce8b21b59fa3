//! JSON Pointers (RFC 6901) into the arguments of a call.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use domain::json::Value;

/// The maximum number of bytes of a pointer.
const MAX_POINTER: usize = 512;

/// A pointer to one value in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    written: Arc<str>,
    steps: Vec<String>,
}

/// Why a text is not a JSON Pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a JSON Pointer (RFC 6901): expected a text such as /amount or /lines/0/sku, with ~1 for / and ~0 for ~ in a name"
)]
pub struct InvalidPointer;

/// The result of following a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    Value(&'a Value),
    /// No value: a member is missing, or a list is too short.
    Absent,
    /// No value, because this value on the way is not of the type that the pointer expects.
    Astray(&'a Value),
}

impl Pointer {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Follows the pointer.
    #[must_use]
    pub fn find<'a>(&self, arguments: &'a Value) -> Found<'a> {
        let mut value = arguments;
        for step in &self.steps {
            let next = match value {
                Value::Object(members) => members.get(step),
                Value::Array(items) => match index(step) {
                    Some(index) => items.get(index),
                    None => return Found::Astray(value),
                },
                _ => return Found::Astray(value),
            };
            let Some(next) = next else { return Found::Absent };
            value = next;
        }
        Found::Value(value)
    }
}

/// A position in a list: digits without a leading zero.
fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || (!step.starts_with('0') && step.bytes().all(|b| b.is_ascii_digit()));
    is_index.then(|| step.parse().ok()).flatten()
}

impl FromStr for Pointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        if text.len() > MAX_POINTER || !escapes || !(text.is_empty() || text.starts_with('/')) {
            return Err(InvalidPointer);
        }
        let steps = text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        Ok(Self { written: text.into(), steps })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_find_at_most_one_place() {
        let arguments = r#"{"a":{"b/c":[10,{"~":"x"}],"01":1},"":0,"\u0061b":2,"n":null}"#;
        let arguments = Value::parse(arguments).expect("JSON");
        for (pointer, expected) in [
            ("/a/b~1c/0", "10"),
            ("/a/b~1c/1/~0", "\"x\""),
            ("/a/b~1c/2", "absent"),
            ("/a/b~1c/-", "astray"),
            ("/a/b~1c/00", "astray"),
            ("/a/b~1c/+1", "astray"),
            ("/a/b~1c/99999999999999999999", "astray"),
            ("/a/01", "1"),
            ("/", "0"),
            ("/ab", "2"),
            ("/A", "absent"),
            ("/n", "null"),
            ("/n/x", "astray"),
            ("/ab/x", "astray"),
        ] {
            let found = match pointer.parse::<Pointer>().expect("a pointer").find(&arguments) {
                Found::Value(value) => value.to_json(),
                Found::Absent => "absent".into(),
                Found::Astray(_) => "astray".into(),
            };
            assert_eq!(found, expected, "{pointer}");
        }
        assert_eq!("".parse::<Pointer>().map(|whole| whole.find(&arguments) == Found::Value(&arguments)), Ok(true));
    }

    #[test]
    fn invalid_pointers_are_refused() {
        for wrong in ["a", "#/a", "/~", "/~2", "/a~", &"/".repeat(513)] {
            assert_eq!(wrong.parse::<Pointer>(), Err(InvalidPointer), "{wrong}");
        }
    }
}
