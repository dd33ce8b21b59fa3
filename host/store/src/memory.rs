//! The store in memory, for tests and for a host whose data need not survive its process. It obeys the same laws as the
//! other store, in the simplest way: maps under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, AudienceChange, Audiences, BegunTurns, Commit, Committed, DeliveryRow, Denial, EndedTurn, Facts, Feed,
    Filter, Head, Health, Indexes, JournalRow, Loaded, Log, NewFacts, Page, Peers, Position, RowChange, RunLog, Source,
    StandingApprovals, StoreFault, Subject, SuspensionRow, Tombstone, TurnEnding, TurnLog,
};
use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId,
    effect::Due,
    event::{HostStarted, PluginEvent},
    journal::Entry,
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
    suspension::Audience,
    turn::TurnState,
};

use crate::KeyValue;
use crate::record;

mod audit;
mod feeds;
mod inbox;
mod logs;
mod outbox;
mod retention;
mod values;

use self::logs::logs_first;

/// The maximum number of rows that are read for one page of turns: as many as the other store reads.
const MAX_EXAMINED: usize = 1_000;

/// A store that loses everything when it is dropped.
pub struct MemoryStore {
    state: Mutex<State>,
    key_value: KeyValue,
}

#[derive(Default)]
struct State {
    /// Every commit of the chain: its head, where its record is, and the digest and size of the record in its stored form.
    chain: Vec<(Head, Source, Stored)>,
    logs: BTreeMap<TurnId, Vec<Vec<Event>>>,
    /// The positions of each turn's commits. Those of removed turns stay.
    positions: BTreeMap<TurnId, Vec<Position>>,
    /// The positions of each conversation's commits.
    feeds: BTreeSet<(ConversationId, Position)>,
    plugins: BTreeMap<Position, PluginEvent>,
    /// The ends of the turns that were not removed, at the positions of their commits.
    ends: BTreeMap<Position, TurnEnding>,
    starts: BTreeMap<Position, HostStarted>,
    owners: BTreeMap<ConversationId, PrincipalId>,
    calls: BTreeMap<(ConversationId, CallId), TurnId>,
    due: BTreeSet<(Timestamp, TurnId)>,
    unfinished: BTreeMap<TurnId, Due>,
    suspensions: BTreeMap<SuspensionId, SuspensionRow>,
    /// The open suspensions, each with its audience.
    waiting: BTreeMap<SuspensionId, AudienceChange>,
    /// The size of the records of each principal's turns.
    kept: BTreeMap<PrincipalId, u64>,
    /// By suspension, number of the occasion and webhook.
    deliveries: BTreeMap<(Subject, u32, String), DeliveryRow>,
    run_logs: BTreeMap<(TurnId, CallIndex, u32), RunLog>,
    /// The run that may append, and the entries.
    journals: BTreeMap<(TurnId, CallIndex), (Option<u32>, Vec<Entry>)>,
    standings: BTreeMap<StandingId, StandingRow>,
    revocations: BTreeMap<Position, StandingRevoked>,
    denied: BTreeMap<(ConversationId, Digest), Timestamp>,
    /// With the size of the turn's records.
    ended: BTreeMap<(Timestamp, TurnId), (EndedTurn, u64)>,
    removals: BTreeMap<Position, Removal>,
    retention_time: Option<Timestamp>,
    /// The remains of a removed turn, and the position of its removal.
    removed: BTreeMap<TurnId, (Tombstone, Position)>,
}

/// The digest and the size of a record in its stored form.
#[derive(Clone, Copy)]
struct Stored {
    digest: Digest,
    size: usize,
}

