//! Which entries of the indexes change with a commit. Indexes are derived: whoever has the logs can make them anew.

use domain::{Call, CallIndex, ClosedAs, Event, PrincipalId, Suspension, Turn};

use crate::ports::{AuditEntry, Index, SuspensionRow};

/// The changes that go with these events. `before` is the turn without them, if it existed; `after` is the turn with them.
pub(crate) fn changes(before: Option<&Turn>, events: &[Event], after: &Turn) -> Vec<Index> {
    let mut changes = Vec::new();
    for event in events {
        match event {
            Event::TurnStarted { caller, .. } => changes.push(Index::Owner(caller.clone())),
            Event::CallRequested { id, .. } => changes.push(Index::Call(id.clone())),
            Event::CallResolved { .. } | Event::SuspensionExpired { .. } | Event::TurnCancelled { .. } => {
                changes.extend(audit(event, after).map(Index::Audit));
            }
            _ => {}
        }
    }
    for (index, call) in after.indexed() {
        let known = before.and_then(|before| before.calls.get(index.get()));
        changes.extend(rows(index, call, known, after).map(Index::Suspension));
    }
    let (before, after) = (before.and_then(Turn::next_due), after.next_due());
    if before != after {
        changes.push(Index::Due { before, after });
    }
    changes
}

/// The suspensions of a call that are new or were closed.
fn rows<'a>(
    index: CallIndex,
    call: &'a Call,
    known: Option<&'a Call>,
    turn: &'a Turn,
) -> impl Iterator<Item = SuspensionRow> + 'a {
    let was_closed = move |n: usize| {
        let known = known.and_then(|known| known.suspensions.get(n));
        known.map(|(_, closed)| closed.is_some())
    };
    call.suspensions.iter().enumerate().filter_map(move |(n, (suspension, closed))| {
        let changed = was_closed(n) != Some(closed.is_some());
        let state = closed.as_ref().map_or("open", |closed| closed.state());
        changed.then(|| row(index, call, suspension, state, turn))
    })
}

fn row(index: CallIndex, call: &Call, suspension: &Suspension, state: &str, turn: &Turn) -> SuspensionRow {
    SuspensionRow {
        id: suspension.id,
        turn: turn.id,
        call: index,
        conversation: turn.conversation.clone(),
        caller: turn.caller.clone(),
        tool: call.tool.to_string(),
        kind: suspension.kind,
        state: state.to_owned(),
    }
}

fn audit(event: &Event, turn: &Turn) -> Option<AuditEntry> {
    let about = |index: &CallIndex, id| {
        let call = turn.calls.get(index.get())?;
        let (suspension, closed) = call.suspension(id)?;
        let resolution = match closed.as_ref().map(|closed| &closed.how) {
            Some(ClosedAs::Resolved(resolution)) => Some(resolution),
            _ => None,
        };
        Some(AuditEntry {
            at: turn.started_at,
            by: PrincipalId::system(),
            action: resolution.map_or("expired", |resolution| resolution.decision.as_str()).to_owned(),
            turn: Some(turn.id),
            call: Some(call.id.clone()),
            subject: Some(call.tool.to_string()),
            suspension: Some(id),
            digest: Some(suspension.digest),
            edited: resolution.and_then(|resolution| resolution.arguments.clone()),
            comment: resolution.and_then(|resolution| resolution.comment.clone()),
        })
    };
    match event {
        Event::CallResolved { call, suspension, by, at, approved, .. } => about(call, *suspension).map(|entry| {
            let digest = approved.or(entry.digest);
            AuditEntry { at: *at, by: by.clone(), digest, ..entry }
        }),
        Event::SuspensionExpired { call, suspension, approved, at } => about(call, *suspension).map(|entry| {
            // Where the operator lets silence approve, the audit says that it did.
            let action = if approved.is_some() { "approve".to_owned() } else { entry.action };
            AuditEntry { at: *at, action, ..entry }
        }),
        Event::TurnCancelled { by, at } => Some(AuditEntry {
            at: *at,
            by: by.clone(),
            action: "cancel".into(),
            turn: Some(turn.id),
            call: None,
            subject: None,
            suspension: None,
            digest: None,
            edited: None,
            comment: None,
        }),
        _ => None,
    }
}
