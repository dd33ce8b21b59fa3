//! Performs the effects of a turn's state: starts the runs that are due and stops the others. Repeating this is safe.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use domain::{
    Call, CallIndex, ConversationId, OwnerId, Span, Turn, TurnId,
    call::{CallState, Level},
    effect::Effect,
    gate::RuleEffect,
    journal::JournalBounds,
    step::{Durable, RunEnd},
    turn::{EndedHosts, Finished, Input, LastRuns},
};
use futures::FutureExt;

use super::{CommitTo, Pipeline};
use crate::error::Error;
use crate::journal::{JournalWriter, UnreadJournal, last_run};
use crate::lingering::LeftBehind;
use crate::plan::CallScope;
use crate::ports::{End, FaultKind, Run, StoreFault};
use crate::recheck::Stepping;
use crate::stop::{RunningCall, StopSignal};
use crate::tracker::{Reservation, Ticket};
use crate::turns::{Entered, Slot};

/// The pause after the first run of a durable call that could not be continued. It doubles with each attempt.
const FIRST_PAUSE: Span = Span::from_secs(1);

const MAX_PAUSE: Span = Span::from_secs(60);

/// The pause between two attempts to record the end of a run, or to load a call, while the store fails.
const MAX_RECORD_PAUSE: Span = Span::from_secs(5);

/// How often the store may refuse the end of a run.
const MAX_REFUSED: u32 = 5;

impl Pipeline {
    /// Starts the runs that are due and stops the others. The calls of a new turn have their tickets from its
    /// reservation.
    pub(super) fn perform(
        self: &Arc<Self>,
        log: &mut CommitTo<'_>,
        slot: &mut Slot,
        turn: &Turn,
        mut reservation: Option<&mut Reservation>,
    ) {
        let due = turn.effects(self.shared.owner).map(|Effect::Run { call, attempt }| (call, attempt));
        let due: Vec<(CallIndex, u32)> = due.collect();
        slot.running.retain(|key, running| {
            let keep = due.contains(key);
            if !keep {
                running.stop(&self.shared);
            }
            keep
        });
        for (call, attempt) in due {
            if slot.running.contains_key(&(call, attempt)) {
                continue;
            }
            let ticket = reservation.as_mut().and_then(|reservation| reservation.ticket());
            let ticket = ticket.unwrap_or_else(|| self.tracker.ticket(&turn.caller));
            let stop = Arc::<StopSignal>::default();
            let running = match log {
                CommitTo::Store => {
                    // Entered here and not by the task: the call must be known as running before the task is first
                    // polled.
                    let entered = self.turns.enter(turn.id);
                    let run = self.clone().run_to_end(entered, call, attempt, ticket, stop.clone());
                    let (running, run) = RunningCall::new(stop, run);
                    self.shared.guest_runtime.spawn(run);
                    running
                }
                CommitTo::Memory(ephemeral) => {
                    let log = self.logs.begin_unstored(turn.id, call, attempt);
                    let Some(run) = self.runner.run_of(turn, call, log, &stop) else { continue };
                    let pipeline = self.clone();
                    let (running, run) = RunningCall::new(stop, async move {
                        let _permit = ticket.permit().await;
                        let runner = &pipeline.runner;
                        let end = match runner.permit(&run, None, false).await {
                            Ok(permit) => runner.run(run, permit).await,
                            Err(outcome) => End::unrun(outcome.into()),
                        };
                        (call, attempt, end)
                    });
                    ephemeral.add(&running, run.boxed());
                    running
                }
            };
            slot.running.insert((call, attempt), running);
        }
    }

