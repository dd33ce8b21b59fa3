//! The part of its caller's quota that one turn uses.

use domain::{Call, Json, Outcome, Turn};

/// The size of what a guest, a client or a person put into an outcome.
pub(crate) fn text(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Failed(failure) => failure.message.len(),
        Outcome::Denied(reason) => reason.as_ref().map_or(0, String::len),
        other => other.size(),
    }
}

/// The usage of a turn, or of several turns together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    pub turns: usize,
    /// The sizes of what callers, guests, people and clients put into them.
    pub bytes: usize,
    /// Open suspensions.
    pub suspensions: usize,
}

impl Footprint {
    /// The usage of a turn: none once it has ended. Its size is that of the submission, and of the results so far.
    #[must_use]
    pub fn of(turn: &Turn) -> Self {
        if turn.is_ended() {
            return Self::default();
        }
        let context = turn.context.as_ref().map_or(0, Json::size);
        let size = |call: &Call| {
            let origin = call.origin.as_ref().map_or(0, Json::size);
            call.submitted.size() + call.tool.len() + origin + call.outcome().map_or(0, text) + call.step_bytes()
        };
        Self {
            turns: 1,
            bytes: context + turn.calls.iter().map(size).sum::<usize>(),
            suspensions: turn.pending().count(),
        }
    }

    pub(crate) fn change(&mut self, less: Self, more: Self) {
        self.turns = (self.turns + more.turns).saturating_sub(less.turns);
        self.bytes = (self.bytes + more.bytes).saturating_sub(less.bytes);
        self.suspensions = (self.suspensions + more.suspensions).saturating_sub(less.suspensions);
    }
}
