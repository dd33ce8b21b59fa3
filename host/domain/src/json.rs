//! JSON that passes through. A text from outside is checked once, and the host keeps its bytes. Its value is parsed when it is
//! first needed, and shared by all who need it at the same time.

mod defaults;
mod parse;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use defaults::{Defaults, MAX_DEFAULT_BYTES, NameMatches, TooManyDefaults};
use parse::{Check, Parser};
pub use parse::{Malformed, ValuePath};
pub use value::{MAX_DUPLICATES, Members, Number, Value};

/// How deep a value from outside may be nested: arguments, results, answers, contexts. Many parsers stop at 128, and a reply
/// adds a few levels.
pub const MAX_DEPTH: usize = 100;

/// How deep a text may be nested that the host reads from its store. Older versions accepted more than [`MAX_DEPTH`].
pub const MAX_STORED_DEPTH: usize = 127;

/// The levels that the body of a request may have around a value, in any of the formats.
const MAX_FRAME: usize = 8;

/// The memory of a [`Value`] for each byte of its text, at most.
pub const VALUE_COST: usize = 16;

/// A JSON text (RFC 8259) with the bytes as they came. Clones share the text, and the value while somebody holds it.
#[derive(Clone)]
pub struct Json(Arc<Shared>);

struct Shared {
    text: Box<str>,
    /// [`UNKNOWN`], [`READABLE`] or [`CHECKED`].
    known: AtomicU8,
    value: Mutex<Weak<Value>>,
}

/// Nobody has looked at the text.
const UNKNOWN: u8 = 0;
/// It is one value without duplicate keys, at most [`MAX_STORED_DEPTH`] deep, with numbers of any size.
const READABLE: u8 = 1;
/// Likewise, at most [`MAX_DEPTH`] deep.
const CHECKED: u8 = 2;

/// A name as a step of a JSON Pointer (RFC 6901).
#[must_use]
pub fn pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The fragment of a reference into the JSON Schema that has this `$id`. `None`: it refers to another document.
#[must_use]
pub fn fragment<'r>(id: Option<&str>, reference: &'r str) -> Option<&'r str> {
    let address = id.map(|id| id.trim_end_matches('#')).filter(|address| !address.is_empty());
    match address.and_then(|address| reference.strip_prefix(address)) {
        Some("") => Some(""),
        // The address may be the beginning of another one.
        Some(rest) => rest.strip_prefix('#').or_else(|| reference.strip_prefix('#')),
        None => reference.strip_prefix('#'),
    }
}

/// Decodes the percent-encoding of a URI fragment (RFC 3986). Returns `None` if an escape or the UTF-8 is invalid.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail.get(2..)?;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

impl Json {
    /// Takes a text that the host wrote or has checked, or that is checked later with [`Json::check`].
    pub fn unchecked(text: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Shared { text: text.into(), known: AtomicU8::new(UNKNOWN), value: Mutex::default() }))
    }

    /// Checks a text from outside.
    ///
    /// # Errors
    /// As [`Json::check`].
    pub fn parse(text: impl Into<Box<str>>) -> Result<Self, Malformed> {
        let json = Self::unchecked(text);
        json.check().map(|()| json)
    }

    /// Checks a value from outside: one JSON value, no duplicate keys, no number that is too large to be read, at most
    /// [`MAX_DEPTH`] levels. A text that was checked is not read again.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn check(&self) -> Result<(), Malformed> {
        self.check_with(CHECKED, Parser::new(&self.0.text, MAX_DEPTH))
    }

    /// As [`Json::check`], for a text that an older version may have stored: at most [`MAX_STORED_DEPTH`] levels, and numbers of
    /// any size.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn check_stored(&self) -> Result<(), Malformed> {
        self.check_with(READABLE, Parser::stored(&self.0.text))
    }

    fn check_with(&self, enough: u8, parser: Parser<'_>) -> Result<(), Malformed> {
        if self.0.known.load(Ordering::Relaxed) < enough {
            let (_, depth) = parser.whole(&mut Check::default())?;
            self.learned(depth);
        }
        Ok(())
    }

    /// The value. It is parsed at most once while somebody holds it, and freed with its last holder: a call that waits keeps
    /// only its text. It may take [`VALUE_COST`] times the memory of the text.
    ///
    /// # Errors
    /// As [`Json::check_stored`].
    pub fn value(&self) -> Result<Arc<Value>, Malformed> {
        let mut shared = self.0.value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = shared.upgrade() {
            return Ok(value);
        }
        let (value, depth) = Parser::stored(&self.0.text).whole(&mut value::Build)?;
        self.learned(depth);
        let value = Arc::new(value);
        *shared = Arc::downgrade(&value);
        Ok(value)
    }

    fn learned(&self, depth: usize) {
        let known = if depth <= MAX_DEPTH { CHECKED } else { READABLE };
        self.0.known.fetch_max(known, Ordering::Relaxed);
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The length in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.text.len()
    }
}

