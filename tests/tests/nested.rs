//! Nested turns in the real loop: submitted once, answered, returned, cancelled, and recovered after each kill. The time is
//! simulated, and so are the guests.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "nested/limits.rs"]
mod limits;
#[path = "nested/ungranted.rs"]
mod ungranted;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dispatch::ports::{AsDeclared, Clock as _, End, Filter, Log as _, Policy, PolicyQuery, Run, Store};
use dispatch::{Answer, Dispatcher, Error, Forbidden, Handle, Hold, Mode, Parts, Quota, Quotas, RetentionRules, prune};
use domain::{
    Digest, Json, Outcome, Principal, Refusal, Span, SuspensionId, Turn, TurnId,
    gate::Verdict,
    nested::NestedCall,
    outcome::{Failure, FailureCode},
    principal::Role,
    refusal::NotAllowed,
    standing::{Pin, StandingTerms},
    step::{StepEnd, StepRequest, StepWait},
    turn::{TurnSettings, TurnState},
};
use toolgate_tests::faults::{Death, MortalStore};
use toolgate_tests::requests::{answer, call, conversation, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// The calls of the nested turn, by tool.
type Calls = &'static [&'static str];

/// A host whose durable tool `tool_0` calls other tools, and returns their results. `tool_1` is a server tool, `tool_2` is one that
/// requires approval, and `tool_3` is a client's that requires approval.
struct NestingHost {
    world: World,
    store: Arc<MortalStore>,
    settings: TurnSettings,
    quotas: Quotas,
    calls: Calls,
    /// The questions to the policy.
    asked: Arc<Mutex<Vec<Asked>>>,
    /// The runs that began: the tool, and the scope that the guest sees.
    runs: Arc<Mutex<Vec<(String, String)>>>,
    /// The operator grants the calls of other tools.
    grants: bool,
    running: Option<Dispatcher>,
}

struct Listening(Arc<Mutex<Vec<Asked>>>);

/// A question to the policy: the tool, the conversation, and the tool that called it.
type Asked = (String, String, Option<String>);

#[async_trait]
impl Policy for Listening {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        let via = question.via.as_ref().map(|via| via.tool.to_string());
        let tool = question.known.tool.name.to_string();
        self.0.lock().unwrap().push((tool, question.conversation.to_string(), via));
        AsDeclared.decide(question).await
    }
}

/// A run of the durable tool: it calls the other tools once, and returns what they returned.
fn run(run: &Run, calls: Calls) -> End {
    let Some(durable) = &run.durable else {
        return End::unrun(Outcome::Ok { value: Json::unchecked("{\"done\":1}"), trusted: true }.into());
    };
    match durable.steps.first().map(|step| &step.end) {
        None => {
            let calls = calls.iter().map(|tool| NestedCall { tool: (*tool).into(), arguments: Json::unchecked("{}") });
            let wait = StepWait::Calls(calls.collect());
            End::unrun(domain::step::RunEnd::Waits(StepRequest { digest: Digest::of("calls"), wait }))
        }
        Some(StepEnd::Returned(results)) => {
            End::unrun(Outcome::Ok { value: Json::unchecked(format!("{{\"got\":{results}}}")), trusted: true }.into())
        }
        Some(other) => {
            let failure = Failure::new(FailureCode::ToolFailed, format!("{other:?}"));
            End::unrun(Outcome::Failed(failure).into())
        }
    }
}

const AGENT: &str = "agent";

impl NestingHost {
    fn new(calls: Calls) -> Self {
        let world = World::default();
        let store = Arc::new(MortalStore::new(world.store.clone()));
        let (settings, quotas, asked, runs) =
            (TurnSettings::default(), Quotas::default(), Arc::default(), Arc::default());
        Self { world, store, settings, quotas, calls, asked, runs, grants: true, running: None }
    }

    fn started(calls: Calls) -> Self {
        let mut host = Self::new(calls);
        host.start();
        host
    }

