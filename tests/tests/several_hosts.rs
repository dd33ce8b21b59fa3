//! Several hosts on one store in memory, in one thread: what one of them commits has its effects at the others.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dispatch::ports::{Clock as _, Share};
use dispatch::{Answer, Dispatcher, Handle, Parts};
use domain::{
    OwnerId, Span, SuspensionId, Turn, TurnId,
    principal::Role,
    standing::{Pin, StandingTerms},
    suspension::Decision,
};
use toolgate_tests::cluster::Cluster;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::requests::{answer, call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

const TOOLS: [&str; 3] = ["server", "server!", "client"];
const SERVER: &str = "tool_0";
const GATED: &str = "tool_1";
const CLIENT: &str = "tool_2";

/// Hosts that share a store. Each guest runs for a second.
#[derive(Default)]
struct Hosts {
    world: World,
    cluster: Arc<Cluster>,
    runs: Arc<AtomicUsize>,
    calls: AtomicUsize,
}

struct Host {
    owner: OwnerId,
    store: Arc<MortalStore>,
    running: Dispatcher,
}

impl Host {
    fn handle(&self) -> Handle {
        self.running.handle()
    }
}

impl Hosts {
    fn start(&self) -> Host {
        let (clock, runs) = (self.world.clock.clone(), self.runs.clone());
        let tools = WordTools::new(&TOOLS, move |_| {
            runs.fetch_add(1, Ordering::Relaxed);
            let clock = clock.clone();
            async move {
                clock.sleep(Span::from_secs(1)).await;
                done()
            }
        });
        let parts = self.world.parts(Arc::new(tools));
        let owner = parts.owner;
        let store = Arc::new(MortalStore::shared(self.world.store.clone(), self.cluster.join(owner)));
        let running = Dispatcher::start(Parts { store: store.clone(), ..parts });
        Host { owner, store, running }
    }

    /// Two hosts. The second one does the work about half of the turns.
    async fn two(&self) -> (Host, Host) {
        let hosts = (self.start(), self.start());
        settle().await;
        hosts
    }

    /// Submits a call of a tool.
    async fn submit(&self, at: &Host, tool: &str) -> Turn {
        let id = self.calls.fetch_add(1, Ordering::Relaxed).to_string();
        let request = turn("c", [call(&id, tool, "{}")]);
        let submitted = at.handle().submit(&principal("agent", Role::Caller), request).await.unwrap();
        settle().await;
        submitted.turn
    }

    /// As [`Hosts::submit`], until the turn is in the share of the second host.
    async fn submit_for_second(&self, at: &Host, tool: &str) -> TurnId {
        loop {
            let turn = self.submit(at, tool).await.id;
            if Share::new(1, 2).has_turn(turn) {
                return turn;
            }
            at.handle().cancel(&principal("agent", Role::Caller), &conversation("c"), turn).await.unwrap();
        }
    }

    async fn pass(&self, span: Span) {
        self.world.clock.advance(span);
        settle().await;
    }
}

async fn read(at: &Host, turn: TurnId) -> Turn {
    at.handle().turn(&principal("agent", Role::Caller), &conversation("c"), turn).await.unwrap()
}

fn waiting(turn: &Turn) -> SuspensionId {
    turn.pending().next().unwrap().2.id
}

#[tokio::test]
async fn wait_of_another_host_ends_in_time() {
    let hosts = Hosts::default();
    let (first, _second) = hosts.two().await;
    let turn = hosts.submit_for_second(&first, CLIENT).await;
    assert!(!read(&first, turn).await.is_ended());
    // A call without a client ends after its grace of 5 seconds. Without news, a host looks at what is due once a minute.
    hosts.pass(Span::from_secs(6)).await;
    assert!(read(&first, turn).await.is_ended());
}

#[tokio::test]
async fn call_that_its_host_gave_up_runs_again() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    let turn = hosts.submit_for_second(&first, SERVER).await;
    let before = hosts.runs.load(Ordering::Relaxed);
    first.store.refuse(5);
    for _ in 0..30 {
        hosts.pass(Span::from_secs(1)).await;
    }
    let given_up = read(&second, turn).await;
    assert!(!given_up.is_ended() && given_up.calls[0].attempts == 1, "its end was refused for good");
    for _ in 0..20 {
        hosts.pass(Span::from_secs(30)).await;
    }
    let turn = read(&second, turn).await;
    assert!(turn.is_ended() && turn.calls[0].attempts == 2, "{turn:?}");
    assert_eq!(hosts.runs.load(Ordering::Relaxed), before + 1);
}

