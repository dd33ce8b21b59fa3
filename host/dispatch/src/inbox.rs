//! Changes to suspensions of all conversations, as they happen. They are not stored: a follower reads the list of
//! suspensions after it began to follow, and again after `Missed`.
//!
//! For each suspension that was open when a follower began, or that opens later, it gets exactly one `Closed`, so a
//! screen never keeps a suspension that can no longer be answered.

use std::sync::Arc;

use domain::{Principal, PrincipalId, SuspensionId, Timestamp, Turn, principal::Channel, suspension::Resolution};

use crate::committer::{Observer, TurnChange};
use crate::error::Error;
use crate::index;
use crate::pending::{Pending, lists};
use crate::ports::{Commit, SuspensionRow};
use crate::request::SuspensionView;
use crate::ring::{Bounds, Lagged, Receiver, Ring};

/// How far a slow follower may be behind, in changes and in bytes, before it has to start again. Most changes are small: the
/// suspension itself is read when it is delivered. A closed one has its answer, which may be a long text of a guest.
const MAX_BACKLOG: Bounds = Bounds { items: 1_024, bytes: 1 << 20 };

/// The approximate size of a change without its texts, in bytes.
const MOVE: usize = 512;

/// Sends changes to followers.
pub(crate) struct Inbox(Arc<Ring<Arc<Move>>>);

/// Something happened to a suspension.
pub(crate) struct Move {
    row: SuspensionRow,
    how: How,
}

enum How {
    Opened,
    Changed,
    Closed { by: PrincipalId, via: Option<Channel>, at: Timestamp, edited: bool, approvers: Vec<PrincipalId> },
}

impl Move {
    /// The approximate size that it takes while slow followers have not read it, in bytes.
    fn size(&self) -> usize {
        let SuspensionRow { tool, state, ended_by, .. } = &self.row;
        let names = |names: &[PrincipalId]| {
            names.iter().map(|name| name.as_str().len() + size_of::<PrincipalId>()).sum::<usize>()
        };
        let approvers = if let How::Closed { approvers, .. } = &self.how { names(approvers) } else { 0 };
        MOVE + tool.len() + state.as_str().len() + names(ended_by) + approvers
    }
}

/// An item for a follower.
#[derive(Debug, Clone)]
pub enum Waiting {
    Opened(Box<SuspensionView>),
    Changed(Box<SuspensionView>),
    Closed {
        /// Its row, with the state that it ended in.
        row: Box<SuspensionRow>,
        by: PrincipalId,
        /// The channel that they used, if that is known.
        via: Option<Channel>,
        at: Timestamp,
        /// Whether an approver edited the arguments.
        edited: bool,
        /// Who approved it, if people did.
        approvers: Vec<PrincipalId>,
    },
    /// Changes were missed: read the list again.
    Missed,
}

impl Default for Inbox {
    fn default() -> Self {
        Self(Ring::new(MAX_BACKLOG))
    }
}

impl Inbox {
    pub(crate) fn is_followed(&self) -> bool {
        self.0.is_followed()
    }

    /// Sends what a change of a turn did to suspensions.
    pub(crate) fn changed(&self, change: &TurnChange<'_>) {
        if self.is_followed() {
            moves(change.before, change.after).into_iter().for_each(|(row, how)| self.send(Move { row, how }));
        }
    }

    /// Changes are lost: the followers have to read the list again.
    pub(crate) fn missed(&self) {
        self.0.skip();
    }

    fn send(&self, moved: Move) {
        let bytes = moved.size();
        self.0.send(Arc::new(moved), bytes);
    }
}

impl Observer for Inbox {
    /// Sends what the commit did to suspensions.
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        if let Some(change) = change {
            self.changed(change);
        }
    }
}

fn moves(before: Option<&Turn>, after: &Turn) -> Vec<(SuspensionRow, How)> {
    let mut moves = Vec::new();
    for (index, call) in after.indexed() {
        let known = before.and_then(|before| before.calls.get(index.get()));
        for (n, now) in call.suspensions.iter().enumerate() {
            let was = known.and_then(|known| known.suspensions.get(n));
            let (suspension, closed) = now;
            let how = match (was, closed) {
                // A step that the policy denied at once was never open.
                (Some((_, None)), Some(closed)) => {
                    let answer = closed.resolution();
                    let via = answer.and_then(Resolution::via);
                    let edited = answer.is_some_and(|answer| answer.arguments.is_some());
                    let approvers = call.approvers_of(suspension, closed).into_iter().cloned().collect();
                    How::Closed { by: closed.by.clone(), via, at: closed.at, edited, approvers }
                }
                (None, None) => How::Opened,
                (Some(was), None) if was != now => How::Changed,
                _ => continue,
            };
            moves.push((index::row(index, call, suspension, closed.as_ref(), after), how));
        }
    }
    moves
}

