//! Decisions: from a turn and an input to events.
//!
//! A [`Draft`] is the turn as it will be. It applies each event as soon as the event is decided. So consequences, such
//! as the end of a turn with its last call, are decided on the state after the event.

use super::{Context, EndedHosts, Finished, Input, Submission, Tick, Turn};
use crate::gate::Phase;
use crate::{
    Call, CallIndex, Event, Outcome, Receipt, Refusal, Span, Suspension, SuspensionId,
    call::{CallState, Pinned, Plan, Running, Wait},
    event::{CallEvent, Rejection, TurnEnd},
    gate::{RuleEffect, Verdict},
    outcome::{Failure, FailureCode},
    principal::Role,
    refusal::NotAllowed,
    step::RunEnd,
    suspension::{ApprovalExpiry, ApprovalRequest, Asked, ClientExec, Elicitation, SuspensionBody},
    tool::{OnExpiry, Recovery},
};

/// A lease ends this long after the call must have ended.
const LEASE_SLACK: Span = Span::from_secs(30);

impl Turn {
    /// Decides about a submission: the events, and the turn that they make.
    ///
    /// # Errors
    /// A [`Refusal`] of the whole turn. Nothing happens.
    pub fn submit(submission: Submission, cx: &mut Context<'_>) -> Result<(Vec<Event>, Self), Refusal> {
        check(&submission, cx)?;
        let started = Event::TurnStarted {
            turn: submission.turn,
            conversation: submission.conversation.clone(),
            caller: submission.caller.clone(),
            rejection: submission.rejection,
            context: submission.context.clone(),
            parent: submission.parent.clone(),
            at: cx.now,
        };
        let turn = Self {
            id: submission.turn,
            conversation: submission.conversation,
            caller: submission.caller,
            rejection: submission.rejection,
            context: submission.context,
            parent: submission.parent,
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
        // Calls are entered once all of them exist. A call that ends at once must not end the turn before the others.
        for (index, requested) in (0..).map(CallIndex).zip(submission.calls) {
            match (requested.plan, requested.result) {
                (Plan::Settle(outcome), _) | (Plan::Go(_), Some(outcome)) => draft.settle(index, outcome, cx),
                (Plan::Go(pinned), None) => match (pinned.phases().first(), requested.standing) {
                    (Some(Phase::Approve), Some(standing)) if pinned.may_be_covered(&requested.asked) => {
                        let approved = pinned.binding(&requested.arguments);
                        draft.record(index, CallEvent::Covered { standing, approved, at: cx.now });
                        draft.proceed(index, cx);
                    }
                    (first, _) => draft.enter(index, first, requested.asked, cx),
                },
            }
        }
        Ok((draft.events, draft.turn))
    }

    /// Decides about an input: the events, and the turn after them. Without events, the input changes nothing.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing changes.
    pub fn decide(&self, input: Input, cx: &mut Context<'_>) -> Result<(Vec<Event>, Self), Refusal> {
        let mut draft = Draft { turn: self.clone(), events: Vec::new() };
        match input {
            Input::Resolve(resolve) => draft.resolve(*resolve, cx)?,
            Input::ResolveByLink { answer, link } => draft.resolve_by_link(*answer, link, cx)?,
            Input::Delegate { suspension, by, to, comment } => draft.delegate(suspension, &by, to, comment, cx)?,
            Input::Revoked { principals } => draft.revoke(&principals, cx),
            Input::MakeLink { suspension, link } => draft.make_link(suspension, *link, cx)?,
            Input::UseLink { suspension, link, by } => draft.use_link(suspension, link, &by, cx)?,
            Input::Finished(finished) => draft.finished(finished, cx),
            Input::Returned { turn, results } => draft.returned(turn, results, cx),
            Input::Cancel { by } => draft.cancel(&by, cx)?,
            Input::Tick(tick) => draft.tick(&tick, cx),
            Input::ClientsLeft { calls } => draft.clients_left(&calls, cx),
            Input::HostsEnded(ended) => draft.hosts_ended(&ended, cx),
        }
        Ok((draft.events, draft.turn))
    }
}

fn check(submission: &Submission, cx: &Context<'_>) -> Result<(), Refusal> {
    // A call's position is sixteen bits wide.
    let (got, max) = (submission.calls.len(), cx.settings.max_calls.min(usize::from(u16::MAX)));
    Refusal::of_count(got, max)?;
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

/// The turn as it will be, and the events that lead to it.
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

    /// Moves a call to a phase of its life. `None` comes after the last phase. Only a record with an illegal cell of
    /// the matrix leads there.
    fn enter(&mut self, index: CallIndex, phase: Option<&Phase>, asked: Asked, cx: &mut Context<'_>) {
        match phase {
            Some(Phase::Run) => self.start(index, cx),
            Some(Phase::Approve) => {
                let is_nested = self.turn.parent.is_some();
                self.suspend(index, cx, |call, wait, cx| approval(call, wait, asked, is_nested, cx));
            }
            Some(Phase::Question) => self.suspend(index, cx, |_, wait, _| question(wait, asked)),
            Some(Phase::Client) => self.suspend(index, cx, |_, wait, cx| work(wait, cx)),
            Some(Phase::Record) | None => self.settle(index, Outcome::Invalidated, cx),
        }
    }

    /// Moves an approved call to the phase after its approval.
    pub(super) fn proceed(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let after = self.call(index).and_then(|call| call.pinned.clone());
        let phase = after.as_ref().and_then(|pinned| pinned.phases().iter().find(|phase| **phase != Phase::Approve));
        self.enter(index, phase, Asked::default(), cx);
    }

    /// Commits to running the guest, if the gate lets the call through.
    fn start(&mut self, index: CallIndex, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        if !call.may_run() {
            return self.settle(index, Outcome::Invalidated, cx);
        }
        let running = running(call.attempts + 1, pinned, cx);
        self.record(index, CallEvent::Started { running, at: cx.now });
    }

    pub(super) fn pinned(&self, index: CallIndex) -> Option<(&Call, &Pinned)> {
        let call = self.call(index)?;
        Some((call, call.pinned.as_deref()?))
    }

    fn suspend(
        &mut self,
        index: CallIndex,
        cx: &mut Context<'_>,
        body: impl FnOnce(&Call, &Wait, &Context<'_>) -> SuspensionBody,
    ) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        let Some(wait) = &pinned.wait else { return self.settle(index, Outcome::Invalidated, cx) };
        let suspension = Suspension {
            id: SuspensionId::from_bits((cx.mint)()),
            created_at: cx.now,
            expires_at: cx.now + wait.expires,
            digest: pinned.binding(&call.arguments),
            step: None,
            body: body(call, wait, cx),
        };
        self.record(index, CallEvent::Suspended { suspension: Box::new(suspension) });
    }

    /// Ends a call, and the turn with its last one.
    pub(super) fn settle(&mut self, index: CallIndex, outcome: Outcome, cx: &Context<'_>) {
        self.settle_with(index, outcome, None, cx);
    }

    pub(super) fn settle_with(
        &mut self,
        index: CallIndex,
        outcome: Outcome,
        receipt: Option<Receipt>,
        cx: &Context<'_>,
    ) {
        if self.call(index).is_none_or(|call| call.outcome().is_some()) {
            return;
        }
        let outcome = self.within(outcome, cx.settings.turn_results);
        let receipt = self.call(index).and_then(|call| Receipt::of_runs(call.receipts_of_steps().chain(receipt)));
        self.record(index, CallEvent::Settled { outcome, receipt, at: cx.now });
        if !self.turn.is_ended() && self.turn.calls.iter().all(|call| call.outcome().is_some()) {
            let end = self.end();
            self.push(Event::TurnSettled { end, at: cx.now });
        }
    }

    /// The outcome, unless the results of the turn would have more bytes than `max` with it.
    fn within(&self, outcome: Outcome, max: usize) -> Outcome {
        let Outcome::Ok { value, .. } = &outcome else { return outcome };
        let others = self.turn.calls.iter().filter_map(Call::outcome).map(Outcome::size).sum::<usize>();
        if value.size() <= max.saturating_sub(others) {
            return outcome;
        }
        let size = value.size();
        let message = format!(
            "the call was carried out, and its result of {size} bytes is dropped: with it, the results of this turn \
             would have more than {max} bytes (`turn_results_bytes`). Ask for less, or in another turn"
        );
        Outcome::Failed(Failure::new(FailureCode::LimitExceeded, message))
    }

    /// How the turn ends. A cancellation or an abort ends all calls in one decision, so its events name the
    /// cause.
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

    /// Ends a call with a denial, and its siblings as the turn asked for.
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

    fn finished(&mut self, finished: Finished, cx: &mut Context<'_>) {
        let Finished { call: index, attempt, ended, verdict, receipt, recorded } = finished;
        if !self.is_current(index, attempt, cx) {
            return;
        }
        match ended {
            RunEnd::Outcome(outcome) => self.settle_with(index, self.marked(index, outcome), receipt, cx),
            RunEnd::Waits(step) => self.wait(index, step, &verdict, receipt, cx),
            RunEnd::Repeating(_) => self.recover(index, recorded, cx),
            RunEnd::InDoubt(requests) => self.doubt(index, requests, receipt, cx),
        }
    }

    /// Whether this run of a call counts. A guest that was stopped, or whose lease another host took over, does not.
    fn is_current(&self, index: CallIndex, attempt: u32, cx: &Context<'_>) -> bool {
        self.call(index).is_some_and(|call| match &call.state {
            CallState::Running(running) => running.attempt == attempt && running.owner == cx.owner,
            CallState::Awaiting | CallState::Settled(_) => false,
        })
    }

    fn cancel(&mut self, by: &crate::Principal, cx: &Context<'_>) -> Result<(), Refusal> {
        let owner = by.id == self.turn.caller && by.roles.has(Role::Caller);
        if !owner && !by.roles.has(Role::Admin) {
            return Err(NotAllowed::NotYourTurn.into());
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

    fn tick(&mut self, tick: &Tick, cx: &mut Context<'_>) {
        for index in self.unsettled() {
            let Some(call) = self.call(index) else { continue };
            match (&call.state, call.open()) {
                (CallState::Running(running), _) if running.lease_end <= cx.now => {
                    let is_own = running.owner == cx.owner;
                    if is_own && tick.alive.contains(&index) {
                        let lease_end = cx.now + LEASE_SLACK;
                        self.record(index, CallEvent::LeaseExtended { lease_end });
                    } else if is_own || tick.ended.owners.contains(&running.owner) {
                        self.recover(index, last_run(&tick.ended.recorded, index), cx);
                    }
                }
                (_, Some(open)) if open.expires_at <= cx.now => {
                    let open = open.clone();
                    let verdict = tick.rechecked.iter().find(|(suspension, _)| *suspension == open.id);
                    self.expire(index, &open, verdict.map(|(_, verdict)| verdict), cx);
                }
                (_, Some(open)) if open.next_escalation().is_some_and(|at| at <= cx.now) => {
                    let suspension = open.id;
                    self.record(index, CallEvent::Escalated { suspension, at: cx.now });
                }
                (_, Some(open)) if open.grace_until().is_some_and(|until| until <= cx.now) => {
                    // After a start of the host, clients get the same grace period as after a call.
                    let grace = tick.open_since + cx.settings.grace;
                    if tick.attended.contains(&index) {
                        self.record(index, CallEvent::ClientAwaited { grace_until: None });
                    } else if grace > cx.now {
                        self.record(index, CallEvent::ClientAwaited { grace_until: Some(grace) });
                    } else {
                        self.settle(index, Outcome::Unavailable, cx);
                    }
                }
                // Nothing is due.
                (CallState::Awaiting | CallState::Running(_) | CallState::Settled(_), _) => {}
            }
        }
    }

    /// Ends a wait that expired. A timeout approval needs a recheck of the policy: without one, the wait continues.
    fn expire(&mut self, index: CallIndex, open: &Suspension, rechecked: Option<&Verdict>, cx: &mut Context<'_>) {
        let verdict = match rechecked {
            _ if !open.timeout_approves() => None,
            None => return,
            verdict => verdict,
        };
        let rule = verdict.map(|verdict| match verdict.rule {
            // A policy that names people asks for them.
            RuleEffect::Allow if !verdict.needs.is_empty() => RuleEffect::Ask,
            rule => rule,
        });
        let approved = (rule == Some(RuleEffect::Allow)).then_some(open.digest);
        self.record(index, CallEvent::Expired { suspension: open.id, approved, at: cx.now });
        if open.step.is_some() {
            return self.resume(index, cx);
        }
        match &open.body {
            SuspensionBody::Approval(approval) if approval.doubt.is_some() => self.settle(index, Outcome::InDoubt, cx),
            SuspensionBody::Approval(approval) => match (approval.on_expiry, rule, verdict) {
                (ApprovalExpiry::Deny, ..) => self.deny(index, Some("nobody approved it in time".into()), cx),
                (ApprovalExpiry::Approve, Some(RuleEffect::Allow), _) => self.proceed(index, cx),
                (ApprovalExpiry::Approve, Some(RuleEffect::Deny), Some(verdict)) => {
                    self.deny(index, Some(verdict.denial()), cx);
                }
                // A timeout never grants an approval that a rule asks for.
                (ApprovalExpiry::Approve | ApprovalExpiry::Expire, ..) => self.settle(index, Outcome::Expired, cx),
            },
            SuspensionBody::Elicitation(Elicitation { default: Some(value), .. }) => {
                self.settle(index, Outcome::Ok { value: value.clone(), trusted: true }, cx);
            }
            SuspensionBody::Elicitation(_)
            | SuspensionBody::ClientExec(_)
            | SuspensionBody::External(_)
            | SuspensionBody::Nested(_)
            | SuspensionBody::Timer
            | SuspensionBody::RateLimit => self.settle(index, Outcome::Expired, cx),
        }
    }

    fn clients_left(&mut self, calls: &[CallIndex], cx: &Context<'_>) {
        for index in calls {
            let waits = |open: &Suspension| {
                matches!(open.body, SuspensionBody::ClientExec(ClientExec { grace_until: None, .. }))
            };
            if self.call(*index).and_then(Call::open).is_some_and(waits) {
                let grace_until = Some(cx.now + cx.settings.grace);
                self.record(*index, CallEvent::ClientAwaited { grace_until });
            }
        }
    }

    fn hosts_ended(&mut self, ended: &EndedHosts, cx: &mut Context<'_>) {
        for index in self.unsettled() {
            let is_left = |call: &Call| matches!(&call.state, CallState::Running(r) if ended.owners.contains(&r.owner));
            if self.call(index).is_some_and(is_left) {
                self.recover(index, last_run(&ended.recorded, index), cx);
            }
        }
    }

    /// Handles a run whose host no longer exists, as the tool declares.
    fn recover(&mut self, index: CallIndex, recorded: Option<u32>, cx: &mut Context<'_>) {
        let Some((call, pinned)) = self.pinned(index) else { return };
        // A run of a durable call repeats nothing that was done. Requests in doubt are decided before its guest starts.
        let recovery = if pinned.durable { Recovery::Retry } else { pinned.recovery };
        match recovery {
            Recovery::Retry if call.tries_since(recorded) < cx.settings.max_attempts => self.start(index, cx),
            Recovery::Retry | Recovery::Fail => self.settle(index, Outcome::InDoubt, cx),
            Recovery::Ask => self.ask_again(index, cx),
        }
    }
}

/// The last run of a call that recorded a result.
fn last_run(recorded: &[(CallIndex, u32)], index: CallIndex) -> Option<u32> {
    recorded.iter().find(|(call, _)| *call == index).map(|(_, run)| *run)
}

/// A run of a call that begins now.
pub(super) fn running(attempt: u32, pinned: &Pinned, cx: &Context<'_>) -> Running {
    Running { attempt, owner: cx.owner, lease_end: cx.now + cx.settings.queue + pinned.timeout + LEASE_SLACK }
}

/// An approval of a call.
fn approval(call: &Call, wait: &Wait, asked: Asked, is_nested: bool, cx: &Context<'_>) -> SuspensionBody {
    let is_declared = asked.about.by.is_none() && asked.needs.is_empty();
    SuspensionBody::Approval(ApprovalRequest {
        editable: wait.editable.clone(),
        // A plugin chose the arguments of a nested call.
        standing: cx.settings.standing.filter(|_| !is_nested && call.may_have_standing(&asked)),
        on_expiry: match &wait.on_expiry {
            OnExpiry::Deny => ApprovalExpiry::Deny,
            // A timeout never grants an approval that a rule asks for.
            OnExpiry::Approve if is_declared => ApprovalExpiry::Approve,
            OnExpiry::Approve | OnExpiry::Error | OnExpiry::Answer(_) => ApprovalExpiry::Expire,
        },
        ..ApprovalRequest::new(asked)
    })
}

/// A question to a person.
fn question(wait: &Wait, asked: Asked) -> SuspensionBody {
    let default = match &wait.on_expiry {
        OnExpiry::Answer(answer) => Some(answer.clone()),
        OnExpiry::Error | OnExpiry::Deny | OnExpiry::Approve => None,
    };
    let (choices, data_schema) = (wait.choices.clone(), wait.data_schema.clone());
    SuspensionBody::Elicitation(Elicitation { asked, choices, data_schema, default, escalated_at: None })
}

/// Work for a client.
fn work(wait: &Wait, cx: &Context<'_>) -> SuspensionBody {
    SuspensionBody::ClientExec(ClientExec {
        result_schema: wait.result_schema.clone(),
        grace_until: Some(cx.now + cx.settings.grace),
    })
}

fn is_answer(event: &Event) -> bool {
    matches!(event, Event::Call { event: CallEvent::Resolved { .. } | CallEvent::Expired { .. }, .. })
}