#[tokio::test]
async fn result_that_was_not_stored_at_first_is_stored_once() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    let turn = hosts.submit(&first, SERVER).await.id;
    first.store.refuse(2);
    for _ in 0..10 {
        hosts.pass(Span::from_secs(1)).await;
    }
    let turn = read(&second, turn).await;
    assert!(turn.is_ended() && turn.calls[0].attempts == 1, "{turn:?}");
    assert_eq!(hosts.runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn calls_of_a_host_that_ended_run_at_another() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    let turns = [hosts.submit(&first, SERVER).await.id, hosts.submit(&first, SERVER).await.id];
    let third = hosts.start();
    let of_third = hosts.submit(&third, SERVER).await.id;
    hosts.cluster.end(first.owner);
    settle().await;
    for turn in turns {
        assert_eq!(read(&second, turn).await.calls[0].attempts, 2);
    }
    assert_eq!(read(&second, of_third).await.calls[0].attempts, 1, "the calls of a host that is alive go on");
    hosts.pass(Span::from_secs(2)).await;
    for turn in [turns[0], turns[1], of_third] {
        assert!(read(&second, turn).await.is_ended());
    }
    // The host that ended finds out that its runs do not count.
    assert_eq!(hosts.runs.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn run_of_a_call_that_another_host_cancelled_is_stopped() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    let turn = hosts.submit(&first, SERVER).await.id;
    assert_eq!(first.handle().turns_in_memory(), 1);
    let agent = principal("agent", Role::Caller);
    second.handle().cancel(&agent, &conversation("c"), turn).await.unwrap();
    assert!(read(&first, turn).await.is_ended(), "a read at once sees it");
    hosts.pass(Span::from_secs(60)).await;
    assert_eq!(first.handle().turns_in_memory(), 0);
}

#[tokio::test]
async fn standing_approval_of_another_host_counts() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    // Both hosts know which approvals there are.
    let waits = [hosts.submit(&first, GATED).await, hosts.submit(&second, GATED).await];
    let standing = Some(StandingTerms { time: Span::from_secs(600), uses: 1, pin: Pin::All });
    let given = Answer { standing, ..answer(waiting(&waits[0]), Decision::Approve) };
    first.handle().resolve(&principal("ann", Role::Approver), given).await.unwrap();
    settle().await;
    assert_eq!(hosts.submit(&second, GATED).await.pending().count(), 0, "it is covered");
    assert_eq!(hosts.submit(&first, GATED).await.pending().count(), 1, "its use is spent for all hosts");
}

#[tokio::test]
async fn host_that_drains_leaves_its_work_to_others() {
    let hosts = Hosts::default();
    let (first, second) = hosts.two().await;
    let waits = hosts.submit(&first, GATED).await;
    first.handle().drain();
    let agent = principal("agent", Role::Caller);
    let refused = first.handle().submit(&agent, turn("c", [call("new", SERVER, "{}")])).await.unwrap_err();
    assert!(matches!(refused, dispatch::Error::Draining), "{refused}");
    let approve = || answer(waiting(&waits), Decision::Approve);
    let ann = principal("ann", Role::Approver);
    let refused = first.handle().resolve(&ann, approve()).await.unwrap_err();
    assert!(matches!(refused, dispatch::Error::Draining), "{refused}");
    second.handle().resolve(&ann, approve()).await.unwrap();
    hosts.pass(Span::from_secs(2)).await;
    assert!(read(&first, waits.id).await.is_ended());
}
