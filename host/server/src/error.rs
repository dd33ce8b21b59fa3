//! What goes wrong, as a status, a stable code and a sentence for the caller. What is ours to repair goes to the log in
//! full and leaves as a generic text with an id.

use std::fmt;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::Refusal;

use crate::doors::{PluginFault, PutError};
use crate::wire::{Pointed, Problem, rfc3339};

/// The kinds of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BadRequest,
    BadJson,
    Unauthorized,
    NotAllowed,
    NotFound,
    MethodNotAllowed,
    Stale,
    DigestMismatch,
    CallIdTaken,
    NotSettled,
    LinkUsed,
    TooLarge,
    UnsupportedMediaType,
    UnknownHost,
    Invalid,
    PluginRefused,
    TooSlow,
    Busy,
    Fault,
}

impl Code {
    /// Every code with its status, its name in JSON and what it means.
    const TABLE: [(Self, StatusCode, &'static str, &'static str); 19] = [
        (Self::BadRequest, StatusCode::BAD_REQUEST, "bad-request", "The path, the query or a header is wrong"),
        (Self::BadJson, StatusCode::BAD_REQUEST, "bad-json", "The body is not JSON that this host takes"),
        (Self::Unauthorized, StatusCode::UNAUTHORIZED, "unauthorized", "A valid token or session is needed"),
        (Self::NotAllowed, StatusCode::FORBIDDEN, "not-allowed", "This principal may not do this"),
        (Self::NotFound, StatusCode::NOT_FOUND, "not-found", "There is no such thing, or it is not yours to see"),
        (Self::MethodNotAllowed, StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The path has no such method"),
        (Self::Stale, StatusCode::CONFLICT, "stale", "The question is no longer open"),
        (Self::DigestMismatch, StatusCode::CONFLICT, "digest-mismatch", "The call is not the one that was shown"),
        (Self::CallIdTaken, StatusCode::CONFLICT, "call-id-taken", "A call id was submitted before with another call"),
        (Self::NotSettled, StatusCode::CONFLICT, "not-settled", "The turn has not ended yet"),
        (Self::LinkUsed, StatusCode::CONFLICT, "link-used", "The link was used before"),
        (Self::TooLarge, StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body or a part of it is too large"),
        (
            Self::UnsupportedMediaType,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "The body must be JSON",
        ),
        (
            Self::UnknownHost,
            StatusCode::MISDIRECTED_REQUEST,
            "unknown-host",
            "The server does not answer under this name",
        ),
        (Self::Invalid, StatusCode::UNPROCESSABLE_ENTITY, "invalid", "The request is well-formed and not valid"),
        (
            Self::PluginRefused,
            StatusCode::UNPROCESSABLE_ENTITY,
            "plugin-refused",
            "The plugin breaks rules for loading",
        ),
        (
            Self::Busy,
            StatusCode::TOO_MANY_REQUESTS,
            "busy",
            "The principal has as much at the host as it may have at once",
        ),
        (Self::TooSlow, StatusCode::REQUEST_TIMEOUT, "too-slow", "The body did not arrive in time"),
        (Self::Fault, StatusCode::INTERNAL_SERVER_ERROR, "fault", "The host failed"),
    ];

    fn row(self) -> (StatusCode, &'static str, &'static str) {
        let row = Self::TABLE.iter().find(|(code, ..)| *code == self);
        row.map_or((StatusCode::INTERNAL_SERVER_ERROR, "fault", "The host failed"), |(_, status, name, title)| {
            (*status, *name, *title)
        })
    }
}

/// A request that was not carried out.
#[derive(Debug)]
pub(crate) struct Error(Box<Problem>);

/// What a door answers.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let (status, name, title) = code.row();
        Self(Box::new(Problem {
            kind: format!("/problems/{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            code: name.to_owned(),
            ..Problem::default()
        }))
    }

    /// The same problem in other words.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Something is wrong at places of the body.
    pub(crate) fn invalid(errors: Vec<Pointed>) -> Self {
        let told: Vec<String> = errors.iter().map(told).collect();
        let mut error = Self::new(Code::Invalid, told.join("; "));
        error.0.errors = errors;
        error
    }

    /// Something is wrong at one place of the body.
    pub(crate) fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![Pointed::new(pointer, message)])
    }

    /// The principal has as much as it may; the same request may be made again after so many seconds.
    pub(crate) fn busy(detail: impl Into<String>, retry_after: u64) -> Self {
        let mut error = Self::new(Code::Busy, detail);
        error.0.retry_after = Some(retry_after);
        error
    }

    /// We failed. The log has the detail, and the answer the id to find it by.
    pub(crate) fn fault(detail: &dyn fmt::Display) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the id only joins an answer to a line of the log; nothing is decided by it"
        )]
        let id = uuid::Uuid::new_v4();
        let id = format!("fault_{}", id.simple());
        tracing::error!(fault = %id, %detail, "a request failed");
        let mut error = Self::new(Code::Fault, "The host failed to do this. Its log has the details under the id.");
        error.0.fault = Some(id);
        error
    }
}

