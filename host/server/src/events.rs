//! Event streams. A stream resumes committed events without gap or duplicate. Between them it has live events, which
//! are not stored.
//!
//! The id of an event is `<position>-<n>`: the n-th public event of the commit at that position. A commit can hold many
//! events, and a connection can break between any two of them.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use api::json;
use api::{Event, EventName, Suspension};
use axum::response::sse;
use dispatch::ports::{Committed, Facts, Filter, Position, StoreFault};
use dispatch::{Attachment, Follower, Handle, Item, Live, SuspensionPage, SuspensionView};
use domain::{
    ConversationId, Event as Fact, Json, Outcome, Principal, SuspensionId, ToolName, Turn, TurnId,
    call::CallState,
    event::CallEvent,
    suspension::{ClientExec, ClosedAs, SuspensionBody, SuspensionKind},
};

use crate::app::App;
use crate::error::Result;
use crate::in_flight::{InFlightRequest, RequestKind, Unread};
use crate::recheck::Events;

/// The maximum number of ephemeral turns that one stream tracks. A slow stream can miss the end of a turn, so it can
/// track more turns than run.
const EPHEMERAL: usize = 256;

/// The maximum number of stored turns that one stream tracks. It loads any other turn for each of its commits.
const STORED: usize = 8;

/// The maximum number of calls of all ephemeral turns, and of all stored turns, that one stream tracks.
const CALLS: usize = 2_048;

/// A position in a feed: after the first `seen` public events of the commit at `position`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    position: Position,
    seen: usize,
}

impl Cursor {
    /// Before the first event.
    pub(crate) const START: Self = Self { position: Position(0), seen: usize::MAX };

    /// The position after which to read the feed.
    pub(crate) fn after(self) -> Position {
        Position(if self.seen == usize::MAX { self.position.0 } else { self.position.0.saturating_sub(1) })
    }
}

/// `<position>-<n>`, or `<position>` for the whole commit.
impl FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (position, seen) = text.split_once('-').map_or((text, None), |(position, seen)| (position, Some(seen)));
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
        let wrong = || "not the id of an event: expected `<position>-<n>`".to_owned();
        let position = Position(number(position).ok_or_else(wrong)?);
        let seen = match seen {
            None => usize::MAX,
            Some(seen) => number(seen).and_then(|seen| usize::try_from(seen).ok()).ok_or_else(wrong)?,
        };
        Ok(Self { position, seen })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position.0, self.seen)
    }
}

/// One stream and its reader.
pub(crate) struct Stream {
    app: App,
    by: Principal,
    /// `None` for the feed of the host.
    conversation: Option<ConversationId>,
    follower: Follower,
    cursor: Cursor,
    sent: HashSet<SuspensionId>,
    /// The suspensions that a client must get first.
    waiting: Option<Waiting>,
    ephemeral: BTreeMap<TurnId, Turn>,
    /// Turns that have not ended, as [`light`] makes them.
    stored: BTreeMap<TurnId, Turn>,
    _attached: Option<Attachment>,
    open: OpenStream,
}

/// The number of suspensions in one page. It is small because each may hold megabytes, and a client may stop reading.
const PAGE: usize = 8;

/// The open suspensions that a client of these tools did not get yet. They are read tool by tool, so that no call of
/// another tool is loaded.
pub(crate) struct Waiting {
    conversation: ConversationId,
    /// The tool that is read now, and those after it.
    tools: BTreeSet<ToolName>,
    after: Option<SuspensionId>,
}

impl Waiting {
    pub(crate) fn new(conversation: ConversationId, tools: Vec<ToolName>) -> Self {
        Self { conversation, tools: tools.into_iter().collect(), after: None }
    }

    /// The next page, and the start of the page after it.
    async fn page(&self, app: &App, by: &Principal) -> Result<(Vec<SuspensionView>, Option<SuspensionId>)> {
        let filter = Filter {
            open: Some(true),
            conversation: Some(self.conversation.clone()),
            tool: self.tools.first().map(|tool| tool.as_str().to_owned()),
            kind: Some(SuspensionKind::ClientExec),
            ..Filter::default()
        };
        let page = app.ports.handle.suspensions(by, filter, self.after, PAGE).await?;
        let SuspensionPage { mut items, next, .. } = page;
        // Nested turns have a stream of their own.
        items.retain(|item| item.conversation == self.conversation);
        Ok((items, next))
    }

