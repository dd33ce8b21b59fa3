//! Suspensions as a principal sees them: which it may see, and each with all that is needed to answer it.

use std::sync::Arc;

use domain::{
    Call, Json, Principal, PrincipalId, Refusal, Suspension, SuspensionId, Turn, Violation,
    principal::Role,
    refusal::NoRecheck,
    suspension::{Closed, SuspensionKind},
};

use crate::error::Error;
use crate::plan;
use crate::ports::{Filter, Indexes, KnownTool, Log, Principals, StoreFault, SuspensionRow};
use crate::recheck::Recheck;
use crate::request::{Edit, EditDefaults, SuspensionView};
use crate::turns::Turns;

#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) indexes: Arc<dyn Indexes>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) principals: Arc<dyn Principals>,
    pub(crate) recheck: Recheck,
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
        let Some((index, call, suspension, closed)) = turn.suspension(row.id) else { return Ok(None) };
        let is_revoked = |id: &PrincipalId, since| !self.principals.is_current(id, since);
        Ok(Some(SuspensionView {
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
            edits: self.edits(call, suspension, closed).await,
        }))
    }

    /// The different edits of the arguments that a suspension asks about.
    async fn edits(&self, call: &Call, suspension: &Suspension, closed: Option<&Closed>) -> Vec<Edit> {
        let mut edits: Vec<Edit> = Vec::new();
        // A value that the guest asks about has no schema.
        if suspension.subject().is_some() {
            return edits;
        }
        let approved = closed.and_then(Closed::resolution).and_then(|answer| answer.arguments.as_ref());
        for arguments in suspension.votes().iter().filter_map(|vote| vote.arguments.as_ref()).chain(approved) {
            if edits.iter().all(|edit| edit.arguments != *arguments) {
                edits.push(Edit { arguments: arguments.clone(), defaults: EditDefaults::Unknown });
            }
        }
        if edits.is_empty() {
            return edits;
        }
        let Some(known) = self.known(call, closed.is_some()).await else { return edits };
        for Edit { arguments, defaults } in &mut edits {
            // They were checked when they were accepted.
            let found = arguments.value().ok().and_then(|value| known.defaults(&value).ok());
            *defaults =
                found.map_or(EditDefaults::Unknown, |found| found.map_or(EditDefaults::None, EditDefaults::Some));
        }
        edits
    }

    /// The tool of a call, unless its component was removed. A component that was forgotten is recalled only for an open
    /// suspension.
    async fn known(&self, call: &Call, is_closed: bool) -> Option<Arc<KnownTool>> {
        let pinned = call.pinned.as_ref()?;
        if is_closed {
            return self.recheck.tools.pinned(&pinned.plugin, pinned.component, &call.tool);
        }
        self.recheck.recalled(pinned, &call.tool).await.ok()
    }

    /// The schema's defaults for what an edit of the arguments of a suspension would leave out.
    ///
    /// # Errors
    /// As [`Pending::row`]. [`Refusal::Invalid`] for arguments that an approval would not accept.
    pub(crate) async fn edit_defaults(
        &self,
        by: &Principal,
        id: SuspensionId,
        arguments: &Json,
    ) -> Result<Option<Json>, Error> {
        let SuspensionView { call, suspension, .. } = self.suspension(by, id).await?;
        let invalid =
            |found: Vec<Violation>| Refusal::Invalid(found.iter().map(|found| found.under("/arguments")).collect());
        let Some(pinned) = call.pinned.as_ref().filter(|_| suspension.subject().is_none()) else { return Ok(None) };
        let known = self.recheck.recalled(pinned, &call.tool).await;
        let at = |why: NoRecheck| vec![Violation { pointer: String::new(), message: why.to_string() }];
        let known = known.map_err(|outcome| invalid(at(outcome.into())))?;
        plan::edited(&known, arguments).map_err(|found| invalid(found).into())
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
