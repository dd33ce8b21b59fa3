//! Suspensions and their answers.

use dispatch::{Answered, SuspensionView};
use domain::suspension::SuspensionKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::{Delegation, Need, Vote, You, several};
use super::standing::StandingBounds;
use crate::{
    Decision, Delivery, Executor, Kind, Nested, Parent, PromptBy, Risk, StepSummary, SuspensionEnd, SuspensionState,
    Verbatim, Via, doubt, json, present, rfc3339,
};

/// One wait of a call, with everything that is needed to show it and to answer it.
///
/// The texts of plugins and models (`prompt`, `arguments`, `context`) are exact. Escape them before you show them, or
/// show `display`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Suspension {
    /// The id of the suspension.
    pub suspension: String,
    /// The conversation of its turn.
    pub conversation: String,
    /// The turn of its call.
    pub turn: String,
    /// The call that waits, by the caller's id.
    pub call: String,
    /// Its number among the suspensions of its call, from 1. A call that is approved and then carried out by a client
    /// has two.
    #[serde(default = "first")]
    pub number: u32,
    /// Its number among the steps of a durable call, from 1. Absent if the call has not begun yet. With it, the question
    /// comes from the code of the tool, and the host cannot know whether later effects match the answer.
    pub step: Option<u32>,
    /// The steps of the call before this one, oldest first: at most the last 10. Present where suspensions are listed or
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<StepSummary>,
    /// The tool that is called.
    pub tool: String,
    /// The plugin that offers the tool.
    pub plugin: Option<String>,
    /// False if the call runs outside the sandbox, on an upstream MCP server. Absent otherwise.
    pub sandboxed: Option<bool>,
    /// Who produces the result of the call.
    pub executor: Option<Executor>,
    /// The kind of answer that it waits for.
    pub kind: Kind,
    /// True if the client that carries out the call may report its progress.
    pub streaming: Option<bool>,
    /// `open`, or how it ended: the decision, `expired` or `withdrawn`. `closed` is absent while it is open.
    #[schema(value_type = String)]
    pub state: SuspensionState,
    /// The question to people.
    pub prompt: Option<String>,
    /// The author of the prompt. Do not trust a plugin's prompt.
    pub prompt_by: PromptBy,
    /// The plugin's name of the tool for people.
    pub title: Option<String>,
    /// The operator's rule or policy that asks. Absent if the tool's declaration asks.
    pub asked_by: Option<String>,
    /// The reason of the rule or policy.
    pub reason: Option<String>,
    /// The damage that a wrong call could do, according to the operator or, if the operator sets no risk, the plugin.
    pub risk: Option<Risk>,
    /// The arguments when the suspension was opened: the submitted ones with the edits of earlier approvals of this
    /// call. For an approval with `step`, it is the value that the tool asks about instead. If an approver of this
    /// suspension edited them, `closed.arguments` has the approved ones.
    pub arguments: Verbatim,
    /// The SHA-256 of their exact text.
    pub arguments_digest: String,
    /// The submitted arguments, if an approver edited them before this suspension was opened. Then `arguments` has the
    /// approved ones.
    pub submitted: Option<Verbatim>,
    /// The schema's defaults for what `arguments` leaves out, and not those for an edit of them: an object with a JSON Pointer (RFC 6901) as each name. The host
    /// does not add them to the arguments; the tool applies them. Absent if no default applies.
    pub defaults: Option<Verbatim>,
    /// The members of the caller's context that the tool selects for display.
    pub context: Option<Verbatim>,
    /// The principal that submitted the turn.
    pub caller: String,
    /// The call of a plugin that submitted the turn in the name of the caller. Absent if the caller did.
    pub parent: Option<Parent>,
    /// The nested turn that the call waits for, if `kind` is `children`.
    pub nested: Option<Nested>,
    /// The allowed decisions.
    #[schema(value_type = Vec<String>)]
    pub allowed: Vec<Decision>,
    /// For an external wait: the name under which the caller can send the result.
    pub signal: Option<String>,
    /// For an external wait: the tool's data for the external system. Do not trust it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Verbatim>,
    /// JSON Schema of the data that comes with the decision.
    pub response_schema: Option<Verbatim>,
    /// The arguments that the answer may edit.
    pub editable: Editable,
    /// The needs of an approval, all of them; for a question, the people who may answer it. Empty means any one
    /// approver.
    pub needs: Vec<Need>,
    /// The votes so far, where several are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// The delegations of authority so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// The limits of a standing approval. Absent if none is allowed, or if the reading principal may not give one.
    pub standing: Option<StandingBounds>,
    /// The rights of the reading principal. Present where suspensions are listed or read.
    pub you: Option<You>,
    /// When it was opened.
    pub created_at: String,
    /// When it expires.
    pub expires_at: String,
    /// The effect of its expiry.
    pub on_expiry: OnExpiry,
    /// Digest over arguments, component and declaration. An answer applies only to this digest.
    pub digest: String,
    /// The digest of the component.
    pub component: Option<String>,
    /// The digest of the tool's declaration.
    pub declaration: Option<String>,
    /// The attempt that ran when a host was killed. Present if the question is whether to run the call again.
    pub in_doubt_attempt: Option<u32>,
    /// The requests of a durable call that may have been carried out when a host was killed. Present if the question is what to do
    /// about them. `arguments` is then an object with the entry of each request as a name, and the value `"undecided"`. An approval
    /// must send `arguments` with a decision for each: `"send_again"`; `{"status":200,"body":"…"}`, the answer of a server that
    /// carried it out; or `"fail"`, an error for the tool. A denial ends the call `in_doubt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests_in_doubt: Vec<doubt::RequestInDoubt>,
    /// How it ended. Absent while it is open.
    pub closed: Option<Closed>,
    /// Its deliveries to webhooks, in order. Present only where an approver or an admin reads this one suspension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
    /// The escaped texts for people. Present where suspensions are listed or read; absent from turns and events.
    pub display: Option<Display>,
}