    fn start(&mut self) {
        let (calls, runs) = (self.calls, self.runs.clone());
        let words = ["server:durable=yes", "server", "server!", "client!"];
        let tools = WordTools::new(&words, move |job: Run| {
            runs.lock().unwrap().push((job.tool.to_string(), job.scope_json.to_string()));
            std::future::ready(run(&job, calls))
        });
        if !self.grants {
            tools.withdraw_calls();
        }
        let parts = self.world.parts(Arc::new(tools));
        let store: Arc<dyn Store> = self.store.clone();
        let policy = Arc::new(Listening(self.asked.clone()));
        let (settings, quotas) = (self.settings.clone(), self.quotas.clone());
        self.running = Some(Dispatcher::start(Parts { store, policy, settings, quotas, ..parts }));
    }

    /// Kills the host, and starts one on what is on disk.
    fn restart(&mut self) {
        self.running = None;
        self.store = Arc::new(MortalStore::new(self.world.store.clone()));
        self.start();
    }

    /// Submits, kills the host at this commit, and starts it again.
    async fn dies_while_it_submits(&mut self, commits: usize, death: Death) {
        self.store.die_after(commits, death);
        let handle = self.handle();
        // It never returns if the host dies in between.
        let submitting = tokio::spawn(async move {
            let request = turn("c", [call("a", "tool_0", "{}")]);
            handle.submit(&principal(AGENT, Role::Caller), request).await.map(drop)
        });
        settle().await;
        submitting.abort();
        self.restart();
        settle().await;
    }

    fn handle(&self) -> Handle {
        self.running.as_ref().unwrap().handle()
    }

    async fn submit(&self) -> TurnId {
        let request = turn("c", [call("a", "tool_0", "{}")]);
        let id = self.handle().submit(&principal(AGENT, Role::Caller), request).await.unwrap().turn.id;
        settle().await;
        id
    }

    /// How often a tool ran.
    fn runs_of(&self, tool: &str) -> usize {
        self.runs.lock().unwrap().iter().filter(|(ran, _)| ran == tool).count()
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.handle().turn_for_host(id).await.unwrap().unwrap()
    }

    /// The nested turns of the conversation.
    async fn nested(&self) -> Vec<Turn> {
        let (by, of) = (principal(AGENT, Role::Caller), conversation("~c"));
        self.handle().turns(&by, &of, |_| true, None, 10).await.map_or_else(|_| Vec::new(), |(turns, _)| turns)
    }

    /// The turn on disk. A host that died may hold it.
    async fn stored(&self, id: TurnId) -> Turn {
        let loaded = self.world.store.load(id).await.unwrap().found().unwrap();
        Turn::replay(&loaded.events).unwrap()
    }

    async fn outcome(&self, id: TurnId) -> Option<Outcome> {
        self.turn(id).await.calls[0].outcome().cloned()
    }

