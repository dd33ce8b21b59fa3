//! The changes of the indexes with a commit. Indexes can be rebuilt from the logs.

use domain::{
    Call, CallIndex, Event, PrincipalId, Suspension, SuspensionId, Turn,
    event::CallEvent,
    standing::StandingRow,
    suspension::{Closed, Decision, SuspensionState},
};

use crate::committer::{Contributor, TurnChange};
use crate::exact;
use crate::ports::{AudienceChange, Commit, Denial, EndedTurn, RowChange, SuspensionRow};

/// Contributes the changes of the indexes.
pub(crate) struct IndexChanges;

impl Contributor for IndexChanges {
    fn contribute(&self, change: &TurnChange<'_>, commit: &Commit) -> Vec<RowChange> {
        changes(change.before, commit.events(), change.after)
    }
}

/// The rows that follow from the whole log of a turn.
#[must_use]
pub fn index_rows(events: &[Event], turn: &Turn) -> Vec<RowChange> {
    changes(None, events, turn)
}

/// The index changes of these events. `before` is the turn without them, if there was one; `after` is the turn with
/// them.
fn changes(before: Option<&Turn>, events: &[Event], after: &Turn) -> Vec<RowChange> {
    let mut changes = Vec::new();
    for event in events {
        match event {
            Event::TurnStarted { caller, .. } => {
                let (conversation, owner) = (after.conversation.clone(), caller.clone());
                changes.push(RowChange::Owner { conversation, owner });
            }
            Event::Call { call, event } => changes.extend(of_call(*call, event, after)),
            Event::TurnSettled { end, .. } => {
                changes.extend(EndedTurn::of(after).map(|row| RowChange::Ended(row, *end)));
            }
            Event::TurnCancelled { .. } => {}
        }
    }
    for (index, call) in after.indexed() {
        let known = before.and_then(|before| before.calls.get(index.get()));
        changes.extend(rows(index, call, known, after).map(RowChange::Suspension));
        changes.extend(audiences(call, known, after).map(|change| RowChange::Audience(Box::new(change))));
    }
    changes.push(RowChange::Kept(after.caller.clone()));
    let (turn, before, after) = (after.id, before.and_then(Turn::next_due), after.next_due());
    if before != after {
        changes.push(RowChange::Due { turn, before, after });
    }
    changes
}

/// The changes of one event of a call. The rows of its suspensions follow from the call's state.
fn of_call(call: CallIndex, event: &CallEvent, after: &Turn) -> Option<RowChange> {
    match event {
        CallEvent::Requested { id, .. } => {
            Some(RowChange::Call { conversation: after.conversation.clone(), id: id.clone(), turn: after.id })
        }
        CallEvent::Covered { standing, .. } => Some(RowChange::StandingUse(standing.id)),
        CallEvent::Resolved { suspension, .. } => follows(after, call, *suspension),
        CallEvent::Voted { .. }
        | CallEvent::Delegated { .. }
        | CallEvent::AuthorityRevoked { .. }
        | CallEvent::LinkMade { .. }
        | CallEvent::LinkUsed { .. }
        | CallEvent::Escalated { .. }
        | CallEvent::Suspended { .. }
        | CallEvent::ClientAwaited { .. }
        | CallEvent::Expired { .. }
        | CallEvent::Started { .. }
        | CallEvent::Resumed { .. }
        | CallEvent::LeaseExtended { .. }
        | CallEvent::Settled { .. } => None,
    }
}

/// The other changes of an answer: a standing approval, or a denial that is remembered.
fn follows(turn: &Turn, index: CallIndex, id: SuspensionId) -> Option<RowChange> {
    let call = turn.calls.get(index.get())?;
    let (suspension, closed) = call.suspension(id)?;
    let (closed, pinned) = (closed.as_ref()?, call.pinned.as_ref()?);
    let (resolution, approval) = (closed.resolution()?, suspension.approval()?);
    match (&resolution.decision, &resolution.standing) {
        (Decision::Approve, Some(standing)) => Some(RowChange::Standing(Box::new(StandingRow {
            standing: standing.clone(),
            by: closed.by.clone(),
            created_at: closed.at,
            suspension: id,
            conversation: turn.conversation.clone(),
            caller: turn.caller.clone(),
            tool: call.tool.clone(),
            plugin: pinned.plugin.clone(),
            component: pinned.component,
            declaration: pinned.declaration,
            fingerprint: approval.asked.fingerprint(turn.context.as_ref()),
            arguments: call.arguments.clone(),
            used: 0,
            revoked: None,
        }))),
        (Decision::Deny, _) if approval.doubt.is_none() && suspension.step.is_none() => {
            let alike = exact::alike(pinned, &call.submitted);
            Some(RowChange::Denied(Denial { conversation: turn.conversation.clone(), alike, at: closed.at }))
        }
        (Decision::Approve | Decision::Deny | Decision::Answer(_) | Decision::Result | Decision::Error, _) => None,
    }
}

/// The suspensions of a call that are new, were closed or were escalated.
pub(crate) fn rows<'a>(
    index: CallIndex,
    call: &'a Call,
    known: Option<&'a Call>,
    turn: &'a Turn,
) -> impl Iterator<Item = SuspensionRow> + 'a {
    call.suspensions.iter().enumerate().filter_map(move |(n, (suspension, closed))| {
        let known = known.and_then(|known| known.suspensions.get(n));
        // An escalation does not change the row, but webhooks get the row with it.
        let changed = known.is_none_or(|(before, was_closed)| {
            was_closed.is_some() != closed.is_some() || before.escalated_at() != suspension.escalated_at()
        });
        (changed && suspension.kind().is_answered()).then(|| row(index, call, suspension, closed.as_ref(), turn))
    })
}

/// The suspensions of a call whose audience changes.
fn audiences<'a>(call: &'a Call, known: Option<&'a Call>, turn: &'a Turn) -> impl Iterator<Item = AudienceChange> + 'a {
    let open = |(suspension, closed): &(Suspension, Option<Closed>)| {
        (closed.is_none() && suspension.kind().is_asked()).then(|| suspension.audience())
    };
    call.suspensions.iter().enumerate().filter_map(move |(n, now)| {
        let was = known.and_then(|known| known.suspensions.get(n));
        if was == Some(now) {
            return None;
        }
        let (before, after) = (was.and_then(open), open(now));
        (before != after).then(|| AudienceChange {
            suspension: now.0.id,
            conversation: turn.conversation.clone(),
            caller: turn.caller.clone(),
            tool: call.tool.to_string(),
            before,
            after,
        })
    })
}

/// The row of a suspension.
pub(crate) fn row(
    index: CallIndex,
    call: &Call,
    suspension: &Suspension,
    closed: Option<&Closed>,
    turn: &Turn,
) -> SuspensionRow {
    SuspensionRow {
        id: suspension.id,
        turn: turn.id,
        call: index,
        conversation: turn.conversation.clone(),
        caller: turn.caller.clone(),
        tool: call.tool.to_string(),
        kind: suspension.kind(),
        state: SuspensionState::of(closed),
        ended_by: closed.map(|closed| ended_by(call, suspension, closed)).unwrap_or_default(),
        signal: suspension.external().and_then(|wait| wait.signal.clone()),
    }
}

fn ended_by(call: &Call, suspension: &Suspension, closed: &Closed) -> Vec<PrincipalId> {
    let mut by: Vec<_> = call.approvers_of(suspension, closed).into_iter().cloned().collect();
    if !by.contains(&closed.by) {
        by.push(closed.by.clone());
    }
    by
}
