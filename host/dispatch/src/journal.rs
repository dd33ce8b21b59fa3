//! Who may append to the journal of a durable call: the run that the turn's last commit started. A run that waits, ends
//! or is superseded cannot append any more, so nothing that it still does counts. A run reads its journal once it has the
//! permit of its plugin, so calls that wait for one keep no journal in memory.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::{
    Call, CallIndex, Digest, PrincipalId, TurnId,
    call::CallState,
    journal::{Entry, JournalBounds, JournalSummary, ValueChange},
    step::Durable,
};

use crate::committer::{Committer, Contributor, TurnChange};
use crate::ports::{AppendError, Commit, JournalRow, Journals, RowChange, Run, RunJournal, StoreFault};
use crate::run_logs::RunLogs;

/// Contributes the run that may append.
pub(crate) struct JournalRuns;

impl Contributor for JournalRuns {
    fn contribute(&self, change: &TurnChange<'_>, _: &Commit) -> Vec<RowChange> {
        let changed = change.after.indexed().filter_map(|(call, now)| {
            let before = change.before.and_then(|before| before.calls.get(call.get())).and_then(appending);
            let run = appending(now);
            (before != run).then(|| RowChange::JournalRun { turn: change.after.id, call, run })
        });
        changed.collect()
    }
}

/// The run of a durable call that may append now.
fn appending(call: &Call) -> Option<u32> {
    let runs = matches!(call.state, CallState::Running(_)) && call.pinned.as_ref().is_some_and(|pinned| pinned.durable);
    runs.then(|| call.run())
}

/// Appends for one run.
pub(crate) struct JournalWriter {
    pub(crate) committer: Arc<Committer>,
    pub(crate) logs: Arc<RunLogs>,
    pub(crate) turn: TurnId,
    pub(crate) call: CallIndex,
    pub(crate) run: u32,
    /// The principal whose turn it is.
    pub(crate) caller: PrincipalId,
    pub(crate) mint: Arc<dyn Fn() -> u128 + Send + Sync>,
    /// The journal with the entries that this run appended.
    pub(crate) summary: Mutex<JournalSummary>,
}

/// The journal of a run that is about to begin. It is not read yet.
pub(crate) struct UnreadJournal {
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) writer: JournalWriter,
    pub(crate) bounds: JournalBounds,
    /// The number of its entries.
    pub(crate) length: u32,
}

impl UnreadJournal {
    /// Reads it for its run, which then can append to it.
    pub(crate) async fn read_for(self, run: Run) -> Result<Run, StoreFault> {
        let Self { journals, writer, bounds, .. } = self;
        let entries = journals.journal(writer.turn, writer.call).await?;
        *writer.summary.lock().unwrap_or_else(PoisonError::into_inner) = JournalSummary::of(&entries);
        let durable = run.durable.map(|durable| Durable { journal: entries.into(), ..durable });
        Ok(Run { durable, journal: Some((Arc::new(writer), bounds)), ..run })
    }
}

/// The last run that recorded a result in the journal of a call. 0: a host recorded it that did not store which.
pub(crate) async fn last_run(
    journals: &dyn Journals,
    turn: TurnId,
    call: CallIndex,
) -> Result<Option<u32>, StoreFault> {
    let page = |from, entries| journals.journal_page(turn, call, from, JournalBounds { entries, bytes: usize::MAX });
    let Some(last) = page(0, 0).await?.length.checked_sub(1) else { return Ok(None) };
    Ok(page(last, 1).await?.entries.last().map(|entry| entry.run.unwrap_or_default()))
}

impl JournalWriter {
    /// Ids of the same time differ in few random bits, so it is made from several.
    fn salt(&self) -> Digest {
        Digest::of([(); 4].map(|()| (self.mint)().to_be_bytes()).concat())
    }
}

#[async_trait]
impl RunJournal for JournalWriter {
    async fn append(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<(), AppendError> {
        let Self { turn, call, run, .. } = *self;
        let salt = |entry: &Entry| (entry.number == 0).then(|| self.salt());
        let stored = |entry: Entry| Entry { run: Some(run), salt: salt(&entry), ..entry };
        let entries: Vec<Entry> = entries.into_iter().map(stored).collect();
        let row = |entry| RowChange::JournalEntry(JournalRow { turn, call, run, entry });
        let counted = RowChange::Kept(self.caller.clone());
        // The next run does not write the lines before these entries again.
        let logs = self.logs.unstored_of(turn, call, run);
        let rows = entries.iter().cloned().map(row).chain(values.into_iter().map(RowChange::Value)).chain([counted]);
        let rows = rows.chain(logs);
        self.committer.record(Commit::rows(rows.collect())).await?;
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        *summary = entries.iter().fold(*summary, JournalSummary::then);
        Ok(())
    }

    fn summary(&self) -> JournalSummary {
        *self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
