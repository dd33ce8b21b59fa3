//! Approvals that a timeout would grant. The host asks the policy first. This can be slow, so it runs in separate
//! tasks, and nothing else that is due waits for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{
    Outcome, PrincipalId, SuspensionId, TurnId,
    gate::{RuleEffect, Verdict},
    refusal::NoRecheck,
    tool::OnExpiry,
};
use futures::FutureExt;

use super::{BACKOFF, Expiry};
use crate::error::Error;
use crate::plan::CallScope;
use crate::timeout_approvals::is_timed_out;
use crate::turns::Entered;

impl Expiry {
    /// Rechecks a call that nobody answered, and feeds the verdict to its turn. If the call has ended meanwhile, it
    /// stays ended.
    pub(super) async fn recheck(self: Arc<Self>, id: TurnId, suspension: SuspensionId, caller: PrincipalId) {
        let approvals = &self.pipeline.timers.timeout_approvals;
        let permit = approvals.permit(&caller).await;
        let decided = match AssertUnwindSafe(self.decide(id, suspension)).catch_unwind().await {
            Ok(decided) => decided.map_err(|error| error.to_string()),
            Err(_) => Err("the host panicked".to_owned()),
        };
        drop(permit);
        let clock = &self.pipeline.shared.clock;
        if let Err(error) = &decided {
            tracing::error!(turn = %id, error, "the policy could not be asked about a call that nobody answered");
            clock.sleep(BACKOFF).await;
        }
        approvals.end(id, suspension, decided.unwrap_or(false));
        // Looks until now left this call out.
        self.pipeline.timers.alarm.no_later_than(clock.now());
    }

    /// Returns whether anything came of it.
    async fn decide(&self, id: TurnId, suspension: SuspensionId) -> Result<bool, Error> {
        let entered = self.pipeline.turns.enter(id);
        // The policy is asked before the turn is locked. Its answer stays true: the time for other arguments is over.
        let Some(verdict) = self.verdict(&entered, suspension).await? else { return Ok(false) };
        self.tick(&entered, &[(suspension, verdict)]).await
    }

    /// The verdict of the policy on the call; `None` if nothing waits for it any more.
    async fn verdict(&self, entered: &Entered, suspension: SuspensionId) -> Result<Option<Verdict>, Error> {
        let shared = &self.pipeline.shared;
        let (scope, call) = {
            let slot = entered.loaded(self.pipeline.log.as_ref()).await?;
            let Some((turn, _)) = &slot.turn else { return Ok(None) };
            let now = shared.clock.now();
            let mut pending = turn.pending();
            let Some((_, call, _)) = pending.find(|(.., open)| open.id == suspension && is_timed_out(open, now)) else {
                return Ok(None);
            };
            (CallScope::of(turn), call.clone())
        };
        let Some(pinned) = &call.pinned else { return Ok(None) };
        let recheck = &self.pipeline.runner.recheck;
        let verdict = async {
            let known = recheck.recalled(pinned, &call.tool).await?;
            let verdict = recheck.verdict(&scope, &known, &call.arguments).await?;
            // The operator may have withdrawn that a timeout approves calls of this tool. Then only a person does.
            let by_timeout = known.wait.on_expiry == OnExpiry::Approve;
            let rule = if by_timeout { verdict.rule } else { verdict.rule.max(RuleEffect::Ask) };
            Ok(Verdict { rule, ..verdict })
        };
        let denied = |outcome: Outcome| Verdict::deny(NoRecheck::from(outcome).to_string());
        Ok(Some(verdict.await.unwrap_or_else(denied)))
    }
}
