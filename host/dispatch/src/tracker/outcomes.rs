//! How calls ended since the host was started, by outcome, and failures by their code.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Outcome, Turn, outcome::FailureCode};

/// Every outcome but a failure, by its name.
const OTHERS: [&str; 8] =
    ["ok", "denied", "expired", "cancelled", "cancelled_by_sibling", "unavailable", "invalidated", "in_doubt"];

/// A counter for each.
#[derive(Default)]
pub(super) struct Outcomes {
    failed: [AtomicU64; FailureCode::ALL.len()],
    others: [AtomicU64; OTHERS.len()],
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
                self.failed.get(FailureCode::ALL.iter().position(|(code, _)| *code == failure.code)?)
            }
            other => self.others.get(OTHERS.iter().position(|name| *name == other.as_str())?),
        }
    }

    /// The outcome, the code of a failure (or nothing), and how many calls ended so.
    pub(super) fn list(&self) -> Vec<(&'static str, &'static str, u64)> {
        let others = OTHERS.iter().zip(&self.others).map(|(name, count)| (*name, "", count));
        let failed = FailureCode::ALL.iter().zip(&self.failed).map(|((_, code), count)| ("failed", *code, count));
        others.chain(failed).map(|(outcome, code, count)| (outcome, code, count.load(Ordering::Relaxed))).collect()
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
            Outcome::Ok { value: Json::new("1"), trusted: true },
            Outcome::Denied(None),
            Outcome::Expired,
            Outcome::Cancelled,
            Outcome::CancelledBySibling,
            Outcome::Unavailable,
            Outcome::Invalidated,
            Outcome::InDoubt,
        ];
        all.extend(FailureCode::ALL.map(|(code, _)| Outcome::Failed(Failure::new(code, "no"))));
        for outcome in &all {
            outcomes.counter(outcome).unwrap().fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(outcomes.list().len(), all.len());
        assert!(outcomes.list().iter().all(|(.., count)| *count == 1));
    }
}
