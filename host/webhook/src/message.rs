//! The body of a message. It tells enough to decide whether to look, and leaves out the arguments by default. Its names
//! are those of the API. Text of plugins and models is escaped for people.

use std::borrow::Cow;

use dispatch::SuspensionView;
use dispatch::ports::{DeliveryRow, Occasion};
use domain::{
    Json, Outcome, SignalName, Suspension, Turn,
    approvers::{Need, Who},
    nested::Parent,
    principal::Channel,
    rfc3339,
    suspension::{Closed, PromptBy, SuspensionState},
    tool::Risk,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// Larger arguments are left out, in bytes.
const MAX_ARGUMENTS: usize = 64 << 10;

#[derive(Serialize)]
struct Message<'a> {
    r#type: String,
    id: String,
    at: String,
    #[serde(flatten)]
    subject: Subject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Subject<'a> {
    Suspension(Box<Reported<'a>>),
    Turn(SettledTurn<'a>),
}

/// A settled turn. It has no arguments and no results: who may see them can read them.
#[derive(Serialize)]
struct SettledTurn<'a> {
    turn: String,
    conversation: &'a str,
    caller: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ReportedParent<'a>>,
    calls: Vec<SettledCall<'a>>,
}

#[derive(Serialize)]
struct SettledCall<'a> {
    call: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
}

#[derive(Serialize)]
struct Reported<'a> {
    suspension: String,
    conversation: &'a str,
    turn: String,
    call: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'a str>,
    /// False for an upstream MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxed: Option<bool>,
    kind: &'static str,
    state: &'a str,
    caller: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ReportedParent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Cow<'a, str>>,
    prompt_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<&'static str>,
    needs: Vec<ReportedNeed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submitted: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defaults: Option<&'a RawValue>,
    created_at: String,
    expires_at: String,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<ReportedEnd<'a>>,
}

#[derive(Serialize)]
struct ReportedNeed {
    who: Vec<String>,
    quorum: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    escalates_to: Vec<String>,
    escalated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    via: Vec<&'static str>,
}

#[derive(Serialize)]
struct ReportedEnd<'a> {
    state: &'a str,
    by: &'a str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
}

/// The call of a plugin that submitted the turn.
#[derive(Serialize)]
struct ReportedParent<'a> {
    conversation: &'a str,
    turn: String,
    call: &'a str,
    plugin: &'a str,
    tool: &'a str,
    depth: u32,
}

impl<'a> ReportedParent<'a> {
    fn of(parent: &'a Parent) -> Self {
        let Parent { conversation, turn, call, plugin, tool, depth } = parent;
        Self {
            conversation: conversation.as_str(),
            turn: turn.to_string(),
            call: call.as_str(),
            plugin: plugin.as_str(),
            tool,
            depth: *depth,
        }
    }
}

/// The body of a delivery about a settled turn.
pub(crate) fn of_turn(row: &DeliveryRow, turn: &Turn) -> Result<String, serde_json::Error> {
    let calls = turn.calls.iter().map(|call| SettledCall {
        call: call.id.as_str(),
        tool: &call.tool,
        outcome: call.outcome().map(Outcome::as_str),
    });
    let message = Message {
        r#type: "turn.settled".to_owned(),
        id: row.message_id(),
        at: rfc3339(row.at),
        subject: Subject::Turn(SettledTurn {
            turn: turn.id.to_string(),
            conversation: turn.conversation.as_str(),
            caller: turn.caller.as_str(),
            state: turn.state.as_str(),
            parent: turn.parent.as_deref().map(ReportedParent::of),
            calls: calls.collect(),
        }),
        url: None,
    };
    serde_json::to_string(&message)
}

