//! Rechecks: asking the policy again about a call that has waited. Its component may have been forgotten meanwhile.
//! Calls that are about to run, work for clients, timeout approvals and steps are checked here.

use std::sync::Arc;

use domain::{
    Json, Outcome,
    call::Pinned,
    gate::{Rule, Verdict},
    step::{RunEnd, StepKind, StepRequest},
};

use crate::plan::CallScope;
use crate::ports::{KnownTool, Policy, Question, Run, Tools};

#[derive(Clone)]
pub(crate) struct Recheck {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) policy: Arc<dyn Policy>,
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

    /// The current verdict of the policy on a call.
    ///
    /// # Errors
    /// As [`Recheck::recalled`].
    pub(crate) async fn verdict(
        &self,
        scope: &CallScope,
        pinned: &Pinned,
        tool: &str,
        arguments: &Json,
    ) -> Result<Verdict, Outcome> {
        let known = self.recalled(pinned, tool).await?;
        Ok(self.policy.decide(scope.question(&known, arguments)).await)
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
        let denied = |reason| Verdict { rule: Rule::Deny, reason, ..Verdict::default() };
        let known = match self.recalled(&call.pinned, &call.tool).await {
            Ok(known) => known,
            Err(outcome) => return denied(Some(unknown(outcome).into())),
        };
        let question = Question { step: Some(step), ..call.scope.question(&known, &call.arguments) };
        let verdict = self.policy.decide(question).await;
        // Nobody is asked who could decide instead of the policy.
        let fails = verdict.policy_failed && step == StepKind::AwaitExternal;
        Verdict { rule: if fails { Rule::Deny } else { verdict.rule }, ..verdict }
    }
}

/// Why the policy cannot be asked about a call whose tool cannot be recalled.
pub(crate) fn unknown(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(failure) => failure.message,
        Outcome::Ok { .. }
        | Outcome::Denied(_)
        | Outcome::Expired
        | Outcome::Cancelled
        | Outcome::CancelledBySibling
        | Outcome::Unavailable
        | Outcome::Invalidated
        | Outcome::InDoubt => "the component that this call is pinned to was removed".to_owned(),
    }
}
