//! One call: what was asked, what it is pinned to, and where in its life it is.

use std::sync::Arc;

use crate::gate::{self, Phase};
use crate::{
    Approval, Asked, CallId, Closed, ClosedAs, Digest, Editable, Executor, Json, OnExpiry, Outcome, OwnerId,
    PluginName, PrincipalId, Receipt, Recovery, SentLink, Span, StandingId, Status, Suspension, SuspensionId,
    Timestamp,
};

/// What a call was bound to when it was submitted. A plugin that is loaded later never changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The plugin.
    pub plugin: PluginName,
    /// The component's digest: exactly these bytes will run.
    pub component: Digest,
    /// The digest of the tool's declaration.
    pub declaration: Digest,
    /// Who produces the result.
    pub executor: Executor,
    /// What gates the call: the declaration, tightened by the operator's policy.
    pub approval: Approval,
    /// Whether progress is passed on.
    pub streaming: bool,
    /// The longest a run may take.
    pub timeout: Span,
    /// What becomes of a killed run.
    pub recovery: Recovery,
    /// How its waits look; `None` for a call that never waits by itself.
    pub wait: Option<Wait>,
}

/// How the waits of a call look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The longest that each wait may take.
    pub expires: Span,
    /// What becomes of one that ran out.
    pub on_expiry: OnExpiry,
    /// The answers that a person may choose from.
    pub responses: Option<Arc<[String]>>,
    /// JSON Schema of the data that comes with a person's answer.
    pub response: Option<Json>,
    /// JSON Schema of a client's result.
    pub result: Option<Json>,
    /// Which arguments an approver may change.
    pub editable: Editable,
}

impl Pinned {
    /// The phases of the call. An illegal cell never gets past loading; should a record hold one, it has no phases and
    /// nothing of it runs.
    #[must_use]
    pub fn phases(&self) -> &'static [Phase] {
        gate::phases(self.executor, self.approval).unwrap_or(&[])
    }

    /// Whether what somebody approved beforehand can take the place of asking about this call. Not where a policy could not be
    /// asked, since nobody knows what it would say; and not where a run that a kill leaves in doubt is asked about of people
    /// whom a rule names: they are asked first as well.
    #[must_use]
    pub fn may_be_covered(&self, asked: &Asked) -> bool {
        !asked.policy_failed && !self.asks_again(asked)
    }

    /// Whether people whom a rule names are asked once more after a kill.
    #[must_use]
    pub fn asks_again(&self, asked: &Asked) -> bool {
        self.recovery == Recovery::Ask && !asked.needs.is_empty()
    }

    /// Digest over the arguments, the component and the declaration: what an approval is bound to.
    #[must_use]
    pub fn binding(&self, arguments: &Json) -> Digest {
        Digest::of_parts(&[arguments.as_str().as_bytes(), self.component.as_bytes(), self.declaration.as_bytes()])
    }
}

/// What shall become of a requested call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It ends at once: an unknown tool, arguments that break the schema, a rule that denies it.
    Settle(Outcome),
    /// It goes through the phases of what it is pinned to.
    Go(Arc<Pinned>),
}

/// Where in its life a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// It waits for the last of its suspensions.
    Awaiting,
    /// A host runs it.
    Running(Running),
    /// It ended.
    Settled(Outcome),
}

/// A run of a guest, committed before the guest starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// 1, then one more at each dispatch after a kill.
    pub attempt: u32,
    /// The host that runs it.
    pub owner: OwnerId,
    /// When the host no longer counts as running it, unless it says so again.
    pub lease_end: Timestamp,
}

/// A call of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The caller's id.
    pub id: CallId,
    /// The tool as it was asked for; there may be none of this name.
    pub tool: Arc<str>,
    /// The arguments as submitted, against which a repeated submission is compared.
    pub submitted: Json,
    /// The arguments as they will run: an approver may have edited them.
    pub arguments: Json,
    /// What it is pinned to; `None` where it never got that far.
    pub pinned: Option<Arc<Pinned>>,
    /// Where in its life it is.
    pub state: CallState,
    /// What it waited for, oldest first; the last may be open.
    pub suspensions: Vec<(Suspension, Option<Closed>)>,
    /// Links to what it waited for, oldest first.
    pub links: Vec<SentLink>,
    /// The binding that was approved, once it was.
    pub approved: Option<Digest>,
    /// Who approved it.
    pub approver: Option<PrincipalId>,
    /// The standing approval that let it go on, where it was one.
    pub standing: Option<StandingId>,
    /// The operator's rule or policy that decided about it, where one did.
    pub ruled_by: Option<Arc<str>>,
    /// Members of the provider's call that its result repeats: a JSON object.
    pub origin: Option<Json>,
    /// The attempts so far.
    pub attempts: u32,
    /// What its guest spent, if one ran to its end.
    pub receipt: Option<Receipt>,
}

impl Call {
    /// The suspension that the call waits for now.
    #[must_use]
    pub fn open(&self) -> Option<&Suspension> {
        match (&self.state, self.suspensions.last()) {
            (CallState::Awaiting, Some((suspension, None))) => Some(suspension),
            _ => None,
        }
    }

    /// A suspension of this call, open or closed.
    #[must_use]
    pub fn suspension(&self, id: SuspensionId) -> Option<&(Suspension, Option<Closed>)> {
        self.suspensions.iter().find(|(suspension, _)| suspension.id == id)
    }

    /// The arguments that a suspension asks about: the submitted ones, or the last edit of an approval before it.
    #[must_use]
    pub fn asked_about(&self, id: SuspensionId) -> &Json {
        let before = self.suspensions.iter().take_while(|(earlier, _)| earlier.id != id);
        let edits = before.filter_map(|(_, closed)| match closed.as_ref().map(|closed| &closed.how) {
            Some(ClosedAs::Resolved(answer)) => answer.arguments.as_ref(),
            _ => None,
        });
        edits.last().unwrap_or(&self.submitted)
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            CallState::Settled(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What a caller sees of its progress.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.state {
            CallState::Awaiting => Status::Awaiting,
            CallState::Running(_) => Status::Running,
            CallState::Settled(Outcome::Ok { .. }) => Status::Resolved,
            CallState::Settled(_) => Status::Errored,
        }
    }

    /// Whether the gate lets it run now: it is not gated, or a committed approval carries the digest of exactly these
    /// arguments, this component and this declaration.
    #[must_use]
    pub fn may_run(&self) -> bool {
        match &self.pinned {
            None => false,
            Some(pinned) if pinned.approval == Approval::Auto => true,
            Some(pinned) => self.approved == Some(pinned.binding(&self.arguments)),
        }
    }
}
