//! Asking the policy about a call that was made some time ago, of which a component may have been forgotten meanwhile. There is one
//! way to it, whatever the call waits for: to run, for a client, or for nobody.

use std::sync::Arc;

use domain::{Json, Outcome, Pinned, Verdict};

use crate::dispatcher::Inner;
use crate::plan::Asker;
use crate::ports::LiveTool;

impl Inner {
    /// The tool that a call is pinned to. What is not known any more of its component is recalled, which may run a guest.
    ///
    /// # Errors
    /// The outcome of a call that cannot run for that.
    pub(crate) async fn recalled(&self, pinned: &Pinned, tool: &str) -> Result<Arc<LiveTool>, Outcome> {
        let tools = &self.parts.tools;
        if let Some(live) = tools.pinned(&pinned.plugin, pinned.component, tool) {
            return Ok(live);
        }
        tools.recall(pinned).await?;
        tools.pinned(&pinned.plugin, pinned.component, tool).ok_or(Outcome::Invalidated)
    }

    /// What the policy makes of a call by now.
    ///
    /// # Errors
    /// As [`Inner::recalled`].
    pub(crate) async fn judge(
        &self,
        asker: &Asker,
        pinned: &Pinned,
        tool: &str,
        arguments: &Json,
    ) -> Result<Verdict, Outcome> {
        let live = self.recalled(pinned, tool).await?;
        Ok(self.parts.policy.judge(asker.question(&live, arguments)).await)
    }
}

/// Why nobody can say what the policy makes of a call that cannot run for this.
pub(crate) fn unknown(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(failure) => failure.message,
        _ => "the component that this call is pinned to is gone".to_owned(),
    }
}