impl MemoryStore {
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::default(), key_value: KeyValue::in_memory() }
    }

    /// Every change happens after all checks, and no change can panic, so a poisoned state is still whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self, commit: &Commit) -> Result<(), AppendError> {
        match &commit.facts {
            Some(NewFacts::Turn { turn, expected, .. }) => {
                self.expect_length(*turn, *expected)?;
            }
            Some(NewFacts::Removal(removal)) => {
                let mut turns = BTreeSet::new();
                if !removal.turns.iter().all(|turn| turns.insert(turn.ended.turn) && self.can_remove(turn)) {
                    return Err(AppendError::Changed);
                }
            }
            Some(NewFacts::Revoked(StandingRevoked { id, .. })) => {
                let row = self.standings.get(id).filter(|row| row.revoked.is_none());
                row.ok_or(AppendError::NotRevocable(*id))?;
            }
            Some(NewFacts::Plugin(_) | NewFacts::Started(_)) | None => {}
        }
        let mut uses: BTreeMap<StandingId, u32> = BTreeMap::new();
        let mut journals = BTreeMap::new();
        for change in &commit.rows {
            match change {
                RowChange::StandingUse(id) => {
                    let used = uses.entry(*id).or_default();
                    *used += 1;
                    let can = |row: &&StandingRow| row.revoked.is_none() && row.used + *used <= row.standing.uses;
                    self.standings.get(id).filter(can).ok_or(AppendError::StandingSpent(*id))?;
                }
                RowChange::Owner { conversation, owner } => {
                    if self.owners.get(conversation).is_some_and(|first| first != owner) {
                        return Err(AppendError::NotOwner);
                    }
                }
                RowChange::Call { conversation, id, turn } => {
                    let first = self.calls.get(&(conversation.clone(), id.clone()));
                    if let Some(first) = first.filter(|first| *first != turn) {
                        return Err(AppendError::CallExists(*first));
                    }
                }
                RowChange::ForgetStanding(_) | RowChange::ForgetDenial(_) | RowChange::Forget(..) => {
                    if !self.is_as_read(change) {
                        return Err(AppendError::Changed);
                    }
                }
                RowChange::JournalRun { turn, call, run } => {
                    journals.entry((*turn, *call)).or_insert_with(|| self.journal_head(*turn, *call)).run = *run;
                }
                RowChange::JournalEntry(row) => {
                    let of_call = journals.entry((row.turn, row.call));
                    of_call.or_insert_with(|| self.journal_head(row.turn, row.call)).append(row)?;
                }
                RowChange::Length { turn, commits } => self.expect_length(*turn, *commits)?,
                RowChange::Value(_)
                | RowChange::Open { .. }
                | RowChange::Due { .. }
                | RowChange::Ended(..)
                | RowChange::Suspension(_)
                | RowChange::Audience(_)
                | RowChange::Kept(_)
                | RowChange::RetentionTime(_)
                | RowChange::Delivery(_)
                | RowChange::RunLog(_)
                | RowChange::Standing(_)
                | RowChange::Denied(_) => {}
            }
        }
        Ok(())
    }

    fn expect_length(&self, turn: TurnId, commits: u32) -> Result<(), AppendError> {
        let is_removed = self.removed.contains_key(&turn);
        let differs = is_removed || self.logs.get(&turn).map_or(0, Vec::len) != commits as usize;
        if differs { Err(AppendError::Conflict) } else { Ok(()) }
    }

    fn deliveries_of(&self, of: Subject) -> impl Iterator<Item = (&(Subject, u32, String), &DeliveryRow)> {
        self.deliveries.range((of, 0, String::new())..).take_while(move |((id, ..), _)| *id == of)
    }

    /// Applies a commit that was checked. `record` describes its facts.
    fn apply(&mut self, commit: Commit, record: Option<Stored>) -> Position {
        if let (Some(facts), Some(record)) = (commit.facts, record) {
            self.facts(facts, record);
        }
        let mut added = record.map_or(0, |record| record.size as u64);
        for change in logs_first(commit.rows) {
            match change {
                RowChange::Owner { conversation, owner } => drop(self.owners.insert(conversation, owner)),
                RowChange::Call { conversation, id, turn } => drop(self.calls.insert((conversation, id), turn)),
                RowChange::Due { turn, before, after } => self.move_due(turn, before, after),
                RowChange::Ended(row, end) => {
                    if record.is_some() {
                        self.ends.insert(self.head().position, TurnEnding::of(&row, end));
                    }
                    added += self.end(row);
                }
                RowChange::Suspension(row) => drop(self.suspensions.insert(row.id, row)),
                RowChange::Audience(change) => self.audience(*change),
                RowChange::RetentionTime(at) => self.retention_time = Some(at),
                RowChange::Kept(principal) => {
                    *self.kept.entry(principal).or_default() += added;
                }
                RowChange::Delivery(row) => {
                    self.deliveries.insert((row.report.subject(), row.report.number(), row.webhook.clone()), row);
                }
                RowChange::RunLog(log) => self.keep(log),
                RowChange::Forget(records, row, _) => self.forget(records, &row),
                RowChange::JournalRun { turn, call, run } => self.journals.entry((turn, call)).or_default().0 = run,
                RowChange::JournalEntry(JournalRow { turn, call, entry, .. }) => {
                    added += logs::size(&entry);
                    self.journals.entry((turn, call)).or_default().1.push(entry);
                }
                // Values are beside the state, and the only host counts in memory.
                RowChange::Value(_) | RowChange::Open { .. } | RowChange::Length { .. } => {}
                RowChange::Standing(row) => drop(self.standings.insert(row.standing.id, *row)),
                RowChange::StandingUse(id) => {
                    if let Some(row) = self.standings.get_mut(&id) {
                        row.used += 1;
                    }
                }
                RowChange::ForgetStanding(row) => drop(self.standings.remove(&row.standing.id)),
                RowChange::Denied(row) => drop(self.denied.insert(key(&row), row.at)),
                RowChange::ForgetDenial(row) => drop(self.denied.remove(&key(&row))),
            }
        }
        self.head().position
    }

    fn facts(&mut self, facts: NewFacts, record: Stored) {
        match facts {
            NewFacts::Turn { turn, conversation, expected, events } => {
                let position = self.advance(Source::Turn { turn, number: expected }, record);
                self.feeds.insert((conversation, position));
                self.logs.entry(turn).or_default().push(events);
                self.positions.entry(turn).or_default().push(position);
            }
            NewFacts::Plugin(event) => {
                let position = self.advance(Source::Plugin, record);
                self.plugins.insert(position, event);
            }
            NewFacts::Started(start) => {
                let position = self.advance(Source::Started, record);
                self.starts.insert(position, start);
            }
            NewFacts::Revoked(revoked) => {
                if let Some(row) = self.standings.get_mut(&revoked.id) {
                    row.revoked = Some((revoked.by.clone(), revoked.at));
                }
                let position = self.advance(Source::Revoked, record);
                self.revocations.insert(position, revoked);
            }
            NewFacts::Removal(removal) => {
                let position = self.advance(Source::Removal, record);
                self.remove(&removal, position);
                self.removals.insert(position, removal.fact());
            }
        }
    }

    fn move_due(&mut self, turn: TurnId, before: Option<Due>, after: Option<Due>) {
        if let Some(before) = before {
            self.due.remove(&(before.at, turn));
            self.unfinished.remove(&turn);
        }
        if let Some(after) = after {
            self.due.insert((after.at, turn));
            self.unfinished.insert(turn, after);
        }
    }

    fn head(&self) -> Head {
        self.chain.last().map_or(Head::START, |(head, ..)| *head)
    }

    /// Adds an entry to the chain.
    fn advance(&mut self, source: Source, record: Stored) -> Position {
        let head = self.head().then(source, record.digest);
        self.chain.push((head, source, record));
        head.position
    }

    /// The entries of the chain after a position.
    fn links(&self, after: Position, limit: usize) -> impl Iterator<Item = &(Head, Source, Stored)> {
        self.chain.iter().skip(usize::try_from(after.0).unwrap_or(usize::MAX)).take(limit)
    }

    fn facts_at(&self, at: Position, source: Source) -> Option<Facts> {
        Some(match source {
            Source::Turn { turn, .. } if self.removed.contains_key(&turn) => Facts::Removed { turn },
            Source::Turn { turn, number } => {
                Facts::Turn { turn, events: self.logs.get(&turn)?.get(number as usize)?.clone() }
            }
            Source::Plugin => Facts::Plugin(self.plugins.get(&at)?.clone()),
            Source::Started => Facts::Started(self.starts.get(&at)?.clone()),
            Source::Revoked => Facts::Revoked(self.revocations.get(&at)?.clone()),
            Source::Removal => Facts::Removal(self.removals.get(&at)?.clone()),
        })
    }
}

