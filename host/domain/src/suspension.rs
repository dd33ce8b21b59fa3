//! Suspensions. A suspension is one wait of a call for a person, a client, an external system or time. It ends exactly once.

mod approval;
mod asked;
mod audience;
mod closed;

use std::sync::Arc;

pub use approval::{ApprovalExpiry, ApprovalRequest};
pub use asked::{About, Asked, PromptBy};
pub use audience::Audience;
pub use closed::{Closed, ClosedAs, Decision, Resolution, SuspensionEnd, SuspensionState};

use crate::{
    Digest, Json, PrincipalId, Receipt, SignalName, SuspensionId, Timestamp,
    approvers::{Delegation, Need, Vote, names},
    doubt::{Doubt, DoubtfulRequests},
    nested::NestedTurn,
    tool::{Editable, OnExpiry},
};

/// One wait: what the call waits for, until when, and what an answer is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The host mints one id for each phase of a call.
    pub id: SuspensionId,
    pub created_at: Timestamp,
    /// Every wait expires.
    pub expires_at: Timestamp,
    /// Digest over the value that people are asked about, the component and the declaration.
    pub digest: Digest,
    /// The step of the guest's code that waits. `None`: the call waits before it runs.
    pub step: Option<SuspendedStep>,
    pub body: SuspensionBody,
}

/// A step of a guest's code that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedStep {
    /// The digest of the request.
    pub digest: Digest,
    /// The value that an approver decides about.
    pub subject: Option<Json>,
    /// The usage of the run that ended with this step.
    pub receipt: Option<Receipt>,
}

/// The decision or the work that a call waits for. Each kind has its own fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuspensionBody {
    /// A person approves or denies the call before it continues.
    Approval(ApprovalRequest),
    /// A person answers a question. The answer is the result.
    Elicitation(Elicitation),
    /// An attached client produces the result.
    ClientExec(ClientExec),
    /// An external system sends a result. Nobody is asked.
    External(ExternalWait),
    /// The calls of a nested turn end. Nobody is asked.
    Nested(NestedTurn),
    /// The expiry is the end of the wait. Nobody is asked.
    Timer,
    /// A server asked to send a request later. The expiry is the end of the wait. Nobody is asked.
    RateLimit,
}

crate::names! {
    /// The name of a [`SuspensionBody`], for indexes and JSON.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SuspensionKind {
        Approval = "approval",
        Elicitation = "elicitation",
        ClientExec = "client_exec",
        Timer = "timer",
        External = "external",
        RateLimit = "rate_limit",
        Nested = "children",
    }
}

impl SuspensionKind {
    /// A word for people.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Elicitation => "question",
            Self::ClientExec => "client call",
            Self::Timer => "sleep",
            Self::External => "external wait",
            Self::RateLimit => "rate limit",
            Self::Nested => "nested turn",
        }
    }

    /// Whether people or clients are asked. If not, no list of open questions has it.
    #[must_use]
    pub const fn is_asked(self) -> bool {
        match self {
            Self::Approval | Self::Elicitation | Self::ClientExec => true,
            Self::Timer | Self::External | Self::RateLimit | Self::Nested => false,
        }
    }

    /// Whether somebody can end the wait.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        match self {
            Self::Approval | Self::Elicitation | Self::ClientExec | Self::External => true,
            Self::Timer | Self::RateLimit | Self::Nested => false,
        }
    }

    /// Whether the expiry is what the call waits for.
    #[must_use]
    pub const fn is_ended_by_time(self) -> bool {
        match self {
            Self::Approval | Self::Elicitation | Self::ClientExec | Self::External | Self::Nested => false,
            Self::Timer | Self::RateLimit => true,
        }
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elicitation {
    pub asked: Asked,
    /// The answers to choose from. `None`: the data is the answer.
    pub choices: Option<Arc<[String]>>,
    /// JSON Schema of the data.
    pub data_schema: Option<Json>,
    /// The answer that the host gives on expiry. `None`: the call ends `expired`.
    pub default: Option<Json>,
    /// When the host last recorded an escalation.
    pub escalated_at: Option<Timestamp>,
}

/// Work for an attached client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientExec {
    /// JSON Schema of the result.
    pub result_schema: Option<Json>,
    /// The time until which a client must attach. `None`: a client is attached.
    pub grace_until: Option<Timestamp>,
}

