//! The types of the values in grants and requests, shared by plugin manifests and `toolgate.toml`.
//!
//! Each is checked when it is read. So an error has a position in the file, and no value contains deceptive characters.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::host_pattern::{HostPattern, InvalidRule};
use crate::http::{HttpRule, Reach};
use crate::secrets::SecretPlace;

/// The name of a value of `wasi:config`, or of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ValueName(String);

/// Where requests may go: scheme, host, port and path prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    text: String,
    rule: HttpRule,
}

/// An HTTP method.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// A host, or every host below a domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(HostPattern);

/// The part of a request that may contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place(SecretPlace);

/// The path at which a plugin sees a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mount(String);

/// Why a text is not a valid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidWord(String);

/// Methods that no plugin is granted. `CONNECT` turns a request into a tunnel. The others return the request's headers,
/// secrets included.
const NEVER: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// Whether a text consists of at most this many visible ASCII characters.
fn is_plain(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

impl TryFrom<String> for ValueName {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(Self(text));
        }
        Err(InvalidWord(format!("{text:?} is not a name: expected 1 to 64 of the characters a-z A-Z 0-9 _ . -")))
    }
}

impl TryFrom<String> for Target {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let invalid = |why: &str| InvalidWord(format!("{text:?} is not a rule for requests: {why}"));
        if !is_plain(&text, 2048) || text.contains('\\') || text.replacen("://*.", "", 1).contains('*') {
            return Err(invalid("expected a URL such as `https://api.example.com/v1/`"));
        }
        // The URL parser would remove such steps and so change the meaning of the text.
        let path = text.split_once("://").map_or("", |(_, rest)| rest).to_ascii_lowercase().replace("%2e", ".");
        if path.split('/').skip(1).any(|step| matches!(step, "." | "..")) {
            return Err(invalid("its path has a step `.` or `..`"));
        }
        let rule = HttpRule::parse(&text, BTreeSet::new(), Reach::Public).map_err(|e| InvalidWord(e.to_string()))?;
        Ok(Self { text, rule })
    }
}

impl TryFrom<String> for Method {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let allowed = (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        if NEVER.contains(&text.as_str()) {
            return Err(InvalidWord(format!("the method {text} is granted to no plugin")));
        }
        if !allowed {
            return Err(InvalidWord(format!("{text:?} is not a method: expected upper-case letters, as in `POST`")));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let pattern: HostPattern = text.parse().map_err(|error: InvalidRule| InvalidWord(error.to_string()))?;
        if text.strip_prefix("*.").unwrap_or(&text).contains('*') {
            return Err(InvalidWord(format!("{text:?} is not a host: only its beginning may be `*.`")));
        }
        Ok(Self(pattern))
    }
}

impl TryFrom<String> for Place {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let token = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        let place = match text.split_once(':') {
            Some(("header", name)) if is_plain(name, 64) && name.bytes().all(token) => SecretPlace::Header(name.into()),
            Some(("query", name)) if is_plain(name, 64) => SecretPlace::Query(name.into()),
            Some(("body", pointer)) if is_plain(pointer, 256) && pointer.starts_with('/') => {
                SecretPlace::Body(pointer.into())
            }
            _ => {
                return Err(InvalidWord(format!(
                    "{text:?} is no place for a secret: expected `header:name` in lower case, `query:name` or \
                     `body:/json/pointer`"
                )));
            }
        };
        Ok(Self(place))
    }
}

impl TryFrom<String> for Mount {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let steps = text.strip_prefix('/').filter(|_| is_plain(&text, 256));
        let fine = |steps: &str| steps.split('/').all(|step| !matches!(step, "" | "." | "..")) && !steps.contains('\\');
        if steps.is_some_and(fine) {
            return Ok(Self(text));
        }
        Err(InvalidWord(format!("{text:?} is no path for a folder: expected an absolute one such as `/data`")))
    }
}