    /// The rest after a page, if there is one.
    fn beyond(mut self, next: Option<SuspensionId>) -> Option<Self> {
        if next.is_none() {
            self.tools.pop_first();
        }
        self.after = next;
        Some(self).filter(|waiting| !waiting.tools.is_empty())
    }
}

/// One open stream of a principal, with the events that it has not read. Dropping it closes it.
pub(crate) struct OpenStream {
    app: App,
    ready: VecDeque<(sse::Event, usize)>,
    /// The bytes of all events that are ready, and of the event that HTTP is sending. HTTP takes the next event when it has
    /// sent this one.
    unread: Unread,
    bytes: usize,
    taken: usize,
    _in_flight: InFlightRequest,
}

impl OpenStream {
    /// # Errors
    /// `busy` when the principal or the host has reached its limit.
    pub(crate) fn new(app: &App, by: &Principal) -> Result<Self> {
        let _in_flight = app.begin_request(by, RequestKind::Stream)?;
        let unread = app.unread(by, 0)?;
        app.meters.stream_opened();
        Ok(Self { app: Arc::clone(app), ready: VecDeque::new(), unread, bytes: 0, taken: 0, _in_flight })
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Adds an event with this data.
    pub(crate) fn push(&mut self, event: sse::Event, data: &str) {
        self.bytes += data.len();
        self.unread.count(self.bytes);
        self.ready.push_back((event.data(data), data.len()));
    }

    /// Adds the id of this position, without an event.
    pub(crate) fn push_position(&mut self, position: Position) {
        self.ready.push_back((sse::Event::default().id(position.0.to_string()), 0));
    }

    /// Takes the next event. Ends a reservation.
    pub(crate) fn pop(&mut self) -> Option<sse::Event> {
        self.bytes -= std::mem::take(&mut self.taken);
        self.unread.count(self.bytes);
        let (event, bytes) = self.ready.pop_front()?;
        self.taken = bytes;
        Some(event)
    }

    /// Waits until the principal has read enough that more may be read for it. Reserves memory for one read.
    pub(crate) async fn reserve(&mut self) {
        self.unread.reserve().await;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.meters.stream_closed();
    }
}

impl Stream {
    pub(crate) fn new(
        open: OpenStream,
        by: Principal,
        conversation: Option<ConversationId>,
        follower: Follower,
        cursor: Cursor,
    ) -> Self {
        Self {
            app: Arc::clone(open.app()),
            by,
            conversation,
            follower,
            cursor,
            sent: HashSet::new(),
            waiting: None,
            ephemeral: BTreeMap::new(),
            stored: BTreeMap::new(),
            _attached: None,
            open,
        }
    }

    /// Makes it the stream of a client, which first gets the suspensions that already wait for it. They are not sent again
    /// when the stream reaches their commits.
    pub(crate) fn attach(&mut self, attached: Attachment, waiting: Waiting) {
        self._attached = Some(attached);
        self.waiting = Some(waiting);
    }

    /// Makes events of a page of suspensions. A suspension that opens meanwhile is not lost: the stream began to follow before
    /// the first page was read, so it reaches that commit. If a later page has the suspension too, `sent` prevents a
    /// duplicate.
    fn take_waiting(&mut self, (items, next): (Vec<SuspensionView>, Option<SuspensionId>)) -> Result<()> {
        for item in &items {
            self.sent.insert(item.suspension.id);
            push(&mut self.open, &Event::snapshot(Suspension::from(item)), None)?;
        }
        self.waiting = self.waiting.take().and_then(|waiting| waiting.beyond(next));
        Ok(())
    }

    /// Makes events of an item. `None` ends the stream, and the error is already logged.
    async fn take(&mut self, item: std::result::Result<Item, StoreFault>) -> Option<()> {
        let taken = match item {
            Ok(Item::Committed(committed)) => self.committed(&committed).await,
            Ok(Item::Live(live)) => self.live(&live),
            Err(fault) => Err(dispatch::Error::from(fault).into()),
        };
        taken.ok()
    }