    async fn result(&self, id: TurnId) -> String {
        match self.outcome(id).await {
            Some(Outcome::Ok { value, trusted: true }) => value.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Decides the open approval of the nested turn.
    async fn decide(&self, decision: &str) {
        let open = self.nested().await[0].pending().next().unwrap().2.id;
        self.handle().resolve(&principal("ann", Role::Approver), answer(open, decision)).await.unwrap();
        settle().await;
    }

    async fn pass(&self, span: Span) {
        self.world.clock.advance(span);
        settle().await;
    }
}

const BOTH: Calls = &["tool_1", "tool_2"];

#[tokio::test]
async fn call_gets_the_results_when_all_calls_have_ended() {
    let host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let nested = host.nested().await;
    assert_eq!((nested.len(), nested[0].caller.as_str()), (1, AGENT));
    let parent = nested[0].parent.as_deref().unwrap();
    assert_eq!((parent.turn, parent.call.as_str(), parent.depth, &*parent.tool), (id, "a", 1, "tool_0"));
    assert_eq!(host.outcome(id).await, None, "it waits for the approval");
    host.decide("approve").await;
    assert_eq!(host.result(id).await, r#"{"got":[{"ok":true,"result":{"done":1}},{"ok":true,"result":{"done":1}}]}"#);
    let asked = host.asked.lock().unwrap().clone();
    let through = |tool: &str| (tool.to_owned(), "c".to_owned(), Some("tool_0".to_owned()));
    assert_eq!(asked[..3], [("tool_0".to_owned(), "c".to_owned(), None), through("tool_1"), through("tool_2")]);
}

/// A host that starts with a damaged nested turn, and the turn around it.
async fn with_a_damaged_turn() -> (NestingHost, TurnId) {
    let mut host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let child = host.nested().await[0].id;
    host.running = None;
    host.store = Arc::new(MortalStore::new(host.world.store.clone()));
    host.store.damage(child);
    host.start();
    settle().await;
    (host, id)
}

#[tokio::test]
async fn damaged_turn_that_is_due_is_not_tried_every_second() {
    let (host, _) = with_a_damaged_turn().await;
    host.world.clock.advance(Span::from_secs(30 * 24 * 60 * 60));
    settle().await;
    assert!(host.store.read_of_due() > 0);
    for _ in 0..5 {
        host.world.clock.advance(Span::from_secs(1));
        settle().await;
    }
    assert_eq!(host.store.read_of_due(), 0);
}

#[tokio::test]
async fn call_whose_nested_turn_is_damaged_gets_failures() {
    let (host, id) = with_a_damaged_turn().await;
    let result = host.result(id).await;
    assert_eq!(result.matches(r#"{"ok":false,"error":{"code":"host_fault""#).count(), BOTH.len(), "{result}");
    assert!(result.contains("the stored record of the nested turn is damaged"), "{result}");
}

/// A standing approval for two uses.
fn standing(suspension: SuspensionId) -> Answer {
    let terms = StandingTerms { time: Span::from_secs(3_600), uses: 2, pin: Pin::All };
    Answer { standing: Some(terms), ..answer(suspension, "approve") }
}

#[tokio::test]
async fn nested_call_has_no_standing_approval() {
    let host = NestingHost::started(BOTH);
    let request = turn("d", [call("a", "tool_2", "{}")]);
    let direct = host.handle().submit(&principal(AGENT, Role::Caller), request).await.unwrap().turn;
    let ann = principal("ann", Role::Approver);
    host.handle().resolve(&ann, standing(direct.pending().next().unwrap().2.id)).await.unwrap();
    host.submit().await;
    let nested = host.nested().await;
    let open = nested[0].pending().next().expect("the standing approval does not cover it").2;
    let refused = host.handle().resolve(&ann, standing(open.id)).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotAllowed(NotAllowed::Standing(_))))), "{refused:?}");
}

#[tokio::test]
async fn denied_expired_and_unknown_calls_are_results() {
    for (calls, decision, code) in
        [(BOTH, Some("deny"), "denied"), (BOTH, None, "expired"), (&["no"], None, "unknown_tool")]
    {
        let host = NestingHost::started(calls);
        let id = host.submit().await;
        match decision {
            Some(decision) => host.decide(decision).await,
            None => host.pass(Span::from_secs(30 * 86_400)).await,
        }
        let result = host.result(id).await;
        assert!(result.contains(&format!(r#"{{"ok":false,"error":{{"code":"{code}""#)), "{result}");
    }
}

#[tokio::test]
async fn cancelled_call_cancels_its_nested_turn() {
    let host = NestingHost::started(BOTH);
    let id = host.submit().await;
    host.handle().cancel(&principal(AGENT, Role::Caller), &conversation("c"), id).await.unwrap();
    settle().await;
    let nested = host.nested().await;
    let outcomes: Vec<_> = nested[0].calls.iter().map(|call| call.outcome().unwrap().as_str()).collect();
    assert_eq!(outcomes, ["ok", "cancelled"]);
    assert_eq!(host.outcome(id).await, Some(Outcome::Cancelled));
}

#[tokio::test]
async fn nothing_of_a_nested_turn_starts_after_its_parent_has_ended() {
    let mut host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let nested = host.nested().await[0].clone();
    let open = nested.pending().next().unwrap().2.id;
    host.store.die_after(1, Death::Before);
    host.handle().cancel(&principal(AGENT, Role::Caller), &conversation("c"), id).await.unwrap();
    settle().await;
    assert!(!host.stored(nested.id).await.is_ended(), "the host died before it cancelled the nested turn");
    host.restart();
    // At once, before the host looks for such turns.
    let refused = host.handle().resolve(&principal("ann", Role::Approver), answer(open, "approve")).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::Stale { .. }))), "{refused:?}");
    settle().await;
    assert_eq!(host.runs_of("tool_2"), 0);
    assert_eq!(host.turn(nested.id).await.calls[1].outcome(), Some(&Outcome::Cancelled));
}

