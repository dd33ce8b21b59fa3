//! Counts the progress that clients report, so that the limits of a plugin apply to its client tools too.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Limits, SuspensionId, Turn, TurnId};

/// The number and the bytes of the reports about one suspension.
type Reported = (u32, usize);

/// The reports of clients so far, by turn and open suspension. A restart of the host forgets them.
#[derive(Default)]
pub(crate) struct ClientReports(Mutex<HashMap<TurnId, HashMap<SuspensionId, Reported>>>);

impl ClientReports {
    /// Counts a report. Returns false if it exceeds the limits.
    pub(crate) fn count(&self, turn: TurnId, id: SuspensionId, bytes: usize, limits: &Limits) -> bool {
        let mut reports = self.reports();
        let (updates, total) = reports.entry(turn).or_default().entry(id).or_default();
        if *updates >= limits.progress_updates || bytes > limits.progress_bytes.saturating_sub(*total) {
            return false;
        }
        (*updates, *total) = (*updates + 1, *total + bytes);
        true
    }

    /// Forgets the suspensions of a turn that have ended.
    pub(super) fn committed(&self, after: &Turn) {
        let is_open = |id| after.suspension(id).is_some_and(|(.., closed)| closed.is_none());
        let mut reports = self.reports();
        if let Some(of_turn) = reports.get_mut(&after.id) {
            of_turn.retain(|id, _| is_open(*id));
            if of_turn.is_empty() {
                reports.remove(&after.id);
            }
        }
    }

    fn reports(&self) -> MutexGuard<'_, HashMap<TurnId, HashMap<SuspensionId, Reported>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use domain::event::Rejection;
    use domain::turn::TurnState;
    use domain::{ConversationId, PrincipalId, Timestamp};

    use super::*;

    #[test]
    fn reports_are_counted_by_number_and_bytes() {
        let reports = ClientReports::default();
        let limits = Limits { progress_updates: 3, progress_bytes: 10, ..Limits::default() };
        let count = |id, bytes| reports.count(TurnId::from_bits(1), SuspensionId::from_bits(id), bytes, &limits);
        assert_eq!([count(1, 6), count(1, 5), count(1, 4), count(1, 0), count(1, 0)], [true, false, true, true, false]);
        assert!(count(2, 10) && !count(2, 1), "each suspension has its own limits");
    }

    #[test]
    fn counts_are_forgotten_when_the_call_ends() {
        let (reports, id) = (ClientReports::default(), TurnId::from_bits(1));
        let other = TurnId::from_bits(2);
        for turn in [id, other] {
            assert!(reports.count(turn, SuspensionId::from_bits(1), 1, &Limits::default()));
        }
        reports.committed(&Turn {
            id,
            conversation: ConversationId::new("c").unwrap(),
            caller: PrincipalId::system(),
            context: None,
            parent: None,
            rejection: Rejection::default(),
            started_at: Timestamp::from_millis(0),
            calls: Vec::new(),
            state: TurnState::Open,
        });
        assert_eq!(reports.reports().keys().collect::<Vec<_>>(), [&other]);
    }
}
