//! The operator's rules of retention, on every backend.

use std::collections::BTreeMap;

use dispatch::ports::{EndedTurn, Loaded, RowChange};
use dispatch::{Amount, Hold, Mode, Pruned, RetentionRules, prune};
use domain::{
    CallIndex, Event, Span, TurnId,
    event::{CallEvent, Rejection, TurnEnd},
    retention::RemovalRule,
};

use crate::given::{self, Subject, call, conversation, events, principal, time, turn};

/// A day, which is the unit of the rules.
const DAY: Span = Span::from_secs(24 * 60 * 60);

fn days(days: u64) -> Span {
    Span::from_millis(DAY.millis() * days)
}

/// A turn of a conversation that ends on a day, with a call of this tool.
async fn ends(store: &Subject, number: u64, day: u64, of: &str, tool: &str) {
    let at = time(days(day).millis());
    let (conversation, caller) = (conversation(of), principal(of));
    let requested = CallEvent::Requested {
        id: call("a"),
        tool: tool.into(),
        arguments: domain::Json::unchecked("{}"),
        pinned: None,
        ruled_by: None,
        origin: None,
    };
    let all = vec![
        Event::TurnStarted {
            turn: turn(number),
            conversation: conversation.clone(),
            caller: caller.clone(),
            rejection: Rejection::default(),
            context: None,
            parent: None,
            at,
        },
        Event::Call { call: CallIndex(0), event: requested },
        Event::TurnSettled { end: TurnEnd::Settled, at },
    ];
    let row = EndedTurn { turn: turn(number), conversation, caller, tools: vec![tool.into()], at };
    let commit = given::within(of, events(number, 0, all)).with([RowChange::Ended(row, TurnEnd::Settled)]);
    store.append(&commit).await.unwrap();
}

async fn pruned(store: &Subject, rules: &RetentionRules, day: u64, mode: Mode) -> Pruned {
    prune(store.clone(), store.clone(), store.clone(), rules.clone(), time(days(day).millis()), mode).await.unwrap()
}

async fn kept(store: &Subject) -> Vec<TurnId> {
    store.ended(None, usize::MAX).await.unwrap().into_iter().map(|(row, _)| row.turn).collect()
}

async fn size(store: &Subject) -> u64 {
    store.ended(None, usize::MAX).await.unwrap().into_iter().map(|(_, bytes)| bytes).sum()
}

fn turns(pruned: &Pruned) -> BTreeMap<RemovalRule, u64> {
    pruned.removed.iter().map(|(rule, amount)| (rule.clone(), amount.turns)).collect()
}

pub(crate) async fn nothing_is_removed_without_rules(store: Subject) {
    ends(&store, 1, 1, "ann", "t").await;
    let hold = Hold { conversations: [conversation("ann")].into(), ..Hold::default() };
    let rules = RetentionRules { hold, ..RetentionRules::default() };
    assert_eq!(pruned(&store, &rules, 100_000, Mode::Remove).await, Pruned::default());
    assert_eq!(kept(&store).await, [turn(1)]);
}

pub(crate) async fn turns_are_removed_at_their_age_or_that_of_a_tool(store: Subject) {
    for (number, day, tool) in [(1, 1, "t"), (2, 2, "short"), (3, 8, "short"), (4, 9, "t"), (5, 10, "long")] {
        ends(&store, number, day, "ann", tool).await;
    }
    let tools = BTreeMap::from([("short".to_owned(), days(3)), ("long".to_owned(), days(99))]);
    let rules = RetentionRules { turns: Some(days(5)), tools, ..RetentionRules::default() };
    let age = RemovalRule::Age { kept: days(5) };
    let tool = RemovalRule::Tool { tool: "short".into(), kept: days(3) };

    let head = store.head().await.unwrap();
    let dry = pruned(&store, &rules, 11, Mode::DryRun).await;
    assert_eq!(turns(&dry), BTreeMap::from([(age.clone(), 1), (tool.clone(), 2)]));
    assert_eq!((store.head().await.unwrap(), kept(&store).await.len()), (head, 5), "a dry run changes nothing");
    let done = pruned(&store, &rules, 11, Mode::Remove).await;
    assert_eq!(done, dry, "and it says exactly what a run does");
    assert_eq!(kept(&store).await, [4, 5].map(turn), "a longer time of a tool changes nothing");
    assert!(matches!(store.load(turn(3)).await.unwrap(), Loaded::Removed(left) if left.rule == tool));
    assert_eq!(turns(&pruned(&store, &rules, 14, Mode::Remove).await), BTreeMap::from([(age.clone(), 1)]));
    assert_eq!(pruned(&store, &rules, 14, Mode::Remove).await, Pruned::default());
    assert_eq!(turns(&pruned(&store, &rules, 15, Mode::Remove).await), BTreeMap::from([(age, 1)]));
}

