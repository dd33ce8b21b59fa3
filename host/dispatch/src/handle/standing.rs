//! Standing approvals: reads and revokes them.

use domain::{
    Principal, PrincipalId, StandingId,
    principal::Role,
    standing::{StandingRevoked, StandingRow, StandingState},
};

use super::Handle;
use crate::error::{Error, Forbidden, Resource};
use crate::ports::{AppendError, NewFacts, StoreFault};
use crate::standing::CoveringApproval;

/// The maximum number of rows that are read for one page of standing approvals.
const PAGE: usize = 500;

/// The maximum number of bytes of such a page.
const PAGE_BYTES: usize = 4 << 20;

/// How many are read at a time. Each may have a megabyte.
const MAX_AT_ONCE: usize = 10;

impl Handle {
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
                if is_active && self.inner.revoke_with(&CoveringApproval::of(&row)).await? {
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
    pub(super) async fn revoke(&self, id: StandingId, by: PrincipalId) -> Result<(), StoreFault> {
        let revoked = StandingRevoked { id, by, at: self.shared.clock.now() };
        match self.pipeline.committer.record(NewFacts::Revoked(revoked)).await {
            // Somebody else has just revoked it.
            Ok(()) | Err(AppendError::NotRevocable(_)) => Ok(()),
            Err(error) => Err(error.into_fault("revoke a standing approval")),
        }
    }

    /// Revokes a standing approval if its giver was revoked since then. Returns whether that is so.
    pub(super) async fn revoke_with(&self, given: &CoveringApproval) -> Result<bool, StoreFault> {
        self.shared.principals.refresh().await;
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