/// The body of a delivery about a suspension. `url` is the one-time link.
pub(crate) fn of_suspension(
    row: &DeliveryRow,
    occasion: Occasion,
    item: &SuspensionView,
    with_arguments: bool,
    url: Option<&str>,
) -> Result<String, serde_json::Error> {
    let SuspensionView { call, suspension, closed, .. } = item;
    let (about, asked, external) = (suspension.about(), suspension.asked(), suspension.external());
    let pinned = call.pinned.as_deref();
    let closed: Option<&Closed> = closed.as_ref();
    let state = SuspensionState::of(closed);
    let with_arguments = with_arguments && occasion != Occasion::Closed;
    // The message may be late. Then an approver may have edited what it asks about.
    let asked_about = call.asked_about(suspension.id);
    let edited = closed.and_then(Closed::resolution).and_then(|answer| answer.arguments.as_ref());
    let submitted = call.edited_before(suspension.id).or(edited.map(|_| asked_about));
    let defaults = match edited {
        Some(edited) => item.defaults_of(edited).known(),
        None => asked.and_then(|asked| asked.defaults.as_ref()),
    };
    let message = Message {
        r#type: format!("suspension.{}", occasion.as_str()),
        id: row.message_id(),
        at: rfc3339(row.at),
        subject: Subject::Suspension(Box::new(Reported {
            suspension: suspension.id.to_string(),
            conversation: item.conversation.as_str(),
            turn: item.turn.to_string(),
            call: call.id.as_str(),
            tool: &call.tool,
            plugin: pinned.map(|pinned| pinned.plugin.as_str()),
            sandboxed: pinned.filter(|pinned| pinned.plugin.is_upstream()).map(|_| false),
            kind: suspension.kind().as_str(),
            state: state.as_str(),
            caller: item.caller.as_str(),
            parent: item.parent.as_deref().map(ReportedParent::of),
            prompt: about.and_then(|about| about.prompt.as_deref()).map(escape::lines),
            prompt_by: about.map_or_else(PromptBy::default, |about| about.prompt_by).as_str(),
            title: about.and_then(|about| about.title.as_deref()).map(escape::line),
            asked_by: about.and_then(|about| about.by.as_deref()).map(escape::line),
            reason: about.and_then(|about| about.reason.as_deref()).map(escape::lines),
            risk: about.and_then(|about| about.risk).map(Risk::as_str),
            needs: asked.map_or(&[][..], |asked| &asked.needs).iter().map(|need| needed(need, suspension)).collect(),
            signal: external.and_then(|wait| wait.signal.as_ref()).map(SignalName::as_str),
            metadata: external.and_then(|wait| wait.metadata.as_ref()).and_then(raw),
            arguments: Some(edited.unwrap_or(asked_about)).filter(|_| with_arguments).and_then(raw),
            submitted: submitted.filter(|_| with_arguments).and_then(raw),
            defaults: defaults.filter(|_| with_arguments).and_then(raw),
            created_at: rfc3339(suspension.created_at),
            expires_at: rfc3339(suspension.expires_at),
            digest: suspension.digest.to_string(),
            component: pinned.map(|pinned| pinned.component.to_string()),
            closed: closed.map(|closed| ReportedEnd {
                state: state.as_str(),
                by: closed.by.as_str(),
                at: rfc3339(closed.at),
                via: via(closed),
                edited: closed.resolution().is_some_and(|answer| answer.arguments.is_some()),
            }),
        })),
        url,
    };
    serde_json::to_string(&message)
}

/// The channel through which the answer came.
fn via(closed: &Closed) -> Option<&'static str> {
    closed.resolution()?.via().map(Channel::as_str)
}

fn needed(need: &Need, suspension: &Suspension) -> ReportedNeed {
    let names = |who: &[Who]| who.iter().map(ToString::to_string).collect();
    ReportedNeed {
        who: names(&need.who),
        quorum: need.quorum,
        escalates_to: need.escalate.as_ref().map(|wider| names(&wider.to)).unwrap_or_default(),
        escalated: suspension.has_escalated(need),
        via: need.via.iter().map(Channel::as_str).collect(),
    }
}

/// The arguments as raw JSON, unless they are too large.
fn raw(arguments: &Json) -> Option<&RawValue> {
    (arguments.size() <= MAX_ARGUMENTS).then(|| serde_json::from_str(arguments.as_str()).ok()).flatten()
}
