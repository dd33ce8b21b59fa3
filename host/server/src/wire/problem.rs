//! Problems: how a request that was not carried out is answered (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FindingView;

/// Why a request was not carried out. Nothing of it happened. `code` is stable; the sentences are not.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `/problems/` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, the same every time.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong this time, and what to do about it. What it quotes is escaped: it can be shown as it is.
    pub detail: String,
    /// The stable name of the problem.
    pub code: String,
    /// Where in the body something is wrong (`invalid`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Pointed>,
    /// How the question ended (`stale`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Who ended it (`stale`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When (`stale`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What the digest is (`digest-mismatch`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The call id that is taken (`call-id-taken`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Everything that is wrong with the plugin (`plugin-refused`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingView>,
    /// After how many seconds it is worth while to try again (`busy`); the header `retry-after` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// What to look for in the host's log (`fault`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Problem {
    /// Escapes the sentences, which quote what callers, models and plugins wrote. The other members are exact.
    pub(crate) fn for_people(&mut self) {
        let escape = |sentence: &mut String| *sentence = text::line(sentence).into_owned();
        escape(&mut self.detail);
        self.errors.iter_mut().for_each(|error| escape(&mut error.message));
        self.findings.iter_mut().for_each(|finding| {
            escape(&mut finding.message);
            escape(&mut finding.remedy);
        });
    }
}

/// Something that is wrong at one place of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pointed {
    /// JSON Pointer (RFC 6901) into the body; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl Pointed {
    /// What is wrong at a place.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl From<&domain::Violation> for Pointed {
    fn from(violation: &domain::Violation) -> Self {
        Self::new(&violation.pointer, &violation.message)
    }
}