/// The untrusted texts of a suspension, complete and escaped. Control characters, changes of direction, invisible
/// characters and letters that look like others are written as `\u{…}`. The result is text, not HTML.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Display {
    /// The prompt, of one or more lines.
    pub prompt: Option<String>,
    /// The arguments when the suspension was opened, as a JSON text on one line with the same value.
    pub arguments: String,
    /// `submitted` in the same form.
    pub submitted: Option<String>,
    /// `closed.arguments` in the same form, if the approver edited the arguments.
    pub approved_arguments: Option<String>,
    /// The defaults in the same form.
    pub defaults: Option<String>,
    /// `closed.defaults` in the same form.
    pub approved_defaults: Option<String>,
    /// The context in the same form.
    pub context: Option<String>,
    /// The metadata in the same form.
    pub metadata: Option<String>,
    /// The title, on one line.
    pub title: Option<String>,
    /// The reason, of one or more lines.
    pub reason: Option<String>,
}

impl Display {
    fn len(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        optional(&self.prompt)
            + self.arguments.len()
            + optional(&self.submitted)
            + optional(&self.approved_arguments)
            + optional(&self.defaults)
            + optional(&self.approved_defaults)
            + optional(&self.context)
            + optional(&self.metadata)
            + optional(&self.title)
            + optional(&self.reason)
    }
}

