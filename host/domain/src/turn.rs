//! A turn: its value, how events change it, and which effects are due. `decide` and `resolve` make the decisions.

mod decide;
mod doubts;
mod input;
mod links;
mod nested;
mod resolve;
mod steps;
mod votes;

#[cfg(test)]
mod tests;

pub use input::{
    AnswerChecks, CheckedAnswer, Context, EndedHosts, Finished, Input, LastRuns, Requested, Submission, Tick,
    TurnSettings,
};

use crate::{
    Call, CallId, CallIndex, ConversationId, Event, Json, OwnerId, Principal, PrincipalId, Refusal, Suspension,
    SuspensionId, Timestamp, TurnId,
    call::{CallState, Running},
    effect::{Due, Effect},
    event::{CallEvent, Rejection, TurnEnd},
    nested::Parent,
    suspension::{ApprovalRequest, Closed, ClosedAs, SuspensionBody},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// Some calls have no outcome yet.
    Open,
    /// Every call has its outcome.
    Ended(TurnEnd, Timestamp),
}

impl TurnState {
    /// The names in JSON.
    pub const NAMES: [&str; 4] = ["open", "settled", "aborted", "cancelled"];

    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Ended(TurnEnd::Settled, _) => "settled",
            Self::Ended(TurnEnd::Aborted, _) => "aborted",
            Self::Ended(TurnEnd::Cancelled, _) => "cancelled",
        }
    }
}

/// The calls of one model answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub caller: PrincipalId,
    pub rejection: Rejection,
    /// The context that the caller passed: a JSON object.
    pub context: Option<Json>,
    /// The call that submitted it. `None`: a caller did.
    pub parent: Option<Box<Parent>>,
    pub started_at: Timestamp,
    /// In the order in which the model asked for them.
    pub calls: Vec<Call>,
    pub state: TurnState,
}

impl Turn {
    /// The turn that these events make, oldest first. `None` if the first one does not start a turn.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut turn = Self::from_start(events.next()?)?;
        for event in events {
            turn.apply(event);
        }
        Some(turn)
    }

    fn from_start(event: &Event) -> Option<Self> {
        let Event::TurnStarted { turn, conversation, caller, rejection, context, parent, at } = event else {
            return None;
        };
        Some(Self {
            id: *turn,
            conversation: conversation.clone(),
            caller: caller.clone(),
            rejection: *rejection,
            context: context.clone(),
            parent: parent.clone(),
            started_at: *at,
            calls: Vec::new(),
            state: TurnState::Open,
        })
    }

    /// Applies an event. The event was decided before it was stored, so nothing is refused here.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } | Event::TurnCancelled { .. } => {}
            Event::TurnSettled { end, at } => self.state = TurnState::Ended(*end, *at),
            Event::Call { event: CallEvent::Requested { id, tool, arguments, pinned, ruled_by, origin }, .. } => {
                self.calls.push(Call {
                    id: id.clone(),
                    tool: tool.clone(),
                    submitted: arguments.clone(),
                    arguments: arguments.clone(),
                    pinned: pinned.clone(),
                    state: CallState::Awaiting,
                    suspensions: Vec::new(),
                    links: Vec::new(),
                    approved: None,
                    approver: None,
                    standing: None,
                    ruled_by: ruled_by.clone(),
                    origin: origin.clone(),
                    attempts: 0,
                    attempts_before_progress: 0,
                    started_at: None,
                    receipt: None,
                })
            }
            Event::Call { call, event } => {
                if let Some(call) = self.calls.get_mut(call.get()) {
                    call.apply(event);
                }
            }
        }
    }

    /// The effects that this host must perform in this state. A gated call runs only while its approval fits it
    /// exactly.
    pub fn effects(&self, owner: OwnerId) -> impl Iterator<Item = Effect> + '_ {
        self.indexed().filter_map(move |(index, call)| match &call.state {
            CallState::Running(running) if running.owner == owner && call.may_run() => {
                Some(Effect::Run { call: index, attempt: running.attempt })
            }
            CallState::Awaiting | CallState::Running(_) | CallState::Settled(_) => None,
        })
    }

    /// When the turn next needs attention without an input. `None` once it has ended. An open turn always has such a
    /// time, because every wait expires and every lease ends.
    #[must_use]
    pub fn next_due(&self) -> Option<Due> {
        self.next_due_besides(&[])
    }

    /// As [`Turn::next_due`], without these suspensions.
    #[must_use]
    pub fn next_due_besides(&self, left_out: &[SuspensionId]) -> Option<Due> {
        let times = self.calls.iter().filter_map(|call| match &call.state {
            CallState::Running(running) => Some((running.lease_end, true)),
            CallState::Awaiting => {
                let open = call.open().filter(|open| !left_out.contains(&open.id));
                open.map(|open| (open.due_at(), false))
            }
            CallState::Settled(_) => None,
        });
        times.fold(None, |due: Option<Due>, (at, running)| {
            Some(due.map_or(Due { at, running }, |due| Due { at: due.at.min(at), running: due.running || running }))
        })
    }

    /// The calls with their positions.
    pub fn indexed(&self) -> impl Iterator<Item = (CallIndex, &Call)> {
        (0..).map(CallIndex).zip(&self.calls)
    }

    /// The calls that wait, with their open suspensions.
    pub fn pending(&self) -> impl Iterator<Item = (CallIndex, &Call, &Suspension)> {
        self.indexed().filter_map(|(index, call)| call.open().map(|open| (index, call, open)))
    }

    /// Whether a principal may see a suspension and answer suspensions of its kind.
    fn may_answer(&self, by: &Principal, suspension: &Suspension, settings: &TurnSettings) -> Result<(), Refusal> {
        if !by.may_see(&self.conversation, &self.caller) {
            return Err(Refusal::Unknown);
        }
        Ok(by.may_answer(suspension.kind(), &self.caller, settings.own_calls)?)
    }

    /// Whether a guest runs, or will run without an answer.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Running(_)))
    }

    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, TurnState::Ended(..))
    }

    /// Who has voted or takes part in a delegation in an open approval, and since when.
    pub fn authorities(&self) -> impl Iterator<Item = (&PrincipalId, Timestamp)> {
        self.pending().filter_map(|(.., open)| open.approval()).flat_map(ApprovalRequest::authorities)
    }

    /// The call with the caller's id.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<(CallIndex, &Call)> {
        self.indexed().find(|(_, call)| call.id == *id)
    }

    /// A suspension of any of its calls, with how it was closed.
    #[must_use]
    pub fn suspension(&self, id: SuspensionId) -> Option<(CallIndex, &Call, &Suspension, Option<&Closed>)> {
        self.indexed().find_map(|(index, call)| {
            call.suspension(id).map(|(suspension, closed)| (index, call, suspension, closed.as_ref()))
        })
    }
}

