//! Durable calls in the real loop: which runs begin, and when. The time is simulated, and so are the guests.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "durable/permits.rs"]
mod permits;
#[path = "durable/progress.rs"]
mod progress;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dispatch::ports::{AsDeclared, End, KnownTool, Policy, PolicyQuery, Run, RunLog, Tools};
use dispatch::{Answer, Dispatcher, Handle, Parts, TurnRequest};
use domain::{
    CallId, Digest, Json, Outcome, PluginName, SignalName, Span, SuspensionId, Timestamp, ToolName, Turn, TurnId,
    Violation,
    approvers::{Escalate, Need, Who},
    call::{Level, Pinned},
    gate::{RuleEffect, Verdict},
    outcome::{Failure, FailureCode},
    principal::{Channels, Role},
    step::{self, RunEnd, StepEnd, StepKind, StepRequest, StepWait},
    tool::Editable,
};
use futures::FutureExt;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::requests::{answer, call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// The end of a guest's run, by the number of steps that it repeats.
type Guest = fn(usize) -> Option<RunEnd>;

/// A host with one durable tool, and the parts that survive it.
struct DurableHost {
    world: World,
    guest: Guest,
    /// The runs that began.
    runs: Arc<AtomicUsize>,
    /// The policy denies every call.
    denies: Arc<AtomicBool>,
    running: Option<Dispatcher>,
}

struct Switch(Arc<AtomicBool>);

#[async_trait]
impl Policy for Switch {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        if self.0.load(Ordering::Relaxed) {
            return Verdict { rule: RuleEffect::Deny, ..Verdict::default() };
        }
        AsDeclared.decide(question).await
    }
}