    /// Runs a guest once its caller has a permit for it, and feeds its end back as the next input of its turn.
    async fn run_to_end(
        self: Arc<Self>,
        entered: Entered,
        call: CallIndex,
        attempt: u32,
        ticket: Ticket,
        stop: Arc<StopSignal>,
    ) {
        let id = entered.id();
        let permit = ticket.permit().await;
        if permit.waited {
            // Another host may have ended the call, or taken it over.
            entered.outdated(&mut *entered.lock().await);
        }
        // Made only now, so that a waiting call costs no copy of its arguments.
        let Some(due) = self.due_run(&entered, call, attempt, &stop).await else { return };
        let stepping = Stepping::of(due.scope, &due.run);
        let recheck_in = due.recheck.then_some(&stepping.scope);
        let left_behind = LeftBehind::by(&due.run, &self.shared.tools);
        let monitor = due.run.monitor.clone();
        let end = match self.runner.permit(&due.run, recheck_in, due.has_begun).await {
            Ok(permit) => match with_journal(due.run, due.journal).await {
                Ok(run) => self.runner.run(run, permit).await,
                Err(error) => {
                    tracing::error!(turn = %id, call = call.0, %error, "the journal of a call could not be read");
                    // The call stays recorded as running, and is recovered when its lease ends.
                    entered.lock().await.running.remove(&(call, attempt));
                    return;
                }
            },
            Err(outcome) => End::unrun(RunEnd::unrun(due.has_begun, outcome)),
        };
        // `wrote` needs no attention: the commit of the outcome also makes key-value data durable.
        let End { ended, receipt, wrote: _ } = end;
        drop(permit);
        let mut recorded = None;
        if let RunEnd::Repeating(failure) = &ended {
            tracing::warn!(turn = %id, call = call.0, attempt, %failure.message, "a durable call could not be continued");
            monitor.log(Level::Error, &format!("this run could not continue the call: {}", failure.message));
            recorded = self.last_run(id, call).await;
            let slot = entered.loaded(self.log.as_ref()).await.ok();
            let turn = slot.as_ref().and_then(|slot| slot.turn.as_ref());
            let known = turn.and_then(|(turn, _)| turn.calls.get(call.get()));
            let tries = known.map_or(1, |call| call.tries_since(recorded));
            drop(slot);
            if tries < self.shared.settings.max_attempts {
                stop.pause();
                self.shared.clock.sleep(pause_after(tries)).await;
            }
        }
        if stop.is_requested() {
            // The call has ended meanwhile.
            return;
        }
        let verdict = self.runner.recheck.on_step(&stepping, &ended).await;
        let finished = Finished { call, attempt, ended, verdict, receipt, recorded };
        if self.record_end(&entered, &stepping.scope.conversation, finished, &stop).await {
            left_behind.keep();
        }
    }

    /// Records the end of a run. If the store fails, it tries again: the call counts as running meanwhile, so nothing runs it again.
    /// Returns whether the call waits now.
    async fn record_end(
        self: &Arc<Self>,
        entered: &Entered,
        conversation: &ConversationId,
        finished: Finished,
        stop: &StopSignal,
    ) -> bool {
        let key = (finished.call, finished.attempt);
        let (mut pause, mut refused) = (FIRST_PAUSE, 0);
        loop {
            let error = match self.try_record_end(entered, conversation, &finished).await {
                Ok(waits) => return waits,
                Err(error) => error,
            };
            tracing::error!(turn = %entered.id(), call = key.0.0, %error, "the outcome of a call could not be recorded");
            match &error {
                Error::Fault(fault) if !error.is_damage() => refused += u32::from(fault.kind == FaultKind::Program),
                _ => refused = MAX_REFUSED,
            }
            if refused >= MAX_REFUSED {
                // The call stays recorded as running, and is recovered when its lease ends or the host restarts.
                entered.lock().await.running.remove(&key);
                return false;
            }
            self.shared.clock.sleep(pause).await;
            pause = Span::from_millis(pause.millis().saturating_mul(2)).min(MAX_RECORD_PAUSE);
            if stop.is_requested() {
                return false;
            }
        }
    }

    async fn try_record_end(
        self: &Arc<Self>,
        entered: &Entered,
        conversation: &ConversationId,
        finished: &Finished,
    ) -> Result<bool, Error> {
        let claimed = match finished.verdict.rule {
            // Nobody waits for the signal.
            RuleEffect::Deny => (finished.ended.clone(), None),
            RuleEffect::Allow | RuleEffect::Ask => self.signals.claimed(conversation, finished.ended.clone()).await?,
        };
        // Held until the wait is committed.
        let (ended, _claim) = claimed;
        let waits = matches!(ended, RunEnd::Waits(_));
        let recorded = self.step_from_memory(entered, |_, slot| {
            slot.ending = Some((finished.call, finished.attempt));
            Some(Input::Finished(Finished { ended: ended.clone(), ..finished.clone() }))
        });
        Ok(recorded.await? && waits)
    }

