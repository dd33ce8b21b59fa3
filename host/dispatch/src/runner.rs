//! Runs one guest: its inputs, and the outcome if the policy denies the run or the host fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{
    Call, CallIndex, Json, Outcome, Receipt, Turn,
    gate::{Rule, Verdict},
    journal::{Entry, JournalBounds},
    outcome::{Failure, FailureCode},
    step::Durable,
};
use futures::FutureExt;

use crate::feed::{Feeds, LiveMonitor};
use crate::idempotency;
use crate::plan::{CallScope, denied};
use crate::ports::{End, Log, Run, RunJournal, Tools};
use crate::recheck::Recheck;
use crate::run_logs::RunWriter;
use crate::shared::Shared;
use crate::stop::StopSignal;

pub(crate) struct Runner {
    tools: Arc<dyn Tools>,
    pub(crate) recheck: Recheck,
    feeds: Arc<Feeds>,
}

impl Runner {
    pub(crate) fn new(shared: &Shared, log: Arc<dyn Log>, feeds: Arc<Feeds>) -> Self {
        let recheck = Recheck { tools: shared.tools.clone(), policy: shared.policy.clone(), log };
        Self { tools: shared.tools.clone(), recheck, feeds }
    }

    /// Runs a guest. With `recheck_in` the policy is asked again first, and a call that it denies does not run. A panic
    /// is a failure of the host, and an outcome like any other.
    pub(crate) async fn run(&self, run: Run, recheck_in: Option<&CallScope>) -> End {
        let (tool, durable) = (run.tool.clone(), run.durable.clone());
        let journal = run.journal.as_ref().map(|(journal, _)| journal.clone());
        let end = async {
            if let Some(scope) = recheck_in {
                match self.verdict(scope, &run).await {
                    Ok(verdict) if verdict.rule == Rule::Deny => return End::unrun(denied(&verdict).into()),
                    Ok(_) => {}
                    Err(outcome) => return End::unrun(outcome.into()),
                }
            }
            self.tools.run(run).await
        };
        let end = AssertUnwindSafe(end).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%tool, "the host panicked while it ran a guest");
            let message = "the host failed while it ran this call";
            End::unrun(Durable::unrun(durable.as_ref(), Outcome::Failed(Failure::new(FailureCode::HostFault, message))))
        });
        let journal = journal.map(|journal| journal.summary());
        End { receipt: end.receipt.map(|receipt| Receipt { journal, ..receipt }), ..end }
    }

    async fn verdict(&self, scope: &CallScope, run: &Run) -> Result<Verdict, Outcome> {
        let known = self.recheck.recalled(&run.pinned, &run.tool).await?;
        self.recheck.verdict(scope, &known, &run.arguments).await
    }

    /// The run of a call. `None`: the turn has no such call, or its tool was not found.
    pub(crate) fn run_of(
        &self,
        turn: &Turn,
        index: CallIndex,
        log: RunWriter,
        stop: &Arc<StopSignal>,
        journal: Option<Journal>,
    ) -> Option<Run> {
        let call = turn.calls.get(index.get())?;
        let pinned = call.pinned.clone()?;
        let (entries, journal) =
            journal.map_or_else(Default::default, |journal| (journal.entries, Some(journal.writes)));
        Some(Run {
            tool: call.tool.clone(),
            call: call.id.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: idempotency::key(turn, call),
            attempt: call.attempts,
            durable: durable(call, entries).filter(|_| pinned.durable),
            journal,
            scope_json: scope_json(turn, index),
            monitor: Arc::new(LiveMonitor {
                feeds: self.feeds.clone(),
                conversation: turn.conversation.clone(),
                caller: turn.caller.clone(),
                turn: turn.id,
                call: call.id.clone(),
                index,
                streaming: pinned.streaming,
                log,
                stop: stop.clone(),
            }),
            pinned,
        })
    }
}

/// The journal of a durable call: what earlier runs recorded, and where this one records.
pub(crate) struct Journal {
    pub(crate) entries: Vec<Entry>,
    pub(crate) writes: (Arc<dyn RunJournal>, JournalBounds),
}

/// The part of a durable call that a run repeats.
fn durable(call: &Call, journal: Vec<Entry>) -> Option<Durable> {
    Some(Durable {
        started_at: call.started_at?,
        steps: call.steps().collect(),
        journal: journal.into(),
        decided: call.decided_requests().collect(),
    })
}

/// The scope that a guest sees. Ids and principals hold no character that JSON escapes, and the context is JSON
/// already. A nested turn acts for the conversation of its caller.
fn scope_json(turn: &Turn, index: CallIndex) -> Json {
    let (conversation, turn_id, caller) = (turn.conversation.of_caller(), turn.id, &turn.caller);
    let mut scope = format!(r#"{{"conversation":"{conversation}","turn":"{turn_id}","caller":"{caller}""#);
    if let Some(approver) = turn.calls.get(index.get()).and_then(|call| call.approver.as_ref()) {
        scope.push_str(&format!(r#","approver":"{approver}""#));
    }
    if let Some(context) = &turn.context {
        scope.push_str(&format!(r#","context":{context}"#));
    }
    scope.push('}');
    Json::unchecked(scope)
}
