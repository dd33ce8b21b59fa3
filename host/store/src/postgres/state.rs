//! The rows that a batch of commits reads and changes. Each commit is checked against the stored rows and against the commits before it
//! in the batch, and is accepted or refused alone.

use std::collections::{BTreeMap, BTreeSet};

use dispatch::ports::{
    AppendError, AudienceChange, CallRecords, DeliveryRow, Denial, EndedTurn, Footprint, Head, JournalRow, NewFacts,
    Position, RowChange, RunLog, Source, Subject, SuspensionRow, TurnsToRemove,
};
use domain::{
    CallId, CallIndex, ConversationId, Digest, PrincipalId, SignalName, StandingId, SuspensionId, Timestamp, TurnId,
    effect::Due,
    event::TurnEnd,
    journal::ValueChange,
    standing::{StandingRevoked, StandingRow},
};

use super::plan::{Plan, Stored};
use super::rows::signed;
use super::table::Table;

/// The log of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Commits(u32),
    /// Nothing can be appended.
    Removed,
}

/// The sizes of the records of a turn before the commit that ends it.
#[derive(Debug, Clone, Default)]
pub(super) struct Sizes {
    pub(super) log: u64,
    pub(super) journals: u64,
    pub(super) run_logs: BTreeMap<(CallIndex, u32), u64>,
}

/// A row with its record.
pub(super) struct Recorded<T> {
    pub(super) row: T,
    pub(super) record: Vec<u8>,
}

pub(super) struct EndedRow {
    pub(super) ended: EndedTurn,
    pub(super) end: TurnEnd,
    pub(super) position: Option<Position>,
    pub(super) bytes: u64,
    pub(super) record: Vec<u8>,
}

/// The run that may append to a journal, and the number of its entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JournalHead {
    pub(super) run: Option<u32>,
    pub(super) length: u32,
}

pub(super) struct RunLogRow {
    pub(super) written: u64,
    pub(super) record: Vec<u8>,
}

/// A new commit with facts.
pub(super) struct CommitRow {
    pub(super) head: Head,
    pub(super) source: Source,
    pub(super) conversation: Option<ConversationId>,
    pub(super) record: Vec<u8>,
}

/// A new entry of a journal.
pub(super) struct EntryRow {
    pub(super) turn: TurnId,
    pub(super) call: CallIndex,
    pub(super) number: u32,
    pub(super) record: Vec<u8>,
}

/// A change of the number of suspensions that wait for an audience.
pub(super) struct WaitingChange {
    pub(super) audience: Digest,
    pub(super) record: Vec<u8>,
    /// The numbers that change, by scope and tool.
    pub(super) counts: Vec<(String, String)>,
    pub(super) by: i64,
}

/// A change of what the open turns of a principal use.
pub(super) struct OpenChange {
    pub(super) principal: PrincipalId,
    pub(super) less: Footprint,
    pub(super) more: Footprint,
}

/// The signal that a suspension waits for, or waited for. No two open ones of a conversation have the same.
pub(super) fn signal_of(row: &SuspensionRow) -> Option<(ConversationId, SignalName)> {
    Some((row.conversation.of_caller(), row.signal.clone()?))
}

/// The changes that need no check.
#[derive(Default)]
pub(super) struct Added {
    pub(super) commits: Vec<CommitRow>,
    pub(super) entries: Vec<EntryRow>,
    pub(super) kept: Vec<(PrincipalId, i64)>,
    pub(super) open: Vec<OpenChange>,
    /// The turns whose logs of runs are removed.
    pub(super) forgotten_logs: Vec<TurnId>,
    /// The turns whose journals are removed.
    pub(super) forgotten_journals: Vec<TurnId>,
    pub(super) waiting: Vec<WaitingChange>,
    pub(super) retention_time: Option<Timestamp>,
}

