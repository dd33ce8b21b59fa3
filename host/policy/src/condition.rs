//! Conditions over the arguments of a call. A condition holds, does not hold, or is unclear. An unclear condition
//! counts strictly: a rule that asks or denies applies, a rule that allows does not.

use std::sync::Arc;

use domain::json::Value;

use crate::decimal::Decimal;
use crate::pattern::Glob;
use crate::pointer::{Found, Pointer};

/// The maximum number of characters of a value that an explanation quotes.
const QUOTED: usize = 80;

/// A test of one value in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub pointer: Pointer,
    pub test: Test,
    /// Whether the test is negated.
    pub not: bool,
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// It equals this JSON value. Numbers are equal if their values are.
    Equals(Value),
    /// It is a text with this prefix.
    Prefix(Arc<str>),
    /// It is a text that matches this pattern.
    Glob(Glob),
    /// It is a number within these bounds, both included.
    Range { min: Option<Decimal>, max: Option<Decimal> },
    /// The value is absent.
    Absent,
}

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    Yes,
    No,
    /// The condition cannot be evaluated, for example because the value has another type.
    Unclear,
}

impl From<bool> for Truth {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unclear => Self::Unclear,
        }
    }

    /// Combines results: a single `No` makes it `No`, otherwise a single `Unclear` makes it `Unclear`.
    pub(crate) fn all(each: impl IntoIterator<Item = Self>) -> Self {
        each.into_iter().fold(Self::Yes, |all, one| match (all, one) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::Yes, Self::Yes) => Self::Yes,
        })
    }
}

impl Condition {
    /// Evaluates the condition for these arguments.
    pub(crate) fn evaluate(&self, arguments: &Value) -> Truth {
        match (self.pointer.find(arguments), &self.test) {
            (Found::Astray(_), _) => Truth::Unclear,
            (found, Test::Absent) => Truth::from((found == Found::Absent) != self.not),
            // The tool may have a default for a missing value, and the host does not know it. Otherwise a caller could
            // avoid a negated condition by leaving the value out.
            (Found::Absent, _) if self.not => Truth::Unclear,
            (Found::Absent, _) => Truth::No,
            (Found::Value(value), test) if self.not => test.evaluate(value).not(),
            (Found::Value(value), test) => test.evaluate(value),
        }
    }

    /// Explains the result. Quoted values are escaped and shortened.
    #[must_use]
    pub fn why(&self, arguments: &Value) -> String {
        let place = match self.pointer.as_str() {
            "" => "the arguments".to_owned(),
            pointer => format!("at {}", escape::line(pointer)),
        };
        let words = self.test.words();
        match (self.pointer.find(arguments), &self.test) {
            (Found::Astray(value), _) => {
                format!(
                    "{place}: the path stops at {}, so the host cannot tell whether the value is {words}",
                    shown(value)
                )
            }
            (Found::Absent, Test::Absent) => format!("{place}: there is no value"),
            (Found::Absent, _) if self.not => {
                format!(
                    "{place}: there is no value; the tool may have a default, so the host cannot tell whether it is {words}"
                )
            }
            (Found::Absent, _) => format!("{place}: there is no value that could be {words}"),
            (Found::Value(value), Test::Absent) => format!("{place}: there is {}", shown(value)),
            (Found::Value(value), test) => {
                let value_words = shown(value);
                match test.evaluate(value) {
                    Truth::Yes if self.not => format!("{place}: {value_words} is {words}, which the rule leaves out"),
                    Truth::Yes => format!("{place}: {value_words} is {words}"),
                    Truth::No => format!("{place}: {value_words} is not {words}"),
                    Truth::Unclear => {
                        let kind = kind(value);
                        format!("{place}: {value_words} is {kind}, so the host cannot tell whether it is {words}")
                    }
                }
            }
        }
    }
}

impl Test {
    fn evaluate(&self, value: &Value) -> Truth {
        match (self, value) {
            (Self::Equals(expected), value) => equal(expected, value),
            (Self::Prefix(prefix), Value::Text(text)) => text.starts_with(&**prefix).into(),
            (Self::Glob(glob), Value::Text(text)) => glob.matches(text).into(),
            (Self::Range { min, max }, Value::Number(number)) => match number.as_str().parse::<Decimal>() {
                Ok(number) => {
                    let enough = min.as_ref().is_none_or(|min| number >= *min);
                    (enough && max.as_ref().is_none_or(|max| number <= *max)).into()
                }
                Err(_) => Truth::Unclear,
            },
            (Self::Prefix(_) | Self::Glob(_) | Self::Range { .. }, _) => Truth::Unclear,
            (Self::Absent, _) => Truth::No,
        }
    }

    /// The test as text that follows "is".
    fn words(&self) -> String {
        match self {
            Self::Equals(value) => format!("equal to {}", shown(value)),
            Self::Prefix(prefix) => format!("a text that begins with {}", escape::quoted(prefix, QUOTED)),
            Self::Glob(glob) => format!("a text like {}", escape::quoted(glob.as_str(), QUOTED)),
            Self::Range { min: Some(min), max: Some(max) } => format!("between {min} and {max}"),
            Self::Range { min: Some(min), max: None } => format!("at least {min}"),
            Self::Range { min: None, max: Some(max) } => format!("at most {max}"),
            Self::Range { min: None, max: None } => "a number".to_owned(),
            Self::Absent => "absent".to_owned(),
        }
    }
}

/// Whether two values are equal. Values of different types are unclear, because a tool may read "5000" as 5000, or 1 as
/// true.
fn equal(expected: &Value, value: &Value) -> Truth {
    match (expected, value) {
        (Value::Null, Value::Null) => Truth::Yes,
        (Value::Bool(one), Value::Bool(other)) => (one == other).into(),
        (Value::Number(one), Value::Number(other)) => numbers(one.as_str(), other.as_str()),
        (Value::Text(one), Value::Text(other)) => (one == other).into(),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            Truth::all(one.iter().zip(other).map(|(one, other)| equal(one, other)))
        }
        (Value::Object(one), Value::Object(other)) => {
            let (one, other) = (one.sorted(), other.sorted());
            let names = one.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name));
            let values = one.iter().zip(&other).map(|((_, one), (_, other))| equal(one, other));
            if names { Truth::all(values) } else { Truth::No }
        }
        (Value::Array(_), Value::Array(_)) => Truth::No,
        _ => Truth::Unclear,
    }
}

fn numbers(one: &str, other: &str) -> Truth {
    match (one.parse::<Decimal>(), other.parse::<Decimal>()) {
        (Ok(one), Ok(other)) => (one == other).into(),
        _ if one == other => Truth::Yes,
        _ => Truth::Unclear,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Text(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => escape::quoted(text, QUOTED),
        other => escape::excerpt(&other.to_json(), QUOTED).into_owned(),
    }
}