/// Facts in their stored form. Their digest makes the chain the same on every backend, and their size the pages of a feed.
fn stored(facts: &NewFacts) -> Result<Stored, StoreFault> {
    let bytes = record::facts(facts)?;
    Ok(Stored { digest: Digest::of(&bytes), size: bytes.len() })
}

fn key(denial: &Denial) -> (ConversationId, Digest) {
    (denial.conversation.clone(), denial.alike)
}

#[async_trait]
impl Log for MemoryStore {
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError> {
        let record = commit.facts.as_ref().map(stored).transpose()?;
        let mut state = self.state();
        state.check(commit)?;
        self.change_values(commit)?;
        Ok(state.apply(commit.clone(), record))
    }

    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        let state = self.state();
        if let Some((tombstone, _)) = state.removed.get(&turn) {
            return Ok(Loaded::Removed(tombstone.clone()));
        }
        let log = state.logs.get(&turn).map(|log| log.get(..commits as usize).unwrap_or(log));
        let Some(log) = log.filter(|log| !log.is_empty()) else { return Ok(Loaded::Absent) };
        let version = u32::try_from(log.len()).unwrap_or(u32::MAX);
        Ok(Loaded::Found(TurnLog { version, events: log.iter().flatten().cloned().collect() }))
    }

    async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        Ok(self.state().follow(feed, after, limit, bytes))
    }

    async fn sync(&self) -> Result<(), StoreFault> {
        Ok(())
    }
}

