//! The last progress of the calls that have not ended. Programs that ask for it later get it, and those that want only the
//! newest are woken. It is not stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::TurnId;
use tokio::sync::broadcast;

use crate::ports::Progress;

/// The maximum number of turns. Those that began first are dropped.
const MAX_TURNS: usize = 4_096;

/// The maximum size of a message that is kept, in bytes.
const MAX_MESSAGE: usize = 512;

/// How far a follower may fall behind before it loses the oldest.
const BACKLOG: usize = 16;

/// The last report of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestProgress {
    /// The beginning of the message, in the words of the guest or the client.
    pub message: String,
    /// 0.0 to 1.0, where it is known.
    pub fraction: Option<f64>,
}

/// The last progress of a turn, and the newest few for those that follow it.
struct Newest {
    last: Option<Arc<LatestProgress>>,
    followers: broadcast::Sender<Arc<LatestProgress>>,
}

impl Default for Newest {
    fn default() -> Self {
        Self { last: None, followers: broadcast::Sender::new(BACKLOG) }
    }
}

/// The last progress of each turn.
#[derive(Default)]
pub(crate) struct Latest(Mutex<BTreeMap<TurnId, Newest>>);

impl Latest {
    pub(crate) fn report(&self, turn: TurnId, progress: &Progress) {
        let end = progress.message.floor_char_boundary(MAX_MESSAGE);
        let message = progress.message.get(..end).unwrap_or_default().to_owned();
        let latest = Arc::new(LatestProgress { message, fraction: progress.fraction });
        self.kept(turn, |newest| {
            newest.last = Some(latest.clone());
            // Perhaps nobody follows.
            let _ = newest.followers.send(latest);
        });
    }

    pub(crate) fn follow(&self, turn: TurnId) -> broadcast::Receiver<Arc<LatestProgress>> {
        self.kept(turn, |newest| newest.followers.subscribe())
    }

    pub(crate) fn read(&self, turn: TurnId) -> Option<Arc<LatestProgress>> {
        self.locked().get(&turn)?.last.clone()
    }

    /// Forgets a turn that has ended.
    pub(super) fn ended(&self, turn: TurnId) {
        self.locked().remove(&turn);
    }

    fn kept<T>(&self, turn: TurnId, with: impl FnOnce(&mut Newest) -> T) -> T {
        let mut turns = self.locked();
        let value = with(turns.entry(turn).or_default());
        while turns.len() > MAX_TURNS {
            turns.pop_first();
        }
        value
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<TurnId, Newest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(latest: &Latest, turn: u128, message: &str) {
        let progress = Progress { message: message.to_owned(), fraction: Some(0.5), data: None };
        latest.report(TurnId::from_bits(turn), &progress);
    }

    #[test]
    fn the_last_progress_is_kept_until_the_turn_ends() {
        let (latest, turn) = (Latest::default(), TurnId::from_bits(1));
        let mut follower = latest.follow(turn);
        report(&latest, 1, "one");
        report(&latest, 1, "two");
        assert_eq!(latest.read(turn).unwrap().message, "two");
        assert_eq!(follower.try_recv().unwrap().message, "one");
        assert_eq!(follower.try_recv().unwrap().message, "two");
        latest.ended(turn);
        assert_eq!(latest.read(turn), None);
        assert!(latest.locked().is_empty());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let latest = Latest::default();
        (0..5_000).for_each(|turn| report(&latest, turn, &"é".repeat(2_000)));
        let turns = latest.locked();
        assert_eq!((turns.len(), turns.keys().next()), (MAX_TURNS, Some(&TurnId::from_bits(904))));
        let kept = |newest: &Newest| newest.last.as_ref().unwrap().message.len();
        assert!(turns.values().all(|newest| kept(newest) == MAX_MESSAGE));
    }
}
