//! What is asked of the host, and what it answers.

use std::sync::Arc;

use domain::{
    Call, CallId, CallIndex, Closed, ConversationId, Decision, Digest, Json, Outcome, PrincipalId, Rejection,
    StandingTerms, Suspension, SuspensionId, Turn, TurnId,
};

/// A turn to submit.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// Where it belongs.
    pub conversation: ConversationId,
    /// The calls, in the order in which the model asked for them.
    pub calls: Vec<CallRequest>,
    /// A JSON object for tools and people.
    pub context: Option<Json>,
    /// What a denial does to siblings.
    pub rejection: Rejection,
    /// Not to be written down as long as nothing of it waits. A kill loses it; the caller submits it again.
    pub ephemeral: bool,
}

/// One call to submit.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The caller's id, unique in the conversation.
    pub id: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments: a JSON text.
    pub arguments: Json,
    /// What the provider's stream held, for a provider tool.
    pub result: Option<ProviderResult>,
    /// Where the call came from, where the provider's answer says more than a tool and arguments.
    pub origin: Option<Origin>,
}

/// What a provider's answer says of a call beside its tool and arguments.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The members of the provider's call that its result repeats: a JSON object.
    pub members: Json,
    /// How the call ended, where it is not for a tool of this host. Such a call is recorded and never runs.
    pub ended: Option<Outcome>,
}

/// What a provider said of a call that it carried out itself.
#[derive(Debug, Clone)]
pub enum ProviderResult {
    /// The result.
    Value(Json),
    /// That it failed, and why.
    Error(String),
}

/// What became of a submission.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The turn as it is now.
    pub turn: Turn,
    /// Whether it had been submitted before, and this is the recorded one.
    pub replayed: bool,
    /// Whether it was carried out without being written down.
    pub ephemeral: bool,
}

/// An answer to a suspension.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which.
    pub suspension: SuspensionId,
    pub decision: Decision,
    /// What comes with it.
    pub data: Option<Json>,
    /// Arguments to take the place of the submitted ones.
    pub arguments: Option<Json>,
    /// Why.
    pub comment: Option<String>,
    /// The digest of what was shown.
    pub expect_digest: Option<Digest>,
    /// What shall be allowed beforehand together with an approval.
    pub standing: Option<StandingTerms>,
}

/// Until when to wait for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until every call has its outcome.
    Settled,
    /// Until nothing of it runs: it has settled, or all that is left waits for the outside.
    Quiet,
}

/// A suspension with all that is needed to answer it.
#[derive(Debug, Clone)]
pub struct PendingItem {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its turn.
    pub turn: TurnId,
    /// Who submitted the turn.
    pub caller: PrincipalId,
    /// What the caller passed along.
    pub context: Option<Json>,
    /// The position of its call.
    pub index: CallIndex,
    /// Its call.
    pub call: Call,
    /// The suspension.
    pub suspension: Suspension,
    /// How it was closed, if it was.
    pub closed: Option<Closed>,
}

/// What all principals have at the host at this moment, and what became of calls since it was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Durable turns that have not ended.
    pub open_turns: usize,
    /// What they were submitted with, in bytes.
    pub open_bytes: usize,
    /// What waits for the outside: approvals, questions, clients' work.
    pub suspensions: usize,
    /// Calls whose guests run, or wait for a place of their plugin.
    pub running_calls: usize,
    /// Calls that wait for other calls of their caller to end.
    pub waiting_calls: usize,
    /// Submissions that were refused, by the bound of the quota.
    pub refused: Vec<(&'static str, u64)>,
    /// Calls that ended, by outcome, and failures by code (empty for any other outcome).
    pub settled: Vec<(&'static str, &'static str, u64)>,
}

/// Bounds on what callers and answerers may send. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The arguments of one call, or a submitted result.
    pub arguments: usize,
    /// The name under which a tool is asked for.
    pub name: usize,
    /// The context of a turn.
    pub context: usize,
    /// The data of an answer.
    pub data: usize,
    /// The comment of an answer.
    pub comment: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { arguments: 1 << 20, name: 256, context: 64 << 10, data: 1 << 20, comment: 8 << 10 }
    }
}

impl Bounds {
    pub(crate) fn check(what: &'static str, size: usize, limit: usize) -> Result<(), crate::Error> {
        if size > limit { Err(crate::Error::TooLarge { what, size, limit }) } else { Ok(()) }
    }
}