    async fn committed(&mut self, committed: &Committed) -> Result<()> {
        let position = committed.position;
        let seen = if position == self.cursor.position { self.cursor.seen } else { 0 };
        let facts = match &committed.facts {
            Facts::Plugin(fact) if seen == 0 => {
                return push(&mut self.open, &Event::plugin(fact), Some(Cursor { position, seen: 1 }));
            }
            Facts::Ended(ending) if seen == 0 => {
                return push(&mut self.open, &Event::ended(ending), Some(Cursor { position, seen: 1 }));
            }
            Facts::Plugin(_)
            | Facts::Ended(_)
            | Facts::Started(_)
            | Facts::Revoked(_)
            | Facts::Removal(_)
            | Facts::Removed { .. } => return Ok(()),
            Facts::Unreadable { turn } => return self.unreadable(*turn, position, seen),
            Facts::Turn { turn, events } => match self.with(*turn, events).await {
                Err(error) if error.is_damage() => return self.unreadable(Some(*turn), position, seen),
                known => known?.map(|turn| (turn, events)),
            },
        };
        // The turn can no longer be read, so it has no events.
        let Some((mut turn, facts)) = facts else { return Ok(()) };
        let public = facts.iter().filter(|fact| EventName::of(fact).is_some());
        for (seen, fact) in (1..).zip(public).skip(seen) {
            if self.is_news(fact) {
                self.send(fact, &turn, Some(Cursor { position, seen }))?;
            }
        }
        if !facts.iter().any(|fact| matches!(fact, Fact::TurnSettled { .. })) {
            light(&mut turn);
            keep(&mut self.stored, STORED, turn);
        }
        Ok(())
    }

    /// Says that a commit is missing, because its record is damaged.
    fn unreadable(&mut self, turn: Option<TurnId>, position: Position, seen: usize) -> Result<()> {
        if seen > 0 {
            return Ok(());
        }
        push(&mut self.open, &Event::unreadable(turn), Some(Cursor { position, seen: 1 }))
    }

    /// The turn of these facts. The facts that start a turn make it. Otherwise it is loaded if the stream does not know it, or
    /// if a suspension opens, because an event of a suspension shows more than the stream keeps.
    async fn with(&mut self, id: TurnId, facts: &[Fact]) -> std::result::Result<Option<Turn>, dispatch::Error> {
        let suspends = |fact: &Fact| matches!(fact, Fact::Call { event: CallEvent::Suspended { .. }, .. });
        let known = self.stored.remove(&id).filter(|_| !facts.iter().any(suspends));
        let known = known.map(|mut turn| {
            facts.iter().for_each(|fact| turn.apply(fact));
            turn
        });
        match known.or_else(|| Turn::replay(facts)) {
            Some(turn) => Ok(Some(turn)),
            None => self.turn(id).await,
        }
    }

