//! The types of the values in grants and requests, shared by plugin manifests and `toolgate.toml`. Those of one capability
//! are in its folder.
//!
//! Each is checked when it is read. So an error has a position in the file, and no value contains deceptive characters.

use serde::{Deserialize, Serialize};

/// The name of a value of `wasi:config`, or of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ValueName(String);

/// The path at which a plugin sees a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mount(String);

/// Why a text is not a valid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidWord(pub(crate) String);

/// Whether a text consists of at most this many visible ASCII characters.
pub(crate) fn is_plain(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
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

/// Shows a type as the text that it holds.
macro_rules! shown {
    ($($word:ident: $text:expr,)*) => {$(
        impl std::fmt::Display for $word {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text: fn(&Self) -> &str = $text;
                f.write_str(text(self))
            }
        }
    )*};
}

/// Serializes each type as its text, and describes it as text.
macro_rules! written {
    ($($word:ty),*) => {$(
        impl From<$word> for String {
            fn from(word: $word) -> Self {
                word.to_string()
            }
        }

        impl schemars::JsonSchema for $word {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                <String as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <String as schemars::JsonSchema>::json_schema(generator)
            }
        }
    )*};
}

pub(crate) use {shown, written};

shown! {
    ValueName: |word| &word.0,
    Mount: |word| &word.0,
}

written!(ValueName, Mount);

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::host_pattern::HostPattern;
    use crate::http::{MaxWait, Method, Target};
    use crate::secrets::SecretPlace;

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
    fn longest_wait_has_a_unit_and_a_limit() {
        check::<MaxWait>(
            &["1s", "604800s", "15m", "168h", "7d"],
            &[
                "",
                "s",
                "0s",
                "15",
                "15 m",
                "-1s",
                "+1s",
                "1.5h",
                "8d",
                "604801s",
                "99999999999999999999d",
                "1w",
                "1\u{202e}m",
            ],
        );
        assert_eq!(MaxWait::try_from("15m".to_owned()).map(|wait| wait.span().millis()), Ok(900_000));
    }

    #[test]
    fn hosts_and_places_and_mounts_are_checked() {
        check::<HostPattern>(
            &["a.example", "*.a.example", "10.0.0.1"],
            &["", "*", "a/b", "*.10.0.0.1", "a.*.example", "a b"],
        );
        check::<SecretPlace>(
            &["header:x-key", "query:k", "body:/a/b", "body:/"],
            &["", "header:", "header:X-Key", "header:a b", "cookie:a", "body:a", "query:", "query:a b", "body:"],
        );
        check::<Mount>(
            &["/data", "/a/b.c"],
            &["", "/", "data", "/a/", "/a/../b", "/./a", "/a//b", "/a b", "/\u{202e}"],
        );
    }
}