/// A wait of a guest for an external system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalWait {
    /// The texts for people who look at the call.
    pub about: About,
    /// JSON Schema of the result.
    pub result_schema: Option<Json>,
    /// The name under which the conversation's caller can send the result.
    pub signal: Option<SignalName>,
    /// The guest's data for the external system. It is untrusted.
    pub metadata: Option<Json>,
}

impl Suspension {
    #[must_use]
    pub const fn kind(&self) -> SuspensionKind {
        match self.body {
            SuspensionBody::Approval(_) => SuspensionKind::Approval,
            SuspensionBody::Elicitation(_) => SuspensionKind::Elicitation,
            SuspensionBody::ClientExec(_) => SuspensionKind::ClientExec,
            SuspensionBody::External(_) => SuspensionKind::External,
            SuspensionBody::Nested(_) => SuspensionKind::Nested,
            SuspensionBody::Timer => SuspensionKind::Timer,
            SuspensionBody::RateLimit => SuspensionKind::RateLimit,
        }
    }

    /// The approval that the call waits for, if it waits for one.
    #[must_use]
    pub const fn approval(&self) -> Option<&ApprovalRequest> {
        match &self.body {
            SuspensionBody::Approval(approval) => Some(approval),
            SuspensionBody::Elicitation(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// The external system that the call waits for, if it waits for one.
    #[must_use]
    pub const fn external(&self) -> Option<&ExternalWait> {
        match &self.body {
            SuspensionBody::External(wait) => Some(wait),
            SuspensionBody::Approval(_)
            | SuspensionBody::Elicitation(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// The nested turn that the call waits for, if it waits for one.
    #[must_use]
    pub const fn nested(&self) -> Option<&NestedTurn> {
        match &self.body {
            SuspensionBody::Nested(nested) => Some(nested),
            SuspensionBody::Approval(_)
            | SuspensionBody::Elicitation(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    pub(crate) const fn approval_mut(&mut self) -> Option<&mut ApprovalRequest> {
        match &mut self.body {
            SuspensionBody::Approval(approval) => Some(approval),
            SuspensionBody::Elicitation(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// A copy without the votes and delegations of revoked principals.
    #[must_use]
    pub fn without(&self, is_revoked: impl Fn(&PrincipalId, Timestamp) -> bool) -> Self {
        let revoked = self.approval().into_iter().flat_map(ApprovalRequest::authorities);
        let revoked: Vec<_> = revoked.filter(|(id, since)| is_revoked(id, *since)).map(|(id, _)| id.clone()).collect();
        let mut left = self.clone();
        if let Some(approval) = left.approval_mut() {
            revoked.iter().for_each(|principal| approval.revoke(principal));
        }
        left
    }

    /// The texts for people: those of the question to them, or what the guest says about its wait.
    #[must_use]
    pub const fn about(&self) -> Option<&About> {
        match &self.body {
            SuspensionBody::Approval(approval) => Some(&approval.asked.about),
            SuspensionBody::Elicitation(question) => Some(&question.asked.about),
            SuspensionBody::External(wait) => Some(&wait.about),
            SuspensionBody::ClientExec(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// The question to people.
    #[must_use]
    pub const fn asked(&self) -> Option<&Asked> {
        match &self.body {
            SuspensionBody::Approval(approval) => Some(&approval.asked),
            SuspensionBody::Elicitation(question) => Some(&question.asked),
            SuspensionBody::External(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// JSON Schema of the data that comes with an answer.
    #[must_use]
    pub const fn data_schema(&self) -> Option<&Json> {
        match &self.body {
            SuspensionBody::Approval(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
            SuspensionBody::Elicitation(question) => question.data_schema.as_ref(),
            SuspensionBody::ClientExec(work) => work.result_schema.as_ref(),
            SuspensionBody::External(wait) => wait.result_schema.as_ref(),
        }
    }

    /// Which arguments an answer may change.
    #[must_use]
    pub fn editable(&self) -> &Editable {
        self.approval().map_or(&Editable::Nothing, |approval| &approval.editable)
    }

    /// The effect of its expiry.
    #[must_use]
    pub fn on_expiry(&self) -> OnExpiry {
        match &self.body {
            SuspensionBody::Approval(approval) => match approval.on_expiry {
                ApprovalExpiry::Expire => OnExpiry::Error,
                ApprovalExpiry::Deny => OnExpiry::Deny,
                ApprovalExpiry::Approve => OnExpiry::Approve,
            },
            SuspensionBody::Elicitation(question) => question.default.clone().map_or(OnExpiry::Error, OnExpiry::Answer),
            SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => OnExpiry::Error,
        }
    }

    /// The doubt that a kill left, if the question is about it.
    #[must_use]
    pub fn doubt(&self) -> Option<&Doubt> {
        self.approval().and_then(|approval| approval.doubt.as_ref())
    }

    /// The requests that a kill left in doubt, if the question is what to do about them.
    #[must_use]
    pub fn doubtful_requests(&self) -> Option<&DoubtfulRequests> {
        match self.doubt()? {
            Doubt::Requests(requests) => Some(requests),
            Doubt::Run(_) => None,
        }
    }

    /// Whether it waits in the middle of a durable call: an answer continues the code, and does not open the gate of the
    /// call.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.step.is_some() || self.doubtful_requests().is_some()
    }

    /// The value that people are asked about, if it is not the arguments of the call.
    #[must_use]
    pub fn subject(&self) -> Option<&Json> {
        let of_step = self.step.as_ref().and_then(|step| step.subject.as_ref());
        of_step.or_else(|| self.doubtful_requests().map(DoubtfulRequests::subject))
    }

    /// The approvals so far, one for each principal.
    #[must_use]
    pub fn votes(&self) -> &[Vote] {
        self.approval().map_or(&[], |approval| &approval.votes)
    }

    #[must_use]
    pub fn delegations(&self) -> &[Delegation] {
        self.approval().map_or(&[], |approval| &approval.delegations)
    }

    /// Who may answer. Empty: no person is asked.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        self.asked().map_or(&[], Asked::needs)
    }

    /// The decisions that are allowed.
    #[must_use]
    pub fn allowed(&self) -> Vec<Decision> {
        match &self.body {
            SuspensionBody::Approval(_) => vec![Decision::Approve, Decision::Deny],
            SuspensionBody::ClientExec(_) => vec![Decision::Result, Decision::Error],
            SuspensionBody::External(_) => vec![Decision::Result],
            SuspensionBody::Nested(_) | SuspensionBody::Timer | SuspensionBody::RateLimit => Vec::new(),
            SuspensionBody::Elicitation(Elicitation { choices: None, .. }) => vec![Decision::Answer(ANSWER.into())],
            SuspensionBody::Elicitation(Elicitation { choices: Some(choices), .. }) => {
                choices.iter().map(|choice| Decision::Answer(choice.as_str().into())).collect()
            }
        }
    }

    /// The decision as this suspension understands it. `None`: it is not allowed. A question may have a choice with the
    /// name of another decision, such as `approve`.
    #[must_use]
    pub fn accepts(&self, decision: &Decision) -> Option<Decision> {
        self.allowed().into_iter().find(|allowed| allowed.as_str() == decision.as_str())
    }
}

/// The decision for a question without a list of choices.
const ANSWER: &str = "answer";

impl Elicitation {
    /// The value of an answer: the data, or the choice with the data if there are choices.
    pub(crate) fn answered(&self, choice: &str, data: Option<Json>) -> Json {
        if self.choices.is_none() {
            return data.unwrap_or_else(|| Json::unchecked("null"));
        }
        let choice = crate::json::quote(choice);
        Json::unchecked(match data {
            None => format!("{{\"decision\":{choice}}}"),
            Some(data) => format!("{{\"decision\":{choice},\"data\":{data}}}"),
        })
    }
}

impl Suspension {
    /// The bytes that a guest wrote for this step, and those of the people whom a rule demands.
    pub(crate) fn step_bytes(&self) -> usize {
        let json = |json: Option<&Json>| json.map_or(0, Json::size);
        let prompt = self.about().and_then(|about| about.prompt.as_ref()).map_or(0, |prompt| prompt.len());
        let asked = prompt + self.asked().map_or(0, |asked| names(&asked.needs));
        let of_kind = match &self.body {
            SuspensionBody::Approval(approval) => approval.editable.size(),
            SuspensionBody::Elicitation(Elicitation { choices, .. }) => {
                choices.iter().flat_map(|texts| texts.iter()).map(String::len).sum()
            }
            SuspensionBody::External(ExternalWait { signal, metadata, .. }) => {
                json(metadata.as_ref()) + signal.as_ref().map_or(0, |signal| signal.as_str().len())
            }
            SuspensionBody::Nested(nested) => nested.size(),
            SuspensionBody::ClientExec(_) | SuspensionBody::Timer | SuspensionBody::RateLimit => 0,
        };
        let subject = self.step.as_ref().and_then(|step| step.subject.as_ref());
        asked + of_kind + json(subject) + json(self.data_schema())
    }
}

impl Closed {
    /// The bytes of the answer.
    pub(crate) fn size(&self) -> usize {
        let Some(answer) = self.resolution() else { return 0 };
        let json = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
        json(&answer.data) + json(&answer.arguments) + answer.comment.as_ref().map_or(0, String::len)
    }
}

/// When a suspension next needs attention.
impl Suspension {
    /// When the host last recorded an escalation.
    #[must_use]
    pub const fn escalated_at(&self) -> Option<Timestamp> {
        match &self.body {
            SuspensionBody::Approval(approval) => approval.escalated_at,
            SuspensionBody::Elicitation(question) => question.escalated_at,
            SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    pub(crate) const fn escalate(&mut self, at: Timestamp) {
        match &mut self.body {
            SuspensionBody::Approval(approval) => approval.escalated_at = Some(at),
            SuspensionBody::Elicitation(question) => question.escalated_at = Some(at),
            SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => {}
        }
    }

    /// Whether a need of it has escalated.
    #[must_use]
    pub fn has_escalated(&self, need: &Need) -> bool {
        let is_over = |noted| need.escalate.as_ref().is_some_and(|wider| self.created_at + wider.after <= noted);
        self.escalated_at().is_some_and(is_over)
    }

    /// The time of the next escalation.
    #[must_use]
    pub fn next_escalation(&self) -> Option<Timestamp> {
        let waiting = self.needs().iter().filter(|need| !self.has_escalated(need));
        let times = waiting.filter_map(|need| Some(self.created_at + need.escalate.as_ref()?.after));
        times.filter(|at| *at < self.expires_at).min()
    }

    /// The time until which a client must attach. `None`: a client is attached, or it needs none.
    #[must_use]
    pub const fn grace_until(&self) -> Option<Timestamp> {
        match &self.body {
            SuspensionBody::ClientExec(work) => work.grace_until,
            SuspensionBody::Approval(_)
            | SuspensionBody::Elicitation(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => None,
        }
    }

    /// When it next needs attention without an answer.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        [self.grace_until(), self.next_escalation()].into_iter().flatten().fold(self.expires_at, Timestamp::min)
    }

    /// Whether its expiry approves the call, unless the policy has become stricter meanwhile.
    #[must_use]
    pub fn timeout_approves(&self) -> bool {
        self.approval().is_some_and(ApprovalRequest::timeout_approves)
    }

    /// How many approvals are missing at least.
    #[must_use]
    pub fn votes_missing(&self) -> u32 {
        let Some(approval) = self.approval() else { return 0 };
        let bindings = approval.votes.iter().map(|vote| vote.binding).chain([self.digest]);
        bindings.map(|binding| approval.missing(binding, approval.votes.iter())).min().unwrap_or(0)
    }
}