pub(crate) async fn the_oldest_turns_go_beyond_the_bytes(store: Subject) {
    for number in 1..=600 {
        ends(&store, number, 1_000 - number, "ann", "t").await;
    }
    let all = size(&store).await;
    let each = all / 600;
    let bytes = each * 250;
    let rules = RetentionRules { bytes: Some(bytes), ..RetentionRules::default() };
    let dry = pruned(&store, &rules, 2_000, Mode::DryRun).await;
    let done = pruned(&store, &rules, 2_000, Mode::Remove).await;
    assert_eq!(done, dry);
    let removed = done.removed[&RemovalRule::Bytes { kept: bytes }];
    assert_eq!(all - size(&store).await, removed.bytes);
    assert!(size(&store).await <= bytes && size(&store).await + each * 2 > bytes, "no more than needed");
    let kept = kept(&store).await;
    assert_eq!(kept, (1..=kept.len() as u64).rev().map(turn).collect::<Vec<_>>(), "those that ended last stay");
    assert_eq!(pruned(&store, &rules, 2_000, Mode::Remove).await, Pruned::default());
}

pub(crate) async fn young_and_held_turns_do_not_count_for_the_bytes(store: Subject) {
    for (number, day, of) in [(1, 1, "held"), (2, 2, "ann"), (3, 10, "ann"), (4, 11, "ann")] {
        ends(&store, number, day, of, "t").await;
    }
    let each = size(&store).await / 4;
    let hold = Hold { callers: [principal("held")].into(), ..Hold::default() };
    let rules = |turns| RetentionRules {
        bytes: Some(each * turns + each / 2),
        hold: hold.clone(),
        ..RetentionRules::default()
    };
    assert_eq!(pruned(&store, &rules(3), 11, Mode::Remove).await, Pruned::default(), "the held turn does not count");
    let rules = RetentionRules { bytes_after: days(2), ..rules(0) };
    let done = pruned(&store, &rules, 11, Mode::Remove).await;
    assert_eq!(kept(&store).await, [1, 3, 4].map(turn), "the others are too young");
    assert!(done.above > each, "{done:?}");
    let done = pruned(&store, &rules, 12, Mode::Remove).await;
    assert_eq!((kept(&store).await, done.above > 0), ([1, 4].map(turn).into(), true));
    assert_eq!(RetentionRules::default().bytes_after, Span::from_secs(60 * 60));
}

pub(crate) async fn what_goes_by_age_does_not_count_for_the_bytes(store: Subject) {
    for (number, tool) in [(1, "t"), (2, "t"), (3, "short"), (4, "short"), (5, "t")] {
        ends(&store, number, number, "ann", tool).await;
    }
    // Without the turns of the tool, three are left, and they fit.
    let bytes = size(&store).await / 5 * 4;
    let tools = BTreeMap::from([("short".to_owned(), days(1))]);
    let rules = RetentionRules { bytes: Some(bytes), tools, ..RetentionRules::default() };
    let dry = pruned(&store, &rules, 100, Mode::DryRun).await;
    assert_eq!(pruned(&store, &rules, 100, Mode::Remove).await, dry);
    assert_eq!(kept(&store).await, [1, 2, 5].map(turn), "{dry:?}");
}

pub(crate) async fn a_hold_keeps_its_turns(store: Subject) {
    for (number, of) in [(1, "ann"), (2, "bob"), (3, "eve")] {
        ends(&store, number, number, of, "t").await;
    }
    let hold = Hold { conversations: [conversation("ann")].into(), callers: [principal("bob")].into() };
    for (name, held, rules) in [
        ("age", 2, RetentionRules { turns: Some(days(1)), hold: hold.clone(), ..RetentionRules::default() }),
        ("bytes", 0, RetentionRules { bytes: Some(1), hold, ..RetentionRules::default() }),
    ] {
        let done = pruned(&store, &rules, 100, Mode::Remove).await;
        assert_eq!(done.held.turns, held, "{name}");
        assert_eq!(kept(&store).await, [1, 2].map(turn), "{name}");
    }
    let rules = RetentionRules { turns: Some(days(1)), ..RetentionRules::default() };
    assert_eq!(pruned(&store, &rules, 100, Mode::Remove).await.held, Amount::default());
    assert_eq!(kept(&store).await, [], "without the hold they go");
}
