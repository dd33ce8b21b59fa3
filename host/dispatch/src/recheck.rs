//! Rechecks: asking the policy again about a call that has waited. Its component may have been forgotten meanwhile.
//! Calls that are about to run, work for clients and timeout approvals are rechecked here.

use std::sync::Arc;

use domain::{Json, Outcome, call::Pinned, gate::Verdict};

use crate::plan::CallScope;
use crate::ports::{KnownTool, Policy, Tools};

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
