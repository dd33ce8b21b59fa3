//! The quota of a principal. Each limit is reached, the request beyond it is refused before anything is stored, and a
//! neighbour is not affected.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::{Arc, Mutex};

use dispatch::ports::{Clock as _, Indexes as _};
use dispatch::{
    Busy, Dispatcher, Error, Handle, Mode, Origin, Parts, ProviderResult, Quota, QuotaBound, Quotas, RetentionRules,
    Submitted, TurnRequest, prune,
};
use domain::{Json, Outcome, Principal, PrincipalId, Span, Turn, outcome::OutcomeKind, principal::Role, rate::Rate};
use tokio::sync::Semaphore;
use toolgate_tests::requests::{answer, call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// A host whose guests end when the test releases them, and the parts that survive it.
struct QuotaHost {
    lasting: World,
    /// The calls whose guests were started, in order.
    started: Arc<Mutex<Vec<String>>>,
    /// A guest takes one of these and ends.
    ends: Arc<Semaphore>,
    quotas: Quotas,
    host: Option<Dispatcher>,
}

impl QuotaHost {
    fn new(quota: Quota) -> Self {
        let mut world = Self {
            lasting: World::default(),
            started: Arc::default(),
            ends: Arc::new(Semaphore::new(0)),
            quotas: Quotas { each: quota, ..Quotas::default() },
            host: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let (started, ends) = (self.started.clone(), self.ends.clone());
        let tools = WordTools::new(&["server", "server!", "provider"], move |run| {
            let (started, ends) = (started.clone(), ends.clone());
            async move {
                started.lock().unwrap().push(run.call.to_string());
                ends.acquire().await.unwrap().forget();
                done()
            }
        });
        let parts = self.lasting.parts(Arc::new(tools));
        self.host = Some(Dispatcher::start(Parts { quotas: self.quotas.clone(), ..parts }));
    }

    fn handle(&self) -> Handle {
        self.host.as_ref().unwrap().handle()
    }

    async fn submit(&self, who: &str, id: &str, calls: &[(&str, &str)]) -> Result<Submitted, Error> {
        self.handle().submit(&caller(who), request(id, calls)).await
    }

    /// Submits a turn that a limit refuses as busy. Checks that nothing was stored and that a neighbour is not
    /// affected.
    async fn refused(&self, who: &str, id: &str, calls: &[(&str, &str)], bound: QuotaBound) {
        let before = self.handle().counts();
        match self.submit(who, id, calls).await {
            Err(Error::Busy(Busy { principal, bound: by, limit, wait })) => {
                assert_eq!((principal.as_str(), by), (who, bound));
                assert_eq!(wait.is_some(), matches!(bound, QuotaBound::TurnRate | QuotaBound::ByteRate));
                assert!(limit > 0);
            }
            other => panic!("should be refused by {bound:?}: {other:?}"),
        }
        assert_eq!(self.lasting.store.owner(&conversation(id)).await.unwrap(), None, "nothing was stored");
        let after = self.handle().counts();
        assert_eq!((before.open_turns, before.open_bytes), (after.open_turns, after.open_bytes));
        let refused = |counts: &dispatch::Counts| counts.refused.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(refused(&after), refused(&before) + 1);
        let neighbour = self.submit("neighbour", &format!("beside-{id}"), &[("tool_1", "{}")]).await.unwrap();
        self.cancel("neighbour", &neighbour.turn).await;
    }

    async fn cancel(&self, who: &str, turn: &Turn) {
        self.handle().cancel(&caller(who), &turn.conversation, turn.id).await.unwrap();
    }

    fn started(&self) -> Vec<String> {
        self.started.lock().unwrap().clone()
    }

    /// The number of calls that run, and of those that wait for their caller's other calls.
    fn calls(&self) -> (usize, usize) {
        let counts = self.handle().counts();
        (counts.running_calls, counts.waiting_calls)
    }

    /// Ends this many guests.
    async fn end(&self, guests: usize) {
        self.ends.add_permits(guests);
        settle().await;
    }

    fn is_empty(&self) -> bool {
        let counts = self.handle().counts();
        counts.open_turns + counts.open_bytes + counts.suspensions + counts.running_calls + counts.waiting_calls == 0
    }
}

fn caller(name: &str) -> Principal {
    principal(name, Role::Caller)
}

/// A turn in a conversation of its own: tools with their arguments.
fn request(id: &str, calls: &[(&str, &str)]) -> TurnRequest {
    turn(id, calls.iter().enumerate().map(|(n, (tool, arguments))| call(&format!("{id}.{n}"), tool, *arguments)))
}

const RUNS: (&str, &str) = ("tool_0", "{}");
const WAITS: (&str, &str) = ("tool_1", "{}");

#[tokio::test]
async fn open_turns_are_limited_until_one_ends() {
    let world = QuotaHost::new(Quota { open_turns: 2, ..Quota::default() });
    let first = world.submit("hog", "a", &[WAITS, WAITS]).await.unwrap();
    world.submit("hog", "b", &[WAITS]).await.unwrap();
    assert_eq!(world.handle().counts().suspensions, 3);
    world.refused("hog", "c", &[WAITS], QuotaBound::OpenTurns).await;
    // A repeated submission needs no new reservation, so it is not refused.
    let again = world.submit("hog", "a", &[WAITS, WAITS]).await.unwrap();
    assert!(again.replayed && again.turn.id == first.turn.id);
    world.cancel("hog", &first.turn).await;
    let third = world.submit("hog", "c", &[WAITS]).await.unwrap();
    world.refused("hog", "d", &[WAITS], QuotaBound::OpenTurns).await;
    // A turn that ends at submission does not count afterwards.
    world.cancel("hog", &third.turn).await;
    for n in 0..5 {
        let settled = world.submit("hog", &format!("unknown-{n}"), &[("no_such_tool", "{}")]).await.unwrap();
        assert!(settled.turn.is_ended());
    }
    assert_eq!(world.handle().counts().open_turns, 1);
}

#[tokio::test]
async fn bytes_of_open_turns_are_limited() {
    let world = QuotaHost::new(Quota { open_bytes: 1000, ..Quota::default() });
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(600));
    let turn = world.submit("hog", "a", &[("tool_1", &large)]).await.unwrap();
    let counts = world.handle().counts();
    assert_eq!((counts.open_turns, counts.open_bytes), (1, large.len() + "tool_1".len()));
    world.refused("hog", "b", &[("tool_1", &large)], QuotaBound::OpenBytes).await;
    world.cancel("hog", &turn.turn).await;
    assert!(world.is_empty());
    world.submit("hog", "b", &[("tool_1", &large)]).await.unwrap();
    // A retry cannot help a turn that never fits, so the error is another one.
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(1000));
    let never = world.submit("other", "c", &[("tool_1", &huge)]).await;
    assert!(matches!(never, Err(Error::TooLarge { limit: 1000, .. })), "{never:?}");
}