/// Asks a person.
fn asks() -> RunEnd {
    let question = step::Question {
        prompt: "Go?".into(),
        response: Some(Json::unchecked(r#"{"type":"string"}"#)),
        ..step::Question::default()
    };
    RunEnd::Waits(StepRequest { digest: Digest::of("ask"), wait: StepWait::Answer(question) })
}

impl DurableHost {
    /// A guest whose end is `None` runs forever.
    fn new(guest: Guest) -> Self {
        let (runs, denies) = (Arc::default(), Arc::default());
        let mut host = Self { world: World::default(), guest, runs, denies, running: None };
        host.start();
        host
    }

    fn tools(&self) -> WordTools {
        let (guest, runs) = (self.guest, self.runs.clone());
        WordTools::new(&["server:durable=yes"], move |run: Run| {
            runs.fetch_add(1, Ordering::Relaxed);
            let end = guest(run.durable.unwrap().steps.len());
            async move {
                match end {
                    Some(end) => End::unrun(end),
                    None => std::future::pending().await,
                }
            }
        })
    }

    fn start(&mut self) {
        let parts = self.world.parts(Arc::new(self.tools()));
        self.running = Some(Dispatcher::start(Parts { policy: Arc::new(Switch(self.denies.clone())), ..parts }));
    }

    fn restart(&mut self) {
        self.running = None;
        self.start();
    }

    fn handle(&self) -> Handle {
        self.running.as_ref().unwrap().handle()
    }

    async fn submit(&self) -> TurnId {
        let request = turn("c", [call("a", "tool_0", "{}")]);
        let id = self.handle().submit(&principal("agent", Role::Caller), request).await.unwrap().turn.id;
        settle().await;
        id
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.handle().turn(&principal("agent", Role::Caller), &conversation("c"), id).await.unwrap()
    }

    async fn outcome(&self, id: TurnId) -> Option<Outcome> {
        self.turn(id).await.calls[0].outcome().cloned()
    }

    /// Answers the open question.
    async fn answer(&self, id: TurnId) {
        let open = self.turn(id).await.pending().next().unwrap().2.id;
        self.handle().resolve(&principal("ann", Role::Approver), data(open, "\"yes\"")).await.unwrap();
        settle().await;
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    async fn pass(&self, span: Span) {
        self.world.clock.advance(span);
        settle().await;
    }
}

fn data(suspension: SuspensionId, json: &str) -> Answer {
    Answer { data: Some(Json::unchecked(json)), ..answer(suspension, "answer") }
}

#[tokio::test]
async fn ephemeral_turn_with_a_durable_call_is_stored() {
    let mut host = DurableHost::new(|_| Some(done().ended));
    let request = TurnRequest { ephemeral: true, ..turn("c", [call("a", "tool_0", "{}")]) };
    let submitted = host.handle().submit(&principal("agent", Role::Caller), request).await.unwrap();
    assert!(!submitted.ephemeral, "its journal needs a stored turn");
    settle().await;
    host.restart();
    assert!(matches!(host.outcome(submitted.turn.id).await, Some(Outcome::Ok { .. })));
    assert_eq!(host.runs(), 1);
}

#[tokio::test]
async fn policy_is_asked_again_after_a_kill_before_the_first_step() {
    let mut host = DurableHost::new(|_| None);
    let id = host.submit().await;
    assert_eq!((host.runs(), host.outcome(id).await), (1, None));
    host.denies.store(true, Ordering::Relaxed);
    host.restart();
    settle().await;
    assert!(matches!(host.outcome(id).await, Some(Outcome::Denied(_))));
    assert_eq!(host.runs(), 1, "the guest does not run again");
}

#[tokio::test]
async fn no_policy_denies_a_call_after_its_first_step() {
    let mut host = DurableHost::new(|steps| if steps == 0 { Some(asks()) } else { None });
    let id = host.submit().await;
    host.denies.store(true, Ordering::Relaxed);
    host.answer(id).await;
    assert_eq!(host.runs(), 2);
    host.restart();
    settle().await;
    assert_eq!((host.runs(), host.outcome(id).await), (3, None), "after a kill as well");
}

/// Asks, and cannot be continued.
fn breaks(steps: usize) -> Option<RunEnd> {
    let failure = || Failure::new(FailureCode::HostFault, "the component could not be read");
    Some(if steps == 0 { asks() } else { RunEnd::Repeating(failure()) })
}

#[tokio::test]
async fn host_pauses_before_it_continues_a_call_again() {
    let host = DurableHost::new(breaks);
    let id = host.submit().await;
    host.answer(id).await;
    for (runs, pause) in [(2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000)] {
        assert_eq!(host.runs(), runs);
        host.pass(Span::from_millis(pause - 1)).await;
        assert_eq!((host.runs(), host.outcome(id).await), (runs, None), "it pauses for {pause} ms");
        host.pass(Span::from_millis(1)).await;
    }
    // The fifth attempt is the last one, so no pause follows.
    assert_eq!((host.runs(), host.outcome(id).await), (6, Some(Outcome::InDoubt)));
}

#[tokio::test]
async fn log_says_why_a_call_was_not_continued() {
    let host = DurableHost::new(breaks);
    let id = host.submit().await;
    host.answer(id).await;
    let agent = principal("agent", Role::Caller);
    let logs = async || {
        let call = CallId::new("a").unwrap();
        let (.., runs) = host.handle().call_log(&agent, &conversation("c"), &call).await.unwrap();
        let lines = |log: &RunLog| log.lines.iter().map(|line| (line.level, line.text.clone())).collect::<Vec<_>>();
        runs.iter().map(|log| (log.run, lines(log))).collect::<Vec<_>>()
    };
    let why =
        || vec![(Level::Error, "this run could not continue the call: the component could not be read".to_owned())];
    assert_eq!(logs().await, [(2, why())], "while the host pauses");
    host.pass(Span::from_secs(60)).await;
    assert_eq!(logs().await, [(2, why()), (3, why())]);
}

#[tokio::test]
async fn call_that_pauses_can_be_cancelled() {
    let host = DurableHost::new(breaks);
    let id = host.submit().await;
    host.answer(id).await;
    host.handle().cancel(&principal("agent", Role::Caller), &conversation("c"), id).await.unwrap();
    assert_eq!(host.outcome(id).await, Some(Outcome::Cancelled));
    host.pass(Span::from_secs(60)).await;
    assert_eq!(host.runs(), 2);
}

#[tokio::test]
async fn kill_during_a_pause_loses_no_call() {
    let mut host = DurableHost::new(breaks);
    let id = host.submit().await;
    host.answer(id).await;
    host.restart();
    settle().await;
    assert_eq!((host.runs(), host.turn(id).await.calls[0].attempts), (3, 2));
}

/// Waits for a signal.
fn waits_for_a_signal(_: usize) -> Option<RunEnd> {
    let response = Some(Json::unchecked(r#"{"type":"boolean"}"#));
    let question = step::Question { prompt: "Is it healthy?".into(), response, ..step::Question::default() };
    let signal = Some(SignalName::new("health").unwrap());
    let wait = StepWait::External { question, signal, metadata: None };
    Some(RunEnd::Waits(StepRequest { digest: Digest::of("health"), wait }))
}

#[tokio::test]
async fn signal_that_could_not_be_looked_up_is_looked_up_later() {
    let mut host = DurableHost::new(waits_for_a_signal);
    let store = Arc::new(MortalStore::new(host.world.store.clone()));
    let parts = host.world.parts(Arc::new(host.tools()));
    host.running = Some(Dispatcher::start(Parts { store: store.clone(), ..parts }));
    store.fail_search();
    let id = host.submit().await;
    assert_eq!((host.runs(), host.turn(id).await.pending().count()), (1, 0));
    host.pass(Span::from_secs(300)).await;
    assert_eq!((host.runs(), host.turn(id).await.pending().count()), (1, 1), "its run is not repeated");
}

/// Tools whose check of a schema sees whether the turn is locked.
struct Looks {
    tools: WordTools,
    turn: OnceLock<(Handle, TurnId)>,
    /// The checks, and those during which the turn could be read.
    checks: AtomicUsize,
    readable: AtomicUsize,
}

#[async_trait]
impl Tools for Looks {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.tools.find(name)
    }

    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.pinned(plugin, component, name)
    }

    fn violations(&self, _: &Json, value: &Json) -> Vec<Violation> {
        let (handle, id) = self.turn.get().unwrap();
        let read = handle.turn(&principal("agent", Role::Caller), &conversation("c"), *id).now_or_never();
        self.checks.fetch_add(1, Ordering::Relaxed);
        self.readable.fetch_add(usize::from(read.is_some()), Ordering::Relaxed);
        let violation = || Violation { pointer: String::new(), message: "a string is expected".into() };
        if value.as_str().starts_with('"') { Vec::new() } else { vec![violation()] }
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.list()
    }

    async fn run(&self, run: Run) -> End {
        self.tools.run(run).await
    }
}

#[tokio::test]
async fn schema_of_an_answer_is_checked_before_the_turn_is_locked() {
    let mut host = DurableHost::new(|steps| if steps == 0 { Some(asks()) } else { Some(done().ended) });
    let counted = AtomicUsize::default;
    let looks = Arc::new(Looks { tools: host.tools(), turn: OnceLock::new(), checks: counted(), readable: counted() });
    host.running = Some(Dispatcher::start(host.world.parts(looks.clone())));
    let id = host.submit().await;
    looks.turn.set((host.handle(), id)).ok().unwrap();
    let open = host.turn(id).await.pending().next().unwrap().2.id;
    let resolve = async |by: &str, role, json: &str| {
        host.handle().resolve(&principal(by, role), data(open, json)).await.map_err(|error| format!("{error:?}"))
    };
    assert!(resolve("eve", Role::Client, "\"yes\"").await.is_err());
    assert_eq!(looks.checks.load(Ordering::Relaxed), 0, "nothing is compiled for somebody who may not answer");
    let refused = resolve("ann", Role::Approver, "7").await.unwrap_err();
    assert!(refused.contains("a string is expected"), "{refused}");
    resolve("ann", Role::Approver, "\"yes\"").await.unwrap();
    let again = resolve("ann", Role::Approver, "\"yes\"").await.unwrap();
    assert!(again.replayed);
    let counts = [&looks.checks, &looks.readable].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [2, 2], "each answer is checked once, without the lock");
}

/// Tools that count what is released.
struct Releases {
    tools: WordTools,
    released: AtomicUsize,
}

impl Releases {
    fn released(&self) -> usize {
        self.released.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Tools for Releases {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.tools.find(name)
    }

    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.pinned(plugin, component, name)
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.list()
    }

    fn release(&self, pinned: &Pinned, idempotency_key: &str) {
        assert!(pinned.durable && !idempotency_key.is_empty());
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    async fn run(&self, run: Run) -> End {
        self.tools.run(run).await
    }
}

/// A host on which the wait of a call cannot be recorded at first.
async fn unrecorded() -> (DurableHost, Arc<Releases>, TurnId) {
    let mut host = DurableHost::new(waits_for_a_signal);
    let tools = Arc::new(Releases { tools: host.tools(), released: AtomicUsize::new(0) });
    let store = Arc::new(MortalStore::new(host.world.store.clone()));
    let parts = host.world.parts(tools.clone());
    host.running = Some(Dispatcher::start(Parts { store: store.clone(), ..parts }));
    store.fail_search();
    let id = host.submit().await;
    assert_eq!((tools.released(), host.turn(id).await.pending().count()), (0, 0), "the wait is not recorded");
    (host, tools, id)
}

#[tokio::test]
async fn instance_of_a_wait_that_is_recorded_late_is_kept() {
    let (host, tools, id) = unrecorded().await;
    host.pass(Span::from_secs(300)).await;
    assert_eq!((tools.released(), host.turn(id).await.pending().count()), (0, 1), "it waits");
    host.handle().cancel(&principal("agent", Role::Caller), &conversation("c"), id).await.unwrap();
    assert_eq!(tools.released(), 1);
}

#[tokio::test]
async fn instance_is_released_when_nothing_will_continue_it() {
    let (host, tools, id) = unrecorded().await;
    host.handle().cancel(&principal("agent", Role::Caller), &conversation("c"), id).await.unwrap();
    host.pass(Span::from_secs(300)).await;
    assert_eq!(tools.released(), 2, "by the end of the call, and by the run whose wait is not recorded");
}

/// A guest that asks, proposes a value, waits for a signal and sleeps. No answer changes that.
fn comes_to_each_kind(steps: usize) -> Option<RunEnd> {
    let question = || step::Question { prompt: "Go?".into(), ..step::Question::default() };
    let wait = match steps {
        0 => StepWait::Answer(question()),
        1 => StepWait::Approval { question: question(), subject: Json::unchecked("7"), editable: Editable::All },
        2 => return waits_for_a_signal(steps),
        3 => StepWait::Time(Timestamp::from_millis(4_000_000_000_000)),
        _ => return Some(done().ended),
    };
    Some(RunEnd::Waits(StepRequest { digest: Digest::of(steps.to_string()), wait }))
}

/// Decides about steps only, and keeps what it was asked about.
struct OnSteps {
    verdict: fn(StepKind) -> Verdict,
    steps: Mutex<Vec<StepKind>>,
}

#[async_trait]
impl Policy for OnSteps {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        let Some(step) = question.step else { return AsDeclared.decide(question).await };
        self.steps.lock().unwrap().push(step);
        (self.verdict)(step)
    }
}

/// A host whose policy gives these verdicts on steps.
fn deciding(guest: Guest, verdict: fn(StepKind) -> Verdict) -> (DurableHost, Arc<OnSteps>) {
    let mut host = DurableHost::new(guest);
    let policy = Arc::new(OnSteps { verdict, steps: Mutex::default() });
    let parts = host.world.parts(Arc::new(host.tools()));
    host.running = Some(Dispatcher::start(Parts { policy: policy.clone(), ..parts }));
    (host, policy)
}

#[tokio::test]
async fn policy_decides_about_each_step_and_its_denial_ends_it() {
    let frozen = |_| Verdict { rule: RuleEffect::Deny, reason: Some("frozen".into()), ..Verdict::default() };
    let (host, policy) = deciding(comes_to_each_kind, frozen);
    let id = host.submit().await;
    assert_eq!(*policy.steps.lock().unwrap(), [StepKind::Ask, StepKind::Approve, StepKind::AwaitExternal]);
    let turn = host.turn(id).await;
    let ends: Vec<_> = turn.calls[0].steps().map(|step| step.end).collect();
    assert_eq!(ends, std::array::from_fn::<_, 3, _>(|_| StepEnd::Denied(Some("frozen".into()))));
    // It asks nobody, and the sleep is not denied.
    let open: Vec<_> = turn.pending().map(|(.., open)| open.kind().as_str()).collect();
    assert_eq!((open, host.runs()), (vec!["timer"], 4));
}

#[tokio::test]
async fn external_wait_is_denied_if_the_policy_fails() {
    let failed = |_| Verdict { rule: RuleEffect::Ask, policy_failed: true, ..Verdict::default() };
    let (host, _) = deciding(|steps| comes_to_each_kind(steps + 2), failed);
    let id = host.submit().await;
    let ends: Vec<_> = host.turn(id).await.calls[0].steps().map(|step| step.end).collect();
    assert!(matches!(ends.as_slice(), [StepEnd::Denied(Some(_))]), "{ends:?}");
}

#[tokio::test]
async fn approval_of_a_step_escalates_as_the_rule_says() {
    let needs = |_| {
        let who = |who: &str| -> Arc<[Who]> { Arc::new([who.parse().unwrap()]) };
        let escalate = Some(Escalate { after: Span::from_secs(60), to: who("role:admin") });
        let needs = Arc::new([Need { who: who("principal:ben"), quorum: 1, escalate, via: Channels::ANY }]);
        Verdict { rule: RuleEffect::Allow, needs, ..Verdict::default() }
    };
    let (host, _) = deciding(|steps| comes_to_each_kind(steps + 1), needs);
    let id = host.submit().await;
    let open = host.turn(id).await.pending().next().unwrap().2.id;
    let approve = async |by: &str, role| host.handle().resolve(&principal(by, role), answer(open, "approve")).await;
    assert!(approve("ann", Role::Approver).await.is_err() && approve("root", Role::Admin).await.is_err());
    host.pass(Span::from_secs(60)).await;
    assert!(approve("ann", Role::Approver).await.is_err());
    approve("root", Role::Admin).await.unwrap();
    settle().await;
    assert_eq!(host.turn(id).await.calls[0].steps().count(), 1);
}
