//! Races. A test blocks a port at a certain point, does something else, and releases the port. Nothing depends on time
//! or chance.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "interleaved/forgotten.rs"]
mod forgotten;
#[path = "interleaved/revoked.rs"]
mod revoked;
#[path = "interleaved/standing.rs"]
mod standing;
#[path = "interleaved/submitting.rs"]
mod submitting;
#[path = "interleaved/timeout_approvals.rs"]
mod timeout_approvals;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dispatch::ports::{End, Policy, PolicyQuery, Run};
use dispatch::{Answer, Answered, Bounds, Dispatcher, Error, Handle, LinkRequest, Parts, Quotas, TurnRequest};
use domain::{
    ConversationId, Json, LinkId, Outcome, Principal, PrincipalId, Span, SuspensionId, Timestamp, Turn, TurnId,
    approvers::Need,
    gate::{RuleEffect, Verdict},
    principal::{Channels, Named, Role},
    standing::{Pin, StandingTerms},
    suspension::{SuspensionKind, SuspensionState},
    turn::TurnSettings,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use toolgate_tests::clock::SimClock;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::requests::{answer, call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// The timeout of suspensions in these tests.
const PATIENCE: Span = Span::from_secs(3600);

type Says = dyn Fn(&str) -> Verdict + Send + Sync;

/// A policy that depends only on the arguments. A test can block it.
struct TestPolicy {
    says: Mutex<Arc<Says>>,
    asked: Mutex<Vec<String>>,
    gate: Mutex<Option<Arc<Semaphore>>>,
    stuck: Mutex<Option<(PrincipalId, Arc<Semaphore>)>>,
}

impl TestPolicy {
    fn says(&self, says: impl Fn(&str) -> Verdict + Send + Sync + 'static) {
        *self.says.lock().unwrap() = Arc::new(says);
    }

    /// Blocks the next question until this has a permit.
    fn hold(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    /// Blocks all questions about a caller until this has a permit.
    fn hold_all_of(&self, caller: &Principal) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.stuck.lock().unwrap() = Some((caller.id.clone(), gate.clone()));
        gate
    }
}

#[async_trait]
impl Policy for TestPolicy {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        let arguments = question.arguments.as_str().to_owned();
        self.asked.lock().unwrap().push(arguments.clone());
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            drop(gate.acquire().await);
        }
        let stuck = self.stuck.lock().unwrap().clone();
        if let Some((_, gate)) = stuck.filter(|(caller, _)| *caller == question.caller) {
            drop(gate.acquire().await);
        }
        let says = self.says.lock().unwrap().clone();
        says(&arguments)
    }
}

struct BlockableHost {
    _host: Dispatcher,
    handle: Handle,
    clock: Arc<SimClock>,
    store: Arc<MortalStore>,
    tools: Arc<WordTools>,
    policy: Arc<TestPolicy>,
    revoked: Arc<revoked::Revoked>,
}

fn approver(name: &str) -> Principal {
    Principal { since: Some(Timestamp::from_millis(0)), ..principal(name, Role::Approver) }
}

fn agent() -> Principal {
    principal("agent", Role::Caller)
}

fn talk() -> ConversationId {
    conversation("talk")
}

fn verdict(rule: RuleEffect) -> Verdict {
    Verdict { rule, ..Verdict::default() }
}

/// The number of these people who must approve.
fn needs(who: &[&str], quorum: u32) -> Verdict {
    let who = who.iter().map(|name| format!("principal:{name}").parse().unwrap()).collect();
    Verdict {
        by: Some("a-rule".into()),
        needs: [Need { who, quorum, escalate: None, via: Channels::ANY }].into(),
        ..verdict(RuleEffect::Ask)
    }
}

fn approve(suspension: SuspensionId) -> Answer {
    answer(suspension, "approve")
}

fn edit(suspension: SuspensionId, arguments: &str) -> Answer {
    Answer { arguments: Some(Json::unchecked(arguments)), ..approve(suspension) }
}

fn standing(suspension: SuspensionId) -> Answer {
    let terms = StandingTerms { time: Span::from_secs(60), uses: 1, pin: Pin::All };
    Answer { standing: Some(terms), ..approve(suspension) }
}