impl Added {
    fn extend(&mut self, more: Self) {
        self.commits.extend(more.commits);
        self.entries.extend(more.entries);
        self.kept.extend(more.kept);
        self.open.extend(more.open);
        self.forgotten_logs.extend(more.forgotten_logs);
        self.forgotten_journals.extend(more.forgotten_journals);
        self.waiting.extend(more.waiting);
        self.retention_time = more.retention_time.or(self.retention_time);
    }
}

/// The key of a delivery: its subject, the number of its event, and the webhook.
pub(super) type DeliveryKey = (Subject, u32, String);

#[derive(Default)]
pub(super) struct State {
    pub(super) head: Head,
    pub(super) added: Added,
    trial: Added,
    pub(super) logs: Table<TurnId, Length>,
    pub(super) sizes: BTreeMap<TurnId, Sizes>,
    pub(super) owners: Table<ConversationId, PrincipalId>,
    pub(super) calls: Table<(ConversationId, CallId), TurnId>,
    pub(super) unfinished: Table<TurnId, Due>,
    pub(super) ended: Table<TurnId, EndedRow>,
    pub(super) suspensions: Table<SuspensionId, Recorded<SuspensionRow>>,
    pub(super) signals: Table<(ConversationId, SignalName), SuspensionId>,
    pub(super) waiting: Table<SuspensionId, (Digest, AudienceChange)>,
    pub(super) deliveries: Table<DeliveryKey, Recorded<DeliveryRow>>,
    pub(super) run_logs: Table<(TurnId, CallIndex, u32), RunLogRow>,
    pub(super) journals: Table<(TurnId, CallIndex), JournalHead>,
    pub(super) standings: Table<StandingId, StandingRow>,
    pub(super) denials: Table<(ConversationId, Digest), Timestamp>,
    pub(super) values: Table<Vec<u8>, Vec<u8>>,
    /// The keys of the values that were there before the batch.
    pub(super) stored_values: BTreeSet<Vec<u8>>,
    /// Whether turns that a removal names have a delivery to come.
    pub(super) is_owed: bool,
    /// The removal, which is the only commit of its batch.
    pub(super) removal: Option<TurnsToRemove>,
    accepted: usize,
}

/// The sizes that one commit adds.
#[derive(Default)]
struct Counted {
    /// The bytes that no earlier commit counted for the principal of the turn.
    added: u64,
    /// The size of the turn that the commit ends.
    turn: u64,
}

impl State {
    /// Whether a commit was accepted.
    pub(super) fn is_changed(&self) -> bool {
        self.accepted > 0
    }

    /// Checks a commit and makes its changes, or none of them. Returns its position.
    pub(super) fn commit(&mut self, plan: &Plan) -> Result<Position, AppendError> {
        let before = self.head;
        let done = self.check(plan);
        let (is_accepted, trial) = (done.is_ok(), std::mem::take(&mut self.trial));
        if is_accepted {
            self.added.extend(trial);
            self.accepted += 1;
        } else {
            (self.head, self.removal) = (before, None);
        }
        self.end(is_accepted);
        done.map(|()| self.head.position)
    }

    /// Ends the changes of the rows since the last end.
    pub(super) fn end(&mut self, is_accepted: bool) {
        self.logs.end(is_accepted);
        self.owners.end(is_accepted);
        self.calls.end(is_accepted);
        self.unfinished.end(is_accepted);
        self.ended.end(is_accepted);
        self.suspensions.end(is_accepted);
        self.signals.end(is_accepted);
        self.waiting.end(is_accepted);
        self.deliveries.end(is_accepted);
        self.run_logs.end(is_accepted);
        self.journals.end(is_accepted);
        self.standings.end(is_accepted);
        self.denials.end(is_accepted);
        self.values.end(is_accepted);
    }

