//! One thing that a call waits for from outside. Every wait of every kind is one of these, and each is closed once.

use std::sync::Arc;

use crate::{Digest, Editable, Json, OnExpiry, PrincipalId, SuspensionId, Timestamp};

/// What is waited for, and so what renders it and who may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A yes or no from a person, before the call goes on.
    Approval,
    /// A person's answer, which is the result.
    Elicitation,
    /// The result of an attached client.
    ClientExec,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Approval, Self::Elicitation, Self::ClientExec];

    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Elicitation => "elicitation",
            Self::ClientExec => "client_exec",
        }
    }
}

/// A wait: what is asked, what may be answered, until when, and to what the answer is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// Minted by the host for this call and this phase.
    pub id: SuspensionId,
    /// What is waited for.
    pub kind: Kind,
    /// What people are asked. The words are the plugin's, over the call's arguments; whoever shows them escapes them.
    pub prompt: Option<String>,
    /// The answers to choose from, where a question limits them.
    pub responses: Option<Arc<[String]>>,
    /// JSON Schema of the data that comes with the answer.
    pub response: Option<Json>,
    /// Which arguments the answer may change.
    pub editable: Editable,
    /// When the wait began.
    pub created_at: Timestamp,
    /// When it ends by itself. Every wait ends.
    pub expires_at: Timestamp,
    /// Until when a client must have attached; `None` once one has.
    pub grace_until: Option<Timestamp>,
    /// What becomes of it when it ends by itself.
    pub on_expiry: OnExpiry,
    /// Digest over the arguments, the component and the declaration: what an answer is an answer to.
    pub digest: Digest,
    /// Set where a host was killed while this attempt ran, and the question is whether to run it again.
    pub in_doubt: Option<u32>,
}

impl Suspension {
    /// The decisions that are allowed, as texts.
    #[must_use]
    pub fn allowed(&self) -> Vec<&str> {
        match (self.kind, &self.responses) {
            (Kind::Approval, _) => vec!["approve", "deny"],
            (Kind::ClientExec, _) => vec!["result", "error"],
            (Kind::Elicitation, None) => vec!["answer"],
            (Kind::Elicitation, Some(responses)) => responses.iter().map(String::as_str).collect(),
        }
    }

    /// The decision that a text means here, if it is allowed.
    #[must_use]
    pub fn parse(&self, decision: &str) -> Option<Decision> {
        if !self.allowed().contains(&decision) {
            return None;
        }
        Some(match (self.kind, decision) {
            (Kind::Approval, "approve") => Decision::Approve,
            (Kind::Approval, _) => Decision::Deny,
            (Kind::ClientExec, "result") => Decision::Result,
            (Kind::ClientExec, _) => Decision::Error,
            (Kind::Elicitation, choice) => Decision::Answer(choice.into()),
        })
    }
}

/// What somebody decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call may go on.
    Approve,
    /// It may not.
    Deny,
    /// This answer to a question, one of its responses.
    Answer(Arc<str>),
    /// The client carried it out.
    Result,
    /// The client could not.
    Error,
}

impl Decision {
    /// The text that means it.
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

/// The answer to a suspension, as it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What was decided.
    pub decision: Decision,
    /// What came with it.
    pub data: Option<Json>,
    /// The arguments that the approver put in the place of the submitted ones.
    pub arguments: Option<Json>,
    /// Why, in the words of whoever decided.
    pub comment: Option<String>,
}

/// How a suspension ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedAs {
    /// Somebody answered.
    Resolved(Resolution),
    /// Nobody did.
    Expired,
    /// The call ended for another reason, and the question with it.
    Withdrawn,
}

/// That a suspension ended, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// How.
    pub how: ClosedAs,
    /// By whom; `system` for an expiry.
    pub by: PrincipalId,
    /// When.
    pub at: Timestamp,
}

impl Closed {
    /// The state that a late answer is told of: a decision, `expired` or `withdrawn`.
    #[must_use]
    pub fn state(&self) -> &str {
        match &self.how {
            ClosedAs::Resolved(resolution) => resolution.decision.as_str(),
            ClosedAs::Expired => "expired",
            ClosedAs::Withdrawn => "withdrawn",
        }
    }
}
