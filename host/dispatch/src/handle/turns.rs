//! The turns of a conversation, and the suspensions and the log of one call: what a caller finds under its own ids.

use domain::{
    Call, CallId, CallIndex, ConversationId, Digest, Json, Outcome, Principal, Refusal, SuspensionId, Turn, TurnId,
    journal::JournalBounds, turn::TurnState,
};

use super::Handle;
use super::read::{PAGE_BYTES, SuspensionPage, size as view_size};
use crate::error::{Error, Resource};
use crate::index;
use crate::pending::narrowed;
use crate::ports::{Filter, JournalPage, Order, Position, RunLog, SuspensionRow};

/// The approximate size of a call in a list without its id and tool, in bytes.
const CALL: usize = 256;

/// The maximum number of turns that are loaded for a page.
const MAX_LOADED: usize = 1_000;

/// The maximum number of pages of the index that a listing reads.
const MAX_PAGES: usize = 32;

/// The maximum number of bytes of a page of a journal, except of one entry.
const JOURNAL_BYTES: usize = 1 << 20;

/// A few suspensions that belong together.
#[derive(Debug, Clone, Copy)]
pub enum Within<'a> {
    /// Those of a turn, or of its call with this id.
    Turn(TurnId, Option<&'a CallId>),
    Call(&'a ConversationId, &'a CallId),
}

impl Handle {
    /// A page of the turns of a conversation, the newest first, and where the next page begins. `selects` chooses them by
    /// their state. A page may be empty and still have a next one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this principal may not see the conversation, or nothing was submitted to it; and faults of
    /// the store.
    pub async fn turns(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        selects: impl Fn(&TurnState) -> bool,
        mut before: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<Turn>, Option<Position>), Error> {
        self.may_read(by, conversation).await?;
        let pipeline = &self.inner.pipeline;
        let (mut turns, mut loaded, mut bytes) = (Vec::new(), 0, 0);
        for _ in 0..MAX_PAGES {
            let page = self.inner.readers.indexes.turns(conversation, before, limit - turns.len()).await?;
            let ids: Vec<TurnId> = page.turns.iter().map(|(_, id)| *id).collect();
            let states = self.inner.readers.indexes.states(&ids).await?;
            for ((position, id), state) in page.turns.into_iter().zip(states) {
                // The state in the index may change before the turn is read.
                if state.is_some_and(|state| !selects(&state)) {
                    continue;
                }
                // A turn that retention has just removed is absent.
                let Some(turn) = pipeline.turns.enter(id).read(pipeline.log.as_ref()).await?.found() else { continue };
                (loaded, bytes) = (loaded + 1, bytes + size(&turn));
                turns.extend(selects(&turn.state).then_some(turn));
                if bytes > PAGE_BYTES || loaded >= MAX_LOADED {
                    return Ok((turns, Some(position)));
                }
            }
            before = page.next;
            if before.is_none() || turns.len() >= limit {
                break;
            }
        }
        Ok((turns, before))
    }

    /// A page of the suspensions of a call, or of a turn, that this principal may see and the filter selects.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn suspensions_within(
        &self,
        by: &Principal,
        within: Within<'_>,
        filter: Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<SuspensionPage, Error> {
        let mut page = SuspensionPage::default();
        let Some(filter) = narrowed(by, filter) else { return Ok(page) };
        let turn = match within {
            Within::Turn(id, _) => {
                let entered = self.inner.pipeline.turns.enter(id);
                entered.read(self.inner.pipeline.log.as_ref()).await?.found()
            }
            Within::Call(conversation, call) => match self.turn_of_call(by, conversation, call).await {
                Ok(turn) => Some(turn),
                Err(Error::NotFound(_) | Error::Removed { .. }) => None,
                Err(error) => return Err(error),
            },
        };
        let Some(turn) = turn.filter(|turn| by.may_see(&turn.conversation, &turn.caller)) else {
            return Ok(page);
        };
        let of = match within {
            Within::Turn(_, call) => call,
            Within::Call(_, call) => Some(call),
        };
        let calls = turn.indexed().filter(|(_, call)| of.is_none_or(|of| call.id == *of));
        let is_after = |row: &SuspensionRow| after.is_none_or(|after| filter.order.is_after(row.id, after));
        let rows = calls.flat_map(|(index, call)| index::rows(index, call, None, &turn));
        // A turn shows also the waits that nobody is asked about.
        let is_asked_for =
            |row: &SuspensionRow| Filter { kind: filter.kind.or(Some(row.kind)), ..filter.clone() }.matches(row);
        let mut rows: Vec<_> = rows.filter(|row| is_after(row) && is_asked_for(row)).collect();
        rows.sort_unstable_by_key(|row| row.id);
        if filter.order == Order::NewestFirst {
            rows.reverse();
        }
        // Each view has a copy of the whole call, so only those of the page are made.
        let (mut bytes, mut last, mut made) = (0, Some(turn), None);
        for row in rows {
            if page.items.len() == limit || bytes > PAGE_BYTES {
                page.next = made;
                break;
            }
            let item = self.inner.pending.item(&row, &mut last).await?;
            bytes += item.as_ref().map_or(0, view_size);
            page.items.extend(item);
            made = Some(row.id);
        }
        Ok(page)
    }