#[tokio::test]
async fn results_and_origins_count_as_bytes_of_open_turns() {
    let world = QuotaHost::new(Quota { open_bytes: 100, ..Quota::default() });
    let bytes = || world.handle().counts().open_bytes;
    let mut waits = request("a", &[RUNS, WAITS, ("tool_2", "{}")]);
    waits.calls[1].origin = Some(Origin { members: Json::unchecked(r#"{"of":1}"#), ended: None });
    waits.calls[2].result = Some(ProviderResult::Error("recorded".into()));
    let submitted = 3 * "tool_0{}".len() + r#"{"of":1}"#.len() + "recorded".len();
    let turn = world.handle().submit(&caller("hog"), waits).await.unwrap().turn;
    assert_eq!(bytes(), submitted);
    settle().await;
    world.end(1).await;
    assert_eq!(bytes(), submitted + "{}".len(), "the guest's result");
    let mut large = request("b", &[("tool_2", "{}")]);
    large.calls[0].result = Some(ProviderResult::Error("x".repeat(60)));
    let refused = world.handle().submit(&caller("hog"), large.clone()).await;
    assert!(matches!(refused, Err(Error::Busy(Busy { bound: QuotaBound::OpenBytes, .. }))), "{refused:?}");
    world.cancel("hog", &turn).await;
    assert!(world.is_empty());
    world.handle().submit(&caller("hog"), large).await.unwrap();
}

#[tokio::test]
async fn results_of_guests_count_against_the_rate_of_bytes() {
    // Without the first result, the second turn would fit.
    let world = QuotaHost::new(Quota { byte_rate: Rate { per_second: 1, burst: 17 }, ..Quota::default() });
    world.submit("hog", "a", &[RUNS]).await.unwrap();
    settle().await;
    world.end(1).await;
    world.refused("hog", "b", &[RUNS], QuotaBound::ByteRate).await;
    world.lasting.clock.advance(Span::from_secs(1));
    world.submit("hog", "b", &[RUNS]).await.unwrap();
}

#[tokio::test]
async fn kept_bytes_are_limited_until_retention_removes_some() {
    let world = QuotaHost::new(Quota { kept_bytes: 8_000, ..Quota::default() });
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(600));
    let ends = [("no_such_tool", large.as_str())];
    let waits = world.submit("hog", "waits", &[WAITS]).await.unwrap().turn;
    let mut kept = 0;
    while world.submit("hog", &format!("t{kept}"), &ends).await.is_ok() {
        kept += 1;
        assert!(kept < 20);
    }
    assert!(kept > 2, "turns that ended count: {kept}");
    world.refused("hog", "more", &ends, QuotaBound::KeptBytes).await;
    let ephemeral = TurnRequest { ephemeral: true, ..request("e", &ends) };
    assert!(world.handle().submit(&caller("hog"), ephemeral).await.unwrap().ephemeral, "nothing of it is kept");
    // Recorded turns and answers go on.
    assert!(world.submit("hog", "t0", &ends).await.unwrap().replayed);
    let id = waits.calls[0].suspensions[0].0.id;
    world.handle().resolve(&principal("bob", Role::Approver), answer(id, "approve")).await.unwrap();
    settle().await;
    world.end(1).await;
    let ended = world.handle().turn(&caller("hog"), &waits.conversation, waits.id).await.unwrap();
    assert!(ended.is_ended());

    world.lasting.clock.advance(Span::from_secs(60));
    let rules = RetentionRules { turns: Some(Span::from_secs(1)), ..RetentionRules::default() };
    let store = &world.lasting.store;
    prune(store.clone(), store.clone(), store.clone(), rules, world.lasting.clock.now(), Mode::Remove).await.unwrap();
    world.submit("hog", "more", &ends).await.unwrap();
}

#[tokio::test]
async fn new_turns_have_a_rate_and_a_burst() {
    let world = QuotaHost::new(Quota { turn_rate: Rate { per_second: 2, burst: 3 }, ..Quota::default() });
    for id in ["a", "b", "c"] {
        world.submit("hog", id, &[WAITS]).await.unwrap();
    }
    world.refused("hog", "d", &[WAITS], QuotaBound::TurnRate).await;
    assert!(world.submit("hog", "a", &[WAITS]).await.unwrap().replayed, "a recorded turn is not new");
    let ephemeral = |id| TurnRequest { ephemeral: true, ..request(id, &[RUNS]) };
    world.end(2).await;
    for id in ["e", "f"] {
        let submitted = world.handle().submit(&caller("hog"), ephemeral(id)).await.unwrap();
        assert!(submitted.ephemeral, "it is not stored");
    }
    let waits = TurnRequest { ephemeral: true, ..request("g", &[WAITS]) };
    let stored = world.handle().submit(&caller("hog"), waits).await;
    assert!(matches!(stored, Err(Error::Busy(Busy { bound: QuotaBound::TurnRate, .. }))), "{stored:?}");
    world.lasting.clock.advance(Span::from_millis(499));
    world.refused("hog", "d", &[WAITS], QuotaBound::TurnRate).await;
    world.lasting.clock.advance(Span::from_millis(1));
    world.submit("hog", "d", &[WAITS]).await.unwrap();
    world.refused("hog", "h", &[WAITS], QuotaBound::TurnRate).await;
}

#[tokio::test]
async fn bytes_of_new_turns_have_a_rate_and_a_burst() {
    let world = QuotaHost::new(Quota { byte_rate: Rate { per_second: 100, burst: 1_000 }, ..Quota::default() });
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(600));
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(5_000));
    world.submit("hog", "a", &[("tool_1", &large)]).await.unwrap();
    world.refused("hog", "b", &[("tool_1", &large)], QuotaBound::ByteRate).await;
    world.lasting.clock.advance(Span::from_secs(3));
    world.submit("hog", "b", &[("tool_1", &large)]).await.unwrap();
    world.lasting.clock.advance(Span::from_secs(100));
    world.submit("hog", "c", &[("tool_1", &huge)]).await.unwrap();
    world.refused("hog", "d", &[WAITS], QuotaBound::ByteRate).await;
}

