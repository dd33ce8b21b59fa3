//! The journals of durable calls: what the runs of a call have recorded.

use async_trait::async_trait;
use domain::{
    CallIndex, TurnId,
    journal::{Entry, JournalBounds, JournalSummary, ValueChange},
};

use super::commit::AppendError;
use super::fault::StoreFault;

/// Reads journals. They are written with [`RowChange::JournalEntry`](super::RowChange::JournalEntry), by the run that
/// [`RowChange::JournalRun`](super::RowChange::JournalRun) names.
///
/// Laws:
/// - They are in no feed and not in the audit.
/// - Entries have the numbers from 0 without gaps, and none ever changes.
/// - Only the run that was named last can append. Nothing can after a commit that names none.
/// - The journals of a removed turn are removed.
#[async_trait]
pub trait Journals: Send + Sync {
    /// The entries of a call's journal from this number, in their order. At most `max`, except that one entry may have more
    /// bytes.
    async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault>;

    /// All entries of a call's journal.
    async fn journal(&self, turn: TurnId, call: CallIndex) -> Result<Vec<Entry>, StoreFault> {
        let all = JournalBounds { entries: usize::MAX, bytes: usize::MAX };
        Ok(self.journal_page(turn, call, 0, all).await?.entries)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalPage {
    pub entries: Vec<Entry>,
    /// The number of entries of the whole journal.
    pub length: u32,
}

/// Appends to the journal of one call, for one run.
#[async_trait]
pub trait RunJournal: Send + Sync {
    /// Appends entries. The key-value data changes with them. When this returns, all of it is on disk.
    ///
    /// # Errors
    /// [`AppendError::Superseded`]: the run may not append any more. [`AppendError::Changed`]: another host has changed a
    /// value. Nothing is written, also with other errors, except that the state is unknown after a fault of the disk.
    async fn append(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<(), AppendError>;

    /// The journal with everything that this run appended.
    fn summary(&self) -> JournalSummary;
}
