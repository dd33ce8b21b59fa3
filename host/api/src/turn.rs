//! Turns and calls: the submitted form and the form that is read.

use domain::turn::TurnState as State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Approval, Delivery, Executor, FailureCode, Outcome, Receipt, Rejection, RunLog, Status, Suspension, TurnState,
    Verbatim, present, rfc3339, several,
};

/// A turn to submit, in toolgate's own format.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The calls, in the order in which the model asked for them.
    pub calls: Vec<SubmitCall>,
    /// A JSON object for tools and people.
    pub context: Option<Verbatim>,
    /// The effect of a denial on the other calls. `continue_siblings` if absent.
    pub rejection: Option<Rejection>,
    /// Whether the turn is stored only when something in it waits.
    #[serde(default)]
    pub ephemeral: bool,
}

/// One call to submit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitCall {
    /// Unique in the conversation. A call that is submitted again with the same id and content is the same call.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object. If they are not an object, the call fails and the turn continues.
    pub arguments: Verbatim,
    /// The result of a provider tool, from the provider's stream.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Verbatim>,
    /// Why a provider tool failed, from the provider's stream.
    pub error: Option<String>,
}

/// A turn with its calls.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    /// The id of the turn.
    pub turn: String,
    /// The conversation that it belongs to.
    pub conversation: String,
    /// The principal that submitted it.
    pub caller: String,
    /// Whether it is open, or how it ended.
    pub state: TurnState,
    /// Whether a guest runs for it now.
    pub running: bool,
    /// The effect of a denial on the other calls.
    pub rejection: Rejection,
    /// The context that the caller submitted.
    pub context: Option<Verbatim>,
    /// The call that submitted it. Absent if its caller did.
    pub parent: Option<Parent>,
    /// When it was submitted.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Its calls, in the order in which the model asked for them. When the turn has ended, the `content` of each is the
    /// result for the model.
    pub calls: Vec<Call>,
    /// The open suspensions of its calls.
    pub pending: Vec<Suspension>,
    /// Whether this turn had been submitted before. Then this is the recorded turn.
    pub replayed: bool,
    /// Whether the turn was not stored. Such a turn cannot be read again.
    pub ephemeral: bool,
    /// The deliveries of `turn.settled` to webhooks. Present only where an approver or an admin reads this one turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
}

/// A page of turns.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TurnPage {
    /// The turns, newest first.
    pub turns: Vec<TurnSummary>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next
    /// one.
    pub next: Option<u64>,
}

/// A turn in a list, without arguments, results and context.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TurnSummary {
    /// The id of the turn.
    pub turn: String,
    /// The principal that submitted it.
    pub caller: String,
    /// Whether it is open, or how it ended.
    pub state: TurnState,
    /// Whether a guest runs for it now.
    pub running: bool,
    /// When it was submitted.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Its calls, in the order in which the model asked for them.
    pub calls: Vec<CallSummary>,
}

/// A call in a list of turns.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CallSummary {
    /// The caller's id.
    pub id: String,
    /// The requested tool.
    pub tool: String,
    /// How far it is.
    pub status: Status,
    /// How it ended. `null` until then.
    #[serialize_always]
    pub outcome: Option<Outcome>,
    /// The suspension that it waits for now.
    pub suspension: Option<String>,
}