#[tokio::test]
async fn calls_of_one_caller_queue_and_a_neighbour_runs_at_once() {
    let world = QuotaHost::new(Quota { running_calls: 2, waiting_calls: 3, ..Quota::default() });
    for id in ["a", "b", "c", "d", "e"] {
        world.submit("hog", id, &[RUNS]).await.unwrap();
        settle().await;
    }
    assert_eq!((world.started(), world.calls()), (vec!["a.0".to_owned(), "b.0".to_owned()], (2, 3)));
    world.refused("hog", "f", &[RUNS], QuotaBound::WaitingCalls).await;
    // A call that waits for a person needs no permit.
    world.submit("hog", "gated", &[WAITS]).await.unwrap();
    world.submit("neighbour", "n", &[RUNS]).await.unwrap();
    settle().await;
    assert_eq!(world.started().last().map(String::as_str), Some("n.0"));
    for (ended, expected) in [(1, (3, 2)), (1, (3, 1))] {
        world.end(ended).await;
        assert_eq!(world.calls(), expected);
    }
    // First come, first served.
    assert_eq!(world.started(), ["a.0", "b.0", "n.0", "c.0", "d.0"]);
    world.submit("hog", "f", &[RUNS, RUNS]).await.unwrap();
    world.refused("hog", "g", &[RUNS], QuotaBound::WaitingCalls).await;
    world.end(6).await;
    assert_eq!(world.started()[5..], ["e.0", "f.0", "f.1"]);
    assert_eq!((world.calls(), world.handle().counts().open_turns), ((0, 0), 1), "the gated one still waits");
    let ok = world.handle().counts().settled.into_iter().find(|(outcome, ..)| *outcome == OutcomeKind::Ok);
    assert_eq!(ok, Some((OutcomeKind::Ok, None, 8)));
}

