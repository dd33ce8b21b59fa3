//! Problems (RFC 9457): the responses to requests that failed.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::{FindingView, Resource, Role, StaleState};

/// The maximum size of a sentence after it is escaped, in bytes. The note about the rest is not included.
const MAX_SENTENCE: usize = 2_000;

/// The same for the message of one error of several.
const MAX_MESSAGE: usize = 500;

/// The same for the detail of one problem of many in a response.
const MAX_BRIEF: usize = 200;

/// The maximum number of errors in a body that a problem lists.
const MAX_ERRORS: usize = 20;

/// The maximum size of a text of the caller that a response repeats exactly, in bytes.
const MAX_QUOTED: usize = 256;

/// Defines the codes: the status, the name in JSON and the title of each.
macro_rules! codes {
    ($($code:ident = $status:literal $name:literal $title:literal),+ $(,)?) => {
        domain::names! {
            /// The kinds of problem. A newer host can have others.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum ProblemCode {
                $(#[doc = $title] $code = $name),+
            }
        }

        impl ProblemCode {
            const fn row(self) -> (u16, &'static str) {
                match self {
                    $(Self::$code => ($status, $title)),+
                }
            }
        }
    };
}

codes! {
    BadRequest = 400 "bad-request" "The path, the query or a header is wrong",
    BadJson = 400 "bad-json" "The body is not JSON that this host accepts",
    Unauthorized = 401 "unauthorized" "A valid token or session is needed",
    NotAllowed = 403 "not-allowed" "This principal may not do this",
    NotFound = 404 "not-found" "It does not exist, or you may not see it",
    MethodNotAllowed = 405 "method-not-allowed" "The path has no such method",
    Stale = 409 "stale" "The suspension is no longer open",
    DigestMismatch = 409 "digest-mismatch" "The call is not the one that was shown",
    CallIdTaken = 409 "call-id-taken" "A call id was submitted before with another call",
    NotSettled = 409 "not-settled" "The turn has not ended yet",
    DeployedPlugins = 409 "deployed-plugins" "Plugins are deployed with each host",
    LinkUsed = 409 "link-used" "The link was used before",
    Removed = 410 "removed" "The turn was removed by retention",
    TooLarge = 413 "too-large" "The body or a part of it is too large",
    UnsupportedMediaType = 415 "unsupported-media-type" "The body must be JSON",
    UnknownHost = 421 "unknown-host" "The server does not answer under this name",
    Invalid = 422 "invalid" "The request is well-formed and not valid",
    PluginRefused = 422 "plugin-refused" "The plugin breaks rules for loading",
    Busy = 429 "busy" "The principal has used up its quota",
    TooSlow = 408 "too-slow" "The body did not arrive in time",
    Fault = 500 "fault" "The host failed",
    Damaged = 500 "damaged" "A stored record is damaged",
    IssuerUnavailable = 503 "issuer-unavailable" "The keys of the authorization server are unknown",
    Draining = 503 "draining" "The host ends soon",
    Loading = 503 "loading" "Plugins are still being loaded",
    StoreFailed = 503 "store-failed" "The disk of the host failed",
    NoSpace = 507 "no-space" "The disk of the host is full",
}

