//! A parsed value. A floating-point number would show an approver other digits than the guest gets, and hide an edit after the
//! sixteenth digit. So numbers keep their digits, and two numbers are equal only if they are written the same.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::parse::{Malformed, Parser, Visit, beginning};
use super::pointer_step;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    /// The text without JSON escapes.
    Text(Box<str>),
    Array(Box<[Self]>),
    Object(Members),
}

/// A number as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Number(Digits);

/// Short numbers need no memory of their own.
#[derive(Clone, PartialEq, Eq)]
enum Digits {
    Short(u8, [u8; SHORT]),
    Long(Box<str>),
}

const SHORT: usize = 22;

/// The maximum number of duplicate keys that are reported.
pub const MAX_DUPLICATES: usize = 16;

/// The members of an object, in the order in which they were written. The order does not matter for equality.
#[derive(Debug, Clone, Eq, Default)]
pub struct Members(Box<[(Box<str>, Value)]>);

impl Value {
    /// Parses a text from outside.
    ///
    /// # Errors
    /// As [`super::Json::check`].
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        Parser::new(text, super::MAX_DEPTH).whole(&mut Build).map(|(value, _)| value)
    }

    /// Parses a declaration and reports duplicate keys: the JSON Pointers of the first [`MAX_DUPLICATES`], shortened if they are
    /// long. An author fixes all of them at once.
    ///
    /// # Errors
    /// As [`super::Json::check`], but for duplicate keys.
    pub fn parse_reporting_duplicates(text: &str) -> Result<(Self, Vec<String>), Malformed> {
        let (value, _) = Parser::with_duplicates(text).whole(&mut Build)?;
        let mut duplicates = Vec::new();
        value.find_duplicates(&mut String::new(), &mut duplicates);
        Ok((value, duplicates))
    }

    fn find_duplicates(&self, pointer: &mut String, found: &mut Vec<String>) {
        let end = pointer.len();
        let mut below = |step: &str, value: &Self, is_duplicate: bool| {
            pointer.push('/');
            pointer.push_str(step);
            if is_duplicate && found.len() < MAX_DUPLICATES {
                found.push(beginning(pointer).to_owned());
            }
            value.find_duplicates(pointer, found);
            pointer.truncate(end);
        };
        match self {
            Self::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item, false));
            }
            Self::Object(members) => {
                let mut names = HashSet::new();
                members.iter().for_each(|(name, value)| below(&pointer_step(name), value, !names.insert(name)));
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => {}
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The value at a JSON Pointer (RFC 6901).
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |value, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match value {
                Self::Object(members) => members.get(&step),
                Self::Array(items) => items.get(step.parse::<usize>().ok()?),
                _ => None,
            }
        })
    }

    /// Compact JSON with sorted members.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) {
        match self {
            Self::Null => to.push_str("null"),
            Self::Bool(yes) => to.push_str(if *yes { "true" } else { "false" }),
            Self::Number(number) => to.push_str(number.as_str()),
            Self::Text(text) => quote_into(text, to),
            Self::Array(items) => {
                to.push('[');
                for (n, item) in items.iter().enumerate() {
                    to.push_str(if n > 0 { "," } else { "" });
                    item.write(to);
                }
                to.push(']');
            }
            Self::Object(members) => {
                to.push('{');
                for (n, (name, value)) in members.sorted().into_iter().enumerate() {
                    to.push_str(if n > 0 { "," } else { "" });
                    quote_into(name, to);
                    to.push(':');
                    value.write(to);
                }
                to.push('}');
            }
        }
    }
}

impl Members {
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// The members, sorted by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<(&str, &Value)> {
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && (self.iter().eq(other.iter()) || self.sorted() == other.sorted())
    }
}

