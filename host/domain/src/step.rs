//! The steps of a durable call: its waits in the middle of its code.
//!
//! A run of a durable call is a function of the call and of the steps that have ended. So each run repeats the code before
//! the last step, and the host answers it from the steps.

use std::sync::Arc;

use crate::{
    Digest, Json, Outcome, SignalName, Span, Suspension, Timestamp,
    approvers::{Need, names},
    doubt::{DecidedRequest, DoubtfulRequests},
    journal::Entry,
    nested::NestedCall,
    outcome::{Failure, FailureCode},
    suspension::{Closed, ClosedAs, Decision, SuspensionBody},
    tool::{Editable, Risk},
};

/// The maximum number of steps of a call. Each run repeats all of them.
pub const MAX_STEPS: usize = 1_000;

/// The part of a durable call that a run repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// The start of the first run.
    pub started_at: Timestamp,
    /// The steps that have ended, oldest first.
    pub steps: Arc<[Step]>,
    /// The results of host functions, oldest first.
    pub journal: Arc<[Entry]>,
    /// The decisions about requests that were in doubt.
    pub decided: Arc<[DecidedRequest]>,
}

impl Durable {
    /// Whether an earlier run came to a step, or called a host function that is recorded.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.steps.is_empty() || !self.journal.is_empty()
    }

    /// The bytes of what a run repeats.
    #[must_use]
    pub fn size(&self) -> usize {
        let steps = self.steps.iter().map(|step| step.end.size());
        self.journal.iter().map(Entry::size).chain(steps).sum()
    }
}

/// How a run of a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The call ended. It is in doubt after a run that did something else than the one before it; the call's log says what.
    Outcome(Outcome),
    /// The call waits for this step. A later run continues it.
    Waits(StepRequest),
    /// The run failed while it repeated an earlier one. This says nothing about the call, which had come further.
    Repeating(Failure),
    /// No guest ran: an earlier run began these requests, and nobody knows whether they were carried out.
    InDoubt(DoubtfulRequests),
}

impl RunEnd {
    /// The end of a run that the host could not carry out, with this outcome for a call that had not begun. It says nothing
    /// about a call that had come further.
    #[must_use]
    pub fn unrun(has_begun: bool, outcome: Outcome) -> Self {
        match outcome {
            outcome if !has_begun => Self::Outcome(outcome),
            Outcome::Failed(failure) => Self::Repeating(failure),
            Outcome::Invalidated => Self::Repeating(Failure::new(
                FailureCode::HostFault,
                "the component of the call is not stored any more",
            )),
            _ => Self::Outcome(Outcome::InDoubt),
        }
    }

    /// The outcome of a call that nothing continues: one that waits fails, and one that came further before is in doubt.
    #[must_use]
    pub fn last(self) -> Outcome {
        match self {
            Self::Outcome(outcome) => outcome,
            Self::Waits(_) => {
                let message = "the call waits in the middle of its code, and nothing here can continue it";
                Outcome::Failed(Failure::new(FailureCode::HostFault, message))
            }
            Self::Repeating(_) | Self::InDoubt(_) => Outcome::InDoubt,
        }
    }
}

impl From<Outcome> for RunEnd {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// A step that a guest asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRequest {
    /// Digest of the function and its arguments. A later run must ask for the same.
    pub digest: Digest,
    pub wait: StepWait,
}

/// The event that ends the wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepWait {
    /// A person answers a question.
    Answer(Question),
    /// A person decides about a value.
    Approval { question: Question, subject: Json, editable: Editable },
    /// An external system sends a result that fits the question's schema.
    External { question: Question, signal: Option<SignalName>, metadata: Option<Json> },
    /// These calls of other tools end.
    Calls(Arc<[NestedCall]>),
    /// This time comes.
    Time(Timestamp),
    /// This time comes. A server asked to send its request again after it.
    RateLimit(Timestamp),
}

crate::names! {
    /// A step that the policy decides about, by the function that asks for it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum StepKind {
        /// The guest asks a person.
        Ask = "ask",
        /// The guest needs a decision about a value.
        Approve = "approve",
        /// The guest waits for an external system.
        AwaitExternal = "await-external",
    }
}

