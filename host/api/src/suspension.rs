//! Suspensions: what waits for the outside, and the answers to it.

use dispatch::PendingItem;
use domain::ClosedAs;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};

use super::approval::{Delegation, Need, Vote, You};
use super::standing::{StandingBounds, StandingTerms};
use crate::{Delivery, Executor, Kind, PromptBy, Risk, Verbatim, present, rfc3339};

/// One thing that a call waits for, or waited for, with all that is needed to show and to answer it.
///
/// What a plugin or a model wrote (`prompt`, `arguments`, `context`) is exact: whoever shows it escapes it, or shows what
/// is in `display`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Suspension {
    /// Its id.
    pub suspension: String,
    /// Its conversation.
    pub conversation: String,
    /// Its turn.
    pub turn: String,
    /// Its call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The plugin that offers the tool.
    pub plugin: Option<String>,
    /// Who produces the result of the call.
    pub executor: Option<Executor>,
    /// What is waited for.
    pub kind: Kind,
    /// `open`; or how it ended: the decision, `expired` or `withdrawn`. `closed` is absent exactly while it is open.
    pub state: String,
    /// What people are asked.
    pub prompt: Option<String>,
    /// Whose words the prompt is. A plugin's may say anything.
    pub prompt_by: PromptBy,
    /// What the plugin calls the tool for people.
    pub title: Option<String>,
    /// The operator's rule or policy that asks. Absent where the tool declares that it is to be asked.
    pub asked_by: Option<String>,
    /// Why it asks.
    pub reason: Option<String>,
    /// How bad it would be if the call went wrong: as the operator says, or else the plugin.
    pub risk: Option<Risk>,
    /// The arguments at the moment of asking: those that the caller submitted, with the edits of earlier approvals of this call.
    /// An approver of this suspension may have changed them: then `closed.arguments` has the approved ones.
    pub arguments: Verbatim,
    /// The SHA-256 of their exact text.
    pub arguments_digest: String,
    /// What the caller passed along, as far as the tool wants it to be shown.
    pub context: Option<Verbatim>,
    /// Who submitted the turn.
    pub caller: String,
    /// The decisions to choose from.
    pub allowed: Vec<String>,
    /// JSON Schema of the data that comes with the decision.
    pub response_schema: Option<Verbatim>,
    /// Which arguments the answer may change.
    pub editable: Editable,
    /// Who must approve, all of them; of a question, who may answer it. Empty: any one approver.
    pub needs: Vec<Need>,
    /// The approvals so far, where it takes more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// Who handed their say on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// The most that may be allowed beforehand with an approval. Absent: nothing.
    pub standing: Option<StandingBounds>,
    /// What it is to whoever asks, where suspensions are listed or read.
    pub you: Option<You>,
    /// When the wait began.
    pub created_at: String,
    /// When it ends by itself.
    pub expires_at: String,
    /// What becomes of it then.
    pub on_expiry: OnExpiry,
    /// Digest over arguments, component and declaration: what an answer is an answer to.
    pub digest: String,
    /// The digest of the component.
    pub component: Option<String>,
    /// The digest of the tool's declaration.
    pub declaration: Option<String>,
    /// The attempt that was running when a host was killed, where the question is whether to run it again.
    pub in_doubt_attempt: Option<u32>,
    /// How it ended, if it did.
    pub closed: Option<Closed>,
    /// What webhooks were told of it, or are still to be told, in order. Only where an approver or an admin reads it by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
    /// The same for people, where suspensions are listed or read. Absent from turns and events.
    pub display: Option<Display>,
}

/// What strangers wrote into a suspension, complete and escaped: control characters, changes of direction, what cannot be
/// seen and what passes for other letters are written out as `\u{…}`. It still is text, and no HTML.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Display {
    /// The prompt, of one or more lines.
    pub prompt: Option<String>,
    /// The arguments at the moment of asking, as a JSON text on one line, equal to the exact ones.
    pub arguments: String,
    /// The arguments in `closed.arguments`, in the same form: what was approved, where the approver edited them.
    pub approved_arguments: Option<String>,
    /// The context likewise.
    pub context: Option<String>,
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
            + optional(&self.approved_arguments)
            + optional(&self.context)
            + optional(&self.title)
            + optional(&self.reason)
    }
}

/// How a suspension ended.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Closed {
    /// The decision, `expired` or `withdrawn`.
    pub state: String,
    /// By whom; `system` for an expiry.
    pub by: String,
    /// When.
    pub at: String,
    /// The decision, where somebody answered.
    pub decision: Option<String>,
    /// What came with it.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Verbatim>,
    /// The arguments that were approved, where the approver edited them. Absent from an approval: the arguments of the
    /// suspension were approved.
    pub arguments: Option<Verbatim>,
    /// With an approval: the SHA-256 of the exact text of the approved arguments, edited or not.
    pub arguments_digest: Option<String>,
    /// Why.
    pub comment: Option<String>,
    /// `link`, where whoever answered came by a link.
    pub via: Option<String>,
}