/// One call of a turn.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The caller's id.
    pub id: String,
    /// The requested tool.
    pub tool: String,
    /// The current arguments. An approver may have edited them.
    pub arguments: Verbatim,
    /// The submitted arguments, if an approver edited them.
    pub submitted: Option<Verbatim>,
    /// Who produces the result. Absent if the call ended before that was known.
    pub executor: Option<Executor>,
    /// Whether a person must approve it first, according to the declaration and the operator's policy.
    pub approval: Option<Approval>,
    /// The plugin that offers the tool.
    pub plugin: Option<String>,
    /// The digest of the component that the call is pinned to.
    pub component: Option<String>,
    /// How far it is.
    pub status: Status,
    /// How it ended. `null` until then.
    #[serialize_always]
    pub outcome: Option<Outcome>,
    /// For a call that was cancelled, expired or had no client: whether it had started. If so, it may have taken effect.
    pub started: Option<bool>,
    /// Whether the host controls the author of the result. False for a result of a client or a provider. Also false for a call
    /// that an external system sent a result to, because its own result may repeat that one, and for a failure that a client
    /// or a provider reported, because `content` quotes it.
    pub trusted: Option<bool>,
    /// The result for the model: `{"ok":true,"result":…}` or `{"ok":false,"error":{"code":…,"message":…}}`. `null` until
    /// the call has ended.
    #[serialize_always]
    pub content: Option<Content>,
    /// The number of attempts.
    pub attempt: u32,
    /// The usage of its guest. Absent if no guest ran to its end.
    pub receipt: Option<Receipt>,
    /// The principal that approved it. If several did, the last one.
    pub approver: Option<String>,
    /// The principals whose approvals count, in their order. Present if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// The suspension that it waits for now.
    pub suspension: Option<String>,
    /// The nested turns that a durable call has submitted, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
    /// The log of each of its runs, if the request asks for it.
    pub log: Option<Vec<RunLog>>,
}

/// The call that submitted a nested turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parent {
    /// The conversation of its turn.
    pub conversation: String,
    /// Its turn.
    pub turn: String,
    /// The call, by the caller's id.
    pub call: String,
    /// The plugin of its tool. It chose the tools and the arguments of the nested turn.
    pub plugin: String,
    /// Its tool.
    pub tool: String,
    /// How deep the turn is nested: 1 if a caller submitted the turn of this call.
    pub depth: u32,
}

impl From<&domain::nested::Parent> for Parent {
    fn from(parent: &domain::nested::Parent) -> Self {
        Self {
            conversation: parent.conversation.to_string(),
            turn: parent.turn.to_string(),
            call: parent.call.to_string(),
            plugin: parent.plugin.to_string(),
            tool: parent.tool.to_string(),
            depth: parent.depth,
        }
    }
}

/// A nested turn of a durable call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nested {
    /// Its conversation: `~`, and the conversation that the caller chose.
    pub conversation: String,
    /// The turn. It may not exist yet, because it is submitted after the call waits for it.
    pub turn: String,
    /// The tools that it calls, in their order.
    pub tools: Vec<String>,
    /// Whether the call waits for it now.
    pub open: bool,
}

/// Content for the model: a result, or an error that it can act on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Content {
    /// Whether there is a result.
    pub ok: bool,
    /// The result, where `ok` is true.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Verbatim>,
    /// The error, where `ok` is false.
    pub error: Option<ErrorContent>,
}

/// Why there is no result.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorContent {
    /// An outcome, or the code of a failure.
    pub code: ErrorCode,
    /// A sentence for the model.
    pub message: String,
}

/// An outcome, or the code of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected an outcome or the code of a failure")]
pub enum ErrorCode {
    /// The code of a failure.
    Failure(FailureCode),
    /// An outcome other than `ok` and `failed`.
    Outcome(Outcome),
}

impl From<&domain::Outcome> for ErrorCode {
    fn from(outcome: &domain::Outcome) -> Self {
        match outcome {
            domain::Outcome::Failed(failure) => Self::Failure(FailureCode(failure.code)),
            other => Self::Outcome(Outcome(other.kind())),
        }
    }
}

impl Content {
    /// The result of a call that ended with this outcome.
    pub(super) fn new(call: &domain::Call, outcome: &domain::Outcome) -> Self {
        let error =
            outcome.error(call.has_started()).map(|(_, message)| ErrorContent { code: outcome.into(), message });
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
            outcome: outcome.map(|outcome| Outcome(outcome.kind())),
            trusted: trusted(call, outcome),
            started: outcome.and_then(|outcome| started(call, outcome)),
            content: outcome.map(|outcome| Content::new(call, outcome)),
            attempt: call.attempts,
            receipt: call.receipt.as_ref().map(Receipt::from),
            approver: call.approver.as_ref().map(ToString::to_string),
            approvers: several(call.approvers().into_iter()),
            suspension: call.open().map(|open| open.id.to_string()),
            nested: Vec::new(),
            log: None,
        }
    }
}