#[tokio::test]
async fn turn_beyond_the_call_quota_runs_alone() {
    let world = QuotaHost::new(Quota { running_calls: 1, waiting_calls: 1, ..Quota::default() });
    world.submit("hog", "a", &[RUNS]).await.unwrap();
    world.refused("hog", "b", &[RUNS; 3], QuotaBound::WaitingCalls).await;
    world.end(1).await;
    world.submit("hog", "b", &[RUNS; 3]).await.unwrap();
    world.end(3).await;
    assert_eq!(world.started(), ["a.0", "b.0", "b.1", "b.2"]);
    assert!(world.is_empty());
}

#[tokio::test]
async fn approved_call_is_never_refused_for_a_quota() {
    let world = QuotaHost::new(Quota { running_calls: 1, waiting_calls: 1, ..Quota::default() });
    let gated = world.submit("hog", "gated", &[WAITS; 3]).await.unwrap();
    let running = world.submit("hog", "a", &[RUNS, RUNS]).await.unwrap();
    let ann = principal("ann", Role::Approver);
    for (.., suspension) in gated.turn.pending() {
        world.handle().resolve(&ann, answer(suspension.id, "approve")).await.unwrap();
    }
    settle().await;
    assert_eq!(world.calls(), (1, 4));
    world.cancel("hog", &running.turn).await;
    settle().await;
    assert_eq!(world.calls(), (1, 2), "the next call got the permit");
    assert_eq!(world.started(), ["a.0", "gated.0"]);
    world.end(3).await;
    assert!(world.is_empty());
    let turn = world.handle().turn(&caller("hog"), &gated.turn.conversation, gated.turn.id).await.unwrap();
    assert!(turn.calls.iter().all(|call| matches!(call.outcome(), Some(Outcome::Ok { .. }))), "{turn:?}");
}

#[tokio::test]
async fn an_ephemeral_turn_counts_while_it_runs() {
    let world = QuotaHost::new(Quota { open_turns: 1, running_calls: 1, ..Quota::default() });
    let handle = world.handle();
    let ephemeral = || TurnRequest { ephemeral: true, ..request("e", &[RUNS, RUNS]) };
    let first = ephemeral();
    let submitted = tokio::spawn(async move { handle.submit(&caller("hog"), first).await });
    settle().await;
    assert_eq!((world.started().len(), world.calls()), (1, (1, 1)));
    world.refused("hog", "a", &[RUNS], QuotaBound::OpenTurns).await;
    world.end(2).await;
    assert!(submitted.await.unwrap().unwrap().turn.is_ended());
    assert!(world.is_empty());
    // An abandoned turn releases its reservation.
    let handle = world.handle();
    let abandoned = tokio::spawn(async move { handle.submit(&caller("hog"), ephemeral()).await });
    settle().await;
    assert!(!world.is_empty());
    abandoned.abort();
    settle().await;
    assert!(world.is_empty());
}

