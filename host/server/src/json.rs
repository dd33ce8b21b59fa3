//! Reading JSON that strangers wrote: bounded in size and depth, no member twice, and an error that says where.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, header};
use domain::{Json, Span};
use http_body_util::BodyExt as _;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::error::{Code, Error, Result};

/// How deep JSON may be nested. Parsers on the way stop at 128, and an answer adds a few levels around what was sent.
const DEPTH: usize = 96;

/// How many bytes of a body buy it one millisecond more: 16 KiB a second.
const SLOWEST: usize = 16;

/// Reads a body of at most so many bytes, which arrives in time: a body that only trickles in is not waited for.
pub(crate) async fn bytes(mut body: Body, limit: usize, patience: Span) -> Result<Bytes> {
    let too_large = || Error::new(Code::TooLarge, format!("the body is larger than {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let begun = tokio::time::Instant::now();
    let mut received = Vec::new();
    loop {
        let earned = (received.len() / SLOWEST) as u64;
        let until = begun + Duration::from_millis(patience.millis().saturating_add(earned));
        let frame = tokio::time::timeout_at(until, body.frame()).await;
        let too_slow = |_| Error::new(Code::TooSlow, "the body did not arrive in time; send it at once, and faster");
        let Some(frame) = frame.map_err(too_slow)? else { return Ok(received.into()) };
        let broken = |_| Error::new(Code::BadRequest, "the body did not arrive whole");
        let Ok(more) = frame.map_err(broken)?.into_data() else { continue };
        if received.len() + more.len() > limit {
            return Err(too_large());
        }
        received.extend_from_slice(&more);
    }
}

/// Reads a JSON body of at most so many bytes.
pub(crate) async fn text(headers: &HeaderMap, body: Body, limit: usize, patience: Span) -> Result<Bytes> {
    let declared = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if let Some(declared) = declared {
        let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if essence != "application/json" && !essence.ends_with("+json") {
            let detail = "send the body with `content-type: application/json` (curl: `--json`)";
            return Err(Error::new(Code::UnsupportedMediaType, detail));
        }
    }
    bytes(body, limit, patience).await
}

/// Parses a JSON body. Every body is an object: a parser would also take the members of one in an array, in their order.
pub(crate) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    check(body)?;
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid_at("", "the body is a JSON object"));
    }
    parse(body)
}

/// Parses JSON that was within a body.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    check(body)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        Error::invalid_at(pointer, sentence(error.inner()))
    })
}

fn check(body: &[u8]) -> Result<()> {
    let refused = |error: serde_json::Error| Error::new(Code::BadJson, error.to_string());
    let mut json = serde_json::Deserializer::from_slice(body);
    Strict { left: DEPTH }.deserialize(&mut json).map_err(refused)?;
    json.end().map_err(refused)
}

/// A JSON text that came as a string within JSON, as models' arguments do. `None` where it is not one that this host takes.
pub(crate) fn embedded(text: &str) -> Option<Json> {
    check(text.as_bytes()).ok().map(|()| Json::new(text.trim()))
}

/// A text as a JSON string.
pub(crate) fn string(text: &str) -> Json {
    Json::new(serde_json::Value::from(text).to_string())
}

/// A value as a JSON text.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::fault(&error))
}

fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match error.classify() {
        // The pointer says where, better than a line does.
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

/// Accepts any value that is not too deep and in which no object has a member twice: what a person is shown and what a
/// guest reads must not differ by which of two members a parser keeps.
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
