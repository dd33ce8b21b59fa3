//! The last progress of the calls that have not ended. Programs that ask for it later get it, and those that want only the
//! newest are woken. It is not stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::TurnId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::ports::Progress;

/// The maximum number of turns that nobody follows. Those that began first are dropped.
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

/// Follows the progress of one turn.
pub struct ProgressFollower {
    latest: Arc<Latest>,
    turn: TurnId,
    /// Taken only by `drop`.
    reports: Option<broadcast::Receiver<Arc<LatestProgress>>>,
}

impl ProgressFollower {
    /// The next report. `None`: the turn has ended.
    pub async fn next(&mut self) -> Option<Arc<LatestProgress>> {
        loop {
            match self.reports.as_mut()?.recv().await {
                Ok(report) => return Some(report),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// The next report, if there is one now.
    pub fn try_next(&mut self) -> Option<Arc<LatestProgress>> {
        loop {
            match self.reports.as_mut()?.try_recv() {
                Ok(report) => return Some(report),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for ProgressFollower {
    fn drop(&mut self) {
        self.latest.unfollow(self.turn, self.reports.take());
    }
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

    pub(crate) fn follow(self: &Arc<Self>, turn: TurnId) -> ProgressFollower {
        let reports = self.kept(turn, |newest| newest.followers.subscribe());
        ProgressFollower { latest: self.clone(), turn, reports: Some(reports) }
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
            // A request follows each of the others.
            let unfollowed = turns.iter().find(|(_, newest)| newest.followers.receiver_count() == 0);
            let Some(turn) = unfollowed.map(|(turn, _)| *turn) else { break };
            turns.remove(&turn);
        }
        value
    }

    /// Drops a follower while the map is locked. The last one of a turn without reports removes the entry, because the turn may
    /// have ended.
    fn unfollow(&self, turn: TurnId, reports: Option<broadcast::Receiver<Arc<LatestProgress>>>) {
        let mut turns = self.locked();
        drop(reports);
        if turns.get(&turn).is_some_and(|newest| newest.last.is_none() && newest.followers.receiver_count() == 0) {
            turns.remove(&turn);
        }
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
        let (latest, turn) = (Arc::<Latest>::default(), TurnId::from_bits(1));
        let mut follower = latest.follow(turn);
        report(&latest, 1, "one");
        report(&latest, 1, "two");
        assert_eq!(latest.read(turn).unwrap().message, "two");
        assert_eq!(follower.try_next().unwrap().message, "one");
        assert_eq!(follower.try_next().unwrap().message, "two");
        latest.ended(turn);
        assert_eq!((latest.read(turn), follower.try_next()), (None, None));
        assert!(latest.locked().is_empty());
    }

    #[test]
    fn followers_of_an_ended_turn_leave_nothing() {
        let (latest, turn) = (Arc::<Latest>::default(), TurnId::from_bits(1));
        latest.ended(turn);
        let followers = [latest.follow(turn), latest.follow(turn)];
        assert_eq!(latest.locked().len(), 1);
        drop(followers);
        assert!(latest.locked().is_empty());
    }

    #[test]
    fn turns_that_are_followed_are_not_dropped() {
        let latest = Arc::<Latest>::default();
        let mut follower = latest.follow(TurnId::from_bits(0));
        (1..5_000).for_each(|turn| report(&latest, turn, "m"));
        report(&latest, 0, "still");
        assert_eq!(follower.try_next().unwrap().message, "still");
        assert_eq!(latest.locked().len(), MAX_TURNS);
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
