//! Decisions, and how suspensions end.

use std::fmt;
use std::sync::Arc;

use super::SuspensionKind;
use crate::{Json, LinkId, PrincipalId, Standing, Timestamp, principal::Channel};

/// An answer to a suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call can continue.
    Approve,
    /// The call may not continue.
    Deny,
    /// One of the choices of a question.
    Answer(Arc<str>),
    /// The client has a result.
    Result,
    /// The client failed.
    Error,
}

impl Decision {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Answer(choice) => choice,
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// Reads [`Decision::as_str`]. Every other text is the choice of a question.
impl From<&str> for Decision {
    fn from(text: &str) -> Self {
        match text {
            "approve" => Self::Approve,
            "deny" => Self::Deny,
            "result" => Self::Result,
            "error" => Self::Error,
            choice => Self::Answer(choice.into()),
        }
    }
}

/// A committed answer to a suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    pub decision: Decision,
    pub data: Option<Json>,
    /// The arguments that the approver put in place of the submitted ones.
    pub arguments: Option<Json>,
    pub comment: Option<String>,
    /// The standing approval that was given with it.
    pub standing: Option<Standing>,
    /// The one-time link that the principal used, if any.
    pub link: Option<LinkId>,
    /// The channel through which the answer came. `None`: the host decided, or an older host recorded it.
    pub channel: Option<Channel>,
}

impl Resolution {
    /// The channel through which the answer came, if that is known. Older hosts recorded links only.
    #[must_use]
    pub fn via(&self) -> Option<Channel> {
        self.channel.or(self.link.map(|_| Channel::Link))
    }

    /// An answer that says nothing but this.
    pub(crate) const fn of(decision: Decision) -> Self {
        Self { decision, data: None, arguments: None, comment: None, standing: None, link: None, channel: None }
    }
}

/// How a suspension was closed, with the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedAs {
    Resolved(Resolution),
    /// Nobody answered in time.
    Expired,
    /// The call ended for another reason.
    Withdrawn,
}

/// The end of a suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub how: ClosedAs,
    /// `system` for an expiry, and for a step that the policy denied.
    pub by: PrincipalId,
    pub at: Timestamp,
}

impl Closed {
    /// The answer, if there is one.
    #[must_use]
    pub const fn resolution(&self) -> Option<&Resolution> {
        match &self.how {
            ClosedAs::Resolved(resolution) => Some(resolution),
            ClosedAs::Expired | ClosedAs::Withdrawn => None,
        }
    }

    #[must_use]
    pub fn ended(&self) -> SuspensionEnd {
        match &self.how {
            ClosedAs::Resolved(resolution) => SuspensionEnd::Decided(resolution.decision.clone()),
            ClosedAs::Expired => SuspensionEnd::Expired,
            ClosedAs::Withdrawn => SuspensionEnd::Withdrawn,
        }
    }
}

/// The way a suspension ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuspensionEnd {
    Decided(Decision),
    /// Nobody answered in time.
    Expired,
    /// The call ended for another reason.
    Withdrawn,
}

impl SuspensionEnd {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Decided(decision) => decision.as_str(),
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl SuspensionEnd {
    /// How a suspension of this kind ended, for people. The choice of a question may have the name of another decision.
    #[must_use]
    pub const fn of(&self, kind: SuspensionKind) -> &'static str {
        match (self, kind) {
            (Self::Expired, _) => "nobody answered it in time",
            (Self::Withdrawn, _) => "it was withdrawn, because its call ended",
            (Self::Decided(Decision::Approve), SuspensionKind::Approval) => "it was approved",
            (Self::Decided(Decision::Deny), SuspensionKind::Approval | SuspensionKind::External) => "it was denied",
            (Self::Decided(Decision::Error), SuspensionKind::ClientExec) => "a client reported an error",
            (Self::Decided(_), SuspensionKind::External) => "its result was sent",
            (Self::Decided(_), SuspensionKind::Nested) => "the nested turn ended",
            (Self::Decided(_), SuspensionKind::ClientExec) => "a client sent the result",
            (Self::Decided(_), _) => "it was answered",
        }
    }
}

impl fmt::Display for SuspensionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads [`SuspensionEnd::as_str`].
impl From<&str> for SuspensionEnd {
    fn from(text: &str) -> Self {
        match text {
            "expired" => Self::Expired,
            "withdrawn" => Self::Withdrawn,
            decision => Self::Decided(decision.into()),
        }
    }
}

/// Whether a suspension is open, or how it ended. A question may have a choice called `open`: compare values, not
/// names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuspensionState {
    Open,
    Ended(SuspensionEnd),
}

impl SuspensionState {
    /// The states that are not decisions. No choice of a question may have such a name.
    pub const RESERVED: [&str; 3] = ["open", "expired", "withdrawn"];

    /// The state of a suspension that was closed so, or is open.
    #[must_use]
    pub fn of(closed: Option<&Closed>) -> Self {
        closed.map_or(Self::Open, |closed| Self::Ended(closed.ended()))
    }

    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Open => "open",
            Self::Ended(ended) => ended.as_str(),
        }
    }
}

/// Reads [`SuspensionState::as_str`].
impl From<&str> for SuspensionState {
    fn from(text: &str) -> Self {
        match text {
            "open" => Self::Open,
            ended => Self::Ended(ended.into()),
        }
    }
}

impl fmt::Display for SuspensionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
