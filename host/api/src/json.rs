//! Reads untrusted JSON. Depth is limited, duplicate keys are refused, and an error names its place.

use std::collections::HashSet;
use std::fmt;

use domain::Json;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::error::{Error, Result};

/// The maximum depth of JSON. Common parsers stop at 128, and a response adds a few levels around the sent value.
const DEPTH: usize = 96;

/// Parses a JSON body. Only an object is accepted, because serde would also read a struct from an array of its members.
///
/// # Errors
/// [`Error::BadJson`] and [`Error::Invalid`].
pub fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    check(body)?;
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid_at("", "the body is a JSON object"));
    }
    parse(body)
}

/// Parses JSON from inside a body.
///
/// # Errors
/// [`Error::BadJson`] and [`Error::Invalid`].
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    check(body)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        Error::invalid_at(pointer, sentence(error.inner()))
    })
}

fn check(body: &[u8]) -> Result<()> {
    let refused = |error: serde_json::Error| Error::BadJson(error.to_string());
    let mut json = serde_json::Deserializer::from_slice(body);
    Strict { left: DEPTH }.deserialize(&mut json).map_err(refused)?;
    json.end().map_err(refused)
}

/// A JSON text from inside a JSON string, such as a model's arguments. `None` if this host does not accept it.
#[must_use]
pub fn embedded(text: &str) -> Option<Json> {
    check(text.as_bytes()).ok().map(|()| Json::new(text.trim()))
}

/// A text as a JSON string.
#[must_use]
pub fn string(text: &str) -> Json {
    Json::new(serde_json::Value::from(text).to_string())
}

/// A value as a JSON text.
///
/// # Errors
/// [`Error::Unwritable`].
pub fn write<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Unwritable(error.to_string()))
}

fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match error.classify() {
        // The pointer replaces the line number.
        Category::Data => text.split(" at line ").next().unwrap_or(&text).to_owned(),
        _ => text,
    }
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        pointer.push('/');
        match segment {
            Segment::Seq { index } => pointer.push_str(&index.to_string()),
            Segment::Map { key } => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => pointer.push_str(variant),
            Segment::Unknown => pointer.push('?'),
        }
    }
    pointer
}

/// Accepts any value that is not too deep and has no duplicate keys. Parsers differ in which duplicate they keep, so a
/// person and a guest could read different values.
struct Strict {
    left: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> std::result::Result<usize, E> {
        self.left.checked_sub(1).ok_or_else(|| E::custom(format!("nested deeper than {DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        let left = self.deeper()?;
        while items.next_element_seed(Strict { left })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<(), A::Error> {
        let left = self.deeper()?;
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format!("the member {name:?} is there twice")));
            }
            names.insert(name);
            members.next_value_seed(Strict { left })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounded_unambiguous_values_pass() {
        for good in ["null", " {\"a\":[1,-2.5e3,\"x\\u0000\",true]} ", &("[".repeat(DEPTH) + &"]".repeat(DEPTH))] {
            assert!(check(good.as_bytes()).is_ok(), "{good}");
        }
        let deep = "[".repeat(DEPTH + 1) + &"]".repeat(DEPTH + 1);
        let abyss = "[".repeat(100_000);
        for bad in ["", "{", "{}{}", "1e999", "{\"a\":1,\"\\u0061\":2}", "[{\"b\":{\"a\":1,\"a\":1}}]", &deep, &abyss] {
            assert!(check(bad.as_bytes()).is_err(), "{bad:.40}");
        }
        assert!(check(b"\"\xff\"").is_err());
    }
}
