//! How calls ended since the host was started, by outcome, and failures by their code.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::Turn;
use domain::outcome::{FailureCode, Outcome, OutcomeKind};

/// A counter for each. Failures are counted by their code only.
#[derive(Default)]
pub(super) struct Outcomes {
    failed: [AtomicU64; FailureCode::ALL.len()],
    others: [AtomicU64; OutcomeKind::ALL.len()],
}

impl Outcomes {
    /// Counts the calls that ended between two states of a turn.
    pub(super) fn count(&self, before: Option<&Turn>, after: &Turn) {
        for (index, call) in after.indexed() {
            let ended_before =
                before.and_then(|before| before.calls.get(index.get())).map(|call| call.outcome().is_some());
            if let (Some(outcome), None | Some(false)) = (call.outcome(), ended_before)
                && let Some(counter) = self.counter(outcome)
            {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn counter(&self, outcome: &Outcome) -> Option<&AtomicU64> {
        match outcome {
            Outcome::Failed(failure) => {
                self.failed.get(FailureCode::ALL.iter().position(|code| *code == failure.code)?)
            }
            other => self.others.get(OutcomeKind::ALL.iter().position(|kind| *kind == other.kind())?),
        }
    }

    /// The outcome, the code of a failure, and how many calls ended so.
    pub(super) fn list(&self) -> Vec<(OutcomeKind, Option<FailureCode>, u64)> {
        let kinds = OutcomeKind::ALL.iter().zip(&self.others).map(|(kind, count)| (*kind, None, count));
        let others = kinds.filter(|(kind, ..)| *kind != OutcomeKind::Failed);
        let codes = FailureCode::ALL.iter().zip(&self.failed);
        let failed = codes.map(|(code, count)| (OutcomeKind::Failed, Some(*code), count));
        others.chain(failed).map(|(kind, code, count)| (kind, code, count.load(Ordering::Relaxed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::{Json, outcome::Failure};

    use super::*;

    #[test]
    fn every_outcome_has_a_counter_of_its_own() {
        let outcomes = Outcomes::default();
        let mut all = vec![
            Outcome::Ok { value: Json::unchecked("1"), trusted: true },
            Outcome::Denied(None),
            Outcome::Expired,
            Outcome::Cancelled,
            Outcome::CancelledBySibling,
            Outcome::Unavailable,
            Outcome::Invalidated,
            Outcome::InDoubt,
        ];
        all.extend(FailureCode::ALL.map(|code| Outcome::Failed(Failure::new(code, "no"))));
        for outcome in &all {
            outcomes.counter(outcome).unwrap().fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(outcomes.list().len(), all.len());
        assert!(outcomes.list().iter().all(|(.., count)| *count == 1));
    }
}