    /// The suspension of a call with this number, from 1. The number and not the state selects it: an answer that is sent
    /// again can therefore never reach a later suspension of the call.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this principal cannot see such a call, [`Refusal::Unknown`] if the call has no suspension of
    /// this number, [`Error::Removed`] if retention removed it, and faults of the store.
    pub async fn suspension_of_call(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        call: &CallId,
        number: u32,
    ) -> Result<SuspensionId, Error> {
        let turn = self.turn_of_call(by, conversation, call).await?;
        let call = found(&turn, call)?;
        let of_number = |(suspension, _): &&(domain::Suspension, _)| call.number_of(suspension.id) == number;
        let suspension = call.suspensions.iter().find(of_number).map(|(suspension, _)| suspension.id);
        suspension.ok_or_else(|| Refusal::Unknown.into())
    }

    /// The log of a call: its turn, its position there, and the last lines of each of its runs, the first run first. A principal who
    /// may see the results of a turn may see the logs of its calls.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this principal cannot see such a call, [`Error::Removed`] if retention removed it, and faults
    /// of the store.
    pub async fn call_log(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        call: &CallId,
    ) -> Result<(Turn, CallIndex, Vec<RunLog>), Error> {
        let turn = self.turn_of_call(by, conversation, call).await?;
        let (index, _) = turn.call(call).ok_or(Error::NotFound(Resource::Call))?;
        let runs = self.run_logs(&turn, index).await?;
        Ok((turn, index, runs))
    }

    /// A page of the journal of a call: its turn, its position there, the page from this entry, and the salt of the journal's
    /// digests. A principal who may see the log of a call may see its journal. Calls that are not durable have none.
    ///
    /// # Errors
    /// As [`Self::call_log`].
    pub async fn call_journal(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        call: &CallId,
        from: u32,
        entries: usize,
    ) -> Result<(Turn, CallIndex, JournalPage, Option<Digest>), Error> {
        let turn = self.turn_of_call(by, conversation, call).await?;
        let (index, _) = turn.call(call).ok_or(Error::NotFound(Resource::Call))?;
        let journals = &self.inner.readers.journals;
        let page = journals.journal_page(turn.id, index, from, JournalBounds { entries, bytes: JOURNAL_BYTES }).await?;
        let first = match from {
            0 => page.entries.first().cloned(),
            _ => journals.journal_page(turn.id, index, 0, JournalBounds { entries: 1, bytes: 0 }).await?.entries.pop(),
        };
        Ok((turn, index, page, first.and_then(|first| first.salt)))
    }

    /// The logs of the calls of a turn that was read, in the order of the calls.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn call_logs(&self, turn: &Turn) -> Result<Vec<Vec<RunLog>>, Error> {
        let mut logs = Vec::with_capacity(turn.calls.len());
        for (index, _) in turn.indexed() {
            logs.push(self.run_logs(turn, index).await?);
        }
        Ok(logs)
    }

    /// The logs of the runs of a call, with lines that are not stored yet.
    async fn run_logs(&self, turn: &Turn, index: CallIndex) -> Result<Vec<RunLog>, Error> {
        if turn.calls.get(index.get()).is_none_or(|call| call.attempts == 0) {
            return Ok(Vec::new());
        }
        // Memory first: a log that leaves it meanwhile is stored.
        let in_memory = self.inner.pipeline.logs.of_call(turn.id, index);
        let mut logs = self.inner.readers.logs.call_log(turn.id, index).await?;
        for log in in_memory {
            match logs.iter_mut().find(|stored| stored.run == log.run) {
                Some(stored) if stored.written < log.written => *stored = log,
                Some(_) => {}
                None => logs.push(log),
            }
        }
        Ok(logs)
    }

    /// The turn that a call id was submitted with.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this principal cannot see such a call, [`Error::Removed`] if retention removed it, and faults
    /// of the store.
    pub async fn turn_of_call(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        call: &CallId,
    ) -> Result<Turn, Error> {
        self.may_read(by, conversation).await?;
        let id = self.inner.readers.indexes.find_call(conversation, call).await?;
        self.turn(by, conversation, id.ok_or(Error::NotFound(Resource::Call))?).await
    }

    pub(super) async fn may_read(&self, by: &Principal, conversation: &ConversationId) -> Result<(), Error> {
        let owner = self.inner.readers.indexes.owner(conversation).await?;
        match owner.filter(|owner| by.may_see(conversation, owner)) {
            Some(_) => Ok(()),
            None => Err(Error::NotFound(Resource::Conversation)),
        }
    }
}

fn found<'a>(turn: &'a Turn, id: &CallId) -> Result<&'a Call, Error> {
    turn.call(id).map(|(_, call)| call).ok_or(Error::NotFound(Resource::Call))
}

/// The size of what callers and plugins put into a turn, and of its calls in a list.
fn size(turn: &Turn) -> usize {
    let of_call = |call: &Call| {
        let listed = CALL + call.id.as_str().len() + call.tool.len();
        listed + call.submitted.size() + call.arguments.size() + call.outcome().map_or(0, Outcome::size)
    };
    turn.context.as_ref().map_or(0, Json::size) + turn.calls.iter().map(of_call).sum::<usize>()
}
