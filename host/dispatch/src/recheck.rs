//! Rechecks: asking the policy again about a call that has waited. Its component may have been forgotten meanwhile, and the
//! grant of a tool that makes it withdrawn. Calls that are about to run, work for clients, timeout approvals and steps are
//! checked here.

use std::sync::Arc;

use domain::{
    Json, Outcome,
    call::Pinned,
    gate::{RuleEffect, Verdict},
    nested::{NestedCall, Parent},
    outcome::{Failure, FailureCode},
    refusal::NoRecheck,
    step::{RunEnd, StepKind, StepRequest},
};

use crate::plan::CallScope;
use crate::ports::{KnownTool, Log, Policy, PolicyQuery, Run, Tools};
use crate::turns::Slot;

#[derive(Clone)]
pub(crate) struct Recheck {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) log: Arc<dyn Log>,
}

impl Recheck {
    /// The tool that a call is pinned to. If its component was forgotten, it is recalled, which may run a guest.
    ///
    /// # Errors
    /// The outcome of a call whose tool cannot be recalled.
    pub(crate) async fn recalled(&self, pinned: &Pinned, tool: &str) -> Result<Arc<KnownTool>, Outcome> {
        if let Some(known) = self.tools.pinned(&pinned.plugin, pinned.component, tool) {
            return Ok(known);
        }
        self.tools.recall(pinned).await?;
        self.tools.pinned(&pinned.plugin, pinned.component, tool).ok_or(Outcome::Invalidated)
    }

    /// The current verdict on a call: that of the policy, unless a tool makes the call and may no longer make it.
    ///
    /// # Errors
    /// The outcome of a call whose tool, or the tool that makes it, cannot be recalled.
    pub(crate) async fn verdict(
        &self,
        scope: &CallScope,
        known: &Arc<KnownTool>,
        arguments: &Json,
    ) -> Result<Verdict, Outcome> {
        if let Some(parent) = &scope.parent {
            let by = self.calling(parent).await?;
            if let Some(reason) = self.tools.call_refusal(&by, known.tool.name.as_str()).await? {
                return Ok(Verdict::deny(reason));
            }
        }
        Ok(self.policy.decide(scope.policy_query(known, arguments)).await)
    }

    /// The outcome of all these calls by a component, if it may not make each of them.
    pub(crate) async fn refused(&self, by: &Pinned, calls: &[NestedCall]) -> Option<Outcome> {
        for NestedCall { tool, .. } in calls {
            match self.tools.call_refusal(by, tool).await {
                Ok(None) => {}
                Ok(Some(reason)) => return Some(Outcome::Denied(Some(reason))),
                Err(outcome) => return Some(outcome),
            }
        }
        None
    }

    /// The tool that makes a call, as its own call is pinned to it.
    async fn calling(&self, parent: &Parent) -> Result<Arc<Pinned>, Outcome> {
        let mut slot = Slot::default();
        slot.load(parent.turn, self.log.as_ref()).await.map_err(|fault| {
            tracing::error!(turn = %parent.turn, %fault, "the call that makes a nested call could not be loaded");
            let message = "the host could not read the call that makes this call";
            Outcome::Failed(Failure::new(FailureCode::HostFault, message))
        })?;
        let call = slot.turn.and_then(|(turn, _)| turn.calls.into_iter().find(|call| call.id == parent.call));
        call.and_then(|call| call.pinned).ok_or(Outcome::Invalidated)
    }
}

/// A call whose run may end with a step, for the policy.
pub(crate) struct Stepping {
    pub(crate) scope: CallScope,
    pinned: Arc<Pinned>,
    tool: Arc<str>,
    arguments: Json,
}

impl Stepping {
    pub(crate) fn of(scope: CallScope, run: &Run) -> Self {
        Self { scope, pinned: run.pinned.clone(), tool: run.tool.clone(), arguments: run.arguments.clone() }
    }
}

impl Recheck {
    /// The verdict of the policy on the step that a run ended with. A step that the policy cannot be asked about is denied.
    pub(crate) async fn on_step(&self, call: &Stepping, ended: &RunEnd) -> Verdict {
        let RunEnd::Waits(StepRequest { wait, .. }) = ended else { return Verdict::default() };
        let Some(step) = wait.kind() else { return Verdict::default() };
        let known = match self.recalled(&call.pinned, &call.tool).await {
            Ok(known) => known,
            Err(outcome) => return Verdict::deny(NoRecheck::from(outcome).to_string()),
        };
        let question = PolicyQuery { step: Some(step), ..call.scope.policy_query(&known, &call.arguments) };
        let verdict = self.policy.decide(question).await;
        // Nobody is asked who could decide instead of the policy.
        let fails = verdict.policy_failed && step == StepKind::AwaitExternal;
        Verdict { rule: if fails { RuleEffect::Deny } else { verdict.rule }, ..verdict }
    }
}
