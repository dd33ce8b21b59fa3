//! The logs of calls with the real loop: what is kept, when it is stored, who may read it, and what a kill loses.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use dispatch::ports::{Audit as _, CallLogs as _, Run, RunLog, RunMonitor};
use dispatch::{Dispatcher, Error, Handle, LogBounds, Parts, TurnRequest, Until};
use domain::journal::{Entry, Record};
use domain::{CallIndex, Digest, Principal, Span, Timestamp, TurnId, call::Level, principal::Role, turn::TurnSettings};
use tokio::sync::{Notify, mpsc};
use toolgate_tests::requests::{call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// A host whose guests write what the test says, and end when it lets them.
struct Logging {
    world: World,
    host: Option<Dispatcher>,
    bounds: LogBounds,
    started: mpsc::UnboundedReceiver<Arc<dyn RunMonitor>>,
    tell: mpsc::UnboundedSender<Arc<dyn RunMonitor>>,
    ends: Arc<Notify>,
    caller: Principal,
}

impl Logging {
    fn new(bounds: LogBounds) -> Self {
        let (tell, started) = mpsc::unbounded_channel();
        let (world, ends, caller) = (World::default(), Arc::default(), principal("ann", Role::Caller));
        let mut logging = Self { world, host: None, bounds, started, tell, ends, caller };
        logging.start();
        logging
    }

    /// Starts a host on the same store, after the end of the last one.
    fn start(&mut self) {
        // The guests of the last host stay where they are.
        (self.host, self.ends) = (None, Arc::default());
        let (tell, ends) = (self.tell.clone(), self.ends.clone());
        let tools = WordTools::new(&["server"], move |run: Run| {
            let (tell, ends) = (tell.clone(), ends.clone());
            async move {
                assert!(run.monitor.try_start(Span::from_secs(1)), "it was not stopped before");
                tell.send(run.monitor).unwrap();
                ends.notified().await;
                done()
            }
        });
        let settings = TurnSettings { ephemeral: true, ..TurnSettings::default() };
        let parts = self.world.parts(Arc::new(tools));
        self.host = Some(Dispatcher::start(Parts { settings, logs: self.bounds, ..parts }));
    }

    fn handle(&self) -> Handle {
        self.host.as_ref().unwrap().handle()
    }

    /// Submits a call, and returns its turn and its guest.
    async fn begin(&mut self, id: &str) -> (TurnId, Arc<dyn RunMonitor>) {
        let request = turn("c", [call(id, "tool_0", "{}")]);
        let turn = self.handle().submit(&self.caller, request).await.unwrap().turn.id;
        (turn, self.started.recv().await.unwrap())
    }

    async fn end(&self, turn: TurnId) {
        self.ends.notify_one();
        let at_most = Span::from_secs(9);
        let turn = self.handle().wait(&self.caller, &conversation("c"), turn, Until::Ended, at_most).await.unwrap();
        assert!(turn.is_ended());
        settle().await;
    }

    /// The lines that are stored, with their numbers.
    async fn stored(&self, turn: TurnId) -> Vec<String> {
        shown(&self.world.store.call_log(turn, CallIndex(0)).await.unwrap())
    }

    /// The lines that a principal reads.
    async fn read(&self, by: &Principal, id: &str) -> Result<Vec<String>, Error> {
        let id = domain::CallId::new(id).unwrap();
        self.handle().call_log(by, &conversation("c"), &id).await.map(|(.., runs)| shown(&runs))
    }

    /// The number of commits in the audit.
    async fn commits(&self) -> u64 {
        self.world.store.head().await.unwrap().position.0
    }

    async fn pass(&self, span: Span) {
        // Tasks that wait for the clock know until when.
        settle().await;
        self.world.clock.advance(span);
        settle().await;
    }
}

fn shown(runs: &[RunLog]) -> Vec<String> {
    let lines = |log: &RunLog| -> Vec<_> {
        log.numbered().map(|(number, line)| format!("{}/{number} {}", log.run, line.text)).collect()
    };
    runs.iter().flat_map(lines).collect()
}

#[tokio::test]
async fn lines_are_stored_with_the_next_entry_of_the_journal() {
    let world = World::default();
    let tools = WordTools::new(&["server:durable=yes"], |run: Run| async move {
        assert!(run.monitor.try_start(Span::from_secs(1)));
        run.monitor.log(Level::Info, "before the effect");
        let (journal, _) = run.journal.unwrap();
        journal.append(vec![entry()], Vec::new()).await.unwrap();
        run.monitor.log(Level::Info, "after it");
        std::future::pending().await
    });
    let host = Dispatcher::start(world.parts(Arc::new(tools)));
    let request = turn("c", [call("a", "tool_0", "{}")]);
    let turn = host.handle().submit(&principal("ann", Role::Caller), request).await.unwrap().turn.id;
    settle().await;
    drop(host);
    let stored = world.store.call_log(turn, CallIndex(0)).await.unwrap();
    assert_eq!(shown(&stored), ["1/1 before the effect"], "the next run does not write it again");
}

fn entry() -> Entry {
    Entry {
        number: 0,
        step: 0,
        run: None,
        function: None,
        digest: Digest::of("effect"),
        at: Timestamp::from_millis(0),
        salt: None,
        transferred: None,
        record: Record::Begun("effect".into()),
    }
}

#[tokio::test]
async fn log_is_stored_with_the_outcome_of_its_call() {
    let mut host = Logging::new(LogBounds::default());
    let (turn, guest) = host.begin("a").await;
    guest.log(Level::Info, "one");
    guest.log(Level::Error, "two");
    drop(guest);
    assert_eq!(host.stored(turn).await, [""; 0], "no line has a commit of its own");
    assert_eq!(host.read(&host.caller, "a").await.unwrap(), ["1/1 one", "1/2 two"], "it is read at once");
    let before = host.commits().await;
    host.end(turn).await;
    assert_eq!(host.stored(turn).await, ["1/1 one", "1/2 two"]);
    assert_eq!(host.commits().await, before + 1, "the outcome and the log are one commit");
    assert_eq!(host.handle().unstored_logs(), 0);
}

#[tokio::test]
async fn long_call_stores_its_log_every_second() {
    let mut host = Logging::new(LogBounds::default());
    let (turn, guest) = host.begin("a").await;
    let before = host.commits().await;
    guest.log(Level::Info, "one");
    host.pass(Span::from_millis(999)).await;
    guest.log(Level::Info, "two");
    assert_eq!(host.stored(turn).await, [""; 0]);
    host.pass(Span::from_millis(1)).await;
    assert_eq!(host.stored(turn).await, ["1/1 one", "1/2 two"], "both lines are stored together");
    guest.log(Level::Info, "three");
    host.pass(Span::from_secs(1)).await;
    assert_eq!(host.stored(turn).await.len(), 3);
    assert_eq!(host.commits().await, before, "logs are not in the audit");
}

#[tokio::test]
async fn kill_keeps_the_stored_lines_of_the_run_before() {
    let mut host = Logging::new(LogBounds::default());
    let (turn, guest) = host.begin("a").await;
    guest.log(Level::Info, "stored");
    host.pass(Span::from_secs(1)).await;
    guest.log(Level::Info, "lost");
    drop(guest);
    host.start();
    let guest = host.started.recv().await.unwrap();
    guest.log(Level::Info, "again");
    drop(guest);
    host.end(turn).await;
    assert_eq!(host.stored(turn).await, ["1/1 stored", "2/1 again"]);
    assert_eq!(host.read(&host.caller, "a").await.unwrap(), ["1/1 stored", "2/1 again"]);
}

#[tokio::test]
async fn only_the_last_lines_of_a_run_are_kept() {
    let mut host = Logging::new(LogBounds { bytes: 8, lines: 3 });
    let (turn, guest) = host.begin("a").await;
    for line in ["1", "2", "3", "4"] {
        guest.log(Level::Info, line);
    }
    assert_eq!(host.read(&host.caller, "a").await.unwrap(), ["1/2 2", "1/3 3", "1/4 4"]);
    guest.log(Level::Info, "12345678");
    assert_eq!(host.read(&host.caller, "a").await.unwrap(), ["1/5 12345678"]);
    guest.log(Level::Info, "1234567\u{e9} is cut before the character");
    drop(guest);
    host.end(turn).await;
    assert_eq!(host.stored(turn).await, ["1/6 1234567"]);
}

#[tokio::test]
async fn lines_after_a_cancellation_are_kept() {
    let mut host = Logging::new(LogBounds::default());
    let (turn, guest) = host.begin("a").await;
    guest.log(Level::Info, "before");
    host.handle().cancel(&host.caller, &conversation("c"), turn).await.unwrap();
    assert_eq!(host.stored(turn).await, ["1/1 before"]);
    guest.log(Level::Info, "cleaned up");
    drop(guest);
    host.ends.notify_one();
    host.pass(Span::from_secs(1)).await;
    assert_eq!(host.stored(turn).await, ["1/1 before", "1/2 cleaned up"]);
    assert_eq!(host.handle().unstored_logs(), 0);
}

#[tokio::test]
async fn readers_of_results_read_logs_and_nobody_else() {
    let mut host = Logging::new(LogBounds::default());
    let (turn, guest) = host.begin("a").await;
    guest.log(Level::Info, "secret to others");
    drop(guest);
    host.end(turn).await;
    for role in [Role::Approver, Role::Client, Role::Admin] {
        assert_eq!(host.read(&principal("bob", role), "a").await.unwrap().len(), 1, "{role:?}");
    }
    let refused = host.read(&principal("eve", Role::Caller), "a").await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
}

#[tokio::test]
async fn nothing_is_kept_of_ephemeral_turns_or_by_request() {
    let mut host = Logging::new(LogBounds::default());
    let (handle, caller) = (host.handle(), host.caller.clone());
    let request = TurnRequest { ephemeral: true, ..turn("c", [call("a", "tool_0", "{}")]) };
    let submitted = tokio::spawn(async move { handle.submit(&caller, request).await.unwrap().turn.id });
    let guest = host.started.recv().await.unwrap();
    guest.log(Level::Info, "live only");
    host.pass(Span::from_secs(1)).await;
    host.ends.notify_one();
    let turn = submitted.await.unwrap();
    assert_eq!((host.stored(turn).await, host.handle().unstored_logs()), (vec![], 0));

    let mut host = Logging::new(LogBounds { bytes: 0, lines: 200 });
    let (turn, guest) = host.begin("a").await;
    guest.log(Level::Info, "live only");
    drop(guest);
    host.end(turn).await;
    assert_eq!((host.stored(turn).await, host.handle().unstored_logs()), (vec![], 0));
}
