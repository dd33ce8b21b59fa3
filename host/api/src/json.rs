//! Reads the bodies of requests. An error names its place.

use std::borrow::Cow;

use domain::Json;
use domain::json::{ValuePath, check_body};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::error::{Error, Result};

/// A checked body, and the members of its object that are not `null`. Parts of the body are not checked again.
pub(crate) struct Checked<'a> {
    body: &'a str,
    members: Vec<Cow<'a, str>>,
}

impl<'a> Checked<'a> {
    /// Checks a body. Only an object is accepted, because serde would also read a struct from an array of its members.
    ///
    /// # Errors
    /// [`Error::BadJson`] and [`Error::Invalid`].
    pub(crate) fn new(body: &'a [u8]) -> Result<Self> {
        Self::except(body, &[])
    }

    /// Checks a body, but for duplicate keys in the values at these paths. Their reader must check these values.
    ///
    /// # Errors
    /// [`Error::BadJson`] and [`Error::Invalid`].
    pub(crate) fn except(body: &'a [u8], excepted: &[ValuePath]) -> Result<Self> {
        let body = str::from_utf8(body).map_err(|error| Error::BadJson(error.to_string()))?;
        let members = check_body(body, excepted).map_err(|malformed| Error::BadJson(malformed.to_string()))?;
        let members = members.ok_or_else(|| Error::invalid_at("", "the body must be a JSON object"))?;
        Ok(Self { body, members })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member == name)
    }

    /// # Errors
    /// [`Error::Invalid`].
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        part(self.body)
    }
}

/// Parses a JSON body, which is an object.
///
/// # Errors
/// [`Error::BadJson`] and [`Error::Invalid`].
pub fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    Checked::new(body)?.read()
}

/// Checks a body that is one value of any type, and keeps its text.
///
/// # Errors
/// [`Error::BadJson`].
pub fn value(body: &[u8]) -> Result<Json> {
    let text = str::from_utf8(body).map_err(|error| Error::BadJson(error.to_string()))?;
    Json::parse(text.trim()).map_err(|malformed| Error::BadJson(malformed.to_string()))
}

/// Parses part of a checked body.
///
/// # Errors
/// [`Error::Invalid`].
pub(crate) fn part<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        Error::invalid_at(pointer, sentence(error.inner()))
    })
}

/// A JSON text from inside a JSON string, such as a model's arguments. `None` if this host does not accept it.
#[must_use]
pub fn embedded(text: &str) -> Option<Json> {
    Json::parse(text.trim()).ok()
}

/// A text as a JSON string.
#[must_use]
pub fn string(text: &str) -> Json {
    Json::unchecked(serde_json::Value::from(text).to_string())
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
            Segment::Map { key } => pointer.push_str(&domain::json::pointer_step(key)),
            Segment::Enum { variant } => pointer.push_str(variant),
            Segment::Unknown => pointer.push('?'),
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounded_unambiguous_objects_pass() {
        let nested = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        for good in [" {\"a\":[1,-2.5e3,\"x\\u0000\",true]} ", &nested(107)] {
            assert!(Checked::new(good.as_bytes()).is_ok(), "{good}");
        }
        let abyss = "[".repeat(100_000);
        let twice = "{\"a\":1,\"\\u0061\":2}";
        for bad in ["", "{", "{}{}", "{\"a\":1e999}", twice, "{\"b\":{\"a\":1,\"a\":1}}", &nested(108), &abyss] {
            assert!(matches!(Checked::new(bad.as_bytes()), Err(Error::BadJson(_))), "{bad:.40}");
        }
        assert!(matches!(Checked::new(b"\"\xff\""), Err(Error::BadJson(_))));
    }
}
