//! The names of signals. No two open waits of a conversation and its nested turns have the same name.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use domain::{
    ConversationId, Outcome, SignalName,
    outcome::{Failure, FailureCode},
    step::{RunEnd, StepWait},
    suspension::SuspensionKind,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::ports::{Filter, Indexes, StoreFault, SuspensionRow};

/// Conversations share this many locks.
const LOCKS: usize = 256;

/// The rows of one page.
const PAGE: usize = 500;

pub(crate) struct Signals {
    indexes: Arc<dyn Indexes>,
    /// Held from the check of a name until the wait is committed.
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

impl Signals {
    pub(crate) fn new(indexes: Arc<dyn Indexes>) -> Self {
        Self { indexes, locks: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }

    /// The end of a run, once the name that it waits for is free. The call fails if another wait of the conversation has it.
    /// Hold the guard until the end is committed.
    ///
    /// # Errors
    /// Faults of the store.
    pub(crate) async fn claimed(
        &self,
        conversation: &ConversationId,
        ended: RunEnd,
    ) -> Result<(RunEnd, Option<MutexGuard<'_, ()>>), StoreFault> {
        let RunEnd::Waits(request) = &ended else { return Ok((ended, None)) };
        let StepWait::External { signal: Some(name), .. } = &request.wait else { return Ok((ended, None)) };
        let [first, ..] = self.hasher.hash_one(conversation.of_caller().as_str()).to_be_bytes();
        let guard = self.locks[usize::from(first)].lock().await;
        let open = Filter {
            open: Some(true),
            conversation: Some(conversation.clone()),
            kind: Some(SuspensionKind::External),
            ..Filter::default()
        };
        if self.awaited(&open, name).await?.is_none() {
            return Ok((ended, Some(guard)));
        }
        let message = format!("another call of the conversation waits for a signal of the name `{name}`");
        Ok((Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)).into(), None))
    }

    /// The wait for a signal among those that a filter selects.
    ///
    /// # Errors
    /// Faults of the store.
    pub(crate) async fn awaited(
        &self,
        filter: &Filter,
        name: &SignalName,
    ) -> Result<Option<SuspensionRow>, StoreFault> {
        let mut after = None;
        loop {
            let page = self.indexes.suspensions(filter, after, PAGE).await?;
            if let Some(row) = page.rows.into_iter().find(|row| row.signal.as_ref() == Some(name)) {
                return Ok(Some(row));
            }
            after = page.next;
            if after.is_none() {
                return Ok(None);
            }
        }
    }
}
