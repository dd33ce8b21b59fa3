//! Decisions: from a turn and an input to the facts that follow.
//!
//! A [`Draft`] is the turn as it will be. Each fact is applied to it as soon as it is decided, so that what follows from
//! a fact (a settled call that ends the turn, a denial that ends its siblings) is decided on the state after it.

use super::{Context, Input, Refusal, Rejection, Submission, Turn};
use crate::gate::Phase;
use crate::{
    Asked, Call, CallEvent, CallIndex, CallState, Editable, Event, Kind, OnExpiry, Outcome, Pinned, Plan, PromptBy,
    Receipt, Recovery, Role, Rule, Running, Span, Suspension, SuspensionId, Timestamp, TurnEnd, Verdict,
};

/// How long after a call must have ended its host still counts as running it.
const LEASE_SLACK: Span = Span::from_secs(30);

impl Turn {
    /// Decides what becomes of a submission: the facts, and the turn that they make.
    ///
    /// # Errors
    /// A [`Refusal`] of the whole turn; nothing of it happens.
    pub fn submit(submission: Submission, cx: &mut Context<'_>) -> Result<(Vec<Event>, Self), Refusal> {
        check(&submission, cx)?;
        let started = Event::TurnStarted {
            turn: submission.turn,
            conversation: submission.conversation.clone(),
            caller: submission.caller.clone(),
            rejection: submission.rejection,
            context: submission.context.clone(),
            at: cx.now,
        };
        let turn = Self {
            id: submission.turn,
            conversation: submission.conversation,
            caller: submission.caller,
            rejection: submission.rejection,
            context: submission.context,
            started_at: cx.now,
            calls: Vec::with_capacity(submission.calls.len()),
            state: super::TurnState::Open,
        };
        let mut draft = Draft { turn, events: vec![started] };
        for (index, requested) in (0..).map(CallIndex).zip(&submission.calls) {
            draft.record(
                index,
                CallEvent::Requested {
                    id: requested.id.clone(),
                    tool: requested.tool.clone(),
                    arguments: requested.arguments.clone(),
                    pinned: match &requested.plan {
                        Plan::Go(pinned) => Some(pinned.clone()),
                        Plan::Settle(_) => None,
                    },
                    ruled_by: requested.ruled_by.clone(),
                    origin: requested.origin.clone(),
                },
            );
        }
        // Calls are entered only once all of them exist: one that ends at once must not end the turn before the others.
        for (index, requested) in (0..).map(CallIndex).zip(submission.calls) {
            match (requested.plan, requested.result) {
                (Plan::Settle(outcome), _) | (Plan::Go(_), Some(outcome)) => draft.settle(index, outcome, cx),
                (Plan::Go(pinned), None) => match (pinned.phases().first(), requested.standing) {
                    (Some(Phase::Approve), Some(standing)) if pinned.may_be_covered(&requested.asked) => {
                        let approved = pinned.binding(&requested.arguments);
                        draft.record(index, CallEvent::Approved { standing, approved, at: cx.now });
                        draft.proceed(index, cx);
                    }
                    (first, _) => draft.enter(index, first, Some((requested.prompt, requested.asked)), cx),
                },
            }
        }
        Ok((draft.events, draft.turn))
    }

    /// Decides what follows from an input: the facts, and the turn after them. No facts: the input changes nothing.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing changes.
    pub fn decide(&self, input: Input, cx: &mut Context<'_>) -> Result<(Vec<Event>, Self), Refusal> {
        let mut draft = Draft { turn: self.clone(), events: Vec::new() };
        match input {
            Input::Resolve(resolve) => draft.resolve(*resolve, cx)?,
            Input::Delegate { suspension, by, to, comment } => draft.delegate(suspension, &by, to, comment, cx)?,
            Input::MakeLink { suspension, link } => draft.make_link(suspension, *link, cx)?,
            Input::UseLink { suspension, link, by } => draft.use_link(suspension, link, &by, cx)?,
            Input::Finished { call, attempt, outcome, receipt } => draft.finished(call, attempt, outcome, receipt, cx),
            Input::Cancel { by } => draft.cancel(&by, cx)?,
            Input::Tick { alive, attended, open_since, silent } => {
                draft.tick(&alive, &attended, open_since, &silent, cx);
            }
            Input::ClientsLeft { calls } => draft.clients_left(&calls, cx),
            Input::Restarted => draft.restarted(cx),
        }
        Ok((draft.events, draft.turn))
    }
}

