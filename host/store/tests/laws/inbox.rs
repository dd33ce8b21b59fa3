//! Laws of the counts of open suspensions, and of the size that principals keep.

use dispatch::ports::{
    AudienceChange, Audiences, EndedTurn, Feed, Filter, Indexes as _, Log as _, Order, Position, RowChange,
    SuspensionRow,
};
use domain::{
    CallIndex, Digest, Event, Json, PrincipalId, Suspension,
    event::{CallEvent, Rejection, TurnEnd},
    suspension::{ApprovalRequest, Asked, Audience, SuspensionBody, SuspensionEnd, SuspensionKind},
};

use crate::given::{self, Subject, commit, conversation, events, large_fact, principal, suspension, with, within};
use crate::removing::{removal, turn_that_ended};
use crate::store::{SledStore, StoreSettings, open};

fn audience(kind: SuspensionKind, who: &[&str]) -> Audience {
    let needs = vec![who.iter().map(|who| who.parse().unwrap()).collect()];
    Audience { kind, needs, without: Vec::new(), delegates: Vec::new() }
}

/// A change in the conversation of this caller.
fn change(number: u64, caller: &str, tool: &str, before: Option<&Audience>, after: Option<&Audience>) -> RowChange {
    RowChange::Audience(Box::new(AudienceChange {
        suspension: suspension(number),
        conversation: conversation(&format!("of-{caller}")),
        caller: principal(caller),
        tool: tool.into(),
        before: before.cloned(),
        after: after.cloned(),
    }))
}

async fn counts(store: &Subject, filter: Filter) -> Vec<(Audience, u64)> {
    let Audiences { mut counts, complete } = store.audiences(&filter).await.unwrap();
    assert!(complete);
    counts.sort();
    counts
}

pub(crate) async fn open_suspensions_are_counted_by_audience(store: Subject) {
    let (any, finance) =
        (audience(SuspensionKind::Approval, &[]), audience(SuspensionKind::Approval, &["group:finance"]));
    let question = audience(SuspensionKind::Elicitation, &[]);
    let rows = [
        change(1, "ann", "pay", None, Some(&any)),
        change(2, "ann", "pay", None, Some(&any)),
        change(3, "ann", "ask", None, Some(&question)),
        change(4, "bob", "pay", None, Some(&finance)),
    ];
    let owned =
        |name: &str| RowChange::Owner { conversation: conversation(&format!("of-{name}")), owner: principal(name) };
    store.append(&with(commit(1, 0, 1), rows).with([owned("ann"), owned("bob")])).await.unwrap();

    let all = vec![(any.clone(), 2), (finance.clone(), 1), (question.clone(), 1)];
    assert_eq!(counts(&store, Filter::default()).await, all);
    let (ann, bob) = (Some(principal("ann")), Some(principal("bob")));
    let of_ann = Some(conversation("of-ann"));
    let [approval, none] = [SuspensionKind::Approval, SuspensionKind::ClientExec].map(Some);
    for (filter, expected) in [
        (Filter { caller: ann.clone(), ..Filter::default() }, vec![(any.clone(), 2), (question.clone(), 1)]),
        (Filter { caller: bob.clone(), ..Filter::default() }, vec![(finance.clone(), 1)]),
        (
            Filter { conversation: of_ann.clone(), tool: Some("pay".into()), ..Filter::default() },
            vec![(any.clone(), 2)],
        ),
        (
            Filter { conversation: of_ann.clone(), caller: ann, ..Filter::default() },
            vec![(any.clone(), 2), (question, 1)],
        ),
        (Filter { conversation: of_ann, caller: bob, ..Filter::default() }, vec![]),
        (
            Filter { kind: approval, tool: Some("pay".into()), ..Filter::default() },
            vec![(any.clone(), 2), (finance.clone(), 1)],
        ),
        (Filter { kind: none, ..Filter::default() }, vec![]),
        (Filter { tool: Some("other".into()), ..Filter::default() }, vec![]),
    ] {
        assert_eq!(counts(&store, filter.clone()).await, expected, "{filter:?}");
    }

    let moved = [change(1, "ann", "pay", Some(&any), Some(&finance)), change(2, "ann", "pay", Some(&any), None)];
    store.append(&with(commit(1, 1, 1), moved)).await.unwrap();
    let pay = Filter { tool: Some("pay".into()), ..Filter::default() };
    assert_eq!(counts(&store, pay.clone()).await, [(finance.clone(), 2)]);
    let closed = [change(1, "ann", "pay", Some(&finance), None), change(4, "bob", "pay", Some(&finance), None)];
    store.append(&with(commit(1, 2, 1), closed)).await.unwrap();
    assert_eq!(counts(&store, pay).await, []);
    assert_eq!(counts(&store, Filter::default()).await.len(), 1);
}

