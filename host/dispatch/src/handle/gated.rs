//! Calls that need an approval. Nobody is asked if a person has just denied the same call, or if a standing approval
//! covers it.

use domain::{
    Json, Outcome, Principal, PrincipalId, Span, StandingId,
    call::{Pinned, Plan},
    principal::Role,
    standing::{StandingRevoked, StandingRow, StandingState},
    turn::Requested,
};

use super::{Handle, Readers};
use crate::error::{Error, Forbidden, Resource};
use crate::exact;
use crate::plan::{CallScope, Planned, plan};
use crate::ports::{AppendError, NewFacts, StoreFault};
use crate::request::TurnRequest;
use crate::standing::Given;

/// The most rows that are read for one page of standing approvals.
const PAGE: usize = 500;

/// The most bytes of such a page.
const PAGE_BYTES: usize = 4 << 20;

/// How many are read at a time. Each may have a megabyte.
const MAX_AT_ONCE: usize = 10;

impl Handle {
    /// Plans the calls of a turn. The policy is asked about all of them at once. Standing approvals count only if
    /// `covered`; those that are used are returned too.
    pub(super) async fn planned(
        &self,
        by: &Principal,
        request: &TurnRequest,
        covered: bool,
    ) -> Result<(Vec<Requested>, Vec<Given>), Error> {
        let shared = &self.inner.shared;
        let (caller, conversation) = (by.id.clone(), request.conversation.clone());
        let scope = CallScope { caller, conversation, context: request.context.clone() };
        let plans =
            request.calls.iter().map(|call| plan(call.clone(), &scope, shared.tools.as_ref(), shared.policy.as_ref()));
        let mut calls: Vec<Requested> = Vec::with_capacity(request.calls.len());
        let (mut take, mut given) = (Vec::new(), Vec::new());
        for Planned { mut requested, gated, _value } in futures::future::join_all(plans).await {
            if let (Some(known), Plan::Go(pinned)) = (gated, &requested.plan) {
                let (pinned, now) = (pinned.clone(), shared.clock.now());
                if self.was_just_denied(&scope, &pinned, &requested.arguments).await? {
                    let reason = "a person has just denied an identical call; do not repeat it";
                    requested.plan = Plan::Settle(Outcome::Denied(Some(reason.into())));
                } else {
                    let Readers { standing, standings, .. } = &self.inner.readers;
                    standings.ready(standing.as_ref(), now).await?;
                    if covered && pinned.may_be_covered(&requested.asked) {
                        for given in standings.givers(&by.id, &known, now) {
                            self.inner.revoke_with(&given).await?;
                        }
                        let fingerprint = requested.asked.fingerprint(scope.context.as_ref());
                        let found = standings.find(&by.id, &known, fingerprint, &requested.arguments, now, &take);
                        requested.standing = found.as_ref().map(Given::used);
                        take.extend(found.as_ref().map(|given| given.id));
                        given.extend(found);
                    }
                }
            }
            calls.push(requested);
        }
        Ok((calls, given))
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

    /// A page of the standing approvals that this principal may see, oldest first, and where the next page begins.
    /// Approvers see all, callers those for their own calls.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn standing_approvals(
        &self,
        by: &Principal,
        after: Option<StandingId>,
    ) -> Result<(Vec<StandingRow>, Option<StandingId>), Error> {
        let (mut seen, mut last, mut examined, mut bytes) = (Vec::new(), after, 0, 0);
        while examined < PAGE && bytes < PAGE_BYTES {
            let rows = self.inner.readers.standing.standings(last, MAX_AT_ONCE).await?;
            let is_end = rows.len() < MAX_AT_ONCE;
            for mut row in rows {
                let is_active = row.state(self.now()) == StandingState::Active;
                if is_active && self.inner.revoke_with(&Given::of(&row)).await? {
                    row = self.inner.readers.standing.standing(row.standing.id).await?.unwrap_or(row);
                }
                (last, examined, bytes) = (Some(row.standing.id), examined + 1, bytes + row.size());
                seen.extend(sees(by, &row).then_some(row));
            }
            if is_end {
                return Ok((seen, None));
            }
        }
        Ok((seen, last))
    }

    /// Revokes a standing approval. Calls that used it continue.
    ///
    /// # Errors
    /// [`Error::NotFound`]; a refusal if the principal neither gave it nor is an admin.
    pub async fn revoke(&self, by: &Principal, id: StandingId) -> Result<StandingRow, Error> {
        let standing = &self.inner.readers.standing;
        let row = standing.standing(id).await?.filter(|row| sees(by, row));
        let row = row.ok_or(Error::NotFound(Resource::StandingApproval))?;
        if row.by != by.id && !by.roles.has(Role::Admin) {
            return Err(Forbidden::Revoke.into());
        }
        if row.revoked.is_none() {
            self.inner.revoke(id, by.id.clone()).await?;
        }
        self.inner.reread(id).await?;
        Ok(standing.standing(id).await?.unwrap_or(row))
    }
}

fn sees(by: &Principal, row: &StandingRow) -> bool {
    let by_role = by.roles.has(Role::Admin) || by.roles.has(Role::Approver);
    let in_scope = by.conversation.as_ref().is_none_or(|only| *only == row.conversation);
    in_scope && (by_role || by.id == row.caller)
}

impl super::Inner {
    async fn revoke(&self, id: StandingId, by: PrincipalId) -> Result<(), StoreFault> {
        let revoked = StandingRevoked { id, by, at: self.shared.clock.now() };
        match self.pipeline.committer.record(NewFacts::Revoked(revoked)).await {
            // Somebody else has just revoked it.
            Ok(()) | Err(AppendError::NotRevocable(_)) => Ok(()),
            Err(error) => Err(error.into_fault("revoke a standing approval")),
        }
    }

    /// Revokes a standing approval if its giver was revoked since then. Returns whether that is so.
    async fn revoke_with(&self, given: &Given) -> Result<bool, StoreFault> {
        let is_revoked = !given.counts(self.shared.principals.as_ref());
        if is_revoked {
            self.revoke(given.id, PrincipalId::system()).await?;
            self.reread(given.id).await?;
        }
        Ok(is_revoked)
    }

    /// Reads a standing approval again.
    pub(crate) async fn reread(&self, id: StandingId) -> Result<(), StoreFault> {
        let row = self.readers.standing.standing(id).await?;
        self.readers.standings.corrected(id, row);
        Ok(())
    }
}
