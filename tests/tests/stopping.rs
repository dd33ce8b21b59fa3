//! A cancelled call gets its outcome at once. Its guest is asked to stop, has a grace period to release its resources,
//! and is then ended.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dispatch::ports::{Position, Progress, Run, RunMonitor};
use dispatch::{Dispatcher, Handle, Item, Live, Parts, Quota, Quotas, TurnRequest};
use domain::{ConversationId, Outcome, Principal, Span, Turn, principal::Role, turn::TurnSettings};
use futures::FutureExt as _;
use tokio::sync::{Notify, mpsc};
use toolgate_tests::clock::SimClock;
use toolgate_tests::requests::{call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

const GRACE: Span = Span::from_millis(1_000);

/// A host whose guests run until the test releases them or the host ends them.
struct StoppableHost {
    clock: Arc<SimClock>,
    handle: Handle,
    _host: Dispatcher,
    caller: Principal,
    conversation: ConversationId,
    tools: usize,
    /// The reports of started guests.
    started: mpsc::UnboundedReceiver<Arc<dyn RunMonitor>>,
    /// Lets one guest return.
    ends: Arc<Notify>,
    /// The number of guests that have ended.
    gone: Arc<AtomicU64>,
}

/// Counts a guest when it ends in any way.
struct Gone(Arc<AtomicU64>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl StoppableHost {
    /// `begins`: the grace that guests request before they run. `None` for guests that wait for a permit.
    fn new(begins: Option<Span>) -> Self {
        Self::with(&[begins])
    }

    /// For several tools, with one call of each in a turn.
    fn with(begins: &[Option<Span>]) -> Self {
        Self::limited(begins, Quota::default())
    }

    /// As [`Self::with`], with this quota for each principal.
    fn limited(begins: &[Option<Span>], each: Quota) -> Self {
        let (tell, started) = mpsc::unbounded_channel();
        let (ends, gone) = (Arc::<Notify>::default(), Arc::<AtomicU64>::default());
        let (let_go, counted) = (ends.clone(), gone.clone());
        let graces: Vec<_> = begins.to_vec();
        let run = move |run: Run| {
            let (tell, let_go, gone) = (tell.clone(), let_go.clone(), Gone(counted.clone()));
            let begins = graces[run.tool.trim_start_matches("tool_").parse::<usize>().unwrap()];
            async move {
                let _gone = gone;
                assert!(begins.is_none_or(|grace| run.monitor.try_start(grace)), "it was not stopped before");
                tell.send(run.monitor).unwrap();
                let_go.notified().await;
                done()
            }
        };
        let world = World::default();
        let settings = TurnSettings { ephemeral: true, ..TurnSettings::default() };
        let parts = world.parts(Arc::new(WordTools::new(&vec!["server"; begins.len()], run)));
        let quotas = Quotas { each, ..Quotas::default() };
        let host = Dispatcher::start(Parts { settings, quotas, ..parts });
        let (caller, conversation) = (principal("caller", Role::Caller), conversation("conversation"));
        let (tools, clock) = (begins.len(), world.clock);
        Self { clock, handle: host.handle(), _host: host, caller, conversation, tools, started, ends, gone }
    }

    fn request(&self, ephemeral: bool) -> TurnRequest {
        let calls = (0..self.tools).map(|n| call(&format!("call-{n}"), &format!("tool_{n}"), "{}"));
        TurnRequest { ephemeral, ..turn("conversation", calls) }
    }

    async fn started(&mut self) -> Arc<dyn RunMonitor> {
        self.started.recv().await.unwrap()
    }

    async fn cancel(&self, turn: &Turn) -> Turn {
        self.handle.cancel(&self.caller, &self.conversation, turn.id).await.unwrap()
    }

    fn gone(&self) -> u64 {
        self.gone.load(Ordering::Relaxed)
    }

    /// The number of calls with a permit.
    fn running(&self) -> usize {
        self.handle.counts().running_calls
    }
}

#[tokio::test]
async fn guest_keeps_its_permit_until_the_grace_ends() {
    let mut world = StoppableHost::new(Some(GRACE));
    let turn = world.handle.submit(&world.caller, world.request(false)).await.unwrap().turn;
    let report = world.started().await;
    assert!(!report.stop_requested());

    let cancelled = world.cancel(&turn).await;
    assert_eq!(cancelled.calls[0].outcome(), Some(&Outcome::Cancelled), "the outcome comes at once");
    assert!(report.stop_requested());
    settle().await;
    assert_eq!((world.gone(), world.running()), (0, 1));
    world.clock.advance(Span::from_millis(GRACE.millis() - 1));
    settle().await;
    assert_eq!((world.gone(), world.running()), (0, 1));
    world.clock.advance(Span::from_millis(1));
    settle().await;
    assert_eq!((world.gone(), world.running()), (1, 0), "it ignores the request to stop and is ended");
}

#[tokio::test]
async fn stopped_guest_reports_nothing_more() {
    let mut world = StoppableHost::new(Some(GRACE));
    let turn = world.handle.submit(&world.caller, world.request(false)).await.unwrap().turn;
    let report = world.started().await;
    let mut follower = world.handle.follow(&world.caller, &world.conversation, Position(0)).await.unwrap();
    let says = |message: &str| {
        report.progress(Progress { message: message.to_owned(), fraction: None, data: None });
        report.log(domain::call::Level::Info, message);
    };
    says("before");
    let cancelled = world.cancel(&turn).await;
    says("after");
    world.ends.notify_one();
    settle().await;
    assert_eq!((world.gone(), world.running()), (1, 0), "it does not use the whole grace");
    let turn = world.handle.turn(&world.caller, &world.conversation, turn.id).await.unwrap();
    assert_eq!(turn, cancelled, "its result is dropped");
    let mut heard = Vec::new();
    while let Some(item) = follower.next().now_or_never() {
        if let Item::Live(Live::Log { line, .. }) = item.unwrap() {
            heard.push(line);
        }
    }
    assert_eq!(heard, ["before"]);
}

#[tokio::test]
async fn call_that_has_not_begun_gets_no_grace() {
    let mut world = StoppableHost::new(None);
    let turn = world.handle.submit(&world.caller, world.request(false)).await.unwrap().turn;
    let report = world.started().await;
    world.cancel(&turn).await;
    settle().await;
    assert_eq!((world.gone(), world.running()), (1, 0));
    assert!(!report.try_start(GRACE), "it may not run any more");
}

#[tokio::test]
async fn ephemeral_turn_without_its_caller_gets_the_same_grace() {
    for begins in [Some(GRACE), None] {
        let mut world = StoppableHost::new(begins);
        let (handle, caller, request) = (world.handle.clone(), world.caller.clone(), world.request(true));
        let asking = tokio::spawn(async move { handle.submit(&caller, request).await });
        let report = world.started().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        settle().await;
        assert!(report.stop_requested());
        let holds = begins.is_some();
        assert_eq!((world.gone(), world.running()), (u64::from(!holds), usize::from(holds)));
        world.clock.advance(GRACE);
        settle().await;
        assert_eq!((world.gone(), world.running()), (1, 0));
    }
}

/// One of the calls runs in the turn's own task. Which one must not matter.
#[tokio::test]
async fn each_call_of_an_ephemeral_turn_has_its_own_grace() {
    let short = Span::from_millis(200);
    for begins in [[Some(GRACE), Some(short), None], [None, Some(GRACE), Some(short)], [Some(short), None, Some(GRACE)]]
    {
        let mut world = StoppableHost::with(&begins);
        let (handle, caller, request) = (world.handle.clone(), world.caller.clone(), world.request(true));
        let asking = tokio::spawn(async move { handle.submit(&caller, request).await });
        let reports = [world.started().await, world.started().await, world.started().await];
        asking.abort();
        settle().await;
        assert!(reports.iter().all(|report| report.stop_requested()), "{begins:?}");
        assert_eq!((world.gone(), world.running()), (1, 2), "a call that has not begun ends at once: {begins:?}");
        world.clock.advance(short);
        settle().await;
        assert_eq!((world.gone(), world.running()), (2, 1), "a sibling's grace is not its own: {begins:?}");
        world.clock.advance(Span::from_millis(GRACE.millis() - short.millis() - 1));
        settle().await;
        assert_eq!((world.gone(), world.running()), (2, 1), "the sibling keeps its own grace: {begins:?}");
        world.clock.advance(Span::from_millis(1));
        settle().await;
        assert_eq!((world.gone(), world.running()), (3, 0), "{begins:?}");
    }
}

/// A caller that leaves its turns again and again has no more guests at once than others.
#[tokio::test]
async fn guest_without_its_caller_counts_as_running() {
    let mut world = StoppableHost::limited(&[Some(GRACE)], Quota { running_calls: 2, ..Quota::default() });
    let submit = |world: &StoppableHost, who: &str, n: u32| {
        let (handle, by) = (world.handle.clone(), principal(who, Role::Caller));
        let calls = [call(&format!("call-{n}"), "tool_0", "{}")];
        let request = TurnRequest { ephemeral: true, ..turn(&format!("{who}-{n}"), calls) };
        tokio::spawn(async move { handle.submit(&by, request).await })
    };
    for n in 0..2 {
        let asking = submit(&world, "leaves", n);
        world.started().await;
        asking.abort();
        settle().await;
    }
    assert_eq!((world.gone(), world.running()), (0, 2), "both guests have their grace");
    let _third = submit(&world, "leaves", 2);
    settle().await;
    assert!(world.started.try_recv().is_err(), "it waits until one of them has ended");
    let _beside = submit(&world, "neighbour", 0);
    world.started().await;
    assert_eq!((world.gone(), world.running()), (0, 3));
    world.clock.advance(GRACE);
    world.started().await;
    assert_eq!((world.gone(), world.running()), (2, 2));
}

mod real {
    //! Tests with real guests.

    use serde_json::{Value, json};
    use toolgate_tests::guests::illegal;
    use toolgate_tests::host::{Host, Setup};
    use toolgate_tests::http::{outcomes, path};

    use super::Duration;

    const EVENTS: &str = "/v1/conversations/c/events";

    /// A host with one permit for the worker.
    fn host(limits: &str) -> Host {
        let tables = format!(
            "[plugin.worker]\ncomponent = \"any\"\ngrants.keyvalue = true\n[plugin.worker.limits]\nconcurrency = 1\n{limits}"
        );
        let queue = Duration::from_secs(20).as_millis();
        let setup = Setup::default().settings(&format!("queue_ms = {queue}")).tables(&tables);
        setup.component("worker", illegal("worker")).start()
    }

    /// Starts a tool and cancels its turn while it works. Returns how many calls have released their resources when the
    /// permit is free.
    fn released_after_cancelling(host: &Host, tool: &str) -> Value {
        let mut stream = host.agent.events(EVENTS);
        let body = json!({"calls": [{"id": tool, "tool": tool, "arguments": {}}]});
        let turn = host.agent.post("/v1/conversations/c/turns", &body).ok(201);
        stream.named("call.progress");
        let cancelled = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
        assert_eq!(outcomes(&cancelled), ["cancelled"], "the outcome comes at once");
        let released = host.agent.settled(&host.agent.call("c", "released", json!({})));
        assert_eq!(outcomes(&released), ["ok"], "{released:#}");
        let last = released["calls"][0]["id"].clone();
        let events = stream.until(|event| event.name == "call.settled" && event.data["call"] == last);
        assert!(events.iter().all(|event| event.name != "call.progress"), "{events:#?}");
        assert_eq!(outcomes(&host.agent.get(&path(&turn)).ok(200)), ["cancelled"]);
        released["calls"][0]["content"]["result"].clone()
    }

    #[test]
    fn cancelled_tool_can_release_its_resources() {
        assert_eq!(released_after_cancelling(&host("stop_grace_ms = 10000"), "work"), 1);
    }

    #[test]
    fn tool_that_ignores_the_stop_ends_with_the_grace() {
        let host = host("stop_grace_ms = 200\ntime_ms = 600000");
        assert_eq!(released_after_cancelling(&host, "ignore"), 0);
    }

    #[test]
    fn without_a_grace_a_cancelled_tool_ends_at_once() {
        assert_eq!(released_after_cancelling(&host("stop_grace_ms = 0\ntime_ms = 600000"), "work"), 0);
    }

    #[test]
    fn tool_near_its_deadline_returns_a_partial_result() {
        let host = host("stop_grace_ms = 3000\ntime_ms = 6000");
        let turn = host.agent.settled(&host.agent.call("c", "work", json!({})));
        assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
        assert!(turn["calls"][0]["content"]["result"].as_u64().is_some_and(|steps| steps > 0), "{turn:#}");
        let turn = host.agent.settled(&host.agent.call("c", "ignore", json!({})));
        assert_eq!(outcomes(&turn), ["failed(out_of_time)"], "the request to stop does not extend the time");
    }
}