    async fn turn(&self, id: TurnId) -> std::result::Result<Option<Turn>, dispatch::Error> {
        let Some(conversation) = &self.conversation else { return Ok(None) };
        let handle: &Handle = &self.app.ports.handle;
        match handle.turn(&self.by, conversation, id).await {
            Ok(turn) => Ok(Some(turn)),
            Err(dispatch::Error::NotFound(_) | dispatch::Error::Removed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_news(&mut self, fact: &Fact) -> bool {
        !matches!(fact, Fact::Call { event: CallEvent::Suspended { suspension }, .. } if self.sent.remove(&suspension.id))
    }

    fn send(&mut self, fact: &Fact, turn: &Turn, cursor: Option<Cursor>) -> Result<()> {
        match Event::of(fact, turn) {
            Some(event) => push(&mut self.open, &event, cursor),
            None => Ok(()),
        }
    }

    fn live(&mut self, live: &Live) -> Result<()> {
        match live {
            Live::Progress { turn, call, progress, .. } => {
                push(&mut self.open, &Event::progress(*turn, call, progress), None)
            }
            Live::Log { turn, call, run, number, level, line } => {
                push(&mut self.open, &Event::log(*turn, call, (*run, *number), *level, line), None)
            }
            Live::Ephemeral { turn, events } => self.ephemeral(*turn, events),
        }
    }

    /// Events of an ephemeral turn. It cannot be read from the store, so the stream keeps its state.
    fn ephemeral(&mut self, id: TurnId, facts: &[Fact]) -> Result<()> {
        let mut turn = match self.ephemeral.remove(&id) {
            Some(mut turn) => {
                facts.iter().for_each(|fact| turn.apply(fact));
                turn
            }
            // The stream missed the beginning, and without it the calls have no names.
            None => match Turn::replay(facts) {
                Some(turn) => turn,
                None => return Ok(()),
            },
        };
        for fact in facts {
            self.send(fact, &turn, None)?;
        }
        if !turn.is_ended() {
            // Its end may never come, because the caller has left.
            light(&mut turn);
            keep(&mut self.ephemeral, EPHEMERAL, turn);
        }
        Ok(())
    }
}

impl Events for Stream {
    type Item = sse::Event;

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.open.pop() {
                return Some(event);
            }
            if let Some(waiting) = &self.waiting {
                self.open.reserve().await;
                let page = waiting.page(&self.app, &self.by).await.ok()?;
                self.take_waiting(page).ok()?;
            } else {
                // A stream without news reserves nothing.
                self.follower.ready().await;
                self.open.reserve().await;
                if let Some(item) = self.follower.read().await.transpose() {
                    self.take(item).await?;
                }
            }
        }
    }
}

/// Keeps a turn, and drops those that began first when there are too many.
fn keep(turns: &mut BTreeMap<TurnId, Turn>, max: usize, turn: Turn) {
    turns.insert(turn.id, turn);
    let mut calls: usize = turns.values().map(|turn| turn.calls.len()).sum();
    while turns.len() > max || (calls > CALLS && turns.len() > 1) {
        calls -= turns.pop_first().map_or(0, |(_, turn)| turn.calls.len());
    }
}

/// Removes what callers, people and guests wrote. Later events need only the names of the calls, and whether the last
/// suspension of each was withdrawn.
fn light(turn: &mut Turn) {
    let nothing = Json::unchecked("null");
    turn.context = None;
    for call in &mut turn.calls {
        call.submitted = nothing.clone();
        call.arguments = nothing.clone();
        call.origin = None;
        call.links = Vec::new();
        if let CallState::Settled(outcome) = &mut call.state {
            *outcome = Outcome::Cancelled;
        }
        let last = call.suspensions.pop();
        call.suspensions.clear();
        let last = last.filter(|(_, closed)| closed.as_ref().is_none_or(|closed| closed.how == ClosedAs::Withdrawn));
        call.suspensions.extend(last.map(|(mut suspension, closed)| {
            suspension.body = SuspensionBody::ClientExec(ClientExec::default());
            (suspension, closed)
        }));
    }
}

fn push(open: &mut OpenStream, event: &Event, cursor: Option<Cursor>) -> Result<()> {
    let named = sse::Event::default().event(event.event.to_string());
    let named = match cursor {
        Some(cursor) => named.id(cursor.to_string()),
        None => named,
    };
    open.push(named, &json::write(event)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::{CallId, CallIndex, PrincipalId, Timestamp, event::Rejection};

    use super::*;

    /// A turn of this many calls of unknown tools.
    fn turn(number: u128, calls: u16) -> Turn {
        let (turn, at) = (TurnId::from_bits(number), Timestamp::from_millis(1));
        let (conversation, caller) = (ConversationId::new("c").unwrap(), PrincipalId::new("ann").unwrap());
        let (rejection, context) = (Rejection::default(), None);
        let requested = |call: u16| {
            let (id, tool, arguments) =
                (CallId::new(&call.to_string()).unwrap(), "nothing".into(), Json::unchecked("{}"));
            let event = CallEvent::Requested { id, tool, arguments, pinned: None, ruled_by: None, origin: None };
            Fact::Call { call: CallIndex(call), event }
        };
        let started = Fact::TurnStarted { turn, conversation, caller, rejection, context, parent: None, at };
        let events: Vec<_> = std::iter::once(started).chain((0..calls).map(requested)).collect();
        Turn::replay(&events).unwrap()
    }

    #[test]
    fn stream_tracks_the_newest_turns_and_a_bounded_number_of_calls() {
        let kept = |max, turns: &[(u128, u16)]| {
            let mut kept = BTreeMap::new();
            turns.iter().for_each(|(number, calls)| keep(&mut kept, max, turn(*number, *calls)));
            kept.into_keys().map(TurnId::bits).collect::<Vec<_>>()
        };
        assert_eq!(kept(2, &[(1, 1), (2, 1), (3, 1)]), [2, 3]);
        assert_eq!(kept(9, &[(1, 1_000), (2, 1_000), (3, 1_000)]), [2, 3]);
        assert_eq!(kept(9, &[(1, 1), (2, 1), (3, 3_000)]), [3]);
        assert_eq!(kept(9, &[(1, 1), (1, 2), (2, 1)]), [1, 2]);
    }

    #[test]
    fn cursor_resumes_inside_a_commit() {
        let cursor: Cursor = "12-3".parse().unwrap();
        assert_eq!((cursor.after(), cursor.seen, cursor.to_string()), (Position(11), 3, "12-3".to_owned()));
        assert_eq!("12".parse::<Cursor>().unwrap().after(), Position(12));
        assert_eq!(Cursor::START.after(), Position(0));
        for wrong in ["", "-", "1-", "-1", "+1-1", "1-1-1", "1-x", "99999999999999999999"] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }
}