impl ProblemCode {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().0
    }

    /// A problem of this code, with a sentence about this occurrence.
    pub fn problem(self, detail: impl Into<String>) -> Problem {
        let (name, (status, title)) = (self.as_str(), self.row());
        Problem {
            kind: format!("/problems/{name}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            code: Some(self),
            ..Problem::default()
        }
    }
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn known_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProblemCode>, D::Error> {
    Ok(ProblemCode::named(&Cow::<str>::deserialize(deserializer)?))
}

/// Why a request failed. The request had no effect, unless `detail` says otherwise: `busy` can follow a cancellation or a revocation.
/// `code` is stable; the sentences are not.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `/problems/` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The meaning of the code, always the same.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The error of this request and its remedy. Quoted texts are escaped, so you can show it unchanged. A long one is cut.
    pub detail: String,
    /// The stable name of the problem.
    // A client gets `None` for a code that only a newer host knows.
    #[serialize_always]
    #[serde(deserialize_with = "known_code")]
    #[schema(value_type = String)]
    pub code: Option<ProblemCode>,
    /// The errors in the body (`invalid`): the first 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Pointed>,
    /// The thing that does not exist or that the principal may not see (`not-found`). Absent if the path itself does not exist.
    pub resource: Option<Resource>,
    /// The role that the principal lacks (`not-allowed`). Absent if no role is missing.
    #[schema(value_type = Option<String>)]
    pub role: Option<Role>,
    /// How the suspension ended, or `unknown` if it does not exist or the principal may not see it (`stale`).
    #[schema(value_type = Option<String>)]
    pub state: Option<StaleState>,
    /// Who ended it (`stale`).
    pub by: Option<String>,
    /// When it ended (`stale`), or when the turn was removed (`removed`).
    pub at: Option<String>,
    /// The current digest (`digest-mismatch`).
    pub digest: Option<String>,
    /// The rule that removed the turn (`removed`).
    pub rule: Option<String>,
    /// The call id that is taken (`call-id-taken`), or that belongs to the removed turn (`removed`).
    pub call: Option<String>,
    /// Everything that is wrong with the plugin (`plugin-refused`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingView>,
    /// Try again after this many seconds (`busy`, `draining`, `issuer-unavailable`, `loading`). The header `retry-after` has the same value.
    pub retry_after: Option<u64>,
    /// The id of the fault in the host's log (`fault`, `damaged`).
    pub fault: Option<String>,
}

impl Problem {
    /// Escapes the sentences, because they quote callers, models and plugins, and cuts what is long, because a problem does
    /// not count as an unread response: without `findings`, it has at most 64 KiB. The other members are exact.
    pub fn for_people(&mut self) {
        shorten(&mut self.detail, MAX_SENTENCE);
        self.errors.truncate(MAX_ERRORS);
        for Pointed { pointer, message } in &mut self.errors {
            pointer.truncate(pointer.floor_char_boundary(MAX_QUOTED));
            shorten(message, MAX_MESSAGE);
        }
        for finding in &mut self.findings {
            shorten(&mut finding.message, MAX_SENTENCE);
            shorten(&mut finding.remedy, MAX_SENTENCE);
        }
    }

    /// Shortens a problem that is one of many in a response, after [`Problem::for_people`].
    pub fn brief(mut self) -> Self {
        self.errors.clear();
        shorten(&mut self.detail, MAX_BRIEF);
        self
    }
}

/// Escapes a sentence, and cuts it to about this many bytes.
fn shorten(sentence: &mut String, max_bytes: usize) {
    let mut max_chars = max_bytes;
    let mut short = escape::excerpt(sentence, max_chars);
    while short.len() > max_bytes && max_chars > 0 {
        max_chars /= 2;
        short = escape::excerpt(sentence, max_chars);
    }
    *sentence = short.into_owned();
}

/// An error at one place of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pointed {
    /// JSON Pointer (RFC 6901) into the body. Empty for the whole body. A pointer of more than 256 bytes is cut.
    pub pointer: String,
    /// The error at this place.
    pub message: String,
}

impl Pointed {
    /// An error at a place.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl fmt::Display for Pointed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

impl From<&domain::Violation> for Pointed {
    fn from(violation: &domain::Violation) -> Self {
        Self::new(&violation.pointer, &violation.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row_and_a_unique_name() {
        let names: std::collections::BTreeSet<_> = ProblemCode::NAMES.into_iter().collect();
        assert_eq!(names.len(), ProblemCode::ALL.len());
        for code in ProblemCode::ALL {
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert_eq!(ProblemCode::named(code.as_str()), Some(code));
        }
    }

    #[test]
    fn problem_with_a_code_of_a_newer_host_is_read() {
        let text = serde_json::to_string(&ProblemCode::Stale.problem("late")).unwrap();
        let read = |text: &str| serde_json::from_str::<Problem>(text).unwrap();
        assert_eq!(read(&text).code, Some(ProblemCode::Stale));
        let newer = read(&text.replace("\"code\":\"stale\"", "\"code\":\"unheard-of\""));
        assert_eq!((newer.code, newer.detail.as_str()), (None, "late"));
    }
}
