//! Suspensions as a principal sees them: which it may see, and each with all that is needed to answer it.

use std::sync::Arc;

use domain::{Principal, PrincipalId, Refusal, SuspensionId, Turn, principal::Role, suspension::SuspensionKind};

use crate::error::Error;
use crate::ports::{Filter, Indexes, Log, Principals, StoreFault, SuspensionRow};
use crate::request::SuspensionView;
use crate::turns::Turns;

#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) indexes: Arc<dyn Indexes>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) principals: Arc<dyn Principals>,
}

impl Pending {
    /// The row of a suspension that this principal may see.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] if this principal may not see it.
    pub(crate) async fn row(&self, by: &Principal, id: SuspensionId) -> Result<SuspensionRow, Error> {
        let row = self.indexes.suspension(id).await?.filter(|row| by.may_see(&row.conversation, &row.caller));
        row.ok_or_else(|| Refusal::Unknown.into())
    }

    /// One suspension.
    ///
    /// # Errors
    /// As [`Pending::row`].
    pub(crate) async fn suspension(&self, by: &Principal, id: SuspensionId) -> Result<SuspensionView, Error> {
        let row = self.row(by, id).await?;
        self.item(&row, &mut None).await?.ok_or_else(|| Refusal::Unknown.into())
    }

    /// The suspension of a row. `last` is the turn that was loaded last; rows of one turn are often neighbours.
    pub(crate) async fn item(
        &self,
        row: &SuspensionRow,
        last: &mut Option<Turn>,
    ) -> Result<Option<SuspensionView>, StoreFault> {
        if last.as_ref().is_none_or(|turn| turn.id != row.turn) {
            *last = self.turns.enter(row.turn).read(self.log.as_ref()).await?.found();
        }
        let Some(turn) = last.as_ref() else { return Ok(None) };
        let is_revoked = |id: &PrincipalId, since| !self.principals.is_current(id, since);
        Ok(turn.suspension(row.id).map(|(index, call, suspension, closed)| SuspensionView {
            conversation: turn.conversation.clone(),
            turn: turn.id,
            caller: turn.caller.clone(),
            context: turn.context.clone(),
            parent: turn.parent.clone(),
            index,
            call: call.clone(),
            // The next answer ends the authority of revoked principals. Until then it is not shown.
            suspension: if closed.is_some() { suspension.clone() } else { suspension.without(is_revoked) },
            closed: closed.cloned(),
        }))
    }
}

/// Whether a principal is shown a suspension in lists.
pub(crate) fn lists(by: &Principal, row: &SuspensionRow) -> bool {
    by.may_see(&row.conversation, &row.caller)
        && narrowed(by, Filter::default()).is_some_and(|filter| filter.matches(row))
}

/// The filter, narrowed to what the principal may see; `None` if that is nothing.
pub(crate) fn narrowed(by: &Principal, mut filter: Filter) -> Option<Filter> {
    if let Some(only) = &by.conversation {
        if filter.conversation.as_ref().is_some_and(|asked| !asked.is_with(only)) {
            return None;
        }
        filter.conversation = Some(only.clone());
    }
    let sees_all = by.roles.has(Role::Admin) || by.roles.has(Role::Approver);
    if !sees_all && by.roles.has(Role::Client) && !by.roles.has(Role::Caller) {
        // A client is at the user's end. It sees what it may carry out, and no question that is meant for approvers.
        if filter.kind.is_some_and(|asked| asked != SuspensionKind::ClientExec) {
            return None;
        }
        filter.kind = Some(SuspensionKind::ClientExec);
    } else if !sees_all {
        if filter.caller.as_ref().is_some_and(|asked| *asked != by.id) {
            return None;
        }
        filter.caller = Some(by.id.clone());
    }
    Some(filter)
}