impl Number {
    fn new(text: &str) -> Self {
        let mut short = [0; SHORT];
        Self(match (short.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(digits), Ok(length)) => {
                digits.copy_from_slice(text.as_bytes());
                Digits::Short(length, short)
            }
            _ => Digits::Long(text.into()),
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Digits::Short(length, digits) => {
                digits.get(..usize::from(*length)).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default()
            }
            Digits::Long(text) => text,
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes a value of the parts of a text.
pub(super) struct Build;

impl<'a> Visit<'a> for Build {
    type Out = Value;

    fn literal(&mut self, text: &'a str) -> Value {
        match text {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => Value::Number(Number::new(number)),
        }
    }

    fn text(&mut self, text: Cow<'a, str>) -> Value {
        Value::Text(text.into())
    }

    fn array(&mut self, items: Vec<Value>) -> Value {
        Value::Array(items.into())
    }

    fn object(&mut self, members: Vec<(Cow<'a, str>, Value)>) -> Value {
        Value::Object(Members(members.into_iter().map(|(name, value)| (name.into(), value)).collect()))
    }
}

/// Appends a text as a JSON string.
pub(super) fn quote_into(text: &str, to: &mut String) {
    use fmt::Write as _;
    to.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => to.extend(['\\', c]),
            '\u{8}' => to.push_str("\\b"),
            '\t' => to.push_str("\\t"),
            '\n' => to.push_str("\\n"),
            '\u{c}' => to.push_str("\\f"),
            '\r' => to.push_str("\\r"),
            c if c < ' ' => {
                let _ = write!(to, "\\u{:04x}", u32::from(c));
            }
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::VALUE_COST;

    #[test]
    fn values_are_read_exactly() {
        for (text, read) in [
            ("null", "null"),
            (" [ ] ", "[]"),
            ("{ }", "{}"),
            ("[1 ,2,\t-0.0e+5\n]", "[1,2,-0.0e+5]"),
            (r#"["a\\","\"]","",{"\u0022,":"[{"}]"#, r#"["a\\","\"]","",{"\",":"[{"}]"#),
            (r#"{"b":[{}],"a":{"x":[[],[0]],"\ud83d\ude00":"ü"}}"#, r#"{"a":{"x":[[],[0]],"😀":"ü"},"b":[{}]}"#),
            (r#"[true,false,null,"true"]"#, r#"[true,false,null,"true"]"#),
            ("12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"),
        ] {
            assert_eq!(Value::parse(text).map(|value| value.to_json()).as_deref(), Ok(read), "{text}");
        }
        for text in [
            "",
            " ",
            "[1,]",
            "[1 2]",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "\"",
            "\"\\\"",
            "nul",
            "01",
            "1 1",
            "[",
            "\"\\ud800\"",
            "{1:2}",
        ] {
            assert!(Value::parse(text).is_err(), "{text}");
        }
    }

    /// The memory of a value, with what an allocator adds.
    fn memory(value: &Value) -> usize {
        let block = |bytes: usize| if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) };
        let below = match value {
            Value::Text(text) => block(text.len()),
            Value::Number(Number(Digits::Long(text))) => block(text.len()),
            Value::Array(items) => block(size_of_val(&**items)) + items.iter().map(inside).sum::<usize>(),
            Value::Object(Members(all)) => {
                let each = |(name, value): &(Box<str>, Value)| block(name.len()) + inside(value);
                block(size_of_val(&**all)) + all.iter().map(each).sum::<usize>()
            }
            _ => 0,
        };
        return size_of::<Value>() + below;

        fn inside(value: &Value) -> usize {
            memory(value) - size_of::<Value>()
        }
    }

    #[test]
    fn memory_of_a_value_is_bounded_by_its_text() {
        let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
        for item in ["0", "[]", "[0]", "\"a\"", "\"\"", "{\"\":0}", "{\"a\":{}}", "null", "-1.5", &deep, "[[],[]]"] {
            let text = format!("[{}]", vec![item; 10_000].join(","));
            let cost = memory(&Value::parse(&text).unwrap()).div_ceil(text.len());
            assert!(cost <= VALUE_COST, "{item:.20}: {cost}");
        }
    }
}
