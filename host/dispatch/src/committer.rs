//! The one function that commits. Everything that a host writes goes through [`Committer::commit`]: the events of turns
//! and the facts and rows that belong to no turn.
//!
//! `contributors → append → observers`. The pipeline then performs the effects of a turn.

use std::sync::Arc;

use domain::Turn;

use crate::ports::{AppendError, Commit, Footprint, Log, RowChange};

/// Adds rows to a commit before it is appended. A kill loses none of them, because they are written together with the
/// events.
pub(crate) trait Contributor: Send + Sync {
    /// The rows that follow from the change of a turn. `commit` has the events, and the rows of earlier contributors.
    fn contribute(&self, change: &TurnChange<'_>, commit: &Commit) -> Vec<RowChange>;
}

/// Reacts to commits. It cannot fail or wait, because the commit has happened.
pub(crate) trait Observer: Send + Sync {
    /// Whether it also observes ephemeral turns. Most observers care only about what is stored.
    fn observes_ephemeral(&self) -> bool {
        false
    }

    /// Reacts to a commit. `change` is `None` for a commit that belongs to no turn.
    fn committed(&self, commit: &Commit, change: Option<&TurnChange<'_>>);
}

/// How a turn changes with a commit.
pub(crate) struct TurnChange<'a> {
    /// The turn before the commit. `None`: the commit begins the turn.
    pub(crate) before: Option<&'a Turn>,
    /// The turn after it.
    pub(crate) after: &'a Turn,
    /// The caller's reservation for a new turn. From this commit on, the turn itself counts instead.
    pub(crate) reserved: Footprint,
    pub(crate) storage: Storage,
}

/// Where the log of a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Stored,
    /// In memory only.
    Ephemeral {
        /// Whether a guest wrote key-value data that may not be on disk yet.
        wrote: bool,
        /// Whether somebody followed the conversation when the turn began.
        is_followed: bool,
    },
}

/// Commits, with the lists of contributors and observers.
pub(crate) struct Committer {
    log: Arc<dyn Log>,
    contributors: Vec<Arc<dyn Contributor>>,
    observers: Vec<Arc<dyn Observer>>,
}

