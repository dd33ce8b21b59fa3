//! Rows that are removed while a reader reads them. The tests stop the reader where it waits for the disk between two
//! reads of the tree.

use dispatch::ports::{Commit, Feed, Log as _, RowChange};
use domain::{Event, Json, PluginName, Standing, standing::Pin};
use tokio::task::JoinSet;

use super::*;
use crate::sled::SledStore;
use crate::sled::database_file::Syncs;
use crate::sled::keys::Entry;
use crate::sled::remains;
use crate::sled::tree::reads;

fn id(number: u128) -> StandingId {
    StandingId::from_bits(number)
}

fn row(number: u128) -> StandingRow {
    StandingRow {
        standing: Standing { id: id(number), expires_at: Timestamp::from_millis(9), uses: 3, pin: Pin::All },
        by: PrincipalId::new("ann").unwrap(),
        created_at: Timestamp::from_millis(1),
        suspension: SuspensionId::from_bits(1),
        conversation: ConversationId::new("c").unwrap(),
        caller: PrincipalId::new("agent").unwrap(),
        tool: "transfer".into(),
        plugin: PluginName::new("ledger").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        fingerprint: Digest::of("ground"),
        arguments: Json::unchecked("{}"),
        used: 0,
        revoked: None,
    }
}

struct Rig {
    reader: Reader,
    disk: watch::Sender<Durable>,
    _folder: tempfile::TempDir,
}

/// A reader for which everything until position 4 is on disk.
fn rig() -> Rig {
    let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(folder.path().join("blobs"), Syncs::default()).unwrap();
    let (disk, durable) = watch::channel(Durable::Until(Position(4)));
    Rig {
        reader: Reader {
            tree: Tree::new((*db).clone()),
            blobs,
            durable,
            recoveries: Arc::default(),
            set_aside: SetAside::default(),
        },
        disk,
        _folder: folder,
    }
}

impl Rig {
    /// A standing approval that was committed at a position.
    fn give(&self, number: u128, position: u64) {
        let stamped = |value: &[u8]| [position.to_be_bytes().as_slice(), value].concat();
        let mut record = Vec::new();
        row(number).write(&mut record).unwrap();
        let usage = StandingUsage { uses: 3, used: 1, revoked: None };
        let entries: [Entry; 2] = [
            (keys::standing(keys::STANDING, id(number)), stamped(&record)),
            (keys::standing(keys::STANDING_STATE, id(number)), stamped(&usage.to_bytes())),
        ];
        for (key, value) in entries {
            self.reader.tree.insert(key, &value).unwrap();
        }
    }

    fn remove(&self, index: u8, number: u128) {
        self.reader.tree.remove(keys::standing(index, id(number))).unwrap().unwrap();
    }

    fn forget(&self, number: u128) {
        self.remove(keys::STANDING, number);
        self.remove(keys::STANDING_STATE, number);
    }

    /// Begins to read, and reads on once something else has happened and all is on disk.
    async fn meanwhile<T>(&self, reading: impl Future<Output = T>, happens: impl FnOnce()) -> T {
        tokio::pin!(reading);
        tokio::select! {
            biased;
            _ = &mut reading => panic!("it waits for the disk"),
            () = std::future::ready(()) => {}
        }
        happens();
        self.disk.send_replace(Durable::Until(Position(5)));
        reading.await
    }
}

#[tokio::test]
async fn removed_row_is_absent_and_half_a_row_is_damage() {
    let rig = rig();
    rig.give(1, 5);
    let read = rig.meanwhile(rig.reader.standing(id(1)), || rig.forget(1)).await;
    assert_eq!(read.unwrap(), None);

    let rig = self::rig();
    rig.give(1, 5);
    let read = rig.meanwhile(rig.reader.standing(id(1)), || rig.remove(keys::STANDING_STATE, 1)).await;
    assert!(read.unwrap_err().to_string().contains("is damaged"));
    rig.give(2, 5);
    assert_eq!(rig.reader.standing(id(2)).await.unwrap().unwrap().used, 1);
}

#[tokio::test]
async fn lost_commit_is_not_returned_under_a_reused_position() {
    let rig = rig();
    rig.give(1, 5);
    let recovers = || _ = rig.reader.recoveries.fetch_add(1, Ordering::Release);
    let read = rig.meanwhile(rig.reader.standing(id(1)), recovers).await;
    assert_eq!(read.unwrap_err().kind, FaultKind::NoSpace);
    assert!(rig.reader.standing(id(1)).await.unwrap().is_some(), "a later read sees what is stored now");
}

