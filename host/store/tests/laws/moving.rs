//! Stores that move between data folders and databases.

use std::path::Path;

use dispatch::ports::{Audit as _, Committed, Facts, Feed, Health as _, Log, Position, RowChange};
use domain::Event;
use domain::event::{CallEvent, TurnEnd};

use crate::given::{self, begun, commit, events, large_fact};
use crate::machine::is_left_out;
use crate::on_server::settings;
use crate::removing::ended;
use crate::salvaging::{link, log, opened, salvaged, tamper, verified};
use crate::server;
use crate::store::{
    ImportError, MAX_RECORD, Moved, PostgresSettings, PostgresStore, StoreSettings, export_database, import,
    import_database,
};

fn exported(folder: &Path) -> Vec<u8> {
    let mut lines = Vec::new();
    opened(folder).export(&mut lines).unwrap();
    lines
}

fn to_folder(target: &Path, max_record: usize, mut lines: &[u8]) -> Result<Moved, ImportError> {
    import(target, &StoreSettings::default(), max_record, &mut lines, &mut |_, _| Ok(()))
}

async fn to_database(settings: &PostgresSettings, max_record: usize, mut lines: &[u8]) -> Result<Moved, ImportError> {
    import_database(settings, max_record, &mut lines, &|_| Ok(())).await
}