impl Committer {
    pub(crate) fn new(
        log: Arc<dyn Log>,
        contributors: Vec<Arc<dyn Contributor>>,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Self {
        Self { log, contributors, observers }
    }

    /// A committer for a store without a running host. Its commits belong to no turn, so nothing is derived from them, and
    /// nobody observes them.
    pub(crate) fn without_host(log: Arc<dyn Log>) -> Self {
        Self::new(log, Vec::new(), Vec::new())
    }

    /// Commits facts and rows that belong to no turn.
    ///
    /// # Errors
    /// As [`Committer::commit`].
    pub(crate) async fn record(&self, commit: impl Into<Commit> + Send) -> Result<(), AppendError> {
        self.commit(commit.into(), None).await
    }

    /// Makes a commit. When this returns, it is on disk, and every observer has seen it. Of an ephemeral turn, only the
    /// key-value data of its guests is on disk.
    ///
    /// # Errors
    /// [`AppendError`]: nothing is committed.
    pub(crate) async fn commit(&self, mut commit: Commit, change: Option<&TurnChange<'_>>) -> Result<(), AppendError> {
        let storage = change.map_or(Storage::Stored, |change| change.storage);
        match storage {
            Storage::Stored => {
                if let Some(change) = change {
                    for contributor in &self.contributors {
                        let rows = contributor.contribute(change, &commit);
                        commit.rows.extend(rows);
                    }
                }
                self.log.append(&commit).await?;
            }
            Storage::Ephemeral { wrote: true, .. } => self.log.sync().await?,
            Storage::Ephemeral { wrote: false, .. } => {}
        }
        for observer in &self.observers {
            if storage == Storage::Stored || observer.observes_ephemeral() {
                observer.committed(&commit, change);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use domain::event::Rejection;
    use domain::turn::TurnState;
    use domain::{ConversationId, Digest, Timestamp, TurnId};
    use futures::FutureExt as _;

    use super::*;
    use crate::ports::{Committed, Denial, Feed, Loaded, Position, StoreFault, TurnLog};

    /// The steps, in order.
    type Steps = Arc<Mutex<Vec<String>>>;

    /// A log that refuses commits without rows.
    struct Recording(Steps);

    #[async_trait]
    impl Log for Recording {
        async fn append(&self, commit: &Commit) -> Result<Position, AppendError> {
            if commit.rows.is_empty() {
                return Err(AppendError::Conflict);
            }
            self.0.lock().unwrap().push(format!("append {}", commit.rows.len()));
            Ok(Position(1))
        }

        async fn load_until(&self, _: TurnId, _: u32) -> Result<Loaded<TurnLog>, StoreFault> {
            Ok(Loaded::Absent)
        }

        async fn follow(&self, _: &Feed, _: Position, _: usize, _: usize) -> Result<Vec<Committed>, StoreFault> {
            Ok(Vec::new())
        }

        async fn sync(&self) -> Result<(), StoreFault> {
            self.0.lock().unwrap().push("sync".to_owned());
            Ok(())
        }
    }

    /// Adds one row, and observes.
    struct Part {
        steps: Steps,
        name: &'static str,
        ephemeral: bool,
    }

    impl Contributor for Part {
        fn contribute(&self, _: &TurnChange<'_>, commit: &Commit) -> Vec<RowChange> {
            self.steps.lock().unwrap().push(format!("{} adds to {}", self.name, commit.rows.len()));
            vec![denial()]
        }
    }

    impl Observer for Part {
        fn observes_ephemeral(&self) -> bool {
            self.ephemeral
        }

        fn committed(&self, commit: &Commit, change: Option<&TurnChange<'_>>) {
            let of = if change.is_some() { "a turn" } else { "no turn" };
            self.steps.lock().unwrap().push(format!("{} sees {} of {of}", self.name, commit.rows.len()));
        }
    }

    fn denial() -> RowChange {
        let conversation = ConversationId::new("c").unwrap();
        RowChange::Denied(Denial { conversation, alike: Digest::of("call"), at: Timestamp::from_millis(0) })
    }

    fn turn() -> Turn {
        Turn {
            id: TurnId::from_bits(1),
            conversation: ConversationId::new("c").unwrap(),
            caller: "ann".parse().unwrap(),
            rejection: Rejection::default(),
            context: None,
            parent: None,
            started_at: Timestamp::from_millis(0),
            calls: Vec::new(),
            state: TurnState::Open,
        }
    }

    /// Commits to a host with two parts, and returns what happened.
    fn steps(commit: Commit, storage: Option<Storage>) -> (Result<(), AppendError>, Vec<String>) {
        let steps = Steps::default();
        let part = |name, ephemeral| Arc::new(Part { steps: steps.clone(), name, ephemeral });
        let (one, two) = (part("one", false), part("two", true));
        let log = Arc::new(Recording(steps.clone()));
        let committer = Committer::new(log, vec![one.clone(), two.clone()], vec![one, two]);
        let turn = turn();
        let reserved = Footprint::default();
        let change = storage.map(|storage| TurnChange { before: None, after: &turn, reserved, storage });
        let committed = committer.commit(commit, change.as_ref()).now_or_never().unwrap();
        let steps = steps.lock().unwrap().clone();
        (committed, steps)
    }

    fn events() -> Commit {
        Commit::turn(TurnId::from_bits(1), ConversationId::new("c").unwrap(), 0, Vec::new())
    }

    #[test]
    fn contributors_come_before_the_append_and_observers_after() {
        let (committed, steps) = steps(events(), Some(Storage::Stored));
        committed.unwrap();
        assert_eq!(
            steps,
            ["one adds to 0", "two adds to 1", "append 2", "one sees 2 of a turn", "two sees 2 of a turn"]
        );
    }

    #[test]
    fn rows_of_no_turn_are_observed_as_they_are() {
        let (committed, steps) = steps(Commit::rows(vec![denial()]), None);
        committed.unwrap();
        assert_eq!(steps, ["append 1", "one sees 1 of no turn", "two sees 1 of no turn"]);
    }

    #[test]
    fn a_refused_commit_is_not_observed() {
        let (refused, steps) = steps(Commit::rows(Vec::new()), None);
        assert!(matches!(refused, Err(AppendError::Conflict)));
        assert!(steps.is_empty());
    }

    #[test]
    fn an_ephemeral_commit_reaches_few_and_is_not_appended() {
        for (wrote, expected) in [(false, vec!["two sees 0 of a turn"]), (true, vec!["sync", "two sees 0 of a turn"])] {
            let (committed, steps) = steps(events(), Some(Storage::Ephemeral { wrote, is_followed: true }));
            committed.unwrap();
            assert_eq!(steps, expected);
        }
    }
}
