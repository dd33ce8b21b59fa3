//! Requests to the host, and its answers.

use std::sync::Arc;

use domain::{
    Call, CallId, CallIndex, ConversationId, Digest, Json, Outcome, PrincipalId, Suspension, SuspensionId, Turn,
    TurnId,
    event::Rejection,
    nested::Parent,
    outcome::{FailureCode, OutcomeKind},
    standing::StandingTerms,
    suspension::{Closed, Decision},
};

use crate::error::{Error, RequestPart};
use crate::quota::QuotaBound;

#[derive(Debug, Clone)]
pub struct TurnRequest {
    pub conversation: ConversationId,
    /// The calls, in the order in which the model asked for them.
    pub calls: Vec<CallRequest>,
    /// A JSON object for tools and people.
    pub context: Option<Json>,
    /// The effect of a denial on the other calls.
    pub rejection: Rejection,
    /// Whether the turn is ephemeral. A kill loses such a turn, and the caller submits it again.
    pub ephemeral: bool,
}

#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The caller's id, unique in the conversation.
    pub id: CallId,
    pub tool: Arc<str>,
    /// The arguments: a JSON text.
    pub arguments: Json,
    /// The result in the provider's stream, for a provider tool.
    pub result: Option<ProviderResult>,
    /// The other members of the provider's call.
    pub origin: Option<Origin>,
}

impl CallRequest {
    /// Its outcome, if it never runs.
    pub(crate) fn ended(&self) -> Option<&Outcome> {
        self.origin.as_ref()?.ended.as_ref()
    }

    /// The size of the submitted result in bytes.
    #[must_use]
    pub fn result_size(&self) -> usize {
        match &self.result {
            None => 0,
            Some(ProviderResult::Value(value)) => value.size(),
            Some(ProviderResult::Error(message)) => message.len(),
        }
    }
}

/// The members of a provider's call, without its tool and arguments.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The members of the provider's call that its result repeats: a JSON object.
    pub members: Json,
    /// The outcome of a call to a tool of another host. Such a call is recorded and never runs.
    pub ended: Option<Outcome>,
}

/// The provider's report on a call that it carried out itself.
#[derive(Debug, Clone)]
pub enum ProviderResult {
    Value(Json),
    /// The reason for the failure.
    Error(String),
}

/// The id of a nested turn that the host submits, and the call that waits for it.
pub(crate) struct NewNested {
    pub(crate) turn: TurnId,
    pub(crate) parent: Box<Parent>,
}

/// The answer to a submission.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The turn as it is now.
    pub turn: Turn,
    /// Whether this is the recorded turn of an earlier submission.
    pub replayed: bool,
    /// Whether it was ephemeral to its end.
    pub ephemeral: bool,
}

/// An answer to a suspension.
#[derive(Debug, Clone)]
pub struct Answer {
    pub suspension: SuspensionId,
    pub decision: Decision,
    /// The data of the answer.
    pub data: Option<Json>,
    /// Arguments that replace the submitted ones.
    pub arguments: Option<Json>,
    pub comment: Option<String>,
    /// The digest of the call that was shown.
    pub expect_digest: Option<Digest>,
    /// The standing approval to give with an approval.
    pub standing: Option<StandingTerms>,
}

/// The state to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Every call has its outcome.
    Ended,
    /// No call runs: the turn has settled, or its other calls wait.
    Quiet,
}

/// A suspension with everything that an answer needs.
#[derive(Debug, Clone)]
pub struct SuspensionView {
    pub conversation: ConversationId,
    pub turn: TurnId,
    /// The principal who submitted the turn.
    pub caller: PrincipalId,
    /// The context of the turn.
    pub context: Option<Json>,
    /// The call that submitted the turn, if it is nested.
    pub parent: Option<Box<Parent>>,
    /// The position of its call.
    pub index: CallIndex,
    pub call: Call,
    pub suspension: Suspension,
    /// How it was closed, if it was.
    pub closed: Option<Closed>,
    /// The different edits of its arguments: those of the votes, and the approved one.
    pub edits: Vec<Edit>,
}

impl SuspensionView {
    /// The defaults for what edited arguments leave out.
    #[must_use]
    pub fn defaults_of(&self, edited: &Json) -> &EditDefaults {
        let edit = self.edits.iter().find(|edit| edit.arguments == *edited);
        edit.map_or(&EditDefaults::None, |edit| &edit.defaults)
    }
}

/// Arguments that an approver edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub arguments: Json,
    pub defaults: EditDefaults,
}

/// The schema's defaults for what edited arguments leave out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditDefaults {
    None,
    /// A JSON object with a JSON Pointer as each name.
    Some(Json),
    /// The component of the call was removed, and its schema with it.
    Unknown,
}

impl EditDefaults {
    #[must_use]
    pub fn known(&self) -> Option<&Json> {
        match self {
            Self::Some(defaults) => Some(defaults),
            Self::None | Self::Unknown => None,
        }
    }
}

/// The usage of all principals now, and how calls ended since the host started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Durable turns that have not ended.
    pub open_turns: usize,
    /// The size of their submissions, and of their results so far, in bytes.
    pub open_bytes: usize,
    pub suspensions: usize,
    /// Calls whose guests run, or wait for a permit of their plugin.
    pub running_calls: usize,
    /// Calls that wait for other calls of their caller to end.
    pub waiting_calls: usize,
    /// Refused submissions, by the limit of the quota.
    pub refused: Vec<(QuotaBound, u64)>,
    /// Calls that ended, by outcome, and failures by code.
    pub settled: Vec<(OutcomeKind, Option<FailureCode>, u64)>,
}

/// Limits on requests. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The arguments of one call, or a submitted result.
    pub arguments: usize,
    /// The name of a requested tool.
    pub name: usize,
    /// The context of a turn.
    pub context: usize,
    /// The data of an answer.
    pub data: usize,
    /// The comment of an answer.
    pub comment: usize,
    /// The free space of the disk. The host refuses new turns while less is free.
    pub disk_reserve: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            arguments: 1 << 20,
            name: 256,
            context: 64 << 10,
            data: 1 << 20,
            comment: 8 << 10,
            disk_reserve: 256 << 20,
        }
    }
}

impl Bounds {
    pub(crate) fn check(part: RequestPart, size: usize, limit: usize) -> Result<(), Error> {
        if size > limit { Err(Error::TooLarge { part, size, limit }) } else { Ok(()) }
    }
}
