//! The places of secrets, as grants and requests write them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SecretPlace;
use crate::words::{InvalidWord, is_plain, written};

/// The part of a request that may contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place(SecretPlace);

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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SecretPlace::Header(name) => write!(f, "header:{name}"),
            SecretPlace::Query(name) => write!(f, "query:{name}"),
            SecretPlace::Body(pointer) => write!(f, "body:{pointer}"),
        }
    }
}

written!(Place);
