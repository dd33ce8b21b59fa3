//! Waiting for a turn. A turn whose calls all wait is not kept in memory for it.

use std::sync::Arc;

use domain::{ConversationId, Principal, Span, Timestamp, Turn, TurnId};
use tokio::sync::watch;

use super::Handle;
use crate::error::Error;
use crate::ports::Clock;
use crate::request::Until;
use crate::turns::{Entered, TurnStatus};

/// A wait until a turn has reached a state, for a limited time.
pub struct TurnWait {
    until: Until,
    changed: watch::Receiver<Option<TurnStatus>>,
    clock: Arc<dyn Clock>,
    deadline: Timestamp,
    entered: Entered,
}

/// While this is held, a turn that has ended stays in memory, so that a read after the wait does not load it.
#[must_use]
pub struct KeptTurn {
    _entered: Entered,
}

impl Handle {
    /// Begins to wait for a turn, at most for the given time. Begin before you read the turn. Then no commit is missed.
    #[must_use]
    pub fn begin_wait(&self, id: TurnId, until: Until, max_wait: Span) -> TurnWait {
        let (entered, clock) = (self.inner.pipeline.turns.enter(id), self.inner.shared.clock.clone());
        let (changed, deadline) = (entered.subscribe(), clock.now() + max_wait);
        TurnWait { until, changed, clock, deadline, entered }
    }

    /// Waits until a turn has reached a state, at most for the given time, and returns it as it is then.
    ///
    /// # Errors
    /// As [`Handle::turn`].
    pub async fn wait(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        id: TurnId,
        until: Until,
        max_wait: Span,
    ) -> Result<Turn, Error> {
        let waiting = self.begin_wait(id, until, max_wait);
        let turn = self.turn(by, conversation, id).await?;
        if waiting.is_over(&turn) {
            return Ok(turn);
        }
        drop(turn);
        let _kept = waiting.ends().await;
        self.turn(by, conversation, id).await
    }
}

impl TurnWait {
    /// Whether a turn that was read after this began has reached the state, or the time has passed.
    #[must_use]
    pub fn is_over(&self, turn: &Turn) -> bool {
        TurnStatus::of(turn).has_reached(self.until) || self.clock.now() >= self.deadline
    }

    /// Whether the turn is in memory, and has not reached the state. Then it need not be read before the wait.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        let status = *self.changed.borrow();
        status.is_some_and(|status| !status.has_reached(self.until)) && self.clock.now() < self.deadline
    }

    /// Waits until a commit changes what the turn does or waits for, or the time has passed.
    pub async fn changes(self) {
        let Self { mut changed, clock, deadline, .. } = self;
        tokio::select! {
            _ = changed.changed() => {}
            () = clock.sleep_until(deadline) => {}
        }
    }

    /// Waits until a commit brings the turn into the state, or the time has passed. Returns what keeps the turn in memory if it has
    /// ended.
    pub async fn ends(self) -> KeptTurn {
        let Self { until, mut changed, clock, deadline, entered } = self;
        let reached = async {
            while changed.changed().await.is_ok() {
                if changed.borrow_and_update().is_some_and(|status| status.has_reached(until)) {
                    break;
                }
            }
        };
        tokio::select! {
            () = reached => {}
            () = clock.sleep_until(deadline) => {}
        }
        KeptTurn { _entered: entered }
    }
}