/// Follows suspensions in the name of a principal, which gets only those that it may see.
pub struct InboxFollower {
    pending: Pending,
    by: Principal,
    only: Option<SuspensionId>,
    moves: Receiver<Arc<Move>>,
    /// Taken from `moves` and not delivered yet.
    next: Option<Next>,
}

#[derive(Clone)]
enum Next {
    Moved(Arc<Move>),
    Missed,
}

impl InboxFollower {
    pub(crate) fn new(pending: Pending, by: Principal, only: Option<SuspensionId>, inbox: &Inbox) -> Self {
        Self { pending, by, only, moves: inbox.0.follow(), next: None }
    }

    /// Waits until there may be something to read. Reads nothing. Safe to cancel.
    pub async fn ready(&mut self) {
        while self.next.is_none() {
            self.next = match self.moves.recv().await {
                Ok(moved) => self.follows(&moved.row).then_some(Next::Moved(moved)),
                Err(Lagged) => Some(Next::Missed),
            };
        }
    }

    /// The next change that is there, after [`InboxFollower::ready`]. Waits only for the store. Safe to cancel: a change
    /// that was not returned is returned next.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&mut self) -> Result<Option<Waiting>, Error> {
        let item = match self.next.clone() {
            Some(Next::Moved(moved)) => self.item(&moved).await?,
            Some(Next::Missed) => Some(Waiting::Missed),
            None => None,
        };
        self.next = None;
        Ok(item)
    }

    fn follows(&self, row: &SuspensionRow) -> bool {
        match self.only {
            Some(only) => only == row.id && self.by.may_see(&row.conversation, &row.caller),
            None => lists(&self.by, row),
        }
    }

    async fn item(&self, moved: &Move) -> Result<Option<Waiting>, Error> {
        let row = &moved.row;
        if let How::Closed { by, via, at, edited, approvers } = &moved.how {
            let (row, by, approvers) = (Box::new(row.clone()), by.clone(), approvers.clone());
            return Ok(Some(Waiting::Closed { row, by, via: *via, at: *at, edited: *edited, approvers }));
        }
        let item = match self.pending.suspension(&self.by, row.id).await {
            // The list says that it is missing.
            Err(error) if error.is_damage() => return Ok(None),
            item => item?,
        };
        // If it was closed meanwhile, that is the next change.
        let item = Some(Box::new(item)).filter(|item| item.closed.is_none());
        Ok(item
            .map(|item| if matches!(moved.how, How::Opened) { Waiting::Opened(item) } else { Waiting::Changed(item) }))
    }
}

#[cfg(test)]
mod tests {
    use domain::suspension::{Decision, SuspensionEnd, SuspensionKind, SuspensionState};
    use domain::{CallIndex, ConversationId, TurnId};
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn unread_changes_are_bounded_in_bytes() {
        let (inbox, name) = (Inbox::default(), PrincipalId::new("ann").unwrap());
        let mut slow = inbox.0.follow();
        let choice = SuspensionEnd::Decided(Decision::Answer("x".repeat(60 << 10).into()));
        let row = SuspensionRow {
            id: SuspensionId::from_bits(1),
            turn: TurnId::from_bits(1),
            call: CallIndex(0),
            conversation: ConversationId::new("c").unwrap(),
            caller: name.clone(),
            tool: "ask".into(),
            kind: SuspensionKind::Elicitation,
            state: SuspensionState::Ended(choice),
            ended_by: vec![name.clone()],
            signal: None,
        };
        for n in 0..1_000 {
            let (row, by, at) = (row.clone(), name.clone(), Timestamp::from_millis(n));
            inbox.send(Move { row, how: How::Closed { by, via: None, at, edited: false, approvers: Vec::new() } });
        }
        assert!(matches!(slow.recv().now_or_never(), Some(Err(Lagged))));
        let kept: Vec<_> = std::iter::from_fn(|| slow.recv().now_or_never()).map(|moved| moved.unwrap()).collect();
        assert!(!kept.is_empty() && kept.iter().map(|moved| moved.row.state.as_str().len()).sum::<usize>() <= 1 << 20);
    }
}