/// Which arguments an answer may change: `"none"`, `"all"`, or the names of some.
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
    /// None.
    None,
    /// All.
    All,
}

/// What becomes of a wait that ran out: `"error"`, `"deny"`, `"approve"` or `{"answer":…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The call ends `expired`.
    Error,
    /// The call ends `denied`.
    Deny,
    /// The approval is taken as given.
    Approve,
    /// This value is the answer.
    Answer(Verbatim),
}

/// A page of suspensions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingPage {
    /// The suspensions, oldest first.
    pub suspensions: Vec<Suspension>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next one.
    pub next: Option<String>,
}

/// An answer. Who gives it is known from the transport and never from here.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// One of the allowed decisions.
    pub decision: String,
    /// What comes with it.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Verbatim>,
    /// Arguments to take the place of the submitted ones.
    pub arguments: Option<Verbatim>,
    /// Why.
    pub comment: Option<String>,
    /// The digest of what was shown. With it, an answer to anything else is refused.
    pub expect_digest: Option<String>,
    /// With an approval: what it shall allow beforehand.
    pub standing: Option<StandingTerms>,
}

impl Resolve {
    /// The answer to a suspension.
    ///
    /// # Errors
    /// Where a member is not of its form.
    pub fn answer(self, suspension: domain::SuspensionId) -> Result<dispatch::Answer> {
        let expect_digest = self.expect_digest.as_deref().map(str::parse::<domain::Digest>).transpose();
        Ok(dispatch::Answer {
            suspension,
            decision: self.decision,
            data: self.data.map(|data| data.0),
            arguments: self.arguments.map(|arguments| arguments.0),
            comment: self.comment,
            expect_digest: expect_digest.map_err(|error| Error::invalid_at("/expect_digest", error.to_string()))?,
            standing: self.standing.map(StandingTerms::terms).transpose()?,
        })
    }
}

/// That somebody's say was handed on.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Delegated {
    /// Always true; what was not handed on is a problem.
    pub ok: bool,
    /// The suspension.
    pub suspension: String,
    /// To whom.
    pub to: String,
}

/// Handing one's say in an approval on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegate {
    /// The principal who shall decide instead: one who has no say in it yet.
    pub to: String,
    /// Why.
    pub comment: Option<String>,
}

/// That an answer stands.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Resolved {
    /// Always true; an answer that does not stand is a problem.
    pub ok: bool,
    /// Whether the same principal had given the same answer before.
    pub replayed: bool,
    /// The suspension that was answered.
    pub suspension: String,
    /// How it is now: `open` where others have to approve as well; or how it ended.
    pub state: String,
    /// How many approvals are missing at least.
    pub votes_missing: u32,
}

impl Suspension {
    /// A suspension of a call of a turn.
    #[must_use]
    pub fn new(
        turn: &domain::Turn,
        call: &domain::Call,
        suspension: &domain::Suspension,
        closed: Option<&domain::Closed>,
    ) -> Self {
        let pinned = call.pinned.as_deref();
        let arguments = call.asked_about(suspension.id);
        Self {
            suspension: suspension.id.to_string(),
            conversation: turn.conversation.to_string(),
            turn: turn.id.to_string(),
            call: call.id.to_string(),
            tool: call.tool.to_string(),
            plugin: pinned.map(|pinned| pinned.plugin.to_string()),
            executor: pinned.map(|pinned| (&pinned.executor).into()),
            kind: (&suspension.kind).into(),
            state: closed.map_or("open", domain::Closed::state).to_owned(),
            prompt: suspension.prompt.clone(),
            prompt_by: (&suspension.asked.prompt_by).into(),
            title: suspension.asked.title.clone(),
            asked_by: suspension.asked.by.as_deref().map(str::to_owned),
            reason: suspension.asked.reason.as_deref().map(str::to_owned),
            risk: suspension.asked.risk.as_ref().map(Risk::from),
            arguments: arguments.into(),
            arguments_digest: domain::Digest::of(arguments.as_str()).to_string(),
            context: turn.context.as_ref().and_then(|context| shown(context, suspension)),
            caller: turn.caller.to_string(),
            allowed: suspension.allowed().into_iter().map(str::to_owned).collect(),
            response_schema: suspension.response.as_ref().map(Verbatim::from),
            editable: (&suspension.editable).into(),
            needs: suspension.asked.needs.iter().enumerate().map(|need| Need::new(need, suspension)).collect(),
            votes: suspension.votes.iter().map(Vote::from).collect(),
            delegations: suspension.delegations.iter().map(Delegation::from).collect(),
            standing: suspension.asked.standing.as_ref().map(StandingBounds::from),
            you: None,
            created_at: rfc3339(suspension.created_at),
            expires_at: rfc3339(suspension.expires_at),
            on_expiry: (&suspension.on_expiry).into(),
            digest: suspension.digest.to_string(),
            component: pinned.map(|pinned| pinned.component.to_string()),
            declaration: pinned.map(|pinned| pinned.declaration.to_string()),
            in_doubt_attempt: suspension.in_doubt,
            closed: closed.map(|closed| Closed::new(closed, arguments)),
            deliveries: Vec::new(),
            display: None,
        }
    }