    fn check(&mut self, plan: &Plan) -> Result<(), AppendError> {
        let mut counted = Counted::default();
        self.facts(plan, &mut counted)?;
        let rows = || plan.commit.rows.iter().zip(&plan.stored);
        let is_log = |row: &RowChange| matches!(row, RowChange::RunLog(_));
        for (row, stored) in rows().filter(|(row, _)| is_log(row)) {
            self.row(row, stored, plan, &mut counted)?;
        }
        let ends = plan.ends();
        if let Some(sizes) = ends.and_then(|turn| self.sizes.get(&turn)) {
            let logs = sizes.run_logs.iter().filter_map(|(&(call, run), size)| {
                // A log of this commit counts below.
                let is_replaced = self.run_logs.is_tried(&(ends?, call, run));
                (!is_replaced).then_some(*size)
            });
            let logs = logs.sum::<u64>() + self.new_logs(ends);
            counted.added += logs;
            counted.turn += sizes.log + sizes.journals + logs;
        }
        let is_end = |row: &RowChange| matches!(row, RowChange::Ended(..));
        for (row, stored) in rows().filter(|(row, _)| !is_log(row) && !is_end(row)) {
            self.row(row, stored, plan, &mut counted)?;
        }
        for (row, stored) in rows().filter(|(row, _)| is_end(row)) {
            self.row(row, stored, plan, &mut counted)?;
        }
        Ok(())
    }

    /// The size of the logs that this commit writes for a turn.
    fn new_logs(&self, of: Option<TurnId>) -> u64 {
        let of_turn = self.run_logs.tried().filter(|((turn, ..), _)| Some(*turn) == of);
        of_turn.map(|(_, row)| row.record.len() as u64).sum()
    }

    fn facts(&mut self, plan: &Plan, counted: &mut Counted) -> Result<(), AppendError> {
        let (Some(facts), Some(fact)) = (&plan.commit.facts, &plan.fact) else { return Ok(()) };
        let mut conversation = None;
        match facts {
            NewFacts::Turn { turn, conversation: of, expected, .. } => {
                if self.length(*turn) != Length::Commits(*expected) {
                    return Err(AppendError::Conflict);
                }
                self.logs.put(*turn, Length::Commits(expected.saturating_add(1)));
                conversation = Some(of.clone());
                let size = fact.record.len() as u64;
                (counted.added, counted.turn) = (size, size);
            }
            NewFacts::Revoked(StandingRevoked { id, by, at, .. }) => {
                let row = self.standings.get(id).filter(|row| row.revoked.is_none());
                let mut row = row.ok_or(AppendError::NotRevocable(*id))?.clone();
                row.revoked = Some((by.clone(), *at));
                self.standings.put(*id, row);
            }
            NewFacts::Removal(removal) => self.removal(removal)?,
            NewFacts::Plugin(_) | NewFacts::Started(_) => {}
        }
        self.head = self.head.then(fact.source, fact.digest);
        let (head, source, record) = (self.head, fact.source, fact.record.clone());
        self.trial.commits.push(CommitRow { head, source, conversation, record });
        Ok(())
    }

    fn length(&self, turn: TurnId) -> Length {
        self.logs.get(&turn).copied().unwrap_or(Length::Commits(0))
    }

    fn removal(&mut self, removal: &TurnsToRemove) -> Result<(), AppendError> {
        for turn in &removal.turns {
            let id = turn.ended.turn;
            let row = self.ended.get(&id).ok_or(AppendError::Changed)?;
            let is_as_read = (&row.ended, row.bytes) == (&turn.ended, turn.bytes);
            if !is_as_read || self.length(id) != Length::Commits(turn.commits) {
                return Err(AppendError::Changed);
            }
            self.ended.remove(id);
            self.logs.put(id, Length::Removed);
            self.trial.forgotten_logs.push(id);
            self.trial.forgotten_journals.push(id);
            self.trial.kept.push((turn.ended.caller.clone(), signed(turn.bytes).saturating_neg()));
        }
        if self.is_owed {
            return Err(AppendError::Changed);
        }
        self.removal = Some(removal.clone());
        Ok(())
    }