impl Call {
    fn of(call: &domain::Call, turn: &domain::Turn) -> Self {
        let nested = call
            .suspensions
            .iter()
            .filter_map(|(suspension, closed)| Some(Nested::of(suspension.nested()?, turn, closed.is_none())));
        Self { nested: nested.collect(), ..call.into() }
    }
}

impl Nested {
    /// A nested turn of a call of this turn.
    pub(super) fn of(nested: &domain::nested::NestedTurn, turn: &domain::Turn, open: bool) -> Self {
        Self {
            conversation: turn.conversation.of_nested().to_string(),
            turn: nested.turn.to_string(),
            tools: nested.calls.iter().map(|call| call.tool.to_string()).collect(),
            open,
        }
    }
}

/// Whether a call that was ended before it had a result had started. `None` for other outcomes.
pub(super) fn started(call: &domain::Call, outcome: &domain::Outcome) -> Option<bool> {
    outcome.is_interrupted().then(|| call.has_started())
}

/// Whether the host controls the author of a result or failure. `None` if nobody outside the host contributed to it.
pub(super) fn trusted(call: &domain::Call, outcome: Option<&domain::Outcome>) -> Option<bool> {
    match outcome {
        Some(domain::Outcome::Ok { trusted, .. }) => Some(*trusted),
        Some(domain::Outcome::Failed(_)) if call.is_outside() => Some(false),
        _ => None,
    }
}

/// False for the data of a client, an external system or a nested turn.
pub(super) fn untrusted(answer: &domain::suspension::Resolution) -> Option<bool> {
    (answer.decision == domain::suspension::Decision::Result).then_some(false)
}

impl From<&domain::Call> for CallSummary {
    fn from(call: &domain::Call) -> Self {
        Self {
            id: call.id.to_string(),
            tool: call.tool.to_string(),
            status: (&call.status()).into(),
            outcome: call.outcome().map(|outcome| Outcome(outcome.kind())),
            suspension: call.open().map(|open| open.id.to_string()),
        }
    }
}

impl From<&domain::Turn> for TurnSummary {
    fn from(turn: &domain::Turn) -> Self {
        Self {
            turn: turn.id.to_string(),
            caller: turn.caller.to_string(),
            state: (&turn.state).into(),
            running: turn.is_running(),
            started_at: rfc3339(turn.started_at),
            ended_at: ended_at(turn),
            calls: turn.calls.iter().map(CallSummary::from).collect(),
        }
    }
}

fn ended_at(turn: &domain::Turn) -> Option<String> {
    match turn.state {
        State::Open => None,
        State::Ended(_, at) => Some(rfc3339(at)),
    }
}

impl Turn {
    /// The turn with the logs of its calls, in the order of the calls.
    #[must_use]
    pub fn with_logs(mut self, logs: &[Vec<dispatch::ports::RunLog>]) -> Self {
        for (call, runs) in self.calls.iter_mut().zip(logs) {
            call.log = Some(runs.iter().map(RunLog::from).collect());
        }
        self
    }
}

impl From<&domain::Turn> for Turn {
    fn from(turn: &domain::Turn) -> Self {
        Self {
            turn: turn.id.to_string(),
            conversation: turn.conversation.to_string(),
            caller: turn.caller.to_string(),
            state: (&turn.state).into(),
            running: turn.is_running(),
            rejection: (&turn.rejection).into(),
            context: turn.context.as_ref().map(Verbatim::from),
            parent: turn.parent.as_deref().map(Parent::from),
            started_at: rfc3339(turn.started_at),
            ended_at: ended_at(turn),
            calls: turn.calls.iter().map(|call| Call::of(call, turn)).collect(),
            pending: turn.pending().map(|(_, call, open)| Suspension::new(turn, call, open, None)).collect(),
            replayed: false,
            ephemeral: false,
            deliveries: Vec::new(),
        }
    }
}
