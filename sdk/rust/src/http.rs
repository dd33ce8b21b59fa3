//! Requests over HTTP: wasi:http of the host, or the function of [`Attempt::answers`](crate::testing::Attempt::answers)
//! in a test.
//!
//! The operator decides which addresses a plugin may reach. The host adds an `Idempotency-Key` to every request that
//! may change something. Redirects are not followed: a 3xx status is an ordinary response. For a key or token, send the
//! placeholder of [`config::get`](crate::config::get). The host replaces it with the secret.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

#[cfg(not(target_family = "wasm"))]
pub(crate) mod answers;
#[cfg(not(target_family = "wasm"))]
use answers as backend;
#[cfg(target_family = "wasm")]
mod wasi;
#[cfg(target_family = "wasm")]
use wasi as backend;

/// Why a request got no response.
///
/// It is not a `std::error::Error`, so that `?` turns it into [`Failure::Unavailable`] if trying again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The URL, a header or the body is invalid.
    Invalid(String),
    /// The host does not allow the request. The call's log names the missing grant (`toolgate logs`).
    Denied(String),
    /// The request was tried, but got no response.
    Unreachable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the request cannot be sent: {why}"),
            Self::Denied(why) => write!(f, "the host does not allow the request: {why}"),
            Self::Unreachable(why) => write!(f, "the request got no response: {why}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreachable(_) => Self::Unavailable(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in upper case.
    pub method: String,
    /// The full URL with its query.
    pub url: String,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request of any method.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self { method: method.to_owned(), url: url.into(), headers: Vec::new(), body: None }
    }

    /// A GET request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A POST request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the body and its media type.
    pub fn body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("content-type", media_type)
    }

    /// Sets a JSON body.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the value has no JSON form.
    pub fn json(self, value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(self.body("application/json", body))
    }

    /// Sends the request and reads the whole response. Any status is a response, not an error.
    ///
    /// # Errors
    /// [`Error`], if there is no response.
    pub fn send(&self) -> Result<Response, Error> {
        backend::send(self)
    }
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers, in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the response if its status is a success (2xx).
    ///
    /// # Errors
    /// A failure with the status. `Unavailable` if trying again may help (429 and 5xx).
    pub fn successful(self) -> Result<Self, Failure> {
        let message = format!("the server answered with status {}", self.status);
        match self.status {
            200..=299 => Ok(self),
            429 | 500..=599 => Err(Failure::Unavailable(message)),
            _ => Err(Failure::Failed(message)),
        }
    }

    /// The body as text. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// `Failed` if the body is not JSON for `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Failed(format!("the server's answer is not what was expected: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_shows_whether_a_retry_may_help() {
        let answer = |status| Response { status, headers: Vec::new(), body: b"[1]".to_vec() };
        assert_eq!(answer(204).successful().map(|answer| answer.status), Ok(204));
        for (status, helps) in [(301, false), (404, false), (429, true), (503, true)] {
            let failure = answer(status).successful().expect_err("no success");
            assert_eq!(matches!(failure, Failure::Unavailable(_)), helps, "{status}");
        }
        assert_eq!(answer(200).json::<Vec<u8>>(), Ok(vec![1]));
        assert!(answer(200).json::<String>().is_err());
    }

    #[test]
    fn a_body_brings_its_media_type() {
        let request = Request::post("https://h/").header("x", "y").json(&[1]).expect("JSON");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(request.headers, [header("x", "y"), header("content-type", "application/json")]);
        assert_eq!(request.body, Some(b"[1]".to_vec()));
    }
}