/// Checks the body of a request as [`Json::check`] does, with a few more levels for what the formats put around a value.
/// Returns the names of the members that are not `null`; `None` if the body is not an object. Duplicate keys in the values
/// at the `excepted` paths are accepted: their reader must check these values.
///
/// # Errors
/// The fault, and its place.
pub fn check_body<'a>(text: &'a str, excepted: &[ValuePath]) -> Result<Option<Vec<Cow<'a, str>>>, Malformed> {
    let mut check = Check::default();
    Parser::body(text, MAX_DEPTH + MAX_FRAME, excepted).whole(&mut check)?;
    let members = check.members.filter(|_| text.trim_ascii_start().starts_with('{'));
    Ok(members.map(|members| members.into_iter().filter(|(_, is_null)| !is_null).map(|(name, _)| name).collect()))
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.text == other.0.text
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// A text as a JSON string.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    value::quote_into(text, &mut quoted);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}0{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn references_to_the_own_address_have_a_fragment() {
        for (id, reference, expected) in [
            (None, "#/a", Some("/a")),
            (None, "https://x.example/s#/a", None),
            (Some("https://x.example/s"), "https://x.example/s", Some("")),
            (Some("https://x.example/s#"), "https://x.example/s#/a", Some("/a")),
            (Some("https://x.example/s"), "https://x.example/sub#/a", None),
            (Some("https://x.example/s"), "#/a", Some("/a")),
            (Some("#a"), "#ab", Some("ab")),
        ] {
            assert_eq!(fragment(id, reference), expected, "{id:?} {reference}");
        }
    }

    #[test]
    fn outside_text_has_one_depth_and_stored_text_more() {
        assert!(Json::parse(nested(MAX_DEPTH)).is_ok());
        let refused = Json::parse(nested(MAX_DEPTH + 1)).map_err(|malformed| malformed.to_string());
        assert_eq!(refused, Err("nested deeper than 100 levels at line 1 column 101".to_owned()));
        for (levels, readable) in [(MAX_STORED_DEPTH, true), (MAX_STORED_DEPTH + 1, false), (100_000, false)] {
            assert_eq!(Json::unchecked(nested(levels)).value().is_ok(), readable, "{levels}");
            assert_eq!(Json::unchecked(nested(levels)).check_stored().is_ok(), readable, "{levels}");
        }
    }

    #[test]
    fn body_may_be_a_few_levels_deeper_than_a_value() {
        let body = |levels| format!("{{\"a\":{}}}", nested(levels));
        assert!(check_body(&body(MAX_DEPTH + MAX_FRAME - 1), &[]).is_ok());
        assert!(check_body(&body(MAX_DEPTH + MAX_FRAME), &[]).is_err());
    }

    #[test]
    fn body_names_its_members() {
        let members = check_body(r#" {"a":{"x":null},"b":null,"\u0063":[{"y":1}]}"#, &[]).map(Option::unwrap);
        assert_eq!(members, Ok(vec![Cow::Borrowed("a"), Cow::Borrowed("c")]));
        assert_eq!(check_body("[{}]", &[]), Ok(None));
        assert_eq!(check_body("{}", &[]), Ok(Some(vec![])));
        assert_eq!(check_body("null", &[]), Ok(None));
    }

    #[test]
    fn duplicate_keys_are_accepted_only_below_excepted_paths() {
        let paths: &[ValuePath] = &[&["calls", "*", "arguments"]];
        let twice = r#"{"x":1,"x":2}"#;
        for good in [
            format!(r#"{{"calls":[{{"arguments":{twice}}}]}}"#),
            format!(r#"{{"calls":[1,{{"id":2,"arguments":[{{"calls":{twice}}}]}}],"b":1}}"#),
        ] {
            assert!(check_body(&good, paths).is_ok(), "{good}");
            assert!(check_body(&good, &[]).is_err(), "{good}");
        }
        for bad in [
            twice.to_owned(),
            r#"{"calls":[{"arguments":1,"arguments":2}]}"#.to_owned(),
            format!(r#"{{"calls":[{{"arguments":{{}},"result":{twice}}}]}}"#),
            format!(r#"{{"calls":{{"arguments":{twice}}}}}"#),
            format!(r#"{{"calls":[{{"arguments":{twice}}}],"context":{twice}}}"#),
        ] {
            assert!(check_body(&bad, paths).is_err_and(|malformed| malformed.is_duplicate()), "{bad}");
        }
    }

    #[test]
    fn value_is_shared_while_held_and_then_freed() {
        let json = Json::unchecked(r#"{"a":[1,"x"]}"#);
        let clone = json.clone();
        let (one, other) = (json.value().unwrap(), clone.value().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let weak = Arc::downgrade(&one);
        drop((one, other));
        assert!(weak.upgrade().is_none(), "the text does not keep the value");
        assert_eq!(json.value().unwrap().to_json(), r#"{"a":[1,"x"]}"#);
    }
}