pub(crate) async fn nested_turns_are_listed_with_their_conversation(store: Subject) {
    let any = audience(SuspensionKind::Approval, &[]);
    let opened = |number: u64, of: &str| {
        let row = SuspensionRow { conversation: conversation(of), ..given::row(number, given::OPEN) };
        let change = AudienceChange {
            suspension: suspension(number),
            conversation: row.conversation.clone(),
            caller: row.caller.clone(),
            tool: row.tool.clone(),
            before: None,
            after: Some(any.clone()),
        };
        [RowChange::Suspension(row), RowChange::Audience(Box::new(change))]
    };
    let rows = [opened(1, "of-ann"), opened(2, "~of-ann"), opened(3, "of-bob")].into_iter().flatten();
    store.append(&with(commit(1, 0, 1), rows)).await.unwrap();
    for (of, expected) in [("of-ann", 2), ("~of-ann", 2), ("of-bob", 1), ("~of-bob", 1)] {
        let filter = Filter { conversation: Some(conversation(of)), ..Filter::default() };
        assert_eq!(counts(&store, filter.clone()).await, [(any.clone(), expected)], "{of}");
        assert_eq!(store.suspensions(&filter, None, 9).await.unwrap().rows.len() as u64, expected, "{of}");
    }
}

pub(crate) async fn open_suspensions_are_listed_by_audience(store: Subject) {
    let (any, finance) =
        (audience(SuspensionKind::Approval, &[]), audience(SuspensionKind::Approval, &["group:finance"]));
    let opened = |number: u64, tool: &str, audience: &Audience| {
        let row = SuspensionRow {
            tool: tool.into(),
            conversation: conversation("of-ann"),
            ..given::row(number, given::OPEN)
        };
        [RowChange::Suspension(row), change(number, "ann", tool, None, Some(audience))]
    };
    let rows = (1..=6).flat_map(|number| opened(number, "pay", if number % 2 == 0 { &finance } else { &any }));
    store.append(&with(commit(1, 0, 1), rows.chain(opened(7, "ask", &finance)))).await.unwrap();
    let page = async |filter: &Filter, of: &[&Audience], after: u64, limit| {
        let of: Vec<_> = of.iter().copied().cloned().collect();
        let page = store.suspensions_of(filter, &of, Some(suspension(after)), limit).await.unwrap();
        let ids: Vec<_> = page.rows.iter().map(|row| row.id.bits()).collect();
        (ids, page.next.map(|id| id.bits()))
    };
    let all = Filter::default();
    assert_eq!(page(&all, &[&finance], 0, 9).await, (vec![2, 4, 6, 7], None));
    assert_eq!(page(&all, &[&finance], 2, 2).await, (vec![4, 6], Some(6)));
    assert_eq!(page(&all, &[&any, &finance], 0, 4).await, (vec![1, 2, 3, 4], Some(4)));
    assert_eq!(page(&all, &[], 0, 9).await, (vec![], None));
    let newest = Filter { order: Order::NewestFirst, ..Filter::default() };
    assert_eq!(page(&newest, &[&any, &finance], 7, 3).await, (vec![6, 5, 4], Some(4)));
    let none = audience(SuspensionKind::Approval, &["group:other"]);
    assert_eq!(page(&all, &[&none], 0, 9).await, (vec![], None));
    for (filter, expected) in [
        (Filter { tool: Some("ask".into()), ..Filter::default() }, vec![7]),
        (Filter { kind: Some(SuspensionKind::Elicitation), ..Filter::default() }, vec![]),
        (Filter { caller: Some(principal("ann")), open: Some(false), ..Filter::default() }, vec![2, 4, 6, 7]),
        (Filter { conversation: Some(conversation("c")), ..Filter::default() }, vec![]),
    ] {
        assert_eq!(page(&filter, &[&finance], 0, 9).await, (expected, None), "{filter:?}");
    }
    let row = SuspensionRow { conversation: conversation("of-ann"), ..given::row(4, given::ENDED) };
    let row = SuspensionRow { tool: "pay".into(), ..row };
    let moved = [
        change(2, "ann", "pay", Some(&finance), Some(&any)),
        RowChange::Suspension(row),
        change(4, "ann", "pay", Some(&finance), None),
    ];
    store.append(&with(commit(1, 1, 1), moved)).await.unwrap();
    assert_eq!(page(&all, &[&finance], 0, 9).await, (vec![6, 7], None));
    assert_eq!(page(&all, &[&any], 0, 9).await, (vec![1, 2, 3, 5], None));
}

