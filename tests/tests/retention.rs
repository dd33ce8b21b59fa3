//! Retention with the real loop: what callers, followers and admins see of a removed turn, and what a host removes by
//! itself.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dispatch::ports::{Clock as _, DeliveryRow, DeliveryState, Facts, Occasion, Position, Report};
use dispatch::{
    Action, AuditFilter, Dispatcher, Error, Handle, Hold, Item, Mode, Parts, RetentionRules, Submitted, TurnRequest,
    Until, prune,
};
use domain::{Principal, Span, TurnId, principal::Role, retention::RemovalRule};
use futures::FutureExt as _;
use toolgate_tests::requests::{answer, call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

const DAY: Span = Span::from_secs(24 * 60 * 60);
const RULE: RemovalRule = RemovalRule::Age { kept: DAY };

fn rules() -> RetentionRules {
    RetentionRules { turns: Some(DAY), ..RetentionRules::default() }
}

struct Retaining {
    world: World,
    host: Dispatcher,
    caller: Principal,
    runs: Arc<AtomicU32>,
}

impl Retaining {
    fn with(retention: RetentionRules) -> Self {
        let (world, runs) = (World::default(), Arc::<AtomicU32>::default());
        let counted = runs.clone();
        let tools = WordTools::new(&["server", "human", "server:days=1", "server:days=2"], move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { done() }
        });
        let host = Dispatcher::start(Parts { retention, ..world.parts(Arc::new(tools)) });
        Self { world, host, caller: principal("ann", Role::Caller), runs }
    }

    fn handle(&self) -> Handle {
        self.host.handle()
    }

    fn request(id: &str) -> TurnRequest {
        turn("c", [call(id, "tool_0", "{}")])
    }

    async fn submit(&self, id: &str) -> Result<Submitted, Error> {
        self.handle().submit(&self.caller, Self::request(id)).await
    }

    /// A turn that has ended.
    async fn ended(&self, id: &str) -> TurnId {
        let submitted = self.submit(id).await.unwrap().turn.id;
        let long = Span::from_secs(60);
        self.handle().wait(&self.caller, &conversation("c"), submitted, Until::Ended, long).await.unwrap();
        settle().await;
        submitted
    }

    async fn prune(&self) -> dispatch::Pruned {
        let store = &self.world.store;
        prune(store.clone(), store.clone(), store.clone(), rules(), self.world.clock.now(), Mode::Remove).await.unwrap()
    }

    async fn is_removed(&self, id: TurnId) -> bool {
        match self.handle().turn(&self.caller, &conversation("c"), id).await {
            Ok(_) => false,
            Err(Error::Removed { rule, .. }) => rule == RULE,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn removed_call_never_runs_again() {
    let world = Retaining::with(RetentionRules::default());
    let removed = world.ended("a").await;
    world.world.clock.advance(DAY);
    assert_eq!(world.prune().await.removed[&RULE].turns, 1);
    assert!(world.is_removed(removed).await);

    let again = world.submit("a").await.unwrap_err();
    assert!(matches!(&again, Error::CallRemoved { call, rule: RULE, .. } if call.as_str() == "a"), "{again}");
    let beside = turn("c", [call("b", "tool_0", "{}"), call("a", "tool_0", r#"{"other":1}"#)]);
    let beside = world.handle().submit(&world.caller, beside).await.unwrap_err().to_string();
    assert!(beside.contains("call id a belongs to a turn that was removed by retention at 19"), "{beside}");
    let cancelled = world.handle().cancel(&world.caller, &conversation("c"), removed).await;
    assert!(matches!(cancelled, Err(Error::Removed { .. })));
    settle().await;
    assert_eq!((world.runs.load(Ordering::Relaxed), world.handle().turns_in_memory()), (1, 0));

    // Only those who could see the turn learn that it was there.
    for (by, of) in [(principal("eve", Role::Caller), "c"), (world.caller.clone(), "d")] {
        let hidden = world.handle().turn(&by, &conversation(of), removed).await;
        assert!(matches!(hidden, Err(Error::NotFound(_))), "{hidden:?}");
    }
}

#[tokio::test]
async fn follower_resumes_across_a_removed_turn() {
    let world = Retaining::with(RetentionRules::default());
    let first = world.ended("a").await;
    let seen = world.handle().last_position().await.unwrap();
    let removed = world.ended("b").await;
    world.world.clock.advance(DAY);
    assert_eq!(world.prune().await.removed[&RULE].turns, 2);
    let kept = world.ended("c").await;
    for after in [Position(0), Position(1), seen, Position(seen.0 + 1)] {
        let mut follower = world.handle().follow(&world.caller, &conversation("c"), after).await.unwrap();
        let mut turns = Vec::new();
        while let Some(item) = follower.next().now_or_never() {
            if let Item::Committed(committed) = item.unwrap() {
                let Facts::Turn { turn, .. } = committed.facts else { panic!("{committed:?}") };
                turns.push(turn);
            }
        }
        turns.dedup();
        assert_eq!(turns, [kept], "after {after:?}, without {first} and {removed}");
    }
}

#[tokio::test]
async fn audit_shows_a_removed_turn_with_the_rule() {
    let world = Retaining::with(RetentionRules::default());
    let removed = world.ended("a").await;
    world.world.clock.advance(DAY);
    world.prune().await;
    let kept = world.ended("b").await;
    let (admin, all) = (principal("root", Role::Admin), AuditFilter::default());
    let page = world.handle().audit(&admin, &all, Position(0), 99).await.unwrap();
    let of = |turn| page.entries.iter().map(|(_, entry)| entry).filter(move |entry| entry.turn == Some(turn));
    let entries: Vec<_> = of(removed).collect();
    assert_eq!(entries.len(), 1, "{entries:#?}");
    assert_eq!((entries[0].action, entries[0].by.as_str()), (Action::TurnRemoved, "system"));
    assert_eq!(entries[0].rule.as_deref(), Some("ended turns are kept for 1 day"));
    assert!(of(kept).count() > 3);
    let only = AuditFilter { turn: Some(removed), ..AuditFilter::default() };
    assert_eq!(world.handle().audit(&admin, &only, Position(0), 99).await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn host_removes_turns_by_itself_except_open_and_held_ones() {
    let world = Retaining::with(rules());
    let old = world.ended("a").await;
    let waits = world.handle().submit(&world.caller, turn("c", [call("w", "tool_1", "{}")])).await.unwrap().turn.id;
    let hour = Span::from_secs(60 * 60);
    for _ in 0..12 {
        world.world.clock.advance(hour);
        settle().await;
    }
    let young = world.ended("b").await;
    for _ in 0..12 {
        world.world.clock.advance(hour);
        settle().await;
    }
    let removed = [world.is_removed(old).await, world.is_removed(young).await, world.is_removed(waits).await];
    assert_eq!(removed, [true, false, false]);

    let hold = Hold { callers: [world.caller.id.clone()].into(), ..Hold::default() };
    let held = Retaining::with(RetentionRules { hold, ..rules() });
    let kept = held.ended("a").await;
    for _ in 0..30 {
        held.world.clock.advance(hour);
        settle().await;
    }
    assert!(!held.is_removed(kept).await);
}

#[tokio::test]
async fn tools_declare_shorter_times_as_far_as_the_operator_allows() {
    let days = |days: u64| Span::from_secs(days * 24 * 60 * 60);
    // By the tool: not declared, a day, two days.
    for (declared_min, pay, expected) in [
        (None, None, [9, 9, 9]),
        (Some(1), None, [9, 1, 2]),
        (Some(2), None, [9, 2, 2]),
        (Some(5), None, [9, 5, 5]),
        (Some(1), Some(("tool_3", 1)), [9, 1, 1]),
        (Some(2), Some(("tool_2", 1)), [9, 1, 2]),
    ] {
        let world = Retaining::with(RetentionRules {
            turns: Some(days(9)),
            declared_min: declared_min.map(days),
            tools: pay.map(|(tool, kept)| (tool.to_owned(), days(kept))).into_iter().collect(),
            ..RetentionRules::default()
        });
        let mut turns = Vec::new();
        for tool in ["tool_0", "tool_2", "tool_3"] {
            let submitted = world.handle().submit(&world.caller, turn("c", [call(tool, tool, "{}")])).await.unwrap();
            turns.push(submitted.turn.id);
            settle().await;
        }
        let mut kept = [0; 3];
        for day in 1..=9 {
            for _ in 0..24 {
                world.world.clock.advance(Span::from_secs(60 * 60));
                settle().await;
            }
            for (id, kept) in turns.iter().zip(&mut kept) {
                let read = world.handle().turn(&world.caller, &conversation("c"), *id).await;
                *kept = if *kept == 0 && matches!(read, Err(Error::Removed { .. })) { day } else { *kept };
            }
        }
        assert_eq!(kept, expected, "{declared_min:?} {pay:?}");
    }
}

#[tokio::test]
async fn clock_that_is_years_ahead_removes_little_by_little() {
    let (hour, years) = (Span::from_secs(60 * 60), Span::from_secs(10 * 365 * 24 * 60 * 60));
    let world = Retaining::with(rules());
    let turn = world.ended("a").await;
    let lag = || world.handle().retention_lag();
    for passed in [years, hour, hour] {
        assert_eq!(lag() > DAY, passed == hour);
        world.world.clock.advance(passed);
        settle().await;
        assert!(!world.is_removed(turn).await);
    }
    world.world.clock.advance(hour);
    settle().await;
    assert!(world.is_removed(turn).await, "each hour adds six, so a host that did not run catches up");

    // The clock is set right before the turn is a day old.
    let world = Retaining::with(rules());
    let turn = world.ended("a").await;
    world.world.clock.advance(years);
    settle().await;
    world.world.clock.set_back(years);
    for _ in 0..17 {
        world.world.clock.advance(hour);
        settle().await;
    }
    assert!(!world.is_removed(turn).await);
    for _ in 0..7 {
        world.world.clock.advance(hour);
        settle().await;
    }
    assert!(world.is_removed(turn).await, "the pause that began by the wrong clock is as long as any other");
    assert_eq!(world.handle().retention_lag(), Span::from_millis(0));
}

#[tokio::test]
async fn first_retention_knows_the_time_from_the_turns() {
    let world = Retaining::with(RetentionRules::default());
    let turn = world.ended("a").await;
    world.world.clock.advance(Span::from_secs(365 * 24 * 60 * 60));
    let Retaining { world, host, caller, runs } = world;
    drop(host);
    let tools = Arc::new(WordTools::new(&["server"], |_| async { done() }));
    let host = Dispatcher::start(Parts { retention: rules(), ..world.parts(tools) });
    let world = Retaining { world, host, caller, runs };
    settle().await;
    assert!(!world.is_removed(turn).await && world.handle().retention_lag() > DAY);
}

#[tokio::test]
async fn turn_stays_until_its_deliveries_are_over() {
    let world = Retaining::with(RetentionRules::default());
    let waits = world.handle().submit(&world.caller, turn("c", [call("w", "tool_1", "{}")])).await.unwrap().turn;
    let suspension = waits.calls[0].suspensions[0].0.id;
    let person = principal("bob", Role::Approver);
    let asked = answer(suspension, "answer");
    let asked = dispatch::Answer { data: Some(domain::Json::unchecked(r#""x""#)), ..asked };
    world.handle().resolve(&person, asked).await.unwrap();
    let delivery = |report, state| DeliveryRow {
        report,
        webhook: "pager".into(),
        at: world.world.clock.now(),
        state,
        attempts: 1,
        last: None,
    };
    let pending = DeliveryState::Pending { next: world.world.clock.now() };
    let reports = [Report::Suspension(suspension, Occasion::Closed), Report::TurnSettled(waits.id)];
    for report in reports {
        world.handle().record_delivery(delivery(report, pending)).await.unwrap();
    }
    world.world.clock.advance(DAY);
    for report in reports {
        let pruned = world.prune().await;
        assert_eq!((pruned.removed.len(), pruned.undelivered.turns), (0, 1), "{report}");
        assert!(!world.is_removed(waits.id).await);
        world.handle().record_delivery(delivery(report, DeliveryState::Delivered)).await.unwrap();
    }
    assert_eq!(world.prune().await.removed[&RULE].turns, 1);
    assert!(world.is_removed(waits.id).await);
    let gone = world.handle().suspension(&person, suspension).await;
    assert!(gone.is_err(), "{gone:?}");
}

#[tokio::test]
async fn operator_sets_the_pause_between_removals() {
    let pause = Span::from_secs(8 * 60 * 60);
    let world = Retaining::with(RetentionRules { interval: pause, ..rules() });
    let old = world.ended("a").await;
    world.world.clock.advance(Span::from_secs(16 * 60 * 60));
    settle().await;
    assert!(!world.is_removed(old).await);
    world.world.clock.advance(pause);
    settle().await;
    assert!(world.is_removed(old).await);
}
