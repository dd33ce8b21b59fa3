//! Errors of requests: a status, a stable code and a sentence for the caller. Faults of the host are logged in full;
//! the caller gets a generic sentence and an id.

use std::fmt;

pub(crate) use api::ProblemCode as Code;
use api::{NotOpen, Pointed, Problem, StaleState, rfc3339};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dispatch::ports::{FaultKind, StoreFault};
use domain::{Refusal, Timestamp, principal::Role, retention::RemovalRule};

use crate::ports::{BackupError, PluginFault, PutError};

/// The `retry-after` if an access token cannot be checked, in seconds.
const RETRY_ISSUER: u64 = 5;

/// The `retry-after` of a host that ends soon, in seconds: about as long as a restart takes.
const RETRY_DRAINING: u64 = 5;

/// The role that the principal of a request lacks, beside a response for the layers around the routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MissingRole(pub(crate) Role);

/// A request that was not carried out.
#[derive(Debug)]
pub(crate) struct Error(Box<Problem>);

/// The result of a route.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(code.problem(detail)))
    }

    /// The same problem in other words.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Errors at these places of the body.
    pub(crate) fn invalid(errors: Vec<Pointed>) -> Self {
        let messages: Vec<String> = errors.iter().map(Pointed::to_string).collect();
        let mut error = Self::new(Code::Invalid, messages.join("; "));
        error.0.errors = errors;
        error
    }

    /// An error at one place of the body.
    pub(crate) fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![Pointed::new(pointer, message)])
    }

    /// The principal may not do this, and this role is missing, if one is.
    pub(crate) fn not_allowed(detail: impl Into<String>, role: Option<Role>) -> Self {
        let mut error = Self::new(Code::NotAllowed, detail);
        error.0.role = role.as_ref().map(api::Role::from);
        error
    }

    /// The principal has reached a limit. The same request can be made again after `retry_after` seconds.
    pub(crate) fn busy(detail: impl Into<String>, retry_after: u64) -> Self {
        let mut error = Self::new(Code::Busy, detail);
        error.0.retry_after = Some(retry_after);
        error
    }

    /// An access token cannot be checked now.
    pub(crate) fn unchecked(detail: impl Into<String>) -> Self {
        let mut error = Self::new(Code::IssuerUnavailable, detail);
        error.0.retry_after = Some(RETRY_ISSUER);
        error
    }

    /// The tokens cannot be read now, so nobody can be authenticated. The log says why.
    pub(crate) fn unreadable() -> Self {
        let detail = "The host cannot read its tokens now, so it cannot tell who you are. Try again later.";
        Self::new(Code::StoreFailed, detail)
    }

    /// The host ends soon. Another host may take the request at once.
    pub(crate) fn draining(detail: impl Into<String>) -> Self {
        let mut error = Self::new(Code::Draining, detail);
        error.0.retry_after = Some(RETRY_DRAINING);
        error
    }

    /// Plugins are still being loaded. Most take a second; a large one that must be compiled takes half a minute.
    pub(crate) fn loading(detail: impl Into<String>) -> Self {
        let mut error = Self::new(Code::Loading, detail);
        error.0.retry_after = Some(1);
        error
    }

    fn removed(detail: String, at: Timestamp, rule: &RemovalRule) -> Self {
        let mut error = Self::new(Code::Removed, detail);
        error.0.at = Some(rfc3339(at));
        error.0.rule = Some(rule.to_string());
        error
    }

    /// The host failed. The log has the detail, and the answer has the id to find it by.
    pub(crate) fn fault(detail: &dyn fmt::Display) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the id only links a response to a line of the log; no decision reads it"
        )]
        let id = uuid::Uuid::new_v4();
        let id = format!("fault_{}", id.simple());
        tracing::error!(fault = %id, %detail, "a request failed");
        let mut error = Self::new(Code::Fault, "The host failed. Its log has the details under this id.");
        error.0.fault = Some(id);
        error
    }
}

impl From<StoreFault> for Error {
    /// A full or failing disk and damage are named, because the operator can mend them. The log has the details.
    fn from(fault: StoreFault) -> Self {
        let Self(mut problem) = Self::fault(&fault);
        if let Some(Self(named)) = Self::of_disk(&fault) {
            *problem = Problem { fault: problem.fault.take(), ..*named };
        }
        Self(problem)
    }
}

impl Error {
    /// The problem for a full or failing disk or for damage, without a line in the log.
    pub(crate) fn of_disk(fault: &StoreFault) -> Option<Self> {
        match fault.kind {
            FaultKind::NoSpace => Some(Self::new(
                Code::NoSpace,
                "The disk of the host is full. Most reads go on, and the host accepts changes again once there is space.",
            )),
            FaultKind::Disk => Some(Self::new(
                Code::StoreFailed,
                "The disk or the database of the host failed, and its log says why. Restart the host after a failed write; until \
                 then it accepts no changes.",
            )),
            FaultKind::Damaged => Some(Self::new(
                Code::Damaged,
                "A stored record that this request needs is damaged. Its turn does not go on: no call of it runs, and no \
                 answer to it counts. The host's log names the record under this id.",
            )),
            FaultKind::NoAnswer => {
                Some(Self::new(Code::StoreFailed, "The disk of the host does not answer in time. Try again later."))
            }
            FaultKind::Program => None,
        }
    }
}

