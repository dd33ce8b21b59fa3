//! The load that is recorded: commits of several turns at once, some with large records, data of plugins, and removals
//! of ended turns. Each acknowledgement is a line on the standard output.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use dispatch::ports::{
    Commit, EndedTurn, EndedTurns as _, JournalRow, Log as _, NewFacts, RowChange, SuspensionRow, TurnToRemove,
    TurnsToRemove,
};
use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, Json, PrincipalId, Span, SuspensionId, Timestamp, TurnId,
    event::CallEvent,
    journal::{Entry, Record, ValueChange},
    retention::RemovalRule,
    suspension::{SuspensionEnd, SuspensionKind, SuspensionState},
};
use store::{NamespaceQuota, SledStore, open};

use super::SETTINGS;

/// Turns that get commits at the same time.
const WRITERS: u64 = 3;
/// The commits of each turn.
const COMMITS: u32 = 6;
/// The turns of each writer in one life.
const TURNS: u64 = 4;
/// The keys of the plugin's data.
pub(crate) const KEYS: u64 = 48;
/// The writes of the plugin between two syncs.
const WRITES: u64 = 150;

/// The writes of the plugin without any sync.
const BURST: u64 = 800;

/// The rows of one large commit.
const ROWS: u64 = 150;

/// The entries of a journal in one life.
const ENTRIES: u32 = 16;

/// Whether the recorded program kills itself at the end of a life. The others close the store.
pub(crate) fn is_killed(life: u32) -> bool {
    life.is_multiple_of(2)
}

pub(crate) fn run(path: &Path, life: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let path = fs::canonicalize(path.parent().unwrap()).unwrap().join(path.file_name().unwrap());
    let store = Arc::new(open(path, &SETTINGS).unwrap());
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            tasks.spawn(write_turns(store.clone(), u64::from(life) * 1_000 + writer * 100));
        }
        tasks.spawn(write_values(store.clone(), u64::from(life) * 1_000_000));
        tasks.spawn(write_journal(store.clone(), u64::from(life) * 1_000 + 950));
        tasks.join_all().await;
        burst(&store, u64::from(life) * 1_000_000 + 500_000).await;
        write_rows(&store, u64::from(life) * 1_000 + 900).await;
    });
    if is_killed(life) {
        std::process::abort();
    }
}