fn check(submission: &Submission, cx: &Context<'_>) -> Result<(), Refusal> {
    // A call's position is sixteen bits wide.
    let (got, max) = (submission.calls.len(), cx.rules.max_calls.min(usize::from(u16::MAX)));
    if got == 0 || got > max {
        return Err(Refusal::CallCount { got, max });
    }
    let mut ids = std::collections::HashSet::with_capacity(got);
    for requested in &submission.calls {
        if !ids.insert(&requested.id) {
            return Err(Refusal::RepeatedId(requested.id.clone()));
        }
        if let Plan::Go(pinned) = &requested.plan {
            let recorded = pinned.phases().first() == Some(&Phase::Record);
            match &requested.result {
                None if recorded => return Err(Refusal::ResultMissing(requested.id.clone())),
                Some(_) if !recorded => return Err(Refusal::ResultGiven(requested.id.clone())),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The turn as it will be, and the facts that make it so.
pub(super) struct Draft {
    pub(super) turn: Turn,
    pub(super) events: Vec<Event>,
}

impl Draft {
    pub(super) fn push(&mut self, event: Event) {
        self.turn.apply(&event);
        self.events.push(event);
    }

    pub(super) fn record(&mut self, call: CallIndex, event: CallEvent) {
        self.push(Event::Call { call, event });
    }

    pub(super) fn call(&self, index: CallIndex) -> Option<&Call> {
        self.turn.calls.get(index.get())
    }

    /// The calls that have not ended.
    fn unsettled(&self) -> Vec<CallIndex> {
        self.turn.indexed().filter(|(_, call)| call.outcome().is_none()).map(|(index, _)| index).collect()
    }

    /// Takes a call into a phase of its life. `None`, the end of its phases, is reached only by a record that holds an
    /// illegal cell.
    fn enter(
        &mut self,
        index: CallIndex,
        phase: Option<&Phase>,
        question: Option<(Option<String>, Asked)>,
        cx: &mut Context<'_>,
    ) {
        let (prompt, asked) = question.unwrap_or_default();
        match phase {
            Some(Phase::Run) => self.start(index, cx),
            Some(Phase::Approve) => self.suspend(index, Kind::Approval, prompt, asked, cx),
            Some(Phase::Ask) => self.suspend(index, Kind::Elicitation, prompt, asked, cx),
            Some(Phase::Client) => self.suspend(index, Kind::ClientExec, None, Asked::default(), cx),
            Some(Phase::Record) | None => self.settle(index, Outcome::Invalidated, cx),
        }
    }

    /// Takes an approved call on to what comes after its approval.
    pub(super) fn proceed(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let after = self.call(index).and_then(|call| call.pinned.clone());
        let phase = after.as_ref().and_then(|pinned| pinned.phases().iter().find(|phase| **phase != Phase::Approve));
        self.enter(index, phase, None, cx);
    }

    /// Commits to running the guest. What the gate does not let through is not started, whatever led here.
    fn start(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        if !call.may_run() {
            return self.settle(index, Outcome::Invalidated, cx);
        }
        let running = Running {
            attempt: call.attempts + 1,
            owner: cx.owner,
            lease_end: cx.now + cx.rules.queue + pinned.timeout + LEASE_SLACK,
        };
        self.record(index, CallEvent::Started { running, at: cx.now });
    }

    fn pinned(&self, index: CallIndex) -> Option<(&Call, &Pinned)> {
        let call = self.call(index)?;
        Some((call, call.pinned.as_deref()?))
    }

    fn suspend(&mut self, index: CallIndex, kind: Kind, prompt: Option<String>, asked: Asked, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let Some(wait) = &pinned.wait else { return self.settle(index, Outcome::Invalidated, cx) };
        let can_stand = kind == Kind::Approval && super::votes::can_stand(call, &asked);
        let standing = asked.standing.or(cx.rules.standing).filter(|_| can_stand);
        let suspension = Suspension {
            id: SuspensionId::from_bits((cx.mint)()),
            kind,
            prompt,
            responses: wait.responses.clone().filter(|_| kind == Kind::Elicitation),
            response: if kind == Kind::ClientExec { wait.result.clone() } else { wait.response.clone() },
            editable: if kind == Kind::Approval { wait.editable.clone() } else { Editable::Nothing },
            created_at: cx.now,
            expires_at: cx.now + wait.expires,
            grace_until: (kind == Kind::ClientExec).then(|| cx.now + cx.rules.grace),
            on_expiry: match (&wait.on_expiry, kind) {
                // Only a question can be answered by a value, and only an approval can be given by silence.
                (OnExpiry::Answer(_), Kind::Approval | Kind::ClientExec)
                | (OnExpiry::Approve | OnExpiry::Deny, Kind::Elicitation | Kind::ClientExec) => OnExpiry::Error,
                // Nor is it given by silence where a rule asks for it.
                (OnExpiry::Approve, _) if asked.by.is_some() || !asked.needs.is_empty() => OnExpiry::Error,
                (on_expiry, _) => on_expiry.clone(),
            },
            digest: pinned.binding(&call.arguments),
            in_doubt: None,
            asked: Asked { standing, ..asked },
            escalated_at: None,
            votes: Vec::new(),
            delegations: Vec::new(),
        };
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
    }

    /// Ends a call, and the turn with its last one.
    pub(super) fn settle(&mut self, index: CallIndex, outcome: Outcome, cx: &Context<'_>) {
        self.settle_with(index, outcome, None, cx);
    }

    fn settle_with(&mut self, index: CallIndex, outcome: Outcome, receipt: Option<Receipt>, cx: &Context<'_>) {
        if self.call(index).is_none_or(|call| call.outcome().is_some()) {
            return;
        }
        self.record(index, CallEvent::Settled { outcome, receipt, at: cx.now });
        if !self.turn.is_ended() && self.turn.calls.iter().all(|call| call.outcome().is_some()) {
            let end = self.end();
            self.push(Event::TurnSettled { end, at: cx.now });
        }
    }

    /// How the turn ends, from the facts of this decision: what cancels or aborts a turn ends all its calls at once.
    fn end(&self) -> TurnEnd {
        let cancelled = self.events.iter().any(|event| matches!(event, Event::TurnCancelled { .. }));
        let denied = |event: &Event| {
            matches!(event, Event::Call { event: CallEvent::Settled { outcome: Outcome::Denied(_), .. }, .. })
        };
        let rejected = self.events.iter().any(denied) && self.events.iter().any(is_answer);
        match (cancelled, self.turn.rejection) {
            (true, _) => TurnEnd::Cancelled,
            (false, Rejection::AbortTurn) if rejected => TurnEnd::Aborted,
            (false, _) => TurnEnd::Settled,
        }
    }

    /// Ends a call by a no, and its siblings as the turn asked for.
    pub(super) fn deny(&mut self, index: CallIndex, reason: Option<String>, cx: &Context<'_>) {
        let siblings = match self.turn.rejection {
            Rejection::ContinueSiblings => Vec::new(),
            Rejection::CancelSiblings | Rejection::AbortTurn => self.unsettled(),
        };
        self.settle(index, Outcome::Denied(reason), cx);
        for sibling in siblings {
            self.settle(sibling, Outcome::CancelledBySibling, cx);
        }
    }

    fn finished(
        &mut self,
        index: CallIndex,
        attempt: u32,
        outcome: Outcome,
        receipt: Option<Receipt>,
        cx: &Context<'_>,
    ) {
        // A guest that was told to stop, or whose lease another host took over, has nothing to say any more.
        let current = |call: &Call| matches!(&call.state, CallState::Running(running) if running.attempt == attempt && running.owner == cx.owner);
        if self.call(index).is_some_and(current) {
            self.settle_with(index, outcome, receipt, cx);
        }
    }

    fn cancel(&mut self, by: &crate::Principal, cx: &Context<'_>) -> Result<(), Refusal> {
        let owner = by.id == self.turn.caller && by.roles.has(Role::Caller);
        if !owner && !by.roles.has(Role::Admin) {
            return Err(Refusal::NotAllowed("only its caller or an admin cancels a turn".into()));
        }
        if self.turn.is_ended() {
            return Ok(());
        }
        self.push(Event::TurnCancelled { by: by.id.clone(), at: cx.now });
        for index in self.unsettled() {
            self.settle(index, Outcome::Cancelled, cx);
        }
        Ok(())
    }

    fn tick(
        &mut self,
        alive: &[CallIndex],
        attended: &[CallIndex],
        open_since: Timestamp,
        silent: &[(SuspensionId, Verdict)],
        cx: &mut Context<'_>,
    ) {
        for index in self.unsettled() {
            let Some(call) = self.call(index) else { continue };
            match (&call.state, call.open()) {
                (CallState::Running(running), _) if running.lease_end <= cx.now => {
                    if running.owner == cx.owner && alive.contains(&index) {
                        let lease_end = cx.now + LEASE_SLACK;
                        self.record(index, CallEvent::LeaseExtended { lease_end });
                    } else {
                        self.recover(index, cx);
                    }
                }
                (_, Some(open)) if open.expires_at <= cx.now => {
                    let open = open.clone();
                    let judged = silent.iter().find(|(suspension, _)| *suspension == open.id);
                    self.expire(index, &open, judged.map(|(_, verdict)| verdict), cx);
                }
                (_, Some(open)) if open.next_escalation().is_some_and(|at| at <= cx.now) => {
                    let suspension = open.id;
                    self.record(index, CallEvent::Escalated { suspension, at: cx.now });
                }
                (_, Some(open)) if open.grace_until.is_some_and(|until| until <= cx.now) => {
                    // Clients of a host that was just started get the same grace as a call that was just made.
                    let grace = open_since + cx.rules.grace;
                    if attended.contains(&index) {
                        self.record(index, CallEvent::ClientAwaited { grace_until: None });
                    } else if grace > cx.now {
                        self.record(index, CallEvent::ClientAwaited { grace_until: Some(grace) });
                    } else {
                        self.settle(index, Outcome::Unavailable, cx);
                    }
                }
                _ => {}
            }
        }
    }

    /// Ends a wait that ran out. Where silence would approve, only what the policy made of the call just now counts.
    fn expire(&mut self, index: CallIndex, open: &Suspension, judged: Option<&Verdict>, cx: &mut Context<'_>) {
        let verdict = match judged {
            Some(verdict) if open.silence_approves() => verdict.clone(),
            None if open.silence_approves() => return,
            _ => Verdict::default(),
        };
        // A policy that names people asks for them, whatever else it says.
        let rule = if verdict.rule == Rule::Allow && !verdict.needs.is_empty() { Rule::Ask } else { verdict.rule };
        let approves = open.silence_approves() && rule == Rule::Allow;
        let approved = approves.then_some(open.digest);
        self.record(index, CallEvent::Expired { suspension: open.id, approved, at: cx.now });
        match &open.on_expiry {
            _ if open.in_doubt.is_some() => self.settle(index, Outcome::InDoubt, cx),
            OnExpiry::Error => self.settle(index, Outcome::Expired, cx),
            OnExpiry::Deny => self.deny(index, Some("nobody approved it in time".into()), cx),
            OnExpiry::Answer(value) => {
                self.settle(index, Outcome::Ok { value: value.clone(), trusted: true }, cx);
            }
            OnExpiry::Approve => match rule {
                Rule::Allow => self.proceed(index, cx),
                // Nothing that a rule asks for is approved by silence.
                Rule::Ask => self.settle(index, Outcome::Expired, cx),
                Rule::Deny => self.deny(index, Some(verdict.denial()), cx),
            },
        }
    }

    fn clients_left(&mut self, calls: &[CallIndex], cx: &Context<'_>) {
        for index in calls {
            let waits = |open: &Suspension| open.kind == Kind::ClientExec && open.grace_until.is_none();
            if self.call(*index).and_then(Call::open).is_some_and(waits) {
                let grace_until = Some(cx.now + cx.rules.grace);
                self.record(*index, CallEvent::ClientAwaited { grace_until });
            }
        }
    }

    fn restarted(&mut self, cx: &mut Context<'_>) {
        for index in self.unsettled() {
            let orphaned = |call: &Call| matches!(&call.state, CallState::Running(r) if r.owner != cx.owner);
            if self.call(index).is_some_and(orphaned) {
                self.recover(index, cx);
            }
        }
    }

    /// What becomes of a run that nobody is running any more: the tool says.
    fn recover(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        match pinned.recovery {
            Recovery::Retry if call.attempts < cx.rules.max_attempts => self.start(index, cx),
            Recovery::Retry | Recovery::Fail => self.settle(index, Outcome::InDoubt, cx),
            Recovery::Ask => {
                // Whoever had to approve it has to approve it again.
                let first = call.suspensions.first().map(|(first, _)| first.asked.clone()).unwrap_or_default();
                let (needs, context_keys) = (first.needs, first.context_keys);
                let suspension = Suspension {
                    id: SuspensionId::from_bits((cx.mint)()),
                    kind: Kind::Approval,
                    prompt: Some(
                        "The host stopped while this call ran, so it may have taken effect already. Approve to run it \
                         again, deny to leave it as it is."
                            .into(),
                    ),
                    responses: None,
                    response: None,
                    editable: Editable::Nothing,
                    created_at: cx.now,
                    expires_at: cx.now + pinned.wait.as_ref().map_or(Span::from_secs(86_400), |wait| wait.expires),
                    grace_until: None,
                    on_expiry: OnExpiry::Error,
                    digest: pinned.binding(&call.arguments),
                    in_doubt: Some(call.attempts),
                    asked: Asked { prompt_by: PromptBy::Host, needs, context_keys, ..Asked::default() },
                    escalated_at: None,
                    votes: Vec::new(),
                    delegations: Vec::new(),
                };
                self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
            }
        }
    }
}

fn is_answer(event: &Event) -> bool {
    matches!(event, Event::Call { event: CallEvent::Resolved { .. } | CallEvent::Expired { .. }, .. })
}
