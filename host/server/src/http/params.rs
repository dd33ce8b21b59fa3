//! The query of a request and the parts of its path. Their errors name the parameter, its value and what is allowed.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use escape::{Refusal, names};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::App;
use crate::error::{Code, Error, Result};

/// The parts of a path. A part of the wrong form is a 400 that names the expected form.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Segments<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(PathRejection::FailedToDeserializePathParams(failed)) => {
                let said = failed.body_text();
                let said = said.strip_prefix("Invalid URL: ").unwrap_or(&said);
                Err(Error::new(Code::BadRequest, said))
            }
            Err(other) => Err(Error::fault(&other)),
        }
    }
}

/// The query. An unknown parameter is a 400, so that a misspelt one is not ignored.
pub(crate) struct Params<T>(pub(crate) T);

/// The query of a route without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParams {}

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(failed) => Err(Error::new(Code::BadRequest, plain(&failed.body_text(), &parts.uri))),
        }
    }
}

/// Says what is wrong with a query. The library says `Failed to deserialize query string: PARAMETER: MESSAGE`.
fn plain(said: &str, uri: &Uri) -> String {
    let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(said);
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri).map_or_else(|_| Vec::new(), |Query(pairs)| pairs);
    let (parameter, message) = match said.split_once(": ") {
        Some((name, message)) if query.iter().any(|(given, _)| given == name) => (Some(name), message),
        _ => (None, said),
    };
    let given = parameter.and_then(|name| query.iter().find(|(given, _)| given == name)).map(|(_, value)| value);
    let subject = parameter.map_or_else(|| "a parameter".to_owned(), |name| format!("the parameter `{name}`"));
    let value = given.map_or_else(String::new, |value| format!("{value:?}"));
    match Refusal::of(message) {
        Refusal::UnknownName { name, known } if known.is_empty() => {
            format!("there is no parameter `{name}`: this request has none")
        }
        Refusal::UnknownName { name, known } => {
            format!("there is no parameter `{name}`; the parameters are {}", names(&known))
        }
        Refusal::UnknownWord { word, known } => {
            format!("{subject} is {word:?}, and it must be one of {}", names(&known))
        }
        Refusal::Missing { name } => format!("the parameter `{name}` is missing"),
        Refusal::Twice { name } => format!("the parameter `{name}` is given twice"),
        Refusal::Wrong { expected, .. } => format!("{subject} is {value}, and it must be {expected}"),
        // It repeats the value.
        Refusal::Other(message) => format!("{subject}: {message}"),
    }
}

/// An id in a path or a query, parsed where it enters.
pub(crate) struct Id<T>(pub(crate) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}
