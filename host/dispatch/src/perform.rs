//! Acting: what the state of a turn owes is started, what it no longer owes is stopped. Both are safe to repeat.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{Call, CallIndex, Effect, Failure, FailureCode, Input, Json, Outcome, Rule, Turn, TurnId};
use futures::FutureExt;

use crate::dispatcher::Inner;
use crate::feed::{Live, LiveReport};
use crate::idempotency;
use crate::ledger::{Admission, Ticket};
use crate::plan::{Asker, GONE, denied};
use crate::ports::{End, Question, Run};
use crate::stop::{Running, Stop};
use crate::turns::{Entered, Slot};

impl Inner {
    /// Brings what runs in line with what the turn owes.
    /// Calls of a turn that has just begun have their tickets from its admission.
    pub(crate) fn perform(self: &Arc<Self>, turn: &Turn, slot: &mut Slot, mut admission: Option<&mut Admission>) {
        let due: Vec<(CallIndex, u32)> =
            turn.due(self.owner).map(|Effect::Run { call, attempt }| (call, attempt)).collect();
        slot.running.retain(|key, running| {
            let keep = due.contains(key);
            if !keep {
                running.stop(&self.parts);
            }
            keep
        });
        for (call, attempt) in due {
            if slot.running.contains_key(&(call, attempt)) {
                continue;
            }
            let ticket = admission.as_mut().and_then(|admission| admission.ticket());
            let ticket = ticket.unwrap_or_else(|| self.ledger.ticket(&turn.caller));
            // Entered here and not by the task: until the task is polled for the first time, nothing else may forget that
            // this call is being run.
            let entered = self.turns.enter(turn.id);
            let stop = Arc::<Stop>::default();
            let run = self.clone().run_to_end(entered, turn.id, call, attempt, ticket, stop.clone());
            let (running, run) = Running::new(stop, run);
            self.parts.guests.spawn(run);
            slot.running.insert((call, attempt), running);
        }
    }

    /// Runs a guest once it is its caller's turn, and feeds its end back as the next input of its turn.
    async fn run_to_end(
        self: Arc<Self>,
        entered: Entered,
        id: TurnId,
        call: CallIndex,
        attempt: u32,
        ticket: Ticket,
        stop: Arc<Stop>,
    ) {
        let place = ticket.place().await;
        // Made only now: a call that waits costs no copy of what it will run with.
        let mut owed = self.owed(&entered, id, call, attempt, &stop).await;
        let mut unknown = Outcome::Denied(Some(GONE.into()));
        if let Some((run, Before::Unknown)) = &owed {
            let recalled = self.parts.tools.recall(&run.pinned).await;
            match recalled {
                Ok(()) => owed = self.owed(&entered, id, call, attempt, &stop).await,
                Err(outcome) => unknown = outcome,
            }
        }
        let Some((run, before)) = owed else { return };
        let End { outcome, receipt, .. } = match before {
            Before::Nothing => self.run(run).await,
            Before::Judge(question) => self.run_after(question, run).await,
            Before::Unknown => End::unrun(unknown),
        };
        drop(place);
        if stop.is_requested() {
            // The call has ended without it.
            return;
        }
        let finished = self.step(&entered, id, |_, slot| {
            // The task is about to end by itself; nobody may stop it while it commits.
            slot.running.remove(&(call, attempt));
            Some(Input::Finished { call, attempt, outcome: outcome.clone(), receipt })
        });
        if let Err(error) = finished.await {
            // The call stays recorded as running, and is recovered when its lease ends or the host restarts.
            tracing::error!(turn = %id, call = call.0, %error, "the outcome of a call could not be recorded");
        }
    }