    fn row(&mut self, row: &RowChange, stored: &Stored, plan: &Plan, counted: &mut Counted) -> Result<(), AppendError> {
        let record = || stored.bytes().to_vec();
        match row {
            RowChange::Owner { conversation, owner } => match self.owners.get(conversation) {
                None => self.owners.put(conversation.clone(), owner.clone()),
                Some(first) if first == owner => {}
                Some(_) => return Err(AppendError::NotOwner),
            },
            RowChange::Call { conversation, id, turn } => {
                let key = (conversation.clone(), id.clone());
                match self.calls.get(&key) {
                    None => self.calls.put(key, *turn),
                    Some(first) if first == turn => {}
                    Some(first) => return Err(AppendError::CallExists(*first)),
                }
            }
            RowChange::Due { turn, before, after } if before != after => match after {
                Some(after) => self.unfinished.put(*turn, *after),
                None => self.unfinished.remove(*turn),
            },
            RowChange::Due { .. } => {}
            RowChange::Ended(ended, end) => {
                let (ended, end) = (ended.clone(), *end);
                let position = plan.fact.as_ref().map(|_| self.head.position);
                let row = EndedRow { end, position, bytes: counted.turn, record: record(), ended };
                self.ended.put(row.ended.turn, row);
            }
            RowChange::Suspension(row) => {
                self.signal(row)?;
                self.suspensions.put(row.id, Recorded { row: row.clone(), record: record() });
            }
            RowChange::Audience(change) => self.audience(change, stored),
            RowChange::Open { principal, less, more } => {
                self.trial.open.push(OpenChange { principal: principal.clone(), less: *less, more: *more });
            }
            RowChange::Length { turn, commits } => {
                if self.length(*turn) != Length::Commits(*commits) {
                    return Err(AppendError::Conflict);
                }
            }
            RowChange::Kept(principal) => self.trial.kept.push((principal.clone(), signed(counted.added))),
            RowChange::RetentionTime(at) => self.trial.retention_time = Some(*at),
            RowChange::Delivery(row) => {
                let key = (row.report.subject(), row.report.number(), row.webhook.clone());
                self.deliveries.put(key, Recorded { row: row.clone(), record: record() });
            }
            RowChange::RunLog(log) => self.run_log(log, record()),
            RowChange::Forget(records, ended, bytes) => self.forget(*records, ended, *bytes)?,
            RowChange::JournalRun { turn, call, run } => {
                let key = (*turn, *call);
                let head = self.journals.get(&key).copied().unwrap_or_default();
                self.journals.put(key, JournalHead { run: *run, ..head });
            }
            RowChange::JournalEntry(row) => self.entry(row, record(), plan, counted)?,
            RowChange::Value(change) => self.value(change)?,
            RowChange::Standing(row) => self.standings.put(row.standing.id, (**row).clone()),
            RowChange::StandingUse(id) => self.use_standing(*id)?,
            RowChange::ForgetStanding(row) => match self.standings.get(&row.standing.id) {
                Some(stored) if *stored == **row => self.standings.remove(row.standing.id),
                _ => return Err(AppendError::Changed),
            },
            RowChange::Denied(row) => self.denials.put(key_of(row), row.at),
            RowChange::ForgetDenial(row) => match self.denials.get(&key_of(row)) {
                Some(at) if *at == row.at => self.denials.remove(key_of(row)),
                _ => return Err(AppendError::Changed),
            },
        }
        Ok(())
    }

    fn value(&mut self, ValueChange { key, old, value }: &ValueChange) -> Result<(), AppendError> {
        if self.values.get(key) != old.as_ref() {
            return Err(AppendError::Changed);
        }
        match value {
            Some(value) => self.values.put(key.clone(), value.clone()),
            None => self.values.remove(key.clone()),
        }
        Ok(())
    }

