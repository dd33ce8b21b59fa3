//! Turns and calls, as they are submitted and as they are read.

use domain::TurnState as State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Approval, Executor, Outcome, Receipt, Rejection, Status, Suspension, TurnState, Verbatim, present, rfc3339,
};

/// A turn to submit, in toolgate's own form.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The calls, in the order in which the model asked for them.
    pub calls: Vec<SubmitCall>,
    /// A JSON object for tools and people.
    pub context: Option<Verbatim>,
    /// What a denial does to the other calls; `continue_siblings` if absent.
    pub rejection: Option<Rejection>,
    /// Not to be written down as long as nothing of it waits.
    #[serde(default)]
    pub ephemeral: bool,
}

/// One call to submit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitCall {
    /// Unique in the conversation. The same id with the same content is the same call, however often it is submitted.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object. Anything else is that call's failure, not the turn's.
    pub arguments: Verbatim,
    /// The result of a provider tool, from the provider's stream.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Verbatim>,
    /// Why a provider tool failed, from the provider's stream.
    pub error: Option<String>,
}

/// A turn.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    /// Its id.
    pub turn: String,
    /// Where it belongs.
    pub conversation: String,
    /// Who submitted it.
    pub caller: String,
    /// Whether it goes on, or how it ended.
    pub state: TurnState,
    /// Whether a guest of it runs at this moment.
    pub running: bool,
    /// What a denial does to the other calls.
    pub rejection: Rejection,
    /// What the caller passed along.
    pub context: Option<Verbatim>,
    /// When it was submitted.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Its calls, in the order in which the model asked for them.
    pub calls: Vec<Call>,
    /// What of it waits for the outside.
    pub pending: Vec<Suspension>,
    /// What the model is to see, in the order of the calls; there once the turn has ended.
    pub results: Option<Vec<CallResult>>,
    /// Whether this submission had been made before, and the turn is the recorded one.
    pub replayed: bool,
    /// Whether it was carried out without being written down, so that it cannot be read again.
    pub ephemeral: bool,
}

/// One call of a turn.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The caller's id.
    pub id: String,
    /// The tool as it was asked for.
    pub tool: String,
    /// The arguments as they run: an approver may have edited them.
    pub arguments: Verbatim,
    /// The arguments as submitted, where they were edited.
    pub submitted: Option<Verbatim>,
    /// Who produces the result; absent where the call ended before that was known.
    pub executor: Option<Executor>,
    /// What gates it, the operator's policy applied.
    pub approval: Option<Approval>,
    /// The plugin that offers the tool.
    pub plugin: Option<String>,
    /// The digest of the component that the call is pinned to.
    pub component: Option<String>,
    /// How far it has come.
    pub status: Status,
    /// How it ended; `null` until then.
    #[serialize_always]
    pub outcome: Option<Outcome>,
    /// With a result: false where it was made by somebody whom the host does not control. False as well with the failure
    /// that a client or a provider reported, whose words are in `content`.
    pub trusted: Option<bool>,
    /// What the model is to see; `null` until the call ended.
    #[serialize_always]
    pub content: Option<Content>,
    /// How often it was dispatched.
    pub attempt: u32,
    /// What its guest spent; absent where none ran to its end.
    pub receipt: Option<Receipt>,
    /// Who approved it.
    pub approver: Option<String>,
    /// The suspension that it waits for now.
    pub suspension: Option<String>,
}

/// What the model is to see of one call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// `{"ok":true,"result":…}` or `{"ok":false,"error":{"code":…,"message":…}}`.
    pub content: Content,
}

/// What a model reads: a result, or an error that it can act on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Content {
    /// Whether there is a result.
    pub ok: bool,
    /// The result, where `ok` is true.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Verbatim>,
    /// Why there is none, where `ok` is false.
    pub error: Option<ErrorContent>,
}

/// Why there is no result.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorContent {
    /// An outcome, or the code of a failure.
    pub code: String,
    /// A sentence for the model.
    pub message: String,
}

impl From<&domain::Outcome> for Content {
    fn from(outcome: &domain::Outcome) -> Self {
        let error = outcome.error().map(|(code, message)| ErrorContent { code: code.to_owned(), message });
        match outcome {
            domain::Outcome::Ok { value, .. } => Self { ok: true, result: Some(value.into()), error },
            _ => Self { ok: false, result: None, error },
        }
    }
}

impl From<&domain::Call> for Call {
    fn from(call: &domain::Call) -> Self {
        let pinned = call.pinned.as_deref();
        let outcome = call.outcome();
        Self {
            id: call.id.to_string(),
            tool: call.tool.to_string(),
            arguments: (&call.arguments).into(),
            submitted: (call.submitted != call.arguments).then(|| (&call.submitted).into()),
            executor: pinned.map(|pinned| (&pinned.executor).into()),
            approval: pinned.map(|pinned| (&pinned.approval).into()),
            plugin: pinned.map(|pinned| pinned.plugin.to_string()),
            component: pinned.map(|pinned| pinned.component.to_string()),
            status: (&call.status()).into(),
            outcome: outcome.map(Outcome::from),
            trusted: trusted(call, outcome),
            content: outcome.map(Content::from),
            attempt: call.attempts,
            receipt: call.receipt.as_ref().map(Receipt::from),
            approver: call.approver.as_ref().map(ToString::to_string),
            suspension: call.open().map(|open| open.id.to_string()),
        }
    }
}

/// Whether the host vouches for who made a result or reported a failure; `None` where nobody outside had a word in it.
pub(super) fn trusted(call: &domain::Call, outcome: Option<&domain::Outcome>) -> Option<bool> {
    let outside = || {
        call.pinned
            .as_ref()
            .is_some_and(|pinned| matches!(pinned.executor, domain::Executor::Client | domain::Executor::Provider))
    };
    match outcome {
        Some(domain::Outcome::Ok { trusted, .. }) => Some(*trusted),
        Some(domain::Outcome::Failed(_)) if outside() => Some(false),
        _ => None,
    }
}

impl From<&domain::Turn> for Turn {
    fn from(turn: &domain::Turn) -> Self {
        let ended_at = match turn.state {
            State::Open => None,
            State::Ended(_, at) => Some(rfc3339(at)),
        };
        Self {
            turn: turn.id.to_string(),
            conversation: turn.conversation.to_string(),
            caller: turn.caller.to_string(),
            state: (&turn.state).into(),
            running: turn.is_running(),
            rejection: (&turn.rejection).into(),
            context: turn.context.as_ref().map(Verbatim::from),
            started_at: rfc3339(turn.started_at),
            ended_at,
            calls: turn.calls.iter().map(Call::from).collect(),
            pending: turn.pending().map(|(_, call, open)| Suspension::new(turn, call, open, None)).collect(),
            results: turn.is_ended().then(|| turn.calls.iter().filter_map(CallResult::of).collect()),
            replayed: false,
            ephemeral: false,
        }
    }
}

impl CallResult {
    /// What the model is to see of a call, once it ended.
    fn of(call: &domain::Call) -> Option<Self> {
        call.outcome().map(|outcome| Self { id: call.id.to_string(), content: outcome.into() })
    }
}