#[test]
fn restart_keeps_the_usage_of_quotas() {
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let quota = Quota { open_turns: 3, running_calls: 1, waiting_calls: 1, ..Quota::default() };
    // Each life of the host has its own runtime. Dropping it acts like a kill.
    let (mut world, before) = runtime().block_on(async {
        let world = QuotaHost::new(quota);
        world.submit("hog", "gated", &[WAITS, WAITS]).await.unwrap();
        world.submit("hog", "a", &[RUNS, RUNS]).await.unwrap();
        let ended = world.submit("hog", "b", &[WAITS]).await.unwrap();
        world.cancel("hog", &ended.turn).await;
        settle().await;
        let counts = world.handle().counts();
        (world, counts)
    });
    assert_eq!((before.open_turns, before.suspensions, before.running_calls, before.waiting_calls), (2, 2, 1, 1));
    runtime().block_on(async {
        world.start();
        // Submitted before the host has counted the stored turns. The host counts them before it accepts the new one.
        world.submit("hog", "c", &[WAITS]).await.unwrap();
        world.refused("hog", "d", &[WAITS], QuotaBound::OpenTurns).await;
        settle().await;
        let counts = world.handle().counts();
        assert_eq!((counts.open_turns, counts.suspensions), (3, 3));
        assert_eq!(world.calls(), (1, 1), "both were started again, one after the other");
        world.end(2).await;
        assert_eq!((world.calls(), world.handle().counts().open_turns), ((0, 0), 2));
        world.submit("hog", "d", &[WAITS]).await.unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_submissions_never_exceed_the_quota() {
    let world = Arc::new(QuotaHost::new(Quota { open_turns: 10, ..Quota::default() }));
    for round in 0..20 {
        let tasks = (0..40).map(|n| {
            let world = world.clone();
            tokio::spawn(async move { world.submit("hog", &format!("r{round}-{n}"), &[WAITS]).await })
        });
        let mut accepted = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            match task.await.unwrap() {
                Ok(submitted) => accepted.push(submitted.turn),
                Err(Error::Busy(Busy { bound: QuotaBound::OpenTurns, .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((accepted.len(), world.handle().counts().open_turns), (10, 10));
        // All of them are cancelled twice at once: each ends once.
        let ends = accepted.iter().flat_map(|turn| [turn, turn]).map(|turn| {
            let (world, turn) = (world.clone(), turn.clone());
            tokio::spawn(async move { world.cancel("hog", &turn).await })
        });
        for end in ends.collect::<Vec<_>>() {
            end.await.unwrap();
        }
        assert!(world.is_empty());
    }
}

#[tokio::test]
async fn operator_can_set_quotas_per_principal() {
    let mut world = QuotaHost::new(Quota { open_turns: 1, ..Quota::default() });
    world.quotas.named.insert(PrincipalId::new("batch").unwrap(), Quota { open_turns: 3, ..Quota::default() });
    world.start();
    for id in ["a", "b", "c"] {
        world.submit("batch", id, &[WAITS]).await.unwrap();
    }
    world.refused("batch", "d", &[WAITS], QuotaBound::OpenTurns).await;
    world.submit("hog", "e", &[WAITS]).await.unwrap();
    world.refused("hog", "f", &[WAITS], QuotaBound::OpenTurns).await;
}

#[tokio::test]
async fn page_of_suspensions_has_a_byte_limit_and_skips_nothing() {
    let world = QuotaHost::new(Quota::default());
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    for n in 0..7 {
        world.submit("hog", &format!("c{n}"), &[("tool_1", &large)]).await.unwrap();
    }
    let (mut sizes, mut seen, mut after) = (Vec::new(), std::collections::BTreeSet::new(), None);
    loop {
        let filter = dispatch::ports::Filter::default();
        let page = world.handle().suspensions(&caller("hog"), filter, after, 100).await.unwrap();
        let (items, next) = (page.items, page.next);
        sizes.push(items.len());
        seen.extend(items.iter().map(|item| item.suspension.id));
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(
        (sizes[0], seen.len()),
        (5, 7),
        "the page ends with the suspension that exceeds four mebibytes: {sizes:?}"
    );
}
