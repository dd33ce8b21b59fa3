//! The places of secrets, as grants and requests write them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::{InvalidWord, is_plain, written};

/// A place in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretPlace {
    /// The value of the header with this name, in lower case; for `authorization` also the credentials of the scheme Basic
    /// (RFC 7617).
    Header(String),
    /// The value of the query parameter with this name.
    Query(String),
    /// The string at this pointer (RFC 6901) of a JSON body, or the field `/NAME` of a form.
    Body(String),
}

impl TryFrom<String> for SecretPlace {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let token = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        Ok(match text.split_once(':') {
            Some(("header", name)) if is_plain(name, 64) && name.bytes().all(token) => Self::Header(name.into()),
            Some(("query", name)) if is_plain(name, 64) => Self::Query(name.into()),
            Some(("body", pointer)) if is_plain(pointer, 256) && pointer.starts_with('/') => Self::Body(pointer.into()),
            _ => {
                return Err(InvalidWord(format!(
                    "{text:?} is no place for a secret: expected `header:name` in lower case, `query:name` or \
                     `body:/json/pointer`"
                )));
            }
        })
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
        }
    }
}

written!(SecretPlace);
