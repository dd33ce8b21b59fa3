//! The part of its caller's quota that one turn uses.

use domain::{Json, Turn};

use crate::request::TurnRequest;

/// The usage of a turn, or of several turns together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Footprint {
    pub(crate) turns: usize,
    pub(crate) bytes: usize,
    pub(crate) suspensions: usize,
}

impl Footprint {
    /// The usage of a turn: none once it has ended. Its size is that of the submission, which never changes.
    pub(crate) fn of(turn: &Turn) -> Self {
        if turn.is_ended() {
            return Self::default();
        }
        let context = turn.context.as_ref().map_or(0, Json::size);
        let calls = turn.calls.iter().map(|call| call.submitted.size() + call.tool.len());
        Self { turns: 1, bytes: context + calls.sum::<usize>(), suspensions: turn.pending().count() }
    }

    /// The usage of a submission.
    pub(crate) fn asked(request: &TurnRequest) -> Self {
        let context = request.context.as_ref().map_or(0, Json::size);
        let calls = request.calls.iter().map(|call| call.arguments.size() + call.tool.len());
        Self { turns: 1, bytes: context + calls.sum::<usize>(), suspensions: 0 }
    }

    pub(crate) fn change(&mut self, less: Self, more: Self) {
        self.turns = (self.turns + more.turns).saturating_sub(less.turns);
        self.bytes = (self.bytes + more.bytes).saturating_sub(less.bytes);
        self.suspensions = (self.suspensions + more.suspensions).saturating_sub(less.suspensions);
    }
}