/// How a suspension ended.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Closed {
    /// The decision, `expired` or `withdrawn`.
    #[schema(value_type = String)]
    pub state: SuspensionEnd,
    /// The principal that closed it. `system` for an expiry, and for a step that the policy denied.
    pub by: String,
    /// The principals whose approvals count, in their order; the last one closed it. Present if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// When it was closed.
    pub at: String,
    /// The decision, if a principal answered.
    #[schema(value_type = Option<String>)]
    pub decision: Option<Decision>,
    /// The data of the decision.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Verbatim>,
    /// False if the data comes from a client, an external system or a nested turn.
    pub trusted: Option<bool>,
    /// The approved arguments, if the approver edited them. If they are absent from an approval, the arguments of the
    /// suspension were approved.
    pub arguments: Option<Verbatim>,
    /// The schema's defaults for what the edited arguments leave out, in the form of the suspension's. Absent if no default
    /// applies, and from turns and events.
    pub defaults: Option<Verbatim>,
    /// True if nobody knows these defaults: the component of the call is no longer loaded.
    pub defaults_unknown: Option<bool>,
    /// For an approval: the SHA-256 of the exact text of the approved arguments, edited or not.
    pub arguments_digest: Option<String>,
    /// The comment of the principal.
    pub comment: Option<String>,
    /// The channel through which the answer came. Absent if nobody answered, or if an older host recorded it.
    pub via: Option<Via>,
}

/// The arguments that an answer may edit: `"none"`, `"all"`, or the names of some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Editable {
    /// None or all.
    Word(EditableWord),
    /// Only these top-level members.
    Fields(Vec<String>),
}

/// None or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditableWord {
    /// No argument.
    None,
    /// Every argument.
    All,
}

/// The effect when a suspension expires: `"error"`, `"deny"`, `"approve"`, `"continue"` or `{"answer":…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The call ends `expired`.
    Error,
    /// The call ends `denied`.
    Deny,
    /// The call is approved (timeout approval).
    Approve,
    /// The call continues, and its code learns that nobody answered. Only with `step`.
    Continue,
    /// This value is the answer.
    Answer(Verbatim),
}

/// The response to an accepted answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Resolved {
    /// Always true. A refused answer is a problem.
    pub ok: bool,
    /// Whether the same principal gave the same answer before.
    pub replayed: bool,
    /// The suspension that was answered.
    pub suspension: String,
    /// `open` if more approvals are needed, or how it ended.
    #[schema(value_type = String)]
    pub state: SuspensionState,
    /// The minimum number of approvals that are still needed.
    pub votes_missing: u32,
    /// The needs with their votes, if more approvals are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Resolved {
    /// The response to an answer that was accepted.
    #[must_use]
    pub fn new(answered: &Answered) -> Self {
        let Answered { replayed, suspension, state, votes_missing } = answered;
        Self {
            ok: true,
            replayed: *replayed,
            suspension: suspension.id.to_string(),
            state: SuspensionState(state.clone()),
            votes_missing: *votes_missing,
            needs: if state.is_open() { Need::of(suspension, false) } else { Vec::new() },
        }
    }
}

/// The number of the first suspension of a call.
pub(crate) fn first() -> u32 {
    1
}