/// After how many seconds to try again: calls end within seconds, but turns may wait for people.
fn patience(bound: dispatch::QuotaBound) -> u64 {
    match bound {
        dispatch::QuotaBound::WaitingCalls | dispatch::QuotaBound::TurnRate | dispatch::QuotaBound::ByteRate => 1,
        dispatch::QuotaBound::OpenTurns | dispatch::QuotaBound::OpenBytes => 10,
        // Retention looks for turns to remove every hour.
        dispatch::QuotaBound::KeptBytes => 60 * 60,
    }
}

#[cfg(feature = "fuzzing")]
impl Error {
    /// The status and the escaped sentence.
    pub(crate) fn leaving(mut self) -> (u16, String) {
        self.0.for_people();
        (self.0.status, self.0.detail)
    }
}

impl Error {
    /// The problem for the response, with escaped sentences.
    pub(crate) fn into_problem(self) -> Problem {
        let Self(mut problem) = self;
        problem.for_people();
        *problem
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = self.into_problem();
        let missing = problem.role.as_ref().map(|role| MissingRole(role.0));
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(problem.retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolgate\""));
        }
        if let Some(missing) = missing {
            response.extensions_mut().insert(missing);
        }
        response
    }
}

impl From<api::Error> for Error {
    fn from(error: api::Error) -> Self {
        match error {
            api::Error::BadJson(why) => Self::new(Code::BadJson, why),
            api::Error::Invalid(places) => Self::invalid(places),
            api::Error::Unwritable(why) => Self::fault(&why),
        }
    }
}

impl From<dispatch::Error> for Error {
    fn from(error: dispatch::Error) -> Self {
        let detail = error.to_string();
        match error {
            dispatch::Error::NotFound(resource) => {
                let mut error = Self::new(Code::NotFound, detail);
                error.0.resource = Some((&resource).into());
                error
            }
            dispatch::Error::Forbidden(forbidden) => Self::not_allowed(detail, forbidden.role()),
            dispatch::Error::TooLarge { .. } | dispatch::Error::TooManyNested { .. } => {
                Self::new(Code::TooLarge, detail)
            }
            dispatch::Error::CallIdTaken { call, .. } => {
                let mut error = Self::new(Code::CallIdTaken, detail);
                error.0.call = Some(call.to_string());
                error
            }
            dispatch::Error::Removed { at, rule } => Self::removed(detail, at, &rule),
            dispatch::Error::CallRemoved { call, at, rule } => {
                let mut error = Self::removed(detail, at, &rule);
                error.0.call = Some(call.to_string());
                error
            }
            dispatch::Error::Busy(busy) => {
                let wait = busy.wait.map(|wait| wait.millis().div_ceil(1_000).max(1));
                Self::busy(detail, wait.unwrap_or_else(|| patience(busy.bound)))
            }
            dispatch::Error::Loading { .. } => Self::loading(detail),
            dispatch::Error::DiskLow => Self::new(Code::NoSpace, detail),
            dispatch::Error::Draining => Self::draining(detail),
            dispatch::Error::Refused(refusal) => refusal.into(),
            dispatch::Error::Fault(fault) => fault.into(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::NoCalls
            | Refusal::TooManyCalls { .. }
            | Refusal::RepeatedId(_)
            | Refusal::ResultMissing(_)
            | Refusal::ResultGiven(_) => Self::invalid_at("/calls", detail),
            Refusal::NotAllowed(why) => Self::not_allowed(detail, why.role()),
            Refusal::Invalid(violations) => Self::invalid(violations.iter().map(Pointed::from).collect()),
            Refusal::Unknown => {
                let mut error = Self::new(Code::Stale, detail);
                error.0.state = Some(StaleState(NotOpen::Unknown));
                error
            }
            Refusal::Stale { kind: _, ended, by, at } => {
                let mut error = Self::new(Code::Stale, detail);
                error.0.state = Some(StaleState(NotOpen::Ended(ended)));
                error.0.by = Some(by.to_string());
                error.0.at = Some(rfc3339(at));
                error
            }
            Refusal::DigestMismatch { actual } => {
                let mut error = Self::new(Code::DigestMismatch, detail);
                error.0.digest = Some(actual.to_string());
                error
            }
            Refusal::LinkUsed => Self::new(Code::LinkUsed, detail),
            // `Handle::resolve` handles this one, so it never gets here.
            Refusal::Replayed => Self::fault(&detail),
        }
    }
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        let detail = error.to_string();
        match error {
            BackupError::InMemory | BackupError::InDatabase => Self::new(Code::NotFound, detail),
            BackupError::Busy => Self::busy(detail, 10),
            BackupError::NoRoom => Self::new(Code::NoSpace, detail),
            BackupError::Store(fault) => fault.into(),
            BackupError::Io(_) => Self::fault(&detail),
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
                let detail = format!(
                    "the plugin was not loaded because of {count} finding(s); the live component of this name stays live"
                );
                let mut error = Self::new(Code::PluginRefused, detail);
                error.0.findings = findings;
                error
            }
        }
    }
}
