//! Plans the calls of a turn. If a call needs an approval, nobody is asked when a person has just denied the same call, or
//! when a standing approval covers it.

use domain::{
    Json, Outcome, Principal, Span,
    call::{Pinned, Plan},
    nested::Parent,
    turn::Requested,
};

use super::{Handle, Readers};
use crate::error::Error;
use crate::exact;
use crate::plan::{CallScope, Planned, plan};
use crate::ports::{KnownTool, StoreFault};
use crate::request::TurnRequest;
use crate::standing::CoveringApproval;

impl Handle {
    /// Plans the calls of a turn. The policy is asked about all of them at once. Standing approvals count only with
    /// `use_standing`; those that are used are returned too.
    pub(super) async fn plan_calls(
        &self,
        by: &Principal,
        request: &TurnRequest,
        parent: Option<Box<Parent>>,
        use_standing: bool,
    ) -> Result<(Vec<Requested>, Vec<CoveringApproval>), Error> {
        let shared = &self.inner.shared;
        // A standing approval is for calls that the caller makes itself.
        let use_standing = use_standing && parent.is_none();
        let (caller, conversation) = (by.id.clone(), request.conversation.clone());
        let scope = CallScope { caller, conversation, context: request.context.clone(), parent };
        let plans =
            request.calls.iter().map(|call| plan(call.clone(), &scope, shared.tools.as_ref(), shared.policy.as_ref()));
        let mut calls: Vec<Requested> = Vec::with_capacity(request.calls.len());
        let mut standing_used = Vec::new();
        for Planned { mut requested, gated, _value } in futures::future::join_all(plans).await {
            if let Some(known) = gated {
                // Most calls need no approval, so this has a future of its own.
                Box::pin(self.settle_or_cover(by, &scope, &known, use_standing, &mut requested, &mut standing_used))
                    .await?;
            }
            calls.push(requested);
        }
        Ok((calls, standing_used))
    }

    /// Settles a call that needs an approval if a person has just denied it. Otherwise looks for a standing approval that
    /// covers it.
    async fn settle_or_cover(
        &self,
        by: &Principal,
        scope: &CallScope,
        known: &KnownTool,
        use_standing: bool,
        requested: &mut Requested,
        standing_used: &mut Vec<CoveringApproval>,
    ) -> Result<(), Error> {
        let Plan::Go(pinned) = &requested.plan else { return Ok(()) };
        if self.was_just_denied(scope, pinned, &requested.arguments).await? {
            let reason = "a person has just denied an identical call; do not repeat it";
            requested.plan = Plan::Settle(Outcome::Denied(Some(reason.into())));
            return Ok(());
        }
        let (Readers { standing, standings, .. }, now) = (&self.inner.readers, self.now());
        standings.ready(standing.as_ref(), now).await?;
        if use_standing && pinned.may_be_covered(&requested.asked) {
            for active in standings.active_for(&by.id, known, now) {
                self.inner.revoke_with(&active).await?;
            }
            let fingerprint = requested.asked.fingerprint(scope.context.as_ref());
            let taken: Vec<_> = standing_used.iter().map(|used| used.id).collect();
            let found = standings.find(&by.id, known, fingerprint, &requested.arguments, now, &taken);
            requested.standing = found.as_ref().map(CoveringApproval::used);
            standing_used.extend(found);
        }
        Ok(())
    }

    async fn was_just_denied(&self, scope: &CallScope, pinned: &Pinned, arguments: &Json) -> Result<bool, StoreFault> {
        let shared = &self.inner.shared;
        if shared.settings.denied_again == Span::ZERO {
            return Ok(false);
        }
        let alike = exact::alike(pinned, arguments);
        let denied = self.inner.readers.standing.denied(&scope.conversation, alike).await?;
        Ok(denied.is_some_and(|at| at + shared.settings.denied_again > shared.clock.now()))
    }
}