impl StepWait {
    /// The kind of the step, if the policy decides about it. It decides about each call of a nested turn instead,
    /// and not about a wait for a time.
    #[must_use]
    pub const fn kind(&self) -> Option<StepKind> {
        match self {
            Self::Answer(_) => Some(StepKind::Ask),
            Self::Approval { .. } => Some(StepKind::Approve),
            Self::External { .. } => Some(StepKind::AwaitExternal),
            Self::Calls(_) | Self::Time(_) | Self::RateLimit(_) => None,
        }
    }

    /// The bytes that a guest wrote for it.
    pub(crate) fn size(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
        let of = |Question { prompt, responses, response, needs, .. }: &Question| {
            let responses = responses.iter().flat_map(|texts| texts.iter());
            prompt.len() + responses.map(String::len).sum::<usize>() + json(response) + names(needs)
        };
        match self {
            Self::Answer(question) => of(question),
            Self::Approval { question, subject, editable } => of(question) + subject.size() + editable.size(),
            Self::External { question, signal, metadata } => {
                of(question) + json(metadata) + signal.as_ref().map_or(0, |signal| signal.as_str().len())
            }
            Self::Calls(calls) => calls.iter().map(NestedCall::size).sum(),
            Self::Time(_) | Self::RateLimit(_) => 0,
        }
    }
}

/// A question of a guest to a person, or what it waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// For the person. The guest wrote it, so it is untrusted.
    pub prompt: Arc<str>,
    /// The answers to choose from. `None`: the data is the answer.
    pub responses: Option<Arc<[String]>>,
    /// JSON Schema of the data in an answer, or of an external result.
    pub response: Option<Json>,
    /// The maximum time of the wait. `None`: the tool's.
    pub expires: Option<Span>,
    pub risk: Option<Risk>,
    /// The tool's name for people.
    pub title: Option<String>,
    /// The members of the turn's context that people see. `None`: all of them.
    pub context_keys: Option<Arc<[String]>>,
    /// Who may answer. Empty: any one approver.
    pub needs: Arc<[Need]>,
}

/// A step that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The digest of the request.
    pub digest: Digest,
    pub ended_at: Timestamp,
    pub end: StepEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnd {
    /// The answer, in the form of a result of a human tool.
    Answered(Json),
    /// The subject as it was approved.
    Approved(Json),
    /// The result of an external system.
    Received(Json),
    /// The results of calls of other tools: a JSON array.
    Returned(Json),
    /// Somebody or the policy denied it, with this comment.
    Denied(Option<String>),
    /// Nobody decided in time.
    Expired,
    /// The time has come.
    Elapsed,
}

impl StepEnd {
    /// The end of the step that waited for this suspension. `None`: the call ended with it.
    pub(crate) fn of(suspension: &Suspension, closed: &Closed) -> Option<Self> {
        let resolution = match &closed.how {
            ClosedAs::Resolved(resolution) => resolution,
            ClosedAs::Expired if suspension.kind().is_ended_by_time() => return Some(Self::Elapsed),
            ClosedAs::Expired => return Some(Self::Expired),
            ClosedAs::Withdrawn => return None,
        };
        match (&resolution.decision, &suspension.body) {
            (Decision::Answer(choice), SuspensionBody::Elicitation(question)) => {
                Some(Self::Answered(question.answered(choice, resolution.data.clone())))
            }
            (Decision::Approve, _) => {
                let subject = suspension.step.as_ref().and_then(|step| step.subject.as_ref());
                resolution.arguments.as_ref().or(subject).cloned().map(Self::Approved)
            }
            (Decision::Deny, _) => Some(Self::Denied(resolution.comment.clone())),
            (Decision::Result, SuspensionBody::External(_)) => {
                Some(Self::Received(resolution.data.clone().unwrap_or_else(|| Json::unchecked("null"))))
            }
            (Decision::Result, SuspensionBody::Nested(_)) => resolution.data.clone().map(Self::Returned),
            (Decision::Answer(_) | Decision::Result | Decision::Error, _) => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Answered(json) | Self::Approved(json) | Self::Received(json) | Self::Returned(json) => json.size(),
            Self::Denied(comment) => comment.as_ref().map_or(0, String::len),
            Self::Expired | Self::Elapsed => 0,
        }
    }
}