impl Call {
    fn apply(&mut self, event: &CallEvent) {
        match event {
            CallEvent::Suspended { suspension } => {
                self.state = CallState::Awaiting;
                self.suspensions.push((suspension.as_ref().clone(), None));
            }
            CallEvent::ClientAwaited { grace_until } => {
                if let Some(SuspensionBody::ClientExec(work)) = self.open_mut().map(|open| &mut open.body) {
                    work.grace_until = *grace_until;
                }
            }
            CallEvent::Resolved { resolution, approved, by, at, .. } => {
                let is_inside = self.open().is_some_and(Suspension::is_inside);
                self.close(ClosedAs::Resolved(resolution.as_ref().clone()), by, *at);
                if let Some(arguments) = resolution.arguments.as_ref().filter(|_| !is_inside) {
                    self.arguments = arguments.clone();
                }
                if approved.is_some() {
                    self.approved = *approved;
                    self.approver = Some(by.clone());
                }
            }
            CallEvent::Covered { standing, approved, .. } => {
                self.approved = Some(*approved);
                self.approver = Some(standing.by.clone());
                self.standing = Some(standing.id);
            }
            CallEvent::Voted { vote, .. } => self.change_approval(|approval| {
                approval.votes.retain(|earlier| earlier.by != vote.by);
                approval.votes.push(vote.as_ref().clone());
            }),
            CallEvent::Delegated { delegation, .. } => self.change_approval(|approval| {
                approval.votes.retain(|earlier| earlier.by != delegation.from);
                approval.delegations.push(delegation.as_ref().clone());
            }),
            CallEvent::AuthorityRevoked { principal, .. } => {
                self.change_approval(|approval| approval.revoke(principal))
            }
            CallEvent::LinkMade { suspension, link, .. } => self.link_made(*suspension, link),
            CallEvent::LinkUsed { link, at, .. } => self.link_used(*link, *at),
            CallEvent::Escalated { at, .. } => {
                if let Some(open) = self.open_mut() {
                    open.escalate(*at);
                }
            }
            CallEvent::Expired { approved, at, .. } => {
                let system = PrincipalId::system();
                self.close(ClosedAs::Expired, &system, *at);
                if approved.is_some() {
                    self.approved = *approved;
                    self.approver = Some(system);
                }
            }
            CallEvent::Started { running, at } => {
                self.attempts = running.attempt;
                self.started_at.get_or_insert(*at);
                self.state = CallState::Running(*running);
            }
            CallEvent::Resumed { running, .. } => self.resume(*running),
            CallEvent::LeaseExtended { lease_end } => {
                if let CallState::Running(running) = &mut self.state {
                    running.lease_end = *lease_end;
                }
            }
            CallEvent::Settled { outcome, receipt, at } => {
                self.receipt = *receipt;
                self.close(ClosedAs::Withdrawn, &PrincipalId::system(), *at);
                self.state = CallState::Settled(outcome.clone());
            }
            // It made this call.
            CallEvent::Requested { .. } => {}
        }
    }

    fn resume(&mut self, running: Running) {
        self.attempts_before_progress = self.attempts.saturating_sub(1);
        self.state = CallState::Running(running);
    }

    fn open_mut(&mut self) -> Option<&mut Suspension> {
        match self.suspensions.last_mut() {
            Some((suspension, None)) => Some(suspension),
            _ => None,
        }
    }

    fn change_approval(&mut self, change: impl FnOnce(&mut ApprovalRequest)) {
        if let Some(approval) = self.open_mut().and_then(Suspension::approval_mut) {
            change(approval);
        }
    }

    /// Closes the open suspension, if there is one. A suspension is closed once.
    fn close(&mut self, how: ClosedAs, by: &PrincipalId, at: Timestamp) {
        if let Some((_, closed @ None)) = self.suspensions.last_mut() {
            *closed = Some(Closed { how, by: by.clone(), at });
        }
    }
}