    /// The run of a call. If the store cannot be read, it tries again. `None`: nothing is to be run, or the call is recovered when its
    /// lease ends.
    async fn due_run(
        &self,
        entered: &Entered,
        call: CallIndex,
        attempt: u32,
        stop: &Arc<StopSignal>,
    ) -> Option<DueRun> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.run_of_call(entered, call, attempt, stop).await {
                Ok(run) => return run,
                Err(error) => error,
            };
            tracing::error!(turn = %entered.id(), call = call.0, %error, "a call to run could not be loaded");
            if error.is_damage() {
                entered.lock().await.running.remove(&(call, attempt));
                return None;
            }
            self.shared.clock.sleep(pause).await;
            pause = Span::from_millis(pause.millis().saturating_mul(2)).min(MAX_RECORD_PAUSE);
            if stop.is_requested() {
                return None;
            }
        }
    }

    /// The run of a call. `None`: nothing is to be run.
    async fn run_of_call(
        &self,
        entered: &Entered,
        call: CallIndex,
        attempt: u32,
        stop: &Arc<StopSignal>,
    ) -> Result<Option<DueRun>, StoreFault> {
        let mut slot = entered.loaded(self.log.as_ref()).await?;
        let is_due = |turn: &Turn| {
            turn.effects(self.shared.owner).any(|Effect::Run { call: due, attempt: of }| (due, of) == (call, attempt))
        };
        slot.turn.take_if(|(turn, _)| !is_due(turn));
        let journal = match &slot.turn {
            Some((turn, _)) => self.journal_of(turn, call).await?,
            None => None,
        };
        let run = slot.turn.as_ref().and_then(|(turn, _)| {
            // Each run has a log of its own, also one that continues a call after a step.
            let number = turn.calls.get(call.get()).map_or(attempt, Call::run);
            let run = self.runner.run_of(turn, call, self.logs.begin(turn.id, call, number), stop)?;
            // If the call waited, or another host ran it, the verdict of the policy may be old. No policy denies a durable
            // call that has begun.
            let waited = turn.calls.get(call.get()).is_none_or(|call| !call.suspensions.is_empty());
            let has_begun = run.durable.as_ref().is_some_and(Durable::has_begun)
                || journal.as_ref().is_some_and(|journal| journal.length > 0);
            let recheck = (waited || attempt > 1) && !has_begun;
            Some(DueRun { run, scope: CallScope::of(turn), journal, has_begun, recheck })
        });
        if run.is_none() {
            slot.running.remove(&(call, attempt));
        }
        Ok(run)
    }

    /// The hosts that have ended among the owners of a turn's running calls, and the last runs of these calls.
    pub(crate) async fn ended_hosts(&self, entered: &Entered) -> Result<EndedHosts, StoreFault> {
        let owners: BTreeSet<OwnerId> = match &entered.renewed(self.log.as_ref()).await?.turn {
            Some((turn, _)) => {
                turn.calls.iter().filter_map(Call::owner).filter(|of| *of != self.shared.owner).collect()
            }
            None => BTreeSet::new(),
        };
        let owners = match owners.is_empty() {
            true => Vec::new(),
            false => self.peers.ended_hosts(owners.into_iter().collect()).await?,
        };
        Ok(EndedHosts { owners, recorded: self.recorded(entered).await? })
    }

    /// The last run of each running durable call that recorded a result in its journal.
    async fn recorded(&self, entered: &Entered) -> Result<LastRuns, StoreFault> {
        let is_meant = |call: &Call| {
            matches!(call.state, CallState::Running(_)) && call.pinned.as_ref().is_some_and(|pinned| pinned.durable)
        };
        let calls: Vec<_> = match &entered.loaded(self.log.as_ref()).await?.turn {
            Some((turn, _)) => turn.indexed().filter(|(_, call)| is_meant(call)).map(|(index, _)| index).collect(),
            None => Vec::new(),
        };
        let mut recorded = Vec::new();
        for call in calls {
            recorded.extend(self.last_run(entered.id(), call).await.map(|run| (call, run)));
        }
        Ok(recorded)
    }

    /// The last run that recorded a result in the journal of a call.
    async fn last_run(&self, turn: TurnId, call: CallIndex) -> Option<u32> {
        last_run(self.journals.as_ref(), turn, call).await.unwrap_or_else(|error| {
            // The attempts still have a limit.
            tracing::error!(%turn, call = call.0, %error, "the journal of a call could not be read");
            None
        })
    }

    /// The journal of a durable call, after the commit that lets only this run append.
    async fn journal_of(&self, turn: &Turn, call: CallIndex) -> Result<Option<UnreadJournal>, StoreFault> {
        let durable =
            turn.calls.get(call.get()).filter(|call| call.pinned.as_ref().is_some_and(|pinned| pinned.durable));
        let Some(run) = durable.map(Call::run) else { return Ok(None) };
        let nothing = JournalBounds { entries: 0, bytes: 0 };
        let length = self.journals.journal_page(turn.id, call, 0, nothing).await?.length;
        let (committer, mint) = (self.committer.clone(), self.shared.mint.clone());
        let (logs, caller, summary) = (self.logs.clone(), turn.caller.clone(), Mutex::default());
        let writer = JournalWriter { committer, logs, turn: turn.id, call, run, caller, mint, summary };
        let (journals, bounds) = (self.journals.clone(), self.shared.settings.journal);
        Ok(Some(UnreadJournal { journals, writer, bounds, length }))
    }
}

/// A run that is due.
struct DueRun {
    run: Run,
    scope: CallScope,
    /// The journal of a durable call.
    journal: Option<UnreadJournal>,
    /// Whether an earlier run came to a step, or called a host function that is recorded.
    has_begun: bool,
    /// Whether the policy must be asked again first.
    recheck: bool,
}

/// The run with its journal.
async fn with_journal(run: Run, journal: Option<UnreadJournal>) -> Result<Run, StoreFault> {
    match journal {
        Some(journal) => journal.read_for(run).await,
        None => Ok(run),
    }
}

/// How long the host waits after this many attempts without progress.
fn pause_after(tries: u32) -> Span {
    let doubled = FIRST_PAUSE.millis().saturating_mul(2_u64.saturating_pow(tries.saturating_sub(1)));
    Span::from_millis(doubled).min(MAX_PAUSE)
}