impl Health for MemoryStore {}

impl Peers for MemoryStore {}

#[async_trait]
impl Indexes for MemoryStore {
    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        Ok(self.state().owners.get(conversation).cloned())
    }

    async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
        let state = self.state();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let owners = state.owners.range::<ConversationId, _>((behind, Bound::Unbounded)).take(limit);
        Ok(owners.map(|(conversation, owner)| (conversation.clone(), owner.clone())).collect())
    }

    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault> {
        Ok(self.state().calls.get(&(conversation.clone(), call.clone())).copied())
    }

    async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        limit: usize,
    ) -> Result<BegunTurns, StoreFault> {
        let state = self.state();
        let ends = |position| (conversation.clone(), position);
        let until = before.map_or(Bound::Included(ends(Position(u64::MAX))), |before| Bound::Excluded(ends(before)));
        let mut page = BegunTurns::default();
        let feed = state.feeds.range((Bound::Included(ends(Position(0))), until)).rev();
        for (examined, (_, position)) in feed.enumerate() {
            if page.turns.len() == limit || examined == MAX_EXAMINED {
                return Ok(page);
            }
            page.next = Some(*position);
            let entry = state.links(Position(position.0 - 1), 1).next();
            if let Some((_, Source::Turn { turn, number: 0 }, _)) = entry {
                page.turns.push((*position, *turn));
            }
        }
        page.next = None;
        Ok(page)
    }

    async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault> {
        let state = self.state();
        let ended: BTreeMap<TurnId, TurnState> =
            state.ends.values().map(|end| (end.turn, TurnState::Ended(end.end, end.at))).collect();
        let open = |turn: &TurnId| state.unfinished.contains_key(turn).then_some(TurnState::Open);
        Ok(turns.iter().map(|turn| open(turn).or_else(|| ended.get(turn).copied())).collect())
    }

    async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let state = self.state();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let due = state.due.range((from, Bound::Unbounded)).take_while(|(at, _)| *at <= until);
        Ok(due.filter_map(|(_, turn)| state.unfinished.get(turn).map(|due| (*turn, *due))).take(limit).collect())
    }

    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let state = self.state();
        let turns = state.unfinished.iter().filter(|(turn, _)| after.is_none_or(|after| **turn > after));
        Ok(turns.take(limit).map(|(turn, due)| (*turn, *due)).collect())
    }

    async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
        Ok(self.state().suspensions.get(&id).cloned())
    }

    async fn suspensions(
        &self,
        filter: &Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        Ok(self.state().page(|row| filter.matches(row), filter.order, after, limit))
    }

    async fn suspensions_of(
        &self,
        filter: &Filter,
        audiences: &[Audience],
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        let state = self.state();
        let filter = Filter { open: Some(true), ..filter.clone() };
        let audience = |row: &SuspensionRow| state.waiting.get(&row.id).and_then(|change| change.after.as_ref());
        let is_one = |row: &SuspensionRow| audience(row).is_some_and(|audience| audiences.contains(audience));
        Ok(state.page(|row| filter.matches(row) && is_one(row), filter.order, after, limit))
    }

    async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault> {
        Ok(self.state().audiences(filter))
    }

    async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
        Ok(self.state().kept.get(principal).copied().unwrap_or(0))
    }
}

#[async_trait]
impl StandingApprovals for MemoryStore {
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        Ok(self.state().standings.get(&id).cloned())
    }

    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault> {
        let state = self.state();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(state.standings.range((behind, Bound::Unbounded)).take(limit).map(|(_, row)| row.clone()).collect())
    }

    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault> {
        Ok(self.state().denied.get(&(conversation.clone(), alike)).copied())
    }

    async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
        let state = self.state();
        let behind = after.map_or(Bound::Unbounded, |after| Bound::Excluded(key(after)));
        let denials = state.denied.range((behind, Bound::Unbounded)).take(limit);
        let denial = |((conversation, alike), at): (&(ConversationId, Digest), &Timestamp)| Denial {
            conversation: conversation.clone(),
            alike: *alike,
            at: *at,
        };
        Ok(denials.map(denial).collect())
    }
}
