//! Runs one guest: its inputs, and the outcome if the policy denies the run or the host fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{
    Call, CallIndex, Json, Outcome, Receipt, Turn,
    gate::RuleEffect,
    outcome::{Failure, FailureCode},
    step::{Durable, RunEnd},
};
use futures::FutureExt;

use crate::feed::{Feeds, LiveMonitor};
use crate::idempotency;
use crate::plan::{CallScope, denied};
use crate::ports::{End, Log, Permit, Run, Tools};
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

    /// Takes a permit for a run. With `recheck_in` the policy is asked again first, and a call that it denies does not run.
    ///
    /// # Errors
    /// The outcome of a call whose run does not begin.
    pub(crate) async fn permit(
        &self,
        run: &Run,
        recheck_in: Option<&CallScope>,
        has_begun: bool,
    ) -> Result<Permit, Outcome> {
        let allowed = async {
            if let Some(scope) = recheck_in {
                let known = self.recheck.recalled(&run.pinned, &run.tool).await?;
                let verdict = self.recheck.verdict(scope, &known, &run.arguments).await?;
                if verdict.rule == RuleEffect::Deny {
                    return Err(denied(&verdict));
                }
            }
            self.tools.permit(&run.pinned, has_begun).await
        };
        unless_it_panics(&run.tool, allowed).await.flatten()
    }

    /// Runs a guest.
    pub(crate) async fn run(&self, run: Run, permit: Permit) -> End {
        let (tool, has_begun) = (run.tool.clone(), run.durable.as_ref().is_some_and(Durable::has_begun));
        let journal = run.journal.as_ref().map(|(journal, _)| journal.clone());
        let ran = unless_it_panics(&tool, self.tools.run(run)).await;
        drop(permit);
        let end = ran.unwrap_or_else(|outcome| End::unrun(RunEnd::unrun(has_begun, outcome)));
        let journal = journal.map(|journal| journal.summary());
        End { receipt: end.receipt.map(|receipt| Receipt { journal, ..receipt }), ..end }
    }

    /// The run of a call, without its journal. `None`: the turn has no such call, or its tool was not found.
    pub(crate) fn run_of(&self, turn: &Turn, index: CallIndex, log: RunWriter, stop: &Arc<StopSignal>) -> Option<Run> {
        let call = turn.calls.get(index.get())?;
        let pinned = call.pinned.clone()?;
        Some(Run {
            tool: call.tool.clone(),
            call: call.id.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: idempotency::key(turn, call),
            attempt: call.attempts,
            durable: durable(call).filter(|_| pinned.durable),
            journal: None,
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

/// The result of a step of a run. A panic is a failure of the host, and an outcome like any other.
async fn unless_it_panics<T>(tool: &str, step: impl Future<Output = T>) -> Result<T, Outcome> {
    AssertUnwindSafe(step).catch_unwind().await.map_err(|_| {
        tracing::error!(%tool, "the host panicked while it ran a guest");
        let message = "the host failed while it ran this call";
        Outcome::Failed(Failure::new(FailureCode::HostFault, message))
    })
}

/// The part of a durable call that a run repeats.
fn durable(call: &Call) -> Option<Durable> {
    Some(Durable {
        started_at: call.started_at?,
        steps: call.steps().collect(),
        journal: [].into(),
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