#[tokio::test]
async fn removed_rows_leave_no_page_short() {
    let rig = rig();
    rig.give(1, 5);
    (2..=6).for_each(|number| rig.give(number, 1));
    let page = rig.meanwhile(rig.reader.standings(None, 3), || (2..=3).for_each(|number| rig.forget(number))).await;
    let ids = |page: Vec<StandingRow>| page.into_iter().map(|row| row.standing.id).collect::<Vec<_>>();
    assert_eq!(ids(page.unwrap()), [id(1), id(4), id(5)]);
    assert_eq!(ids(rig.reader.standings(Some(id(5)), 3).await.unwrap()), [id(6)]);
    assert_eq!(ids(rig.reader.standings(Some(id(1)), 3).await.unwrap()), [id(4), id(5), id(6)]);
    assert_eq!(ids(rig.reader.standings(Some(id(6)), 3).await.unwrap()), []);
}

#[tokio::test]
async fn removal_is_shown_once_it_is_on_disk() {
    use dispatch::ports::{ChainEntry, Recorded, Source};
    use domain::retention::{Removal, RemovalRule, RemovedTurn};

    let rig = rig();
    let (turn, conversation) = (TurnId::from_bits(1), ConversationId::new("c").unwrap());
    let record = Digest::of("record");
    let mut fact = Vec::new();
    let rule = RemovalRule::Bytes { kept: 1 };
    let turns = vec![RemovedTurn { turn, commits: 1 }];
    Removal { at: Timestamp::from_millis(1), rule, bytes: 1, turns, lost: Vec::new() }.write(&mut fact).unwrap();
    let entries: [Entry; 4] = [
        (keys::at(&keys::feed(&conversation), Position(1)), keys::pointer(turn, 0)),
        (keys::at(&[keys::AUDIT], Position(1)), keys::link(record, Source::Turn { turn, number: 0 })),
        remains::entries(turn, Position(5), b"c", &[(Position(1), record)]).next().unwrap(),
        (keys::at(&[keys::REMOVAL], Position(5)), fact),
    ];
    for (key, value) in entries {
        rig.reader.tree.insert(key, &value).unwrap();
    }
    let feed = Feed::Conversation(conversation);
    let lost = StoreFault { kind: FaultKind::Disk, attempted: "sync", reason: "it failed".into() };
    rig.disk.send_replace(Durable::Failed(Position(4), lost));
    assert!(rig.reader.audit(Position(0), 9).await.is_err());
    assert!(rig.reader.chain(Position(0), 9).await.is_err());
    assert!(rig.reader.follow(&feed, Position(0), 9, 99).await.is_err());
    assert!(rig.reader.load(turn, 9).await.is_err());

    rig.disk.send_replace(Durable::Until(Position(5)));
    let audited = rig.reader.audit(Position(0), 1).await.unwrap();
    assert_eq!(audited[0].facts, Facts::Removed { turn });
    let [ChainEntry { record: removed, .. }] = rig.reader.chain(Position(0), 1).await.unwrap()[..] else { panic!() };
    assert_eq!(removed, Recorded::Removed { digest: record, by: Some(Position(5)) });
    assert_eq!(rig.reader.follow(&feed, Position(0), 9, 99).await.unwrap(), []);
}

/// A fact in one conversation.
fn fact(turn: u64) -> Commit {
    let (by, conversation) = (PrincipalId::new("ann").unwrap(), ConversationId::new("c").unwrap());
    let owner = RowChange::Owner { conversation: conversation.clone(), owner: by.clone() };
    let events = vec![Event::TurnCancelled { by, at: Timestamp::from_millis(turn) }];
    Commit::turn(TurnId::from_bits(turn.into()), conversation, 0, events).with([owner])
}

#[tokio::test]
async fn end_of_a_long_conversation_costs_few_reads() {
    const COMMITS: u64 = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap());
    let mut appends = JoinSet::new();
    for turn in 0..COMMITS {
        let store = store.clone();
        appends.spawn(async move { store.append(&fact(turn)).await.unwrap() });
    }
    appends.join_all().await;

    let feed = Feed::Conversation(ConversationId::new("c").unwrap());
    let before = reads();
    let head = store.reader.head().await.unwrap().position;
    let page = store.reader.follow(&feed, head, 100, 1 << 20).await.unwrap();
    assert_eq!((head, page.len()), (Position(COMMITS), 0));
    assert!(reads() - before < 5, "{} reads", reads() - before);

    store.append(&fact(COMMITS)).await.unwrap();
    let before = reads();
    let page = store.reader.follow(&feed, head, 100, 1 << 20).await.unwrap();
    assert_eq!(page.iter().map(|commit| commit.position).collect::<Vec<_>>(), [Position(COMMITS + 1)]);
    assert!(reads() - before < 20, "{} reads", reads() - before);
}
