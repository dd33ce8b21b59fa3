//! Values for the laws: small, and each with its own number.

use std::sync::Arc;

use dispatch::ports::{
    Commit, DeliveryRow, DeliveryState, Denial, NewFacts, Occasion, Report, RowChange, Store, SuspensionRow,
};
use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, Json, OwnerId, PluginName, PrincipalId, SuspensionId, Timestamp,
    TurnId,
    effect::Due,
    event::{CallEvent, HostStarted, PluginChange, PluginEvent, Rejection},
    standing::StandingRevoked,
    suspension::{SuspensionEnd, SuspensionKind, SuspensionState},
};

pub(crate) type Subject = Arc<dyn Store>;

pub(crate) fn turn(number: u64) -> TurnId {
    TurnId::from_bits(number.into())
}

pub(crate) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).unwrap()
}

pub(crate) fn principal(name: &str) -> PrincipalId {
    PrincipalId::new(name).unwrap()
}

pub(crate) fn call(id: &str) -> CallId {
    CallId::new(id).unwrap()
}

pub(crate) fn suspension(number: u64) -> SuspensionId {
    SuspensionId::from_bits(number.into())
}

pub(crate) fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn due(at: u64, running: bool) -> Due {
    Due { at: time(at), running }
}

/// A fact with its own time.
pub(crate) fn fact(number: u64) -> Event {
    Event::TurnCancelled { by: principal("ann"), at: time(number) }
}

/// The beginning of a turn in the conversation `c`.
pub(crate) fn begun(number: u64) -> Event {
    Event::TurnStarted {
        turn: turn(number),
        conversation: conversation("c"),
        caller: principal("ann"),
        rejection: Rejection::default(),
        context: None,
        parent: None,
        at: time(number),
    }
}

/// The number of a [`fact`].
pub(crate) fn number(event: &Event) -> u64 {
    let Event::TurnCancelled { at, .. } = event else { panic!("not a fact of these tests: {event:?}") };
    at.millis()
}

/// A fact of about this many bytes.
pub(crate) fn large_fact(number: u64, bytes: usize) -> Event {
    let arguments = Json::unchecked(format!("[{number},\"{}\"]", "x".repeat(bytes)));
    Event::Call {
        call: CallIndex(0),
        event: CallEvent::Requested {
            id: call("big"),
            tool: "t".into(),
            arguments,
            pinned: None,
            ruled_by: None,
            origin: None,
        },
    }
}

/// One fact in the conversation `c`.
pub(crate) fn commit(turn_number: u64, expected: u32, fact_number: u64) -> Commit {
    events(turn_number, expected, vec![fact(fact_number)])
}

/// These facts in the conversation `c`.
pub(crate) fn events(turn_number: u64, expected: u32, events: Vec<Event>) -> Commit {
    Commit::turn(turn(turn_number), conversation("c"), expected, events)
}

pub(crate) fn with(commit: Commit, index: impl IntoIterator<Item = RowChange>) -> Commit {
    commit.with(index)
}

pub(crate) fn within(name: &str, mut commit: Commit) -> Commit {
    let Some(NewFacts::Turn { conversation: of, .. }) = &mut commit.facts else { panic!("not of a turn: {commit:?}") };
    *of = conversation(name);
    commit
}

/// The conversation `c` is owned.
pub(crate) fn owner(name: &str) -> RowChange {
    RowChange::Owner { conversation: conversation("c"), owner: principal(name) }
}

/// A call of the conversation `c`.
pub(crate) fn call_of(turn_number: u64, id: &str) -> RowChange {
    RowChange::Call { conversation: conversation("c"), id: call(id), turn: turn(turn_number) }
}

pub(crate) fn due_of(turn_number: u64, before: Option<Due>, after: Option<Due>) -> RowChange {
    RowChange::Due { turn: turn(turn_number), before, after }
}

/// A denial in the conversation `c`.
pub(crate) fn denial(alike: Digest, at: u64) -> Denial {
    Denial { conversation: conversation("c"), alike, at: time(at) }
}

pub(crate) fn record(event: PluginEvent) -> Commit {
    NewFacts::Plugin(event).into()
}

pub(crate) fn started(start: HostStarted) -> Commit {
    NewFacts::Started(start).into()
}

pub(crate) fn revoke(revoked: StandingRevoked) -> Commit {
    NewFacts::Revoked(revoked).into()
}

pub(crate) const OPEN: SuspensionState = SuspensionState::Open;
pub(crate) const ENDED: SuspensionState = SuspensionState::Ended(SuspensionEnd::Expired);

pub(crate) fn row(number: u64, state: SuspensionState) -> SuspensionRow {
    SuspensionRow {
        id: suspension(number),
        turn: turn(1),
        call: CallIndex(0),
        conversation: conversation("c"),
        caller: principal("ann"),
        tool: "transfer".into(),
        kind: SuspensionKind::Approval,
        ended_by: (state != OPEN).then(PrincipalId::system).into_iter().collect(),
        state,
        signal: None,
    }
}

/// A delivery that is due at once.
pub(crate) fn delivery(number: u64, webhook: &str) -> DeliveryRow {
    DeliveryRow {
        report: Report::Suspension(suspension(number), Occasion::Opened),
        webhook: webhook.into(),
        at: time(1),
        state: DeliveryState::Pending { next: time(1) },
        attempts: 0,
        last: None,
    }
}

pub(crate) fn plugin(number: u64) -> PluginEvent {
    PluginEvent {
        plugin: PluginName::new("ledger").unwrap(),
        component: Digest::of("bytes"),
        change: PluginChange::Unloaded,
        at: time(number),
        by: None,
        grants: Vec::new(),
    }
}

pub(crate) fn start(number: u64) -> HostStarted {
    let (owner, version) = (OwnerId::from_bits(number.into()), "0.1.0".to_owned());
    HostStarted { owner, version, grants: Vec::new(), added: Vec::new(), removed: Vec::new(), at: time(number) }
}

/// The database of a store that was dropped. sled's threads may keep its file open for a moment.
pub(crate) fn database(folder: &std::path::Path) -> sled::Db {
    const ATTEMPTS: u32 = 100_000;
    let config = sled::Config::new().path(folder.join("sled")).segment_size(8 << 20);
    let opened = (0..ATTEMPTS).find_map(|_| {
        let opened = config.open();
        std::thread::yield_now();
        opened.ok()
    });
    opened.unwrap_or_else(|| config.open().unwrap())
}