async fn host_feed(store: &impl Log) -> Vec<Committed> {
    store.follow(&Feed::Host, Position(0), 999, usize::MAX).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn loss_that_a_salvage_recorded_is_no_damage() {
    if is_left_out("postgres") {
        return;
    }
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = opened(folder.path());
    store.append(&given::record(given::plugin(1))).await.unwrap();
    store.append(&given::started(given::start(2))).await.unwrap();
    store.append(&given::record(given::plugin(3))).await.unwrap();
    drop(store);
    tamper(folder.path(), |db| assert!(db.remove([b"h".as_slice(), &1_u64.to_be_bytes()].concat()).unwrap().is_some()));
    let target = to.path().join("store");
    assert_eq!(salvaged(folder.path(), &target).unwrap().lost, [1]);
    let settings = settings(server::database().1);
    to_database(&settings, MAX_RECORD, &exported(&target)).await.unwrap();
    let (on_disk, database) = (opened(&target), PostgresStore::open(&settings).await.unwrap());
    let lost = Facts::Unreadable { turn: None };
    let (audit, feed) = (database.audit(Position(0), 999).await.unwrap(), host_feed(&database).await);
    assert_eq!((audit.len(), &audit[0].facts, &feed[0].facts), (4, &lost, &lost));
    assert_eq!((&audit, &feed), (&on_disk.audit(Position(0), 999).await.unwrap(), &host_feed(&on_disk).await));
    assert_eq!([on_disk.health(), database.health()].map(|health| health.damaged_records), [0, 0]);
}

/// A fact of about a thousand bytes, with a call id of its own.
fn own_fact(number: u64) -> Event {
    let mut event = large_fact(number, 1_000);
    if let Event::Call { event: CallEvent::Requested { id, .. }, .. } = &mut event {
        *id = given::call(&format!("big{number}"));
    }
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_with_too_many_records_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    store.append(&events(1, 0, vec![begun(1)])).await.unwrap();
    for number in 1..=5 {
        store.append(&events(1, number, vec![own_fact(number.into())])).await.unwrap();
    }
    drop(store);
    let lines = exported(folder.path());
    let expected = |max_record: usize| {
        format!(
            "{} is too long: its records take more than {} bytes of memory, and this import takes no more of one turn",
            given::turn(1),
            4 * max_record
        )
    };
    let target = folder.path().join("target");
    assert_eq!(to_folder(&target, 1_200, &lines).unwrap_err().to_string(), expected(1_200));
    let refused = to_folder(&target, 100, &lines).unwrap_err().to_string();
    assert_eq!(
        refused,
        "line 2 is too long: it has a record of more than 100 bytes, and this import takes no larger one"
    );
    let whole = to_folder(&target, 4_000, &lines).unwrap();
    // The migration of a data folder reads the logs of ended turns too.
    let end = Event::TurnSettled { end: TurnEnd::Settled, at: given::time(9) };
    let ended = RowChange::Ended(ended(1, 9), TurnEnd::Settled);
    opened(folder.path()).append(&events(1, 6, vec![end]).with([ended])).await.unwrap();
    let of_ended = exported(folder.path());
    let refused = to_folder(&folder.path().join("ended"), 1_200, &of_ended).unwrap_err().to_string();
    assert_eq!(refused, expected(1_200));
    if is_left_out("postgres") {
        return;
    }
    let database = settings(server::database().1);
    assert_eq!(to_database(&database, 1_200, &lines).await.unwrap_err().to_string(), expected(1_200));
    assert_eq!(to_database(&database, 4_000, &lines).await.unwrap(), whole);
    assert!(
        to_database(&settings(server::database().1), 1_200, &of_ended).await.is_ok(),
        "no log of an ended turn is read"
    );
}

/// A call id that is in two commits, or in a commit and in a later line, and a turn that ends twice. A database is given the lines in
/// batches of a thousand, so the second one is in the same batch or in a later one.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_call_ids_and_ends_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    for number in 1..=2 {
        store.append(&events(number, 0, vec![begun(number), large_fact(number, 10)])).await.unwrap();
    }
    drop(store);
    let twice = String::from_utf8(exported(folder.path())).unwrap();
    let once: String = twice.split_inclusive('\n').take(2).collect();
    let first: String = twice.split_inclusive('\n').take(1).collect();
    let many = |line: &dyn Fn(usize) -> String, numbers: std::ops::Range<usize>| numbers.map(line).collect::<String>();
    let owner = |n| format!("{{\"owner\":{{\"conversation\":\"c{n:04}\",\"owner\":\"ann\"}}}}\n");
    let call = |id: String| {
        format!("{{\"call\":{{\"conversation\":\"c\",\"id\":\"{id}\",\"turn\":\"{}\"}}}}\n", given::turn(9))
    };
    let later = |n| call(format!("big{n:04}"));
    let ended = |turn: usize, at: usize| {
        let json = format!(
            "{{\"turn\":\"{}\",\"conversation\":\"c\",\"caller\":\"ann\",\"tools\":[],\"at\":{at}}}",
            given::turn(turn as u64)
        );
        format!("{{\"ended_turn\":{{\"end\":\"settled\",\"bytes\":1,\"record\":{{\"version\":1,\"json\":{json}}}}}}}\n")
    };
    let each_ended = |n| ended(n, n);
    let (call_id, end) =
        ("the call id `big` of the conversation `c`".to_owned(), format!("the end of {}", given::turn(5)));
    for (lines, line, key) in [
        (twice, 3, &call_id),
        ([&*once, &call("big".into())].concat(), 3, &call_id),
        ([&*once, &many(&owner, 0..1_000), &call("big".into()), &many(&later, 0..1_000)].concat(), 1_003, &call_id),
        ([&*first, &ended(5, 1), &ended(5, 2)].concat(), 3, &end),
        (
            [&*first, &many(&each_ended, 0..1_000), &ended(5, 1_000), &many(&each_ended, 1_001..2_001)].concat(),
            1_002,
            &end,
        ),
    ] {
        let expected = format!("line {line} is damaged: it repeats {key}");
        let refused = to_folder(&folder.path().join("target"), 10_000, lines.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused, expected);
        if !is_left_out("postgres") {
            let settings = settings(server::database().1);
            assert_eq!(to_database(&settings, 10_000, lines.as_bytes()).await.unwrap_err().to_string(), expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn salvaged_store_moves_with_its_cut_audit() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, mut heads) = (opened(folder.path()), Vec::new());
    for number in 1..=6 {
        store.append(&events(number, 0, vec![begun(number)])).await.unwrap();
        store.append(&given::record(given::plugin(number))).await.unwrap();
        store.append(&commit(number, 1, number)).await.unwrap();
        heads.push(store.head().await.unwrap());
    }
    drop(store);
    tamper(folder.path(), |db| {
        // Entries of the chain, which follow from their records. Then records: those of turn 2 and of a fact about a plugin.
        let links = [link(10), link(11)];
        let records = [log(2, 0), [b"h".as_slice(), &8_u64.to_be_bytes()].concat()];
        // Both: the last commit of turn 4, and the first of turn 5.
        let both = [log(4, 1), link(12), log(5, 0), link(13)];
        let lost = links.into_iter().chain(records).chain(both);
        lost.for_each(|key| assert!(db.remove(key).unwrap().is_some()));
    });
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!(found.turns.into_iter().collect::<Vec<_>>(), [2, 4, 5].map(given::turn));
    let lines = exported(&target);
    let copy = to.path().join("copy");
    assert_eq!(to_folder(&copy, MAX_RECORD, &lines).unwrap().head, found.head);
    assert_eq!(verified(&copy, &heads[4..]).unwrap(), found.head, "the checkpoints behind the cut are valid");
    assert!(verified(&copy, &heads[3..]).is_err(), "that of a lost commit is not");
    assert_eq!(opened(&copy).check().unwrap().problems, []);
    assert!(exported(&copy) == lines);
    if is_left_out("postgres") {
        return;
    }
    let settings = settings(server::database().1);
    assert_eq!(to_database(&settings, MAX_RECORD, &lines).await.unwrap().head, found.head);
    let mut from_database = Vec::new();
    export_database(&settings, &mut from_database).await.unwrap();
    assert!(from_database == lines);
}