    fn signal(&mut self, row: &SuspensionRow) -> Result<(), AppendError> {
        let Some(key) = signal_of(row) else { return Ok(()) };
        match (self.signals.get(&key), row.is_open()) {
            (Some(id), true) if *id != row.id => return Err(AppendError::Conflict),
            (_, true) => self.signals.put(key, row.id),
            (Some(id), false) if *id == row.id => self.signals.remove(key),
            (_, false) => {}
        }
        Ok(())
    }

    fn use_standing(&mut self, id: StandingId) -> Result<(), AppendError> {
        let can = |row: &&StandingRow| row.revoked.is_none() && row.used < row.standing.uses;
        let row = self.standings.get(&id).filter(can).ok_or(AppendError::StandingSpent(id))?;
        self.standings.put(id, StandingRow { used: row.used + 1, ..row.clone() });
        Ok(())
    }

    fn run_log(&mut self, log: &RunLog, record: Vec<u8>) {
        let key = (log.turn, log.call, log.run);
        let is_longer = self.run_logs.get(&key).is_none_or(|kept| kept.written < log.written);
        if is_longer && self.length(log.turn) != Length::Removed {
            self.run_logs.put(key, RunLogRow { written: log.written, record });
        }
    }

    fn forget(&mut self, records: CallRecords, ended: &EndedTurn, bytes: u64) -> Result<(), AppendError> {
        let id = ended.turn;
        let row = self.ended.get(&id).filter(|row| (&row.ended, row.bytes) == (ended, bytes));
        let row = row.ok_or(AppendError::Changed)?;
        let stored = self.sizes.get(&id).map_or(0, |sizes| match records {
            CallRecords::Logs => sizes.run_logs.values().sum(),
            CallRecords::Journals => sizes.journals,
        });
        // Lines that were written after the end of the turn were never counted.
        let size = stored.min(bytes);
        let row = EndedRow { bytes: bytes - size, ended: ended.clone(), record: row.record.clone(), ..*row };
        self.ended.put(id, row);
        self.trial.kept.push((ended.caller.clone(), signed(size).saturating_neg()));
        match records {
            CallRecords::Logs => self.trial.forgotten_logs.push(id),
            CallRecords::Journals => self.trial.forgotten_journals.push(id),
        }
        Ok(())
    }

    fn entry(
        &mut self,
        row: &JournalRow,
        record: Vec<u8>,
        plan: &Plan,
        counted: &mut Counted,
    ) -> Result<(), AppendError> {
        let (key, number) = ((row.turn, row.call), row.entry.number);
        let head = self.journals.get(&key).copied().unwrap_or_default();
        if head.run != Some(row.run) || head.length != number {
            return Err(AppendError::Superseded);
        }
        self.journals.put(key, JournalHead { length: number.saturating_add(1), ..head });
        let size = record.len() as u64;
        counted.added += size;
        if plan.ends() == Some(row.turn) {
            counted.turn += size;
        }
        self.trial.entries.push(EntryRow { turn: row.turn, call: row.call, number, record });
        Ok(())
    }

    fn audience(&mut self, change: &AudienceChange, stored: &Stored) {
        let Stored::Audiences { before, after } = stored else { return };
        let conversation = change.conversation.of_caller();
        let scopes = [String::new(), format!("c:{conversation}"), format!("p:{}", change.caller)];
        let tools = ["", &change.tool];
        let counts = || scopes.iter().flat_map(|scope| tools.map(|tool| (scope.clone(), tool.to_owned())));
        for (record, by) in [(before, -1), (after, 1)] {
            let Some(record) = record else { continue };
            let (audience, record, counts) = (Digest::of(record), record.clone(), counts().collect());
            self.trial.waiting.push(WaitingChange { audience, record, counts, by });
        }
        match after {
            Some(record) => self.waiting.put(change.suspension, (Digest::of(record), change.clone())),
            None => self.waiting.remove(change.suspension),
        }
    }
}

fn key_of(denial: &Denial) -> (ConversationId, Digest) {
    (denial.conversation.clone(), denial.alike)
}
