//! The file of the database while turns come and go.

use std::path::Path;
use std::sync::Arc;

use dispatch::ports::{EndedTurn, NewFacts, RowChange, TurnToRemove, TurnsToRemove};
use domain::{SuspensionId, retention::RemovalRule, suspension::SuspensionState};

use crate::given::{self, Subject, conversation, events, large_fact, principal, time, turn};
use crate::store::{StoreSettings, open, verify};

/// The turns of the test, and those that are there at any time.
const TURNS: u64 = 2_560;
const KEPT: u64 = 256;

/// Turns that one commit removes.
const AT_ONCE: u64 = 64;

/// The commits of each turn, and about the size of each record.
const COMMITS: u32 = 4;
const RECORD: usize = 2_000;

fn settings() -> StoreSettings {
    // With the default, the file grows by 8 MiB at a time.
    StoreSettings { segment_bytes: 256 << 10, ..StoreSettings::default() }
}

fn row(number: u64) -> EndedTurn {
    let of = conversation(&format!("conversation-{}", number / 400));
    EndedTurn {
        turn: turn(number),
        conversation: of,
        caller: principal("ann"),
        tools: vec!["transfer".into()],
        at: time(number),
    }
}

/// One commit of a turn. The last one ends it.
async fn append(store: &Subject, number: u64, commit: u32) {
    let of = row(number).conversation;
    let events = given::within(of.as_str(), events(number, commit, vec![large_fact(number, RECORD)]));
    let mut rows = match commit {
        0 => vec![RowChange::Call {
            conversation: of.clone(),
            id: given::call(&format!("call-{number}")),
            turn: turn(number),
        }],
        _ => Vec::new(),
    };
    let state = if commit + 1 == COMMITS { given::ENDED } else { SuspensionState::Open };
    let suspension = given::row(number, state);
    rows.push(RowChange::Suspension(dispatch::ports::SuspensionRow {
        turn: turn(number),
        conversation: of,
        ..suspension
    }));
    rows.extend((commit + 1 == COMMITS).then(|| RowChange::Ended(row(number), domain::event::TurnEnd::Settled)));
    store.append(&events.with(rows)).await.unwrap();
}

/// Removes the oldest turns.
async fn remove(store: &Subject) {
    let page = store.ended(None, AT_ONCE as usize).await.unwrap();
    let turns = page.into_iter().map(|(ended, bytes)| {
        let suspensions = vec![SuspensionId::from_bits(ended.turn.bits())];
        TurnToRemove { ended, bytes, commits: COMMITS, suspensions }
    });
    let removal = TurnsToRemove { at: time(1_000), rule: RemovalRule::Bytes { kept: 1 }, turns: turns.collect() };
    store.append(&NewFacts::Removal(removal).into()).await.unwrap();
}

/// The bytes of all keys and values.
fn contents(folder: &Path) -> u64 {
    let config = sled::Config::new().path(folder.join("sled")).segment_size(settings().segment_bytes);
    let db = config.flush_every_ms(None).open().unwrap();
    db.iter().map(Result::unwrap).map(|(key, value)| (key.len() + value.len()) as u64).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn space_of_removed_turns_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path(), &settings()).unwrap());
    let subject: Subject = store.clone();
    for first in (0..TURNS).step_by(AT_ONCE as usize) {
        for commit in 0..COMMITS {
            let turns = (first..first + AT_ONCE).map(|number| {
                let subject = subject.clone();
                tokio::spawn(async move { append(&subject, number, commit).await })
            });
            for turn in turns.collect::<Vec<_>>() {
                turn.await.unwrap();
            }
        }
        if first >= KEPT {
            remove(&subject).await;
        }
    }
    assert_eq!(store.check().unwrap().problems, []);
    drop((store, subject));
    let disk = folder.path().join("sled/db").metadata().unwrap().len();
    let contents = contents(folder.path());
    // Without cleaning, the file has 42 MiB.
    assert!(disk < 4 * contents + (4 << 20), "the file has {disk} bytes, and its entries have {contents}");
    assert!(verify(folder.path(), &settings(), Vec::new()).is_ok());
}