#[tokio::test]
async fn parent_ends_before_or_after_its_nested_turn_begins() {
    let host = NestingHost::started(BOTH);
    // The commits that begin the turn, suspend its call and begin the nested turn.
    let [first, second, third] = [host.store.hold(), host.store.hold(), host.store.hold()];
    first.add_permits(1);
    second.add_permits(1);
    let id = host.submit().await;
    let (handle, by) = (host.handle(), principal(AGENT, Role::Caller));
    let cancelling = tokio::spawn(async move { handle.cancel(&by, &conversation("c"), id).await.map(drop) });
    settle().await;
    assert!(!host.stored(id).await.is_ended(), "the commit that begins the nested turn relies on it");
    third.add_permits(1);
    settle().await;
    cancelling.await.unwrap().unwrap();
    let nested = &host.nested().await[0];
    assert!(host.stored(id).await.is_ended() && nested.is_ended());
    assert_eq!(host.runs_of("tool_2"), 0);
}

#[tokio::test]
async fn nested_guest_acts_for_the_conversation_of_its_caller() {
    let host = NestingHost::started(&["tool_1"]);
    let id = host.submit().await;
    assert!(host.result(id).await.contains(r#""ok":true"#));
    let runs = host.runs.lock().unwrap();
    assert!(runs.iter().all(|(_, scope)| scope.starts_with(r#"{"conversation":"c","turn":""#)), "{runs:?}");
}

#[tokio::test]
async fn approval_of_a_nested_call_is_listed_with_the_conversation() {
    let host = NestingHost::started(BOTH);
    let _ = host.submit().await;
    let ann = principal("ann", Role::Approver);
    let scoped = |to: &str| Principal { conversation: Some(conversation(to)), ..ann.clone() };
    let of = |name: &str| Filter { conversation: Some(conversation(name)), open: Some(true), ..Filter::default() };
    for (by, filter, count) in [
        (&ann, of("c"), 1),
        (&ann, of("~c"), 1),
        (&ann, of("d"), 0),
        (&scoped("c"), Filter::default(), 1),
        (&scoped("c"), of("~c"), 1),
        (&scoped("d"), Filter::default(), 0),
        (&scoped("d"), of("~c"), 0),
    ] {
        let page = host.handle().suspensions(by, filter.clone(), None, 9).await.unwrap();
        assert_eq!(page.items.len(), count, "{filter:?}");
        let mine = host.handle().count_open(by, filter.clone(), true).await.unwrap();
        assert_eq!(mine.approvals, count as u64, "{filter:?}");
    }
}

/// A host with an open turn whose first call has ended with a nested turn, and the ids of both turns. The second call waits for
/// an approval.
async fn open_with_ended() -> (NestingHost, TurnId, TurnId) {
    let host = NestingHost::started(&["tool_1"]);
    let request = turn("c", [call("a", "tool_0", "{}"), call("b", "tool_2", "{}")]);
    let id = host.handle().submit(&principal(AGENT, Role::Caller), request).await.unwrap().turn.id;
    settle().await;
    let nested = host.nested().await[0].clone();
    assert!(nested.is_ended() && !host.turn(id).await.is_ended());
    (host, id, nested.id)
}

/// Ends the turn of [`open_with_ended`].
async fn end(host: &NestingHost, id: TurnId) {
    let open = host.turn(id).await.pending().next().unwrap().2.id;
    host.handle().resolve(&principal("ann", Role::Approver), answer(open, "deny")).await.unwrap();
    settle().await;
}

const DAY: Span = Span::from_secs(86_400);

/// Removes what the rules remove a day later. Returns which of these turns are removed.
async fn removed(host: &NestingHost, rules: RetentionRules, of: [TurnId; 2]) -> [bool; 2] {
    let (store, later) = (&host.world.store, host.world.clock.now() + DAY);
    prune(store.clone(), store.clone(), store.clone(), rules, later, Mode::Remove).await.unwrap();
    let is_removed = async |id| store.load(id).await.unwrap().found().is_none();
    [is_removed(of[0]).await, is_removed(of[1]).await]
}

#[tokio::test]
async fn nested_turn_is_kept_until_the_outer_turn_has_ended() {
    let rules = || RetentionRules { turns: Some(DAY), ..RetentionRules::default() };
    let (host, id, nested) = open_with_ended().await;
    assert_eq!(removed(&host, rules(), [id, nested]).await, [false, false]);
    end(&host, id).await;
    assert_eq!(removed(&host, rules(), [id, nested]).await, [true, true]);
}

#[tokio::test]
async fn hold_of_a_conversation_keeps_its_nested_turns() {
    let hold = Hold { conversations: [conversation("c")].into(), ..Hold::default() };
    let rules = RetentionRules { turns: Some(DAY), hold, ..RetentionRules::default() };
    let (host, id, nested) = open_with_ended().await;
    end(&host, id).await;
    assert_eq!(removed(&host, rules, [id, nested]).await, [false, false]);
}

#[tokio::test]
async fn rule_about_a_tool_removes_the_turn_that_has_its_result() {
    let rules = RetentionRules { tools: [("tool_1".to_owned(), DAY)].into(), ..RetentionRules::default() };
    let (host, id, nested) = open_with_ended().await;
    end(&host, id).await;
    assert_eq!(removed(&host, rules, [id, nested]).await, [true, true]);
}

#[tokio::test]
async fn nobody_ends_the_wait_for_a_nested_turn() {
    let host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let waits = host.turn(id).await.pending().next().unwrap().2.id;
    for (by, role) in [(AGENT, Role::Caller), ("ann", Role::Approver), ("root", Role::Admin)] {
        let refused = host.handle().resolve(&principal(by, role), answer(waits, "result")).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::Unknown))), "{by}: {refused:?}");
    }
    assert_eq!(host.outcome(id).await, None);
}

#[tokio::test]
async fn cancelled_nested_turn_is_a_result() {
    let host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let nested = host.nested().await[0].id;
    host.handle().cancel(&principal(AGENT, Role::Caller), &conversation("~c"), nested).await.unwrap();
    settle().await;
    assert!(host.result(id).await.contains(r#""code":"cancelled""#));
}

#[tokio::test]
async fn kill_at_any_commit_submits_the_nested_turn_once() {
    for death in [Death::Before, Death::After] {
        for commits in 0..6 {
            let mut host = NestingHost::started(BOTH);
            host.dies_while_it_submits(commits, death).await;
            let id = host.submit().await;
            assert_eq!(host.nested().await.len(), 1, "{death:?} {commits}");
            host.decide("approve").await;
            let result = host.result(id).await;
            assert_eq!(result, r#"{"got":[{"ok":true,"result":{"done":1}},{"ok":true,"result":{"done":1}}]}"#);
        }
    }
}

#[tokio::test]
async fn results_reach_a_call_whose_host_was_killed() {
    let mut host = NestingHost::started(BOTH);
    let id = host.submit().await;
    // The decision and the start, the end of the guest, and nothing of the parent.
    host.store.die_after(2, Death::Before);
    host.decide("approve").await;
    assert!(host.stored(id).await.calls[0].open().is_some(), "the host died before it returned the results");
    host.restart();
    settle().await;
    assert!(host.result(id).await.contains(r#""ok":true"#));
}

#[tokio::test]
async fn kill_after_a_cancellation_leaves_no_nested_turn_behind() {
    let mut host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let nested = host.nested().await[0].id;
    host.store.die_after(1, Death::Before);
    host.handle().cancel(&principal(AGENT, Role::Caller), &conversation("c"), id).await.unwrap();
    settle().await;
    assert!(!host.stored(nested).await.is_ended(), "the host died before it cancelled the nested turn");
    host.restart();
    settle().await;
    assert!(host.turn(nested).await.is_ended());
}

#[tokio::test]
async fn no_caller_submits_to_the_conversation_of_nested_turns() {
    let host = NestingHost::started(BOTH);
    for (by, role) in [(AGENT, Role::Caller), ("root", Role::Admin)] {
        let request = turn("~c", [call("x", "tool_1", "{}")]);
        let refused = host.handle().submit(&principal(by, role), request).await;
        assert!(matches!(refused, Err(Error::Forbidden(Forbidden::Nested))), "{refused:?}");
    }
}