pub(crate) async fn an_audience_of_any_size_is_counted(store: Subject) {
    let who: Vec<String> = (0..3_000).map(|n| format!("principal:{n:0>100}")).collect();
    let large = audience(SuspensionKind::Approval, &who.iter().map(String::as_str).collect::<Vec<_>>());
    store.append(&with(commit(1, 0, 1), [change(1, "ann", "pay", None, Some(&large))])).await.unwrap();
    assert_eq!(store.reclaim().await.unwrap(), 0, "a count refers to it");
    assert_eq!(counts(&store, Filter::default()).await, [(large.clone(), 1)]);
    store.append(&with(commit(1, 1, 1), [change(1, "ann", "pay", Some(&large), None)])).await.unwrap();
    assert_eq!(counts(&store, Filter::default()).await, []);
    store.reclaim().await.unwrap();
    store.append(&with(commit(1, 2, 1), [change(2, "ann", "pay", None, Some(&large))])).await.unwrap();
    assert_eq!(counts(&store, Filter::default()).await, [(large, 1)]);
}

pub(crate) async fn kept_bytes_grow_with_commits_and_fall_with_removals(store: Subject) {
    let kept = |name: &str| RowChange::Kept(principal(name));
    let size = async |name: &str| store.kept_bytes(&principal(name)).await.unwrap();
    assert_eq!(size("ann").await, 0);
    // Of two commits.
    let first = turn_that_ended(&store, 1, 10).await;
    assert_eq!(size("ann").await, 0, "nothing counted it");
    store.append(&with(events(2, 0, vec![large_fact(1, 200 << 10)]), [kept("ann")])).await.unwrap();
    let large = size("ann").await;
    assert!(large > 200 << 10, "a large record has its whole size: {large}");
    store
        .append(&with(
            commit(2, 1, 1),
            [kept("ann"), RowChange::Ended(crate::removing::ended(2, 20), TurnEnd::Settled)],
        ))
        .await
        .unwrap();
    let second = crate::removing::to_remove(&store, 2).await;
    assert_eq!(size("ann").await, second.bytes);
    let other = with(within("d", commit(3, 0, 1)), [kept("bob")]);
    store.append(&other).await.unwrap();
    let bob = size("bob").await;
    assert!(bob > 0 && bob < large);
    store.append(&removal([second])).await.unwrap();
    assert_eq!((size("ann").await, size("bob").await), (0, bob));
    store.append(&removal([first])).await.unwrap();
    assert_eq!(size("ann").await, 0, "never below nothing");
    assert_eq!(store.retention_time().await.unwrap(), None);
    for at in [5, 3] {
        store.append(&dispatch::ports::Commit::rows(vec![RowChange::RetentionTime(given::time(at))])).await.unwrap();
        assert_eq!(store.retention_time().await.unwrap(), Some(given::time(at)));
    }
}

/// Everything that the indexes of formats 4, 6 and 7 say.
async fn answers(store: &SledStore) -> impl std::fmt::Debug {
    let mut pages = Vec::new();
    for open in [None, Some(true), Some(false)] {
        for conversation in [None, Some(conversation("c"))] {
            for tool in [None, Some("transfer".to_owned())] {
                let filter = Filter { open, conversation: conversation.clone(), tool, ..Filter::default() };
                pages.push(store.suspensions(&filter, None, 9).await.unwrap());
            }
        }
    }
    for (ended, ended_by) in [(true, false), (false, true), (true, true)] {
        let (ended, ended_by) = (ended.then_some(SuspensionEnd::Expired), ended_by.then(PrincipalId::system));
        pages.push(store.suspensions(&Filter { ended, ended_by, ..Filter::default() }, None, 9).await.unwrap());
    }
    let counts = store.audiences(&Filter { tool: Some("transfer".into()), ..Filter::default() }).await.unwrap();
    let audiences: Vec<_> = counts.counts.iter().map(|(audience, _)| audience.clone()).collect();
    pages.push(store.suspensions_of(&Filter::default(), &audiences, None, 9).await.unwrap());
    let mut ends = Vec::new();
    for feed in [Feed::Host, Feed::Caller(principal("ann"))] {
        ends.push(store.follow(&feed, Position(0), 9, usize::MAX).await.unwrap());
    }
    (pages, counts, store.kept_bytes(&principal("ann")).await.unwrap(), ends)
}

