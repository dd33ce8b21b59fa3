//! Acting: what the state of a turn owes is started, what it no longer owes is stopped. Both are safe to repeat.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{CallIndex, Effect, Failure, FailureCode, Input, Json, Outcome, Rule, Turn, TurnId};
use futures::FutureExt;

use crate::dispatcher::Inner;
use crate::feed::{Live, LiveReport};
use crate::idempotency;
use crate::ledger::{Admission, Ticket};
use crate::plan::{Asker, denied};
use crate::ports::{End, Run};
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
        let Some((run, again)) = self.owed(&entered, id, call, attempt, &stop).await else { return };
        let End { outcome, receipt, .. } = self.run(run, again).await;
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

    /// What is to be run, and whose it is where the policy is to be asked again. Without it the call stays recorded as running,
    /// and is recovered when its lease ends.
    async fn owed(
        self: &Arc<Self>,
        entered: &Entered,
        id: TurnId,
        call: CallIndex,
        attempt: u32,
        stop: &Arc<Stop>,
    ) -> Option<(Run, Option<Asker>)> {
        let mut slot = entered.lock().await;
        if slot.turn.is_none() {
            slot.turn = self.load(id).await.inspect_err(|error| tracing::error!(turn = %id, %error)).ok().flatten();
        }
        let run = slot.turn.as_ref().and_then(|(turn, _)| {
            let run = self.run_of(turn, call, attempt, stop)?;
            // It decided about the call some time ago where that waited, or another host ran it.
            let waited = turn.calls.get(call.get()).is_none_or(|call| !call.suspensions.is_empty());
            Some((run, (waited || attempt > 1).then(|| Asker::of(turn))))
        });
        if run.is_none() {
            slot.running.remove(&(call, attempt));
        }
        run
    }

    /// Runs a guest, unless the policy, asked `again`, denies the call by now. A panic on the way is the host's fault and still an
    /// outcome.
    pub(crate) async fn run(&self, run: Run, again: Option<Asker>) -> End {
        let tool = run.tool.clone();
        let end = async {
            if let Some(asker) = again {
                match self.judge(&asker, &run.pinned, &run.tool, &run.arguments).await {
                    Ok(verdict) if verdict.rule == Rule::Deny => return End::unrun(denied(&verdict)),
                    Ok(_) => {}
                    Err(outcome) => return End::unrun(outcome),
                }
            }
            self.parts.tools.run(run).await
        };
        AssertUnwindSafe(end).catch_unwind().await.unwrap_or_else(|_| {
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