impl Target {
    /// The rule that allows these methods. Without any, it allows GET and HEAD.
    #[must_use]
    pub fn rule(&self, methods: &BTreeSet<Method>, reach: Reach) -> HttpRule {
        let reading = || ["GET", "HEAD"].map(str::to_owned).into();
        let methods = if methods.is_empty() { reading() } else { methods.iter().map(ToString::to_string).collect() };
        HttpRule { methods, reach, ..self.rule.clone() }
    }
}

impl HostName {
    #[must_use]
    pub fn pattern(&self) -> &HostPattern {
        &self.0
    }
}

impl Place {
    #[must_use]
    pub fn place(&self) -> &SecretPlace {
        &self.0
    }

    #[must_use]
    pub fn of(place: SecretPlace) -> Self {
        Self(place)
    }
}

impl ValueName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Mount {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SecretPlace::Header(name) => write!(f, "header:{name}"),
            SecretPlace::Query(name) => write!(f, "query:{name}"),
            SecretPlace::Body(pointer) => write!(f, "body:{pointer}"),
        }
    }
}

/// Shows a type as the text that it holds.
macro_rules! shown {
    ($($word:ident: $text:expr,)*) => {$(
        impl fmt::Display for $word {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text: fn(&Self) -> &str = $text;
                f.write_str(text(self))
            }
        }
    )*};
}

shown! {
    Target: |word| &word.text,
    HostName: |word| word.0.as_str(),
    Method: |word| &word.0,
    ValueName: |word| &word.0,
    Mount: |word| &word.0,
}

/// Serializes each type as its text, and describes it as text.
macro_rules! written {
    ($($word:ty),*) => {$(
        impl From<$word> for String {
            fn from(word: $word) -> Self {
                word.to_string()
            }
        }

        impl JsonSchema for $word {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }
    )*};
}

written!(ValueName, Target, Method, HostName, Place, Mount);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: TryFrom<String, Error = InvalidWord> + fmt::Display>(good: &[&str], bad: &[&str]) {
        for text in good {
            let word = T::try_from((*text).to_owned()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(word.to_string(), *text);
        }
        for text in bad {
            let Err(error) = T::try_from((*text).to_owned()) else { panic!("{text:?} was taken") };
            assert!(!error.to_string().contains(|c: char| c.is_control() || c == '\u{202e}'), "{error:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        check::<ValueName>(&["a", "A.b_c-1", &"x".repeat(64)], &["", "a b", "é", "a/b", "\u{202e}", &"x".repeat(65)]);
    }

    #[test]
    fn a_target_is_what_it_looks_like() {
        check::<Target>(
            &["https://api.example.com/v1/", "http://127.0.0.1:8080", "https://*.example.com", "https://a/b.c/..d"],
            &[
                "",
                "api.example.com",
                "ftp://a/",
                "https://user@a/",
                "https://a/?q",
                "https://a/#f",
                "https://a/b/../c",
                "https://a/%2E%2e/c",
                "https://a\\b",
                "https://a/ b",
                "https://a/\u{202e}",
                "https://",
                "https://a*.b/",
            ],
        );
    }

    #[test]
    fn methods_are_upper_case_and_make_no_tunnel() {
        check::<Method>(&["GET", "PATCH", "M-SEARCH"], &["", "get", "Get", "CONNECT", "TRACE", "TRACK", "A B"]);
    }

    #[test]
    fn hosts_and_places_and_mounts_are_checked() {
        check::<HostName>(
            &["a.example", "*.a.example", "10.0.0.1"],
            &["", "*", "a/b", "*.10.0.0.1", "a.*.example", "a b"],
        );
        check::<Place>(
            &["header:x-key", "query:k", "body:/a/b", "body:/"],
            &["", "header:", "header:X-Key", "header:a b", "cookie:a", "body:a", "query:", "query:a b", "body:"],
        );
        check::<Mount>(
            &["/data", "/a/b.c"],
            &["", "/", "data", "/a/", "/a/../b", "/./a", "/a//b", "/a b", "/\u{202e}"],
        );
    }
}