    /// What is to be run. Without it the call stays recorded as running, and is recovered when its lease ends.
    async fn owed(
        self: &Arc<Self>,
        entered: &Entered,
        id: TurnId,
        call: CallIndex,
        attempt: u32,
        stop: &Arc<Stop>,
    ) -> Option<(Run, Before)> {
        let mut slot = entered.lock().await;
        if slot.turn.is_none() {
            slot.turn = self.load(id).await.inspect_err(|error| tracing::error!(turn = %id, %error)).ok().flatten();
        }
        let run = slot.turn.as_ref().and_then(|(turn, _)| {
            let run = self.run_of(turn, call, attempt, stop)?;
            Some((run, self.before(turn, call, attempt)?))
        });
        if run.is_none() {
            slot.running.remove(&(call, attempt));
        }
        run
    }

    /// The policy is asked again where it decided about the call some time ago: it waited, or another host ran it.
    fn before(&self, turn: &Turn, index: CallIndex, attempt: u32) -> Option<Before> {
        let call = turn.calls.get(index.get())?;
        if attempt == 1 && call.suspensions.is_empty() {
            return Some(Before::Nothing);
        }
        Some(self.question(turn, call).map_or(Before::Unknown, Before::Judge))
    }

    /// A call as it is now, for the policy. `None`: its component is gone.
    pub(crate) fn question(&self, turn: &Turn, call: &Call) -> Option<Question> {
        let pinned = call.pinned.as_ref()?;
        let live = self.parts.tools.pinned(&pinned.plugin, pinned.component, &call.tool)?;
        let (caller, conversation) = (&turn.caller, &turn.conversation);
        Some(Asker { caller, conversation, context: turn.context.as_ref() }.question(&live, &call.arguments))
    }

    /// Runs a guest unless the policy denies the call by now: calls wait for days and are recovered after restarts.
    async fn run_after(&self, question: Question, run: Run) -> End {
        let verdict = self.parts.policy.judge(question).await;
        if verdict.rule == Rule::Deny { End::unrun(denied(&verdict)) } else { self.run(run).await }
    }

    /// Runs a guest. A panic on the way is the host's fault and still an outcome.
    pub(crate) async fn run(&self, run: Run) -> End {
        let tool = run.tool.clone();
        AssertUnwindSafe(self.parts.tools.run(run)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%tool, "the host panicked while it ran a guest");
            let message = "the host failed while it ran this call";
            End::unrun(Outcome::Failed(Failure::new(FailureCode::HostFault, message)))
        })
    }

    /// What running this call means.
    pub(crate) fn run_of(
        self: &Arc<Self>,
        turn: &Turn,
        index: CallIndex,
        attempt: u32,
        stop: &Arc<Stop>,
    ) -> Option<Run> {
        let call = turn.calls.get(index.get())?;
        let pinned = call.pinned.clone()?;
        Some(Run {
            tool: call.tool.clone(),
            call: call.id.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: idempotency::key(turn, call),
            attempt,
            scope: scope(turn, index),
            report: Arc::new(LiveReport::new(
                self.clone(),
                turn,
                index,
                call.id.clone(),
                pinned.streaming,
                stop.clone(),
            )),
            pinned,
        })
    }

    /// Tells the live plane of a conversation. Nobody may be listening.
    pub(crate) fn publish(&self, turn: &Turn, live: Live) {
        self.feeds.live(&turn.conversation, &turn.caller, live);
    }
}

/// What comes before a run.
enum Before {
    /// Nothing: the policy has just decided about the call.
    Nothing,
    /// This is asked.
    Judge(Question),
    /// The policy is to be asked, and nothing is known of the component.
    Unknown,
}

/// The scope that a guest sees. Ids and principals hold no character that JSON escapes, and the context is JSON already.
fn scope(turn: &Turn, index: CallIndex) -> Json {
    let mut scope =
        format!(r#"{{"conversation":"{}","turn":"{}","caller":"{}""#, turn.conversation, turn.id, turn.caller);
    if let Some(approver) = turn.calls.get(index.get()).and_then(|call| call.approver.as_ref()) {
        scope.push_str(&format!(r#","approver":"{approver}""#));
    }
    if let Some(context) = &turn.context {
        scope.push_str(&format!(r#","context":{context}"#));
    }
    scope.push('}');
    Json::new(scope)
}