    /// The same with what people are shown.
    #[must_use]
    pub fn for_people(self) -> Self {
        let display = Display {
            prompt: self.prompt.as_deref().map(|prompt| text::lines(prompt).into_owned()),
            arguments: text::json_line(self.arguments.0.as_str()),
            approved_arguments: self
                .closed
                .as_ref()
                .and_then(|closed| closed.arguments.as_ref())
                .map(|arguments| text::json_line(arguments.0.as_str())),
            context: self.context.as_ref().map(|context| text::json_line(context.0.as_str())),
            title: self.title.as_deref().map(|title| text::line(title).into_owned()),
            reason: self.reason.as_deref().map(|reason| text::lines(reason).into_owned()),
        };
        let votes = self.votes.into_iter().map(Vote::for_people).collect();
        Self { display: Some(display), votes, ..self }
    }
}

impl Suspension {
    /// How many bytes of it are there for people alone.
    pub fn shown_bytes(&self) -> usize {
        let votes = self.votes.iter().filter_map(|vote| vote.display.as_ref());
        self.display.as_ref().map_or(0, Display::len) + votes.map(String::len).sum::<usize>()
    }

    /// An item of a list for a principal, with what it is to them.
    #[must_use]
    pub fn for_principal(item: &PendingItem, by: &domain::Principal, own_calls: bool) -> Self {
        let you = You::new(item, by, own_calls);
        Self { you: Some(you), ..Self::from(item) }.for_people()
    }
}

/// The members of the context that the tool wants to be shown; all, if it names none.
fn shown(context: &domain::Json, suspension: &domain::Suspension) -> Option<Verbatim> {
    let Some(keys) = &suspension.asked.context_keys else { return Some(context.into()) };
    let members: std::collections::BTreeMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(context.as_str()).ok()?;
    let kept: std::collections::BTreeMap<_, _> = members.iter().filter(|(name, _)| keys.contains(name)).collect();
    serde_json::to_string(&kept).ok().map(|text| Verbatim(domain::Json::new(text)))
}

impl From<&PendingItem> for Suspension {
    fn from(item: &PendingItem) -> Self {
        let turn = domain::Turn {
            id: item.turn,
            conversation: item.conversation.clone(),
            caller: item.caller.clone(),
            context: item.context.clone(),
            rejection: domain::Rejection::default(),
            started_at: item.suspension.created_at,
            calls: Vec::new(),
            state: domain::TurnState::Open,
        };
        Self::new(&turn, &item.call, &item.suspension, item.closed.as_ref())
    }
}

impl Closed {
    /// How a suspension that asked about these arguments ended.
    fn new(closed: &domain::Closed, asked_about: &domain::Json) -> Self {
        let answer = match &closed.how {
            ClosedAs::Resolved(answer) => Some(answer),
            ClosedAs::Expired | ClosedAs::Withdrawn => None,
        };
        let approved = answer
            .filter(|answer| answer.decision == domain::Decision::Approve)
            .map(|answer| answer.arguments.as_ref().unwrap_or(asked_about));
        Self {
            state: closed.state().to_owned(),
            by: closed.by.to_string(),
            at: rfc3339(closed.at),
            decision: answer.map(|answer| answer.decision.as_str().to_owned()),
            data: answer.and_then(|answer| answer.data.as_ref()).map(Verbatim::from),
            arguments: answer.and_then(|answer| answer.arguments.as_ref()).map(Verbatim::from),
            arguments_digest: approved.map(|approved| domain::Digest::of(approved.as_str()).to_string()),
            comment: answer.and_then(|answer| answer.comment.clone()),
            via: super::via(answer.and_then(|answer| answer.link)),
        }
    }
}

impl From<&domain::Editable> for Editable {
    fn from(editable: &domain::Editable) -> Self {
        match editable {
            domain::Editable::Nothing => Self::Word(EditableWord::None),
            domain::Editable::All => Self::Word(EditableWord::All),
            domain::Editable::Fields(fields) => Self::Fields(fields.to_vec()),
        }
    }
}

impl From<&domain::OnExpiry> for OnExpiry {
    fn from(on_expiry: &domain::OnExpiry) -> Self {
        match on_expiry {
            domain::OnExpiry::Error => Self::Error,
            domain::OnExpiry::Deny => Self::Deny,
            domain::OnExpiry::Approve => Self::Approve,
            domain::OnExpiry::Answer(value) => Self::Answer(value.into()),
        }
    }
}