fn clear(db: &sled::Db, indexes: &[&[u8]]) {
    for index in indexes {
        let keys: Vec<_> = db.scan_prefix(index).keys().map(Result::unwrap).collect();
        keys.into_iter().for_each(|key| drop(db.remove(key).unwrap()));
    }
}

/// Makes the folder as it was in format 6: nothing says who ended suspensions. An interrupted migration may have left
/// entries that are no longer true.
fn make_format_6(db: &sled::Db, is_interrupted: bool) {
    clear(db, &[b"B"]);
    for entry in db.scan_prefix(b"s") {
        let (key, value) = entry.unwrap();
        let text = String::from_utf8(value[9..].to_vec()).unwrap().replace(",\"ended_by\":[\"system\"]", "");
        db.insert(key, [&value[..8], b"\x01", text.as_bytes()].concat()).unwrap();
    }
    if is_interrupted {
        // As if the first suspension had ended, with no word about the end.
        db.insert([b"B\0\0\x01\x06system\0\0".as_slice(), &1_u128.to_be_bytes()].concat(), b"").unwrap();
    }
    db.insert("mformat", &[6]).unwrap();
}

/// Makes the folder as it was in format 5. An interrupted migration may have left entries that are no longer true.
fn make_format_5(db: &sled::Db, is_interrupted: bool) {
    make_format_6(db, is_interrupted);
    clear(db, &[b"E", b"F", b"J"]);
    if is_interrupted {
        let position = 99_u64.to_be_bytes();
        db.insert([b"E".as_slice(), &position].concat(), b"of a turn that was removed").unwrap();
        db.insert([b"F\x03ann".as_slice(), &position].concat(), b"the same").unwrap();
        db.insert([b"J\x00\x00".as_slice(), &[7; 32], &3_u128.to_be_bytes()].concat(), b"").unwrap();
    }
    db.insert("mformat", &[5]).unwrap();
}

/// Makes the folder as it was in format 3, with an entry that an interrupted migration left and that is no longer true.
fn make_format_3(db: &sled::Db) {
    make_format_6(db, true);
    clear(db, &[b"b", b"j", b"K", b"E", b"F", b"J"]);
    let id = |number: u128| number.to_be_bytes();
    for number in 1..=3 {
        db.insert([b"k\x01c".as_slice(), &id(number)].concat(), b"").unwrap();
    }
    for number in 1..=2 {
        db.insert([b"o".as_slice(), &id(number)].concat(), b"").unwrap();
        db.insert([b"q\x01c".as_slice(), &id(number)].concat(), b"").unwrap();
    }
    db.insert([b"b\x01\x00\x00\x00".as_slice(), &id(3)].concat(), b"").unwrap();
    db.insert("mformat", &[3]).unwrap();
}