/// After how many seconds it is worth while to try again: calls end within seconds, but turns may wait for people.
fn patience(bound: dispatch::Bound) -> u64 {
    match bound {
        dispatch::Bound::WaitingCalls => 1,
        dispatch::Bound::OpenTurns | dispatch::Bound::OpenBytes => 10,
    }
}

#[cfg(feature = "fuzzing")]
impl Error {
    /// The status, and the sentence as it leaves.
    pub(crate) fn leaving(mut self) -> (u16, String) {
        self.0.for_people();
        (self.0.status, self.0.detail)
    }
}

fn told(error: &Pointed) -> String {
    if error.pointer.is_empty() { error.message.clone() } else { format!("{}: {}", error.pointer, error.message) }
}

impl Error {
    /// The problem as it leaves.
    pub(crate) fn into_problem(self) -> Problem {
        let Self(mut problem) = self;
        problem.for_people();
        *problem
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = self.into_problem();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(problem.retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolgate\""));
        }
        response
    }
}

impl From<dispatch::Error> for Error {
    fn from(error: dispatch::Error) -> Self {
        let detail = error.to_string();
        match error {
            dispatch::Error::NotFound(_) => Self::new(Code::NotFound, detail),
            dispatch::Error::NotAllowed(_) => Self::new(Code::NotAllowed, detail),
            dispatch::Error::TooLarge { .. } => Self::new(Code::TooLarge, detail),
            dispatch::Error::CallIdTaken { call, .. } => {
                let mut error = Self::new(Code::CallIdTaken, detail);
                error.0.call = Some(call.to_string());
                error
            }
            dispatch::Error::Busy(busy) => Self::busy(detail, patience(busy.bound)),
            dispatch::Error::Refused(refusal) => refusal.into(),
            dispatch::Error::Fault(fault) => Self::fault(&fault),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::CallCount { .. }
            | Refusal::RepeatedId(_)
            | Refusal::ResultMissing(_)
            | Refusal::ResultGiven(_) => Self::invalid_at("/calls", detail),
            Refusal::NotAllowed(_) => Self::new(Code::NotAllowed, detail),
            Refusal::Invalid(violations) => Self::invalid(violations.iter().map(Pointed::from).collect()),
            Refusal::Stale { state, by, at } => {
                let mut error = Self::new(Code::Stale, detail);
                error.0.state = Some(state);
                error.0.by = by.map(|by| by.to_string());
                error.0.at = at.map(rfc3339);
                error
            }
            Refusal::DigestMismatch { actual } => {
                let mut error = Self::new(Code::DigestMismatch, detail);
                error.0.digest = Some(actual.to_string());
                error
            }
            // `Handle::resolve` answers this one itself, so it never gets here.
            Refusal::Replayed => Self::fault(&detail),
        }
    }
}

impl From<PluginFault> for Error {
    fn from(fault: PluginFault) -> Self {
        Self::fault(&fault)
    }
}

impl From<PutError> for Error {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Fault(fault) => fault.into(),
            PutError::Refused(findings) => {
                let count = findings.len();
                let detail =
                    format!("{count} finding(s) keep it from being loaded; what was live under the name still is");
                let mut error = Self::new(Code::PluginRefused, detail);
                error.0.findings = findings;
                error
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row_and_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Code::TABLE.iter().map(|(_, _, name, _)| name).collect();
        assert_eq!(names.len(), Code::TABLE.len());
        for (code, status, name, _) in Code::TABLE {
            assert_eq!((code.row().0, code.row().1), (status, name));
        }
    }
}
