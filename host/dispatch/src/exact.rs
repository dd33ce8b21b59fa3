//! JSON compared and quoted exactly. A value that went through a floating-point number is another value: an approver would
//! be shown other digits than the guest gets, and an edit beyond the sixteenth digit would not be seen as one. So numbers
//! are kept as they were written, and two numbers are the same only if they are written the same.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deeper than this nothing is compared: such texts count as different. Schema checks refuse them anyway.
const DEEPEST: usize = 128;

/// A JSON value with its numbers as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exact {
    /// `null`, `true`, `false` or a number, as written.
    Literal(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    Array(Vec<Self>),
    /// An object. The order of its members does not count.
    Object(BTreeMap<String, Self>),
}

impl Exact {
    /// Reads a JSON text. `None` if it is none, or too deep.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(serde_json::from_str(text).ok()?, DEEPEST)
    }

    fn read(raw: &RawValue, deepest: usize) -> Option<Self> {
        let (text, deeper) = (raw.get(), deepest.checked_sub(1)?);
        Some(match text.as_bytes().first()? {
            b'"' => Self::Text(serde_json::from_str(text).ok()?),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                Self::Array(items.into_iter().map(|item| Self::read(item, deeper)).collect::<Option<_>>()?)
            }
            b'{' => {
                let members: Members<'_> = serde_json::from_str(text).ok()?;
                let mut object = BTreeMap::new();
                for (name, value) in members.0 {
                    // A member that stands there twice is read in two ways by two readers.
                    if object.insert(name, Self::read(value, deeper)?).is_some() {
                        return None;
                    }
                }
                Self::Object(object)
            }
            _ => Self::Literal(text.to_owned()),
        })
    }

    /// What a JSON Pointer (RFC 6901) leads to.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |value, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match value {
                Self::Object(members) => members.get(&step),
                Self::Array(items) => items.get(step.parse::<usize>().ok()?),
                Self::Literal(_) | Self::Text(_) => None,
            }
        })
    }

    /// Compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
        match self {
            Self::Literal(text) => text.clone(),
            Self::Text(text) => quoted(text),
            Self::Array(items) => format!("[{}]", items.iter().map(Self::to_json).collect::<Vec<_>>().join(",")),
            Self::Object(members) => {
                let member = |(name, value): (&String, &Self)| format!("{}:{}", quoted(name), value.to_json());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// The members of an object as they stand there.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

/// Whether two texts are the same JSON value: white space and the order of members do not count.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || matches!((Exact::parse(one), Exact::parse(other)), (Some(one), Some(other)) if one == other)
}

/// Digest over what makes two calls the same to a person: the arguments as a value, the component and the declaration.
pub(crate) fn alike(pinned: &domain::Pinned, arguments: &domain::Json) -> domain::Digest {
    let value = Exact::parse(arguments.as_str()).map(|value| value.to_json());
    let text = value.as_deref().unwrap_or(arguments.as_str());
    domain::Digest::of_parts(&[text.as_bytes(), pinned.component.as_bytes(), pinned.declaration.as_bytes()])
}

/// The members that differ between two objects: changed, added or removed. `None` if either text is no object.
pub(crate) fn changed_members(before: &str, after: &str) -> Option<Vec<String>> {
    let (Some(Exact::Object(before)), Some(Exact::Object(after))) = (Exact::parse(before), Exact::parse(after)) else {
        return None;
    };
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value)).map(|(name, _)| name);
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    Some(changed.chain(removed).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_order_do_not_count_and_every_digit_does() {
        assert!(same(r#"{"a":1,"b":[true,"ü"]}"#, r#" { "b" : [ true , "\u00fc" ], "a" : 1 } "#));
        assert!(!same(r#"{"n":12345678901234567890.123}"#, r#"{"n":12345678901234567890.124}"#));
        assert!(!same("1", "1.0"));
        assert!(same("not json", "not json"));
        assert!(!same("not json", "nor this"));
    }

    #[test]
    fn an_edit_names_what_it_changes_adds_and_removes() {
        let names = changed_members(r#"{"a":1,"b":2,"c":{"x":1}}"#, r#"{"a":1,"c":{"x":2},"d":0}"#);
        assert_eq!(names, Some(vec!["c".into(), "d".into(), "b".into()]));
        assert_eq!(changed_members("{}", "[]"), None);
    }

    #[test]
    fn a_member_that_stands_there_twice_makes_no_value() {
        assert_eq!(Exact::parse(r#"{"a":1,"a":2}"#), None);
        assert_eq!(changed_members(r#"{"a":1}"#, r#"{"a":1,"a":1}"#), None);
    }

    #[test]
    fn what_is_too_deep_is_the_same_as_nothing() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Exact::parse(&deep(100)).is_some());
        assert_eq!(Exact::parse(&deep(200)), None);
    }
}