fn acknowledge(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("acknowledged {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

async fn write_turns(store: Arc<SledStore>, first: u64) {
    for number in first..first + TURNS {
        for commit in 0..COMMITS {
            let mut rows = Vec::new();
            if commit == 1 {
                rows.push(RowChange::Suspension(suspension(number)));
            }
            if commit + 1 == COMMITS {
                rows.push(RowChange::Ended(ended(number), domain::event::TurnEnd::Settled));
            }
            store.append(&events(number, commit).with(rows)).await.unwrap();
            acknowledge(&format!("commit {number} {commit}"));
        }
        if number % 2 == 1 {
            acknowledge(&format!("removing {number}"));
            let rows = store.ended(None, usize::MAX).await.unwrap();
            let (ended, bytes) = rows.into_iter().find(|(row, _)| row.turn == turn(number)).unwrap();
            let suspensions = vec![suspension(number).id];
            let removed = TurnToRemove { ended, bytes, commits: COMMITS, suspensions };
            let rule = RemovalRule::Age { kept: Span::from_secs(60) };
            let removal = TurnsToRemove { at: Timestamp::from_millis(1_000), rule, turns: vec![removed] };
            store.append(&NewFacts::Removal(removal).into()).await.unwrap();
            acknowledge(&format!("removed {number}"));
            store.reclaim().await.unwrap();
        }
    }
}

/// Appends to the journal of a durable call. Each entry changes a value of the plugin's data.
async fn write_journal(store: Arc<SledStore>, number: u64) {
    let run = RowChange::JournalRun { turn: turn(number), call: CallIndex(0), run: Some(1) };
    store.append(&events(number, 0).with([run])).await.unwrap();
    for at in 0..ENTRIES {
        let row = JournalRow { turn: turn(number), call: CallIndex(0), run: 1, entry: entry(at) };
        // The namespace and the bucket, each after its length, and the key.
        let key = [b"\0\x06plugin\0\x07durable".as_slice(), &number.to_be_bytes()].concat();
        let value = RowChange::Value(ValueChange {
            key,
            old: at.checked_sub(1).map(|at| value(at.into())),
            value: Some(value(at.into())),
        });
        store.append(&Commit::rows(vec![RowChange::JournalEntry(row), value])).await.unwrap();
        acknowledge(&format!("entry {number} {at}"));
    }
}

/// Some are so large that the store puts them into files of their own.
pub(crate) fn entry(number: u32) -> Entry {
    let size = if number % 5 == 4 { 70 << 10 } else { 200 };
    let record = Record::Result("x".repeat(size).into());
    Entry {
        number,
        step: 0,
        run: None,
        function: None,
        digest: Digest::of(number.to_be_bytes()),
        at: Timestamp::from_millis(number.into()),
        salt: None,
        transferred: None,
        record,
    }
}

/// Overwrites the same keys, so that sled moves the pages of commits that it wrote long ago.
async fn write_values(store: Arc<SledStore>, first: u64) {
    let data = store.key_value();
    for begun in (first..).step_by(usize::try_from(WRITES).unwrap()).take(4) {
        let data = data.clone();
        let written = tokio::task::spawn_blocking(move || {
            for number in begun..begun + WRITES {
                data.set("plugin", "bucket", &key(number), &value(number), NamespaceQuota::UNBOUNDED).unwrap();
            }
        });
        written.await.unwrap();
        store.sync().await.unwrap();
        acknowledge(&format!("values {}", begun + WRITES - 1));
    }
}

/// Overwrites the same keys without any sync, until sled has used each of its segments again.
async fn burst(store: &SledStore, first: u64) {
    let data = store.key_value();
    let written = tokio::task::spawn_blocking(move || {
        for number in first..first + BURST {
            data.set("plugin", "bucket", &key(number), &value(number), NamespaceQuota::UNBOUNDED).unwrap();
        }
    });
    written.await.unwrap();
}

/// A commit that needs about a segment of the log.
async fn write_rows(store: &SledStore, number: u64) {
    let rows = (0..ROWS).map(|row| RowChange::Suspension(suspension(number * 1_000_000 + row)));
    store.append(&events(number, 0).with(rows)).await.unwrap();
    acknowledge(&format!("commit {number} 0"));
}

pub(crate) fn key(number: u64) -> [u8; 8] {
    (number % KEYS).to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(200 + usize::try_from(number % 7).unwrap() * 150, b'.');
    value
}

pub(crate) fn turn(number: u64) -> TurnId {
    TurnId::from_bits(number.into())
}

fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

/// A commit of a turn. Some are so large that the store puts them into files of their own.
pub(crate) fn events(number: u64, commit: u32) -> Commit {
    Commit::turn(turn(number), conversation(), commit, vec![event(number, commit)])
}

pub(crate) fn event(number: u64, commit: u32) -> Event {
    let size = if (number + u64::from(commit)).is_multiple_of(11) { 70 << 10 } else { 100 + 300 * commit as usize };
    let arguments = Json::unchecked(format!("[{number},{commit},\"{}\"]", "x".repeat(size)));
    let event = CallEvent::Requested {
        id: CallId::new("call").unwrap(),
        tool: "t".into(),
        arguments,
        pinned: None,
        ruled_by: None,
        origin: None,
    };
    Event::Call { call: CallIndex(0), event }
}

fn ended(number: u64) -> EndedTurn {
    let caller = PrincipalId::new("ann").unwrap();
    let at = Timestamp::from_millis(number);
    EndedTurn { turn: turn(number), conversation: conversation(), caller, tools: vec!["t".into()], at }
}

fn suspension(number: u64) -> SuspensionRow {
    SuspensionRow {
        id: SuspensionId::from_bits(number.into()),
        turn: turn(number),
        call: CallIndex(0),
        conversation: conversation(),
        caller: PrincipalId::new("ann").unwrap(),
        tool: "t".into(),
        kind: SuspensionKind::Approval,
        state: SuspensionState::Ended(SuspensionEnd::Expired),
        ended_by: vec![PrincipalId::system()],
        signal: None,
    }
}