impl BlockableHost {
    fn new(words: &[&str], settings: TurnSettings, says: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> Self {
        Self::with(words, settings, Quotas::default(), |_| async { done() }, says)
    }

    /// A world with guests that run like this.
    fn with<F: Future<Output = End> + Send + 'static>(
        words: &[&str],
        settings: TurnSettings,
        quotas: Quotas,
        run: impl Fn(Run) -> F + Send + Sync + 'static,
        says: impl Fn(&str) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let world = World::default();
        let store = Arc::new(MortalStore::new(world.store.clone()));
        let tools = Arc::new(WordTools::new(words, run));
        let policy = Arc::new(TestPolicy {
            says: Mutex::new(Arc::new(says)),
            asked: Mutex::default(),
            gate: Mutex::default(),
            stuck: Mutex::default(),
        });
        let revoked = Arc::<revoked::Revoked>::default();
        let host = Dispatcher::start(Parts {
            store: store.clone(),
            principals: revoked.clone(),
            policy: policy.clone(),
            settings,
            quotas,
            ..world.parts(tools.clone())
        });
        Self { handle: host.handle(), _host: host, clock: world.clock, store, tools, policy, revoked }
    }

    /// Submits a turn with one call of this tool, and returns its suspension.
    async fn asks(&self, call: &str, tool: &str) -> (TurnId, SuspensionId) {
        self.asks_with(call, tool, r#"{"v":0}"#).await
    }

    async fn asks_with(&self, call: &str, tool: &str, arguments: &str) -> (TurnId, SuspensionId) {
        let turn = self.submit(&[(call, tool)], arguments).await;
        (turn.id, turn.pending().next().unwrap().2.id)
    }

    async fn submit(&self, calls: &[(&str, &str)], arguments: &str) -> Turn {
        self.handle.submit(&agent(), Self::request(calls, arguments)).await.unwrap().turn
    }

    fn request(calls: &[(&str, &str)], arguments: &str) -> TurnRequest {
        turn("talk", calls.iter().map(|(id, tool)| call(id, tool, arguments)))
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.handle.turn(&agent(), &talk(), id).await.unwrap()
    }

    /// Begins an answer and lets it run until it is blocked.
    async fn begin(&self, by: &str, answer: Answer) -> JoinHandle<Result<Answered, Error>> {
        let (handle, by) = (self.handle.clone(), approver(by));
        let answering = tokio::spawn(async move { handle.resolve(&by, answer).await });
        settle().await;
        answering
    }

    /// Begins to make a link, which is a commit that changes nothing else.
    async fn begin_link(&self, suspension: SuspensionId, id: u128) -> JoinHandle<()> {
        let (handle, expires_at) = (self.handle.clone(), self.handle.now() + Span::from_secs(60));
        let to = approver("ann").id;
        let wanted = LinkRequest { id: LinkId::from_bits(id), webhook: None, expires_at };
        let making = tokio::spawn(async move {
            let permit = handle.may_make_link(&principal("root", Role::Admin), suspension, &to).await.unwrap();
            handle.make_link(permit, wanted).await.unwrap();
        });
        settle().await;
        making
    }

    async fn hand(&self, suspension: SuspensionId, from: &str, to: &str) -> Result<(), Error> {
        self.handle.delegate(&approver(from), suspension, Named::Somebody(approver(to)), None).await
    }
}

#[tokio::test]
async fn vote_during_an_edit_does_not_approve_unchecked_arguments() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |arguments| match arguments {
        r#"{"v":5}"# => verdict(RuleEffect::Deny),
        _ => needs(&["ann", "bob"], 2),
    });
    let (turn, suspension) = world.asks("a", "tool_0").await;
    // Bob's vote is being committed. Dan, who has no authority, has sent an edit, and ann delegates hers to him. They
    // wait in this order.
    let gate = world.store.hold();
    let vote = world.begin("bob", approve(suspension)).await;
    let edited = world.begin("dan", edit(suspension, r#"{"v":5}"#)).await;
    let harmless = world.begin("dan", edit(suspension, r#"{"v":1}"#)).await;
    let (handed, ()) = tokio::join!(world.hand(suspension, "ann", "dan"), async {
        settle().await;
        gate.add_permits(1);
    });
    handed.unwrap();
    assert_eq!(vote.await.unwrap().unwrap().votes_missing, 1);
    for answer in [edited, harmless] {
        let refused = answer.await.unwrap().unwrap_err().to_string();
        assert_eq!(refused, "the policy denies the call with these arguments");
    }
    let after = world.turn(turn).await;
    let (.., open) = after.pending().next().unwrap();
    assert_eq!(open.votes().iter().map(|vote| vote.by.as_str()).collect::<Vec<_>>(), ["bob"]);
    assert_eq!(
        *world.policy.asked.lock().unwrap(),
        [r#"{"v":0}"#],
        "the policy was not asked for a principal without authority"
    );
    // The repeated answer is checked.
    let refused = world.begin("dan", edit(suspension, r#"{"v":5}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, "the policy denies the call with these arguments");
    assert_eq!(
        world.begin("dan", edit(suspension, r#"{"v":1}"#)).await.await.unwrap().unwrap().state,
        SuspensionState::Open
    );
}

#[tokio::test]
async fn delegation_during_a_policy_check_ends_the_authority() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann"], 1));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let gate = world.policy.hold();
    let edited = world.begin("ann", edit(suspension, r#"{"v":1}"#)).await;
    world.hand(suspension, "ann", "dan").await.unwrap();
    gate.add_permits(1);
    assert_eq!(edited.await.unwrap().unwrap_err().to_string(), "you delegated your authority over this to dan");
    assert!(!world.turn(turn).await.is_ended());
    assert_eq!(world.begin("dan", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
}

/// The outcomes of expired calls of each executor, if the recheck of the policy returns this. An open call is shown by
/// its suspension.
async fn expired(says: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> [String; 2] {
    expired_after(says, |_| {}).await
}

/// The same, after something happened to the tools while they waited.
async fn expired_after(
    says: impl Fn(&str) -> Verdict + Send + Sync + 'static,
    happens: impl FnOnce(&WordTools),
) -> [String; 2] {
    let tools = ["client!:expiry=approve", "server!:expiry=approve"];
    let world = BlockableHost::new(&tools, TurnSettings::default(), |_| Verdict::default());
    let turns = [world.asks("a", "tool_0").await.0, world.asks("b", "tool_1").await.0];
    world.policy.says(says);
    happens(&world.tools);
    world.clock.advance(PATIENCE);
    settle().await;
    let mut ended = Vec::new();
    for id in turns {
        let turn = world.turn(id).await;
        let waits = turn.pending().next().map(|(.., open)| open.kind().as_str().to_owned());
        ended.push(waits.unwrap_or_else(|| format!("{:?}", turn.calls[0].outcome().unwrap())));
    }
    ended.try_into().unwrap()
}

#[tokio::test]
async fn timeout_approval_is_rechecked_by_the_policy() {
    let ok = r#"Ok { value: {}, trusted: true }"#;
    assert_eq!(expired(|_| Verdict::default()).await, ["client_exec", ok]);
    assert_eq!(expired(|_| needs(&["ann"], 1)).await, ["Expired", "Expired"], "a new rule asks");
    let denied = |_: &str| Verdict { reason: Some("not any more".into()), ..verdict(RuleEffect::Deny) };
    assert_eq!(expired(denied).await, [r#"Denied(Some("not any more"))"#; 2]);
    let named = |_: &str| Verdict { rule: RuleEffect::Allow, ..needs(&["ann"], 1) };
    assert_eq!(expired(named).await, ["Expired", "Expired"], "the policy names the approvers");
    let withdrawn = expired_after(|_| Verdict::default(), WordTools::forbid_timeout_approvals).await;
    assert_eq!(withdrawn, ["Expired", "Expired"], "the operator no longer allows it");
}

#[tokio::test]
async fn policy_recheck_delays_nothing_else() {
    let world =
        BlockableHost::new(&["server!:expiry=approve", "server!"], TurnSettings::default(), |_| Verdict::default());
    let unanswered = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await.id;
    world.clock.advance(Span::from_secs(1));
    let (later, _) = world.asks("c", "tool_1").await;
    let asked = || world.policy.asked.lock().unwrap().len();
    assert_eq!(asked(), 3);
    let gate = world.policy.hold();
    world.clock.advance(Span::from_secs(3599));
    settle().await;
    assert_eq!(world.turn(unanswered).await.calls[1].outcome(), Some(&Outcome::Expired), "also in the same turn");
    world.clock.advance(Span::from_secs(1));
    settle().await;
    assert_eq!(world.turn(later).await.calls[0].outcome(), Some(&Outcome::Expired));
    // Several scans during the recheck cause only one recheck.
    for _ in 0..3 {
        world.clock.advance(Span::from_secs(60));
        settle().await;
    }
    assert_eq!((asked(), world.turn(unanswered).await.is_ended()), (4, false));
    gate.add_permits(1);
    settle().await;
    let ok = Outcome::Ok { value: Json::unchecked("{}"), trusted: true };
    assert_eq!(world.turn(unanswered).await.calls[0].outcome(), Some(&ok));
    assert_eq!(asked(), 5, "and once more before it runs");
}

#[tokio::test]
async fn failed_recheck_is_repeated_despite_waiting_siblings() {
    let fails = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&fails);
    let world = BlockableHost::new(&["server!:expiry=approve"; 2], TurnSettings::default(), move |_| {
        assert!(!broken.swap(false, Ordering::Relaxed), "the policy fails once");
        Verdict::default()
    });
    let turn = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await.id;
    let gate = world.policy.hold();
    fails.store(true, Ordering::Relaxed);
    let ended = async || world.turn(turn).await.calls.iter().filter(|call| call.outcome().is_some()).count();
    world.clock.advance(PATIENCE);
    settle().await;
    assert_eq!((ended().await, fails.load(Ordering::Relaxed)), (0, false), "one waits for people, the other failed");
    world.clock.advance(Span::from_secs(1));
    settle().await;
    assert_eq!(ended().await, 1);
    gate.add_permits(1);
    settle().await;
    assert_eq!(ended().await, 2);
}

#[tokio::test]
async fn turn_cancelled_during_a_recheck_stays_cancelled() {
    let world = BlockableHost::new(&["client!:expiry=approve"], TurnSettings::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let gate = world.policy.hold();
    world.clock.advance(PATIENCE);
    settle().await;
    assert_eq!(
        world.turn(turn).await.pending().next().unwrap().2.kind(),
        SuspensionKind::Approval,
        "nothing happens before the policy answers"
    );
    let late = world.begin("ann", approve(suspension)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(late, "this approval is no longer open: nobody answered it in time");
    world.handle.cancel(&agent(), &talk(), turn).await.unwrap();
    gate.add_permits(1);
    settle().await;
    assert_eq!(world.turn(turn).await.calls[0].outcome(), Some(&Outcome::Cancelled));
}

#[tokio::test]
async fn answer_without_authority_delays_no_authorised_one() {
    let settings = TurnSettings { standing_active: 1, ..TurnSettings::default() };
    let world = BlockableHost::new(&["server!"], settings, |_| needs(&["ann"], 1));
    let [(_, one), (_, two)] = [world.asks("a", "tool_0").await, world.asks("b", "tool_0").await];
    // Dan's answer was checked and waits behind two links.
    let (first, second) = (world.store.hold(), world.store.hold());
    let links = [world.begin_link(one, 1).await];
    let nobody = world.begin("dan", standing(one)).await;
    let links = links.into_iter().chain([world.begin_link(one, 2).await]);
    first.add_permits(1);
    settle().await;
    assert!(!nobody.is_finished());
    assert_eq!(world.begin("ann", standing(two)).await.await.unwrap().unwrap().state.as_str(), "approve");
    second.add_permits(1);
    let refused = nobody.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, "you are not among the approvers that the operator's rule names");
    for link in links {
        link.await.unwrap();
    }
}

#[tokio::test]
async fn votes_for_equal_edits_are_added_up() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann", "bob"], 2));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let first = world.begin("ann", edit(suspension, r#"{"v":1,"w":2}"#)).await.await.unwrap().unwrap();
    assert_eq!((first.state.as_str(), first.votes_missing), ("open", 1));
    let long = "x".repeat(Bounds::default().comment + 1);
    let to = Named::Somebody(approver("dan"));
    let refused = world.handle.delegate(&approver("bob"), suspension, to, Some(long)).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let second = world.begin("bob", edit(suspension, r#"{ "w": 2, "v": 1 }"#)).await.await.unwrap().unwrap();
    assert_eq!(second.state.as_str(), "approve");
    assert_eq!(world.turn(turn).await.calls[0].arguments.as_str(), r#"{"v":1,"w":2}"#, "in the form of the first vote");
}