/// Makes three turns with a suspension each. The last one has ended.
async fn two_wait_and_one_has_ended(store: &SledStore) {
    for number in 1..=3 {
        let (of, at) = (given::turn(number), given::time(number));
        let (conversation, caller) = (conversation("c"), principal("ann"));
        let rejection = Rejection::default();
        let started = Event::TurnStarted { turn: of, conversation, caller, rejection, context: None, parent: None, at };
        let body = SuspensionBody::Approval(ApprovalRequest::new(Asked::default()));
        let (created_at, expires_at, digest) = (at, given::time(9_000), Digest::of("binding"));
        let waits = Suspension { id: suspension(number), created_at, expires_at, digest, step: None, body };
        let audience = waits.audience();
        let requested = CallEvent::Requested {
            id: given::call("a"),
            tool: "transfer".into(),
            arguments: Json::unchecked("{}"),
            pinned: None,
            ruled_by: None,
            origin: None,
        };
        let suspended = CallEvent::Suspended { suspension: Box::new(waits) };
        let event = |event| Event::Call { call: CallIndex(0), event };
        let row = SuspensionRow { turn: of, ..given::row(number, given::OPEN) };
        let counted = AudienceChange {
            suspension: row.id,
            conversation: row.conversation.clone(),
            caller: row.caller.clone(),
            tool: row.tool.clone(),
            before: None,
            after: Some(audience.clone()),
        };
        let kept = || RowChange::Kept(principal("ann"));
        let rows = [RowChange::Suspension(row.clone()), RowChange::Audience(Box::new(counted.clone())), kept()];
        let begun = events(number, 0, vec![started, event(requested), event(suspended)]);
        store.append(&with(begun, rows)).await.unwrap();
        if number == 3 {
            let closed = AudienceChange { before: Some(audience), after: None, ..counted };
            let row = SuspensionRow { state: given::ENDED, ended_by: vec![PrincipalId::system()], ..row };
            let rows = [RowChange::Suspension(row), RowChange::Audience(Box::new(closed)), kept()];
            let settled = CallEvent::Settled { outcome: domain::Outcome::Cancelled, receipt: None, at };
            let expired = CallEvent::Expired { suspension: suspension(3), approved: None, at };
            let ended = vec![event(expired), event(settled), Event::TurnSettled { end: TurnEnd::Aborted, at }];
            let row = EndedTurn { tools: vec!["transfer".into()], ..crate::removing::ended(3, at.millis()) };
            let rows = rows.into_iter().chain([RowChange::Ended(row, TurnEnd::Aborted)]);
            store.append(&with(events(3, 1, ended), rows)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn folders_of_older_formats_get_the_later_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let opened = || open(folder.path(), &StoreSettings::default()).unwrap();
    let store = opened();
    two_wait_and_one_has_ended(&store).await;
    let expected = format!("{:?}", answers(&store).await);
    drop(store);
    assert!(expected.contains("[(Audience") && expected.contains(", 2)]"), "{expected}");
    assert!(expected.contains("end: Aborted"), "{expected}");
    let ended = expected.matches("ended_by: [").count() - expected.matches("ended_by: []").count();
    assert_eq!(ended, 8 + 3, "{expected}");
    type Older = fn(&sled::Db);
    let older: [(&str, Older); 9] = [
        ("format 3", make_format_3),
        ("format 5", |db| make_format_5(db, false)),
        ("format 5, interrupted", |db| make_format_5(db, true)),
        ("format 6", |db| make_format_6(db, false)),
        ("format 6, interrupted", |db| make_format_6(db, true)),
        ("format 6, begun again by its host", |db| {
            make_format_5(db, true);
            db.insert("mformat", &[6]).unwrap();
            db.insert("mfolding", b"").unwrap();
        }),
        ("format 7", |db| drop(db.insert("mformat", &[7]).unwrap())),
        ("format 7, begun again by its host", |db| {
            make_format_6(db, true);
            db.insert("mformat", &[7]).unwrap();
            db.insert("mfolding", b"").unwrap();
        }),
        ("format 8, interrupted", |db| {
            db.insert("mfolding", b"").unwrap();
        }),
    ];
    for (name, make) in older {
        make(&crate::given::database(folder.path()));
        let store = opened();
        assert_eq!(format!("{:?}", answers(&store).await), expected, "{name}");
        assert_eq!(store.check().unwrap().problems, [], "{name}");
        drop(store);
        let db = crate::given::database(folder.path());
        assert_eq!([b"o", b"k", b"q"].map(|index| db.scan_prefix(index).count()), [0; 3]);
        assert!(db.get("mformat").unwrap().unwrap() == [8] && db.get("mfolding").unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_turn_with_a_damaged_row_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let opened = || std::sync::Arc::new(open(folder.path(), &StoreSettings::default()).unwrap());
    let store: Subject = opened();
    turn_that_ended(&store, 1, 10).await;
    // More rows than are checked at opening.
    let rows = (1..=150).map(|number| RowChange::Suspension(given::row(number, given::ENDED)));
    store.append(&with(commit(2, 0, 1), rows)).await.unwrap();
    drop(store);
    let db = crate::given::database(folder.path());
    db.insert([b"s".as_slice(), &1_u128.to_be_bytes()].concat(), b"\0\0\0\0\0\0\0\x01\x01{").unwrap();
    drop(db);
    let sled = opened();
    let store: Subject = sled.clone();
    let closed = Filter { open: Some(false), ..Filter::default() };
    assert_eq!(store.suspensions(&closed, None, 9).await.unwrap().unreadable.len(), 1);
    let mut turn = crate::removing::to_remove(&store, 1).await;
    turn.suspensions = vec![suspension(1)];
    store.append(&removal([turn])).await.unwrap();
    assert_eq!(store.suspensions(&closed, None, 500).await.unwrap().rows.len(), 149);
    assert_eq!(sled.check().unwrap().problems, []);
}