impl Suspension {
    /// A suspension of a call of a turn.
    #[must_use]
    pub fn new(
        turn: &domain::Turn,
        call: &domain::Call,
        suspension: &domain::Suspension,
        closed: Option<&domain::suspension::Closed>,
    ) -> Self {
        let pinned = call.pinned.as_deref();
        let arguments = call.asked_about(suspension.id);
        let about = suspension.about().cloned().unwrap_or_default();
        let approvers = closed.map(|closed| call.approvers_of(suspension, closed)).unwrap_or_default();
        let streams = suspension.kind() == SuspensionKind::ClientExec && pinned.is_some_and(|pinned| pinned.streaming);
        Self {
            suspension: suspension.id.to_string(),
            conversation: turn.conversation.to_string(),
            turn: turn.id.to_string(),
            call: call.id.to_string(),
            number: call.number_of(suspension.id),
            step: call.step_number(suspension.id),
            earlier: Vec::new(),
            tool: call.tool.to_string(),
            plugin: pinned.map(|pinned| pinned.plugin.to_string()),
            sandboxed: pinned.filter(|pinned| pinned.plugin.is_upstream()).map(|_| false),
            executor: pinned.map(|pinned| (&pinned.executor).into()),
            kind: (&suspension.kind()).into(),
            streaming: streams.then_some(true),
            state: SuspensionState(domain::suspension::SuspensionState::of(closed)),
            prompt: about.prompt.as_deref().map(str::to_owned),
            prompt_by: (&about.prompt_by).into(),
            title: about.title,
            asked_by: about.by.as_deref().map(str::to_owned),
            reason: about.reason.as_deref().map(str::to_owned),
            risk: about.risk.as_ref().map(Risk::from),
            arguments: arguments.into(),
            arguments_digest: domain::Digest::of(arguments.as_str()).to_string(),
            submitted: call.edited_before(suspension.id).map(Verbatim::from),
            defaults: suspension.asked().and_then(|asked| asked.defaults.as_ref()).map(Verbatim::from),
            context: turn.context.as_ref().and_then(|context| shown(context, suspension)),
            caller: turn.caller.to_string(),
            parent: turn.parent.as_deref().map(Parent::from),
            nested: suspension.nested().map(|nested| Nested::of(nested, turn, closed.is_none())),
            allowed: suspension.allowed().into_iter().map(Decision).collect(),
            signal: suspension.external().and_then(|wait| wait.signal.as_ref()).map(ToString::to_string),
            metadata: suspension.external().and_then(|wait| wait.metadata.as_ref()).map(Verbatim::from),
            response_schema: suspension.data_schema().map(Verbatim::from),
            editable: suspension.editable().into(),
            needs: Need::of(suspension, !approvers.is_empty()),
            votes: suspension.votes().iter().map(Vote::from).collect(),
            delegations: suspension.delegations().iter().map(Delegation::from).collect(),
            standing: suspension.approval().and_then(|approval| approval.standing.as_ref()).map(StandingBounds::from),
            you: None,
            created_at: rfc3339(suspension.created_at),
            expires_at: rfc3339(suspension.expires_at),
            on_expiry: match &suspension.step {
                Some(_) => OnExpiry::Continue,
                None => (&suspension.on_expiry()).into(),
            },
            digest: suspension.digest.to_string(),
            component: pinned.map(|pinned| pinned.component.to_string()),
            declaration: pinned.map(|pinned| pinned.declaration.to_string()),
            in_doubt_attempt: doubt::attempt(suspension),
            requests_in_doubt: doubt::requests(suspension),
            closed: closed.map(|closed| Closed {
                approvers: several(approvers.iter().copied()),
                ..Closed::new(closed, arguments)
            }),
            deliveries: Vec::new(),
            display: None,
        }
    }

    /// Adds the texts for people.
    #[must_use]
    pub fn for_people(self) -> Self {
        let line = |json: &Verbatim| escape::json_line(json.0.as_str());
        let display = Display {
            prompt: self.prompt.as_deref().map(|prompt| escape::lines(prompt).into_owned()),
            arguments: line(&self.arguments),
            submitted: self.submitted.as_ref().map(line),
            approved_arguments: self.closed.as_ref().and_then(|closed| closed.arguments.as_ref()).map(line),
            defaults: self.defaults.as_ref().map(line),
            approved_defaults: self.closed.as_ref().and_then(|closed| closed.defaults.as_ref()).map(line),
            context: self.context.as_ref().map(line),
            metadata: self.metadata.as_ref().map(line),
            title: self.title.as_deref().map(|title| escape::line(title).into_owned()),
            reason: self.reason.as_deref().map(|reason| escape::lines(reason).into_owned()),
        };
        let votes = self.votes.into_iter().map(Vote::for_people).collect();
        Self { display: Some(display), votes, ..self }
    }
}

impl Suspension {
    /// The number of bytes that only the texts for people take.
    pub fn shown_bytes(&self) -> usize {
        let votes = self.votes.iter().flat_map(|vote| [&vote.display, &vote.defaults_display]).flatten();
        let earlier = self.earlier.iter().map(StepSummary::len);
        self.display.as_ref().map_or(0, Display::len) + votes.map(String::len).sum::<usize>() + earlier.sum::<usize>()
    }

