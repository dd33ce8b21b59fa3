//! The store in memory, for tests and for a host that need not outlive its process. It obeys the same laws as the other
//! one, in the plainest way there is: maps under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, AuditEntry, Commit, Committed, Facts, Feed, Filter, Index, Loaded, Page, Position, Store, StoreFault,
    SuspensionRow,
};
use domain::{CallId, ConversationId, Due, Event, PluginEvent, PrincipalId, SuspensionId, Timestamp, TurnId};

/// Rows that are looked at for one page of suspensions, at most; as few as the other store looks at.
const MOST_EXAMINED: usize = 1_000;

/// A store that forgets everything when it is dropped.
#[derive(Default)]
pub struct MemoryStore(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    logs: BTreeMap<TurnId, Vec<Vec<Event>>>,
    /// Where the commit at a position of a conversation's feed is.
    feeds: BTreeMap<(ConversationId, Position), (TurnId, usize)>,
    plugins: BTreeMap<Position, PluginEvent>,
    owners: BTreeMap<ConversationId, PrincipalId>,
    calls: BTreeMap<(ConversationId, CallId), TurnId>,
    due: BTreeSet<(Timestamp, TurnId)>,
    unfinished: BTreeMap<TurnId, Due>,
    suspensions: BTreeMap<SuspensionId, SuspensionRow>,
    open: BTreeSet<(ConversationId, SuspensionId)>,
    audit: BTreeMap<Position, AuditEntry>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every change happens after every check, and no change can panic, so a poisoned state is a whole one.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self, commit: &Commit) -> Result<(), AppendError> {
        if self.logs.get(&commit.turn).map_or(0, Vec::len) != commit.expected as usize {
            return Err(AppendError::Conflict);
        }
        for index in &commit.index {
            match index {
                Index::Owner(wanted) => match self.owners.get(&commit.conversation) {
                    Some(owner) if owner != wanted => return Err(AppendError::NotOwner),
                    _ => {}
                },
                Index::Call(call) => match self.calls.get(&(commit.conversation.clone(), call.clone())) {
                    Some(turn) if *turn != commit.turn => return Err(AppendError::CallExists(*turn)),
                    _ => {}
                },
                Index::Due { .. } | Index::Suspension(_) | Index::Audit(_) => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, commit: Commit) -> Position {
        let Commit { turn, conversation, events, index, .. } = commit;
        let position = Position(self.last + 1);
        let log = self.logs.entry(turn).or_default();
        self.feeds.insert((conversation.clone(), position), (turn, log.len()));
        log.push(events);
        let mut audit = Vec::new();
        for index in index {
            match index {
                Index::Owner(owner) => drop(self.owners.insert(conversation.clone(), owner)),
                Index::Call(call) => drop(self.calls.insert((conversation.clone(), call), turn)),
                Index::Due { before, after } => self.move_due(turn, before, after),
                Index::Suspension(row) => self.suspension(row),
                Index::Audit(entry) => audit.push(entry),
            }
        }
        self.advance(audit);
        position
    }

    fn suspension(&mut self, row: SuspensionRow) {
        let of = (row.conversation.clone(), row.id);
        if row.is_open() {
            self.open.insert(of);
        } else {
            self.open.remove(&of);
        }
        self.suspensions.insert(row.id, row);
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

    /// Each audit entry has a position of its own, so that a page can end between two of one commit.
    fn advance(&mut self, audit: impl IntoIterator<Item = AuditEntry>) {
        let first = self.last + 1;
        self.last = first;
        for (position, entry) in (first..).zip(audit) {
            self.last = position;
            self.audit.insert(Position(position), entry);
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, commit: Commit) -> Result<Position, AppendError> {
        let mut state = self.state();
        state.check(&commit)?;
        Ok(state.apply(commit))
    }

    async fn record(&self, event: PluginEvent, audit: Option<AuditEntry>) -> Result<Position, StoreFault> {
        let mut state = self.state();
        let position = Position(state.last + 1);
        state.plugins.insert(position, event);
        state.advance(audit);
        Ok(position)
    }

    async fn sync(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn load(&self, turn: TurnId) -> Result<Option<Loaded>, StoreFault> {
        let state = self.state();
        Ok(state.logs.get(&turn).map(|log| Loaded {
            version: u32::try_from(log.len()).unwrap_or(u32::MAX),
            events: log.iter().flatten().cloned().collect(),
        }))
    }

    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        Ok(self.state().owners.get(conversation).cloned())
    }

    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault> {
        Ok(self.state().calls.get(&(conversation.clone(), call.clone())).copied())
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let state = self.state();
        let due = state.due.iter().take_while(|(at, _)| *at <= until);
        Ok(due.filter_map(|(_, turn)| state.unfinished.get(turn).map(|due| (*turn, *due))).take(limit).collect())
    }

    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let state = self.state();
        let turns = state.unfinished.iter().filter(|(turn, _)| after.is_none_or(|after| **turn > after));
        Ok(turns.take(limit).map(|(turn, due)| (*turn, *due)).collect())
    }

    async fn follow(&self, feed: &Feed, after: Position, limit: usize) -> Result<Vec<Committed>, StoreFault> {
        let state = self.state();
        let from = Position(after.0.saturating_add(1));
        Ok(match feed {
            Feed::Host => {
                let events = state.plugins.range(from..).take(limit);
                let facts = |event: &PluginEvent| Facts::Plugin(event.clone());
                events.map(|(position, event)| Committed { position: *position, facts: facts(event) }).collect()
            }
            Feed::Conversation(conversation) => {
                let range = (conversation.clone(), from)..=(conversation.clone(), Position(u64::MAX));
                let commits = state.feeds.range(range).take(limit);
                let events = |turn, number: usize| state.logs.get(&turn)?.get(number).cloned();
                commits
                    .filter_map(|((_, position), &(turn, number))| {
                        let facts = Facts::Turn { turn, events: events(turn, number)? };
                        Some(Committed { position: *position, facts })
                    })
                    .collect()
            }
        })
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
        let state = self.state();
        let mut page = Page::default();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = || state.suspensions.range((behind, Bound::Unbounded));
        let open = |of: &ConversationId| {
            let ends = |bits| (of.clone(), SuspensionId::from_bits(bits));
            let from = after.map_or(Bound::Included(ends(0)), |id| Bound::Excluded((of.clone(), id)));
            let open = state.open.range((from, Bound::Included(ends(u128::MAX))));
            open.filter_map(|(_, id)| state.suspensions.get_key_value(id)).collect()
        };
        let rows: Vec<_> = match (&filter.conversation, filter.open) {
            (Some(conversation), Some(true)) => open(conversation),
            _ => all().take(MOST_EXAMINED + 1).collect(),
        };
        for (examined, (id, row)) in rows.into_iter().enumerate() {
            if page.rows.len() == limit || examined == MOST_EXAMINED {
                return Ok(page);
            }
            page.rows.extend(filter.matches(row).then(|| row.clone()));
            page.next = Some(*id);
        }
        page.next = None;
        Ok(page)
    }

    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<(Position, AuditEntry)>, StoreFault> {
        let state = self.state();
        let from = Position(after.0.saturating_add(1));
        Ok(state.audit.range(from..).take(limit).map(|(position, entry)| (*position, entry.clone())).collect())
    }
}