    /// A suspension for a list, with the rights of the reading principal.
    #[must_use]
    pub fn for_principal(item: &SuspensionView, by: &domain::Principal, own_calls: bool) -> Self {
        let you = You::new(item, by, own_calls);
        let all = Self::from(item);
        let standing = all.standing.filter(|_| item.suspension.may_give_standing(by).is_ok());
        let earlier = all.step.map(|step| StepSummary::before(&item.call, step)).unwrap_or_default();
        Self { you: Some(you), standing, earlier, ..all.with_defaults_of_edits(item) }.for_people()
    }
}

/// The members of the context that the tool selects for display. All, if it selects none.
fn shown(context: &domain::Json, suspension: &domain::Suspension) -> Option<Verbatim> {
    let Some(keys) = suspension.about().and_then(|about| about.context_keys.as_ref()) else {
        return Some(context.into());
    };
    let mut members: std::collections::BTreeMap<String, Verbatim> = json::part(context.as_str()).ok()?;
    members.retain(|name, _| keys.contains(name));
    json::write(&members).ok().map(|text| Verbatim(domain::Json::unchecked(text)))
}

impl From<&SuspensionView> for Suspension {
    fn from(item: &SuspensionView) -> Self {
        let turn = domain::Turn {
            id: item.turn,
            conversation: item.conversation.clone(),
            caller: item.caller.clone(),
            context: item.context.clone(),
            parent: item.parent.clone(),
            rejection: domain::event::Rejection::default(),
            started_at: item.suspension.created_at,
            calls: Vec::new(),
            state: domain::turn::TurnState::Open,
        };
        Self::new(&turn, &item.call, &item.suspension, item.closed.as_ref())
    }
}

impl Closed {
    /// The end of a suspension that asked about these arguments.
    fn new(closed: &domain::suspension::Closed, asked_about: &domain::Json) -> Self {
        let answer = closed.resolution();
        let approved = answer
            .filter(|answer| answer.decision == domain::suspension::Decision::Approve)
            .map(|answer| answer.arguments.as_ref().unwrap_or(asked_about));
        Self {
            state: SuspensionEnd(closed.ended()),
            by: closed.by.to_string(),
            approvers: Vec::new(),
            at: rfc3339(closed.at),
            decision: answer.map(|answer| Decision(answer.decision.clone())),
            data: answer.and_then(|answer| answer.data.as_ref()).map(Verbatim::from),
            trusted: answer.and_then(untrusted),
            arguments: answer.and_then(|answer| answer.arguments.as_ref()).map(Verbatim::from),
            defaults: None,
            defaults_unknown: None,
            arguments_digest: approved.map(|approved| domain::Digest::of(approved.as_str()).to_string()),
            comment: answer.and_then(|answer| answer.comment.clone()),
            via: answer.and_then(domain::suspension::Resolution::via).map(Via),
        }
    }
}

/// False for the data of a client, an external system or a nested turn.
pub(crate) fn untrusted(answer: &domain::suspension::Resolution) -> Option<bool> {
    (answer.decision == domain::suspension::Decision::Result).then_some(false)
}

impl From<&domain::tool::Editable> for Editable {
    fn from(editable: &domain::tool::Editable) -> Self {
        match editable {
            domain::tool::Editable::Nothing => Self::Word(EditableWord::None),
            domain::tool::Editable::All => Self::Word(EditableWord::All),
            domain::tool::Editable::Fields(fields) => Self::Fields(fields.to_vec()),
        }
    }
}

impl From<&domain::tool::OnExpiry> for OnExpiry {
    fn from(on_expiry: &domain::tool::OnExpiry) -> Self {
        match on_expiry {
            domain::tool::OnExpiry::Error => Self::Error,
            domain::tool::OnExpiry::Deny => Self::Deny,
            domain::tool::OnExpiry::Approve => Self::Approve,
            domain::tool::OnExpiry::Answer(value) => Self::Answer(value.into()),
        }
    }
}
