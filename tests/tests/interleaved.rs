//! What happens while something else is under way: a port is held open at the point in question, the other thing happens, and
//! the port is let go. Nothing here depends on time or chance.

#![expect(clippy::unwrap_used, reason = "what a test is made of fails by panicking, as a test does")]

#[path = "interleaved/forgotten.rs"]
mod forgotten;
#[path = "interleaved/silence.rs"]
mod silence;
#[path = "interleaved/standing.rs"]
mod standing;
#[path = "interleaved/submitting.rs"]
mod submitting;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dispatch::ports::{End, Policy, Question, Run};
use dispatch::{Answer, Answered, Bounds, CallRequest, Error, Handle, Host, Parts, Quotas, TurnRequest, WantedLink};
use domain::{
    CallId, ConversationId, Json, Kind, LinkId, Named, Need, Outcome, OwnerId, Pin, Principal, PrincipalId, Rejection,
    Role, Rule, Rules, Span, StandingTerms, SuspensionId, SuspensionState, Turn, TurnId, Verdict,
};
use store::MemoryStore;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};
use toolgate_tests::clock::SimClock;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::tools::WordTools;

/// How long a tool of these tests waits for people.
const PATIENCE: Span = Span::from_secs(3600);

type Says = dyn Fn(&str) -> Verdict + Send + Sync;

/// A policy that goes by the arguments alone, and can be held open.
struct Judge {
    says: Mutex<Arc<Says>>,
    asked: Mutex<Vec<String>>,
    gate: Mutex<Option<Arc<Semaphore>>>,
    stuck: Mutex<Option<(PrincipalId, Arc<Semaphore>)>>,
}

impl Judge {
    fn says(&self, says: impl Fn(&str) -> Verdict + Send + Sync + 'static) {
        *self.says.lock().unwrap() = Arc::new(says);
    }

    /// Holds the next question until this has a permit.
    fn hold(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    /// Holds every question about a caller until this has a permit.
    fn hold_all_of(&self, caller: &Principal) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.stuck.lock().unwrap() = Some((caller.id.clone(), gate.clone()));
        gate
    }
}

#[async_trait]
impl Policy for Judge {
    async fn judge(&self, question: Question) -> Verdict {
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

struct World {
    _host: Host,
    handle: Handle,
    clock: Arc<SimClock>,
    store: Arc<MortalStore>,
    tools: Arc<WordTools>,
    policy: Arc<Judge>,
}

fn person(name: &str, role: Role) -> Principal {
    Principal::new(name.parse().unwrap(), [role])
}

fn approver(name: &str) -> Principal {
    person(name, Role::Approver)
}

fn agent() -> Principal {
    person("agent", Role::Caller)
}

fn conversation() -> ConversationId {
    ConversationId::new("talk").unwrap()
}

fn verdict(rule: Rule) -> Verdict {
    Verdict { rule, ..Verdict::default() }
}

/// So many of these people have to approve.
fn needs(who: &[&str], quorum: u32) -> Verdict {
    let who = who.iter().map(|name| format!("principal:{name}").parse().unwrap()).collect();
    Verdict { by: Some("a-rule".into()), needs: [Need { who, quorum, escalate: None }].into(), ..verdict(Rule::Ask) }
}

fn approve(suspension: SuspensionId) -> Answer {
    Answer {
        suspension,
        decision: "approve".into(),
        data: None,
        arguments: None,
        comment: None,
        expect_digest: None,
        standing: None,
    }
}

fn edit(suspension: SuspensionId, arguments: &str) -> Answer {
    Answer { arguments: Some(Json::new(arguments)), ..approve(suspension) }
}

fn standing(suspension: SuspensionId) -> Answer {
    let terms = StandingTerms { time: Span::from_secs(60), uses: 1, pin: Pin::All };
    Answer { standing: Some(terms), ..approve(suspension) }
}

/// Lets everything happen that can happen without time passing.
async fn settle() {
    for _ in 0..1_000 {
        yield_now().await;
    }
}

impl World {
    fn new(words: &[&str], rules: Rules, says: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> Self {
        let run = |_| async { End::unrun(Outcome::Ok { value: Json::new("{}"), trusted: true }) };
        Self::with(words, rules, Quotas::default(), run, says)
    }

    /// With guests that run like this.
    fn with<F: Future<Output = End> + Send + 'static>(
        words: &[&str],
        rules: Rules,
        quotas: Quotas,
        run: impl Fn(Run) -> F + Send + Sync + 'static,
        says: impl Fn(&str) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let (clock, store) = (Arc::<SimClock>::default(), Arc::new(MortalStore::new(Arc::new(MemoryStore::default()))));
        let tools = Arc::new(WordTools::new(words, run));
        let policy = Arc::new(Judge {
            says: Mutex::new(Arc::new(says)),
            asked: Mutex::default(),
            gate: Mutex::default(),
            stuck: Mutex::default(),
        });
        let minted = AtomicU64::new(1);
        let host = Host::start(Parts {
            store: store.clone(),
            tools: tools.clone(),
            policy: policy.clone(),
            clock: clock.clone(),
            guests: tokio::runtime::Handle::current(),
            owner: OwnerId::from_bits(7),
            mint: Arc::new(move || u128::from(minted.fetch_add(1, Ordering::Relaxed))),
            rules,
            bounds: Bounds::default(),
            quotas,
            subscribers: Arc::new(()),
        });
        Self { handle: host.handle(), _host: host, clock, store, tools, policy }
    }

    /// A turn with one call of this tool, and what it waits for.
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
        let call = |(id, tool): &(&str, &str)| CallRequest {
            id: CallId::new(id).unwrap(),
            tool: (*tool).into(),
            arguments: Json::new(arguments),
            result: None,
            origin: None,
        };
        TurnRequest {
            conversation: conversation(),
            calls: calls.iter().map(call).collect(),
            context: None,
            rejection: Rejection::default(),
            ephemeral: false,
        }
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.handle.turn(&agent(), &conversation(), id).await.unwrap()
    }

    /// Answers, as far as that comes while something is held.
    async fn begin(&self, by: &str, answer: Answer) -> JoinHandle<Result<Answered, Error>> {
        let (handle, by) = (self.handle.clone(), approver(by));
        let answering = tokio::spawn(async move { handle.resolve(&by, answer).await });
        settle().await;
        answering
    }

    /// Has a link made, which is a commit that changes nothing else.
    async fn begin_link(&self, suspension: SuspensionId, id: u128) -> JoinHandle<()> {
        let (handle, expires_at) = (self.handle.clone(), self.handle.now() + Span::from_secs(60));
        let to = approver("ann").id;
        let wanted = WantedLink { id: LinkId::from_bits(id), suspension, to, webhook: None, expires_at };
        let making = tokio::spawn(async move {
            handle.make_link(&person("root", Role::Admin), wanted).await.unwrap();
        });
        settle().await;
        making
    }

    async fn hand(&self, suspension: SuspensionId, from: &str, to: &str) -> Result<(), Error> {
        self.handle.delegate(&approver(from), suspension, Named::Somebody(approver(to)), None).await
    }
}

#[tokio::test]
async fn a_say_that_comes_while_an_edit_is_on_its_way_is_none_for_what_nobody_judged() {
    let world = World::new(&["server!"], Rules::default(), |arguments| match arguments {
        r#"{"v":5}"# => verdict(Rule::Deny),
        _ => needs(&["ann", "bob"], 2),
    });
    let (turn, suspension) = world.asks("a", "tool_0").await;
    // Bob's vote is being committed. Dan, who has no say, has sent an edit, and ann hands him hers: what waits, waits in this order.
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
    assert_eq!(*world.policy.asked.lock().unwrap(), [r#"{"v":0}"#], "it was not asked for one without a say");
    // Asked again, it is judged.
    let refused = world.begin("dan", edit(suspension, r#"{"v":5}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, "the policy denies the call with these arguments");
    assert_eq!(
        world.begin("dan", edit(suspension, r#"{"v":1}"#)).await.await.unwrap().unwrap().state,
        SuspensionState::Open
    );
}

#[tokio::test]
async fn who_hands_their_say_on_while_the_policy_is_asked_has_none_when_it_answers() {
    let world = World::new(&["server!"], Rules::default(), |_| needs(&["ann"], 1));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let gate = world.policy.hold();
    let edited = world.begin("ann", edit(suspension, r#"{"v":1}"#)).await;
    world.hand(suspension, "ann", "dan").await.unwrap();
    gate.add_permits(1);
    assert_eq!(edited.await.unwrap().unwrap_err().to_string(), "you delegated your authority over this to dan");
    assert!(!world.turn(turn).await.is_ended());
    assert_eq!(world.begin("dan", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
}

/// What becomes of a call of each executor that nobody answers, where the policy says this by then: the outcome, or what is
/// waited for.
async fn silent(says: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> [String; 2] {
    silent_after(says, |_| {}).await
}

/// The same, after something happened to the tools while they waited.
async fn silent_after(
    says: impl Fn(&str) -> Verdict + Send + Sync + 'static,
    happens: impl FnOnce(&WordTools),
) -> [String; 2] {
    let tools = ["client!:expiry=approve", "server!:expiry=approve"];
    let world = World::new(&tools, Rules::default(), |_| Verdict::default());
    let turns = [world.asks("a", "tool_0").await.0, world.asks("b", "tool_1").await.0];
    world.policy.says(says);
    happens(&world.tools);
    world.clock.advance(PATIENCE);
    settle().await;
    let mut told = Vec::new();
    for id in turns {
        let turn = world.turn(id).await;
        let waits = turn.pending().next().map(|(.., open)| open.kind().as_str().to_owned());
        told.push(waits.unwrap_or_else(|| format!("{:?}", turn.calls[0].outcome().unwrap())));
    }
    told.try_into().unwrap()
}

#[tokio::test]
async fn what_silence_would_approve_is_judged_when_the_time_is_over() {
    let ok = r#"Ok { value: {}, trusted: true }"#;
    assert_eq!(silent(|_| Verdict::default()).await, ["client_exec", ok]);
    assert_eq!(silent(|_| needs(&["ann"], 1)).await, ["Expired", "Expired"], "a rule asks in the meantime");
    let denied = |_: &str| Verdict { reason: Some("not any more".into()), ..verdict(Rule::Deny) };
    assert_eq!(silent(denied).await, [r#"Denied(Some("not any more"))"#; 2]);
    let named = |_: &str| Verdict { rule: Rule::Allow, ..needs(&["ann"], 1) };
    assert_eq!(silent(named).await, ["Expired", "Expired"], "who has to approve is named");
    let withdrawn = silent_after(|_| Verdict::default(), WordTools::withdraw_silence).await;
    assert_eq!(withdrawn, ["Expired", "Expired"], "the operator allows it no more");
}

#[tokio::test]
async fn nothing_else_waits_for_what_the_policy_makes_of_silence() {
    let world = World::new(&["server!:expiry=approve", "server!"], Rules::default(), |_| Verdict::default());
    let silent = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await.id;
    world.clock.advance(Span::from_secs(1));
    let (later, _) = world.asks("c", "tool_1").await;
    let asked = || world.policy.asked.lock().unwrap().len();
    assert_eq!(asked(), 3);
    let gate = world.policy.hold();
    world.clock.advance(Span::from_secs(3599));
    settle().await;
    assert_eq!(world.turn(silent).await.calls[1].outcome(), Some(&Outcome::Expired), "not even in the same turn");
    world.clock.advance(Span::from_secs(1));
    settle().await;
    assert_eq!(world.turn(later).await.calls[0].outcome(), Some(&Outcome::Expired));
    // However often it is looked at meanwhile, it is judged once.
    for _ in 0..3 {
        world.clock.advance(Span::from_secs(60));
        settle().await;
    }
    assert_eq!((asked(), world.turn(silent).await.is_ended()), (4, false));
    gate.add_permits(1);
    settle().await;
    let ok = Outcome::Ok { value: Json::new("{}"), trusted: true };
    assert_eq!(world.turn(silent).await.calls[0].outcome(), Some(&ok));
    assert_eq!(asked(), 5, "and again before it runs");
}

#[tokio::test]
async fn what_could_not_be_judged_is_judged_again_whatever_another_call_of_its_turn_waits_for() {
    let fails = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&fails);
    let world = World::new(&["server!:expiry=approve"; 2], Rules::default(), move |_| {
        assert!(!broken.swap(false, Ordering::Relaxed), "the policy is broken, this once");
        Verdict::default()
    });
    let turn = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await.id;
    let gate = world.policy.hold();
    fails.store(true, Ordering::Relaxed);
    let ended = async || world.turn(turn).await.calls.iter().filter(|call| call.outcome().is_some()).count();
    world.clock.advance(PATIENCE);
    settle().await;
    assert_eq!((ended().await, fails.load(Ordering::Relaxed)), (0, false), "one is asked about, the other failed");
    world.clock.advance(Span::from_secs(1));
    settle().await;
    assert_eq!(ended().await, 1);
    gate.add_permits(1);
    settle().await;
    assert_eq!(ended().await, 2);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_silence_is_judged_stays_so() {
    let world = World::new(&["client!:expiry=approve"], Rules::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let gate = world.policy.hold();
    world.clock.advance(PATIENCE);
    settle().await;
    assert_eq!(
        world.turn(turn).await.pending().next().unwrap().2.kind(),
        Kind::Approval,
        "nothing before it has answered"
    );
    let late = world.begin("ann", approve(suspension)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(late, "this question is no longer open: expired");
    world.handle.cancel(&agent(), &conversation(), turn).await.unwrap();
    gate.add_permits(1);
    settle().await;
    assert_eq!(world.turn(turn).await.calls[0].outcome(), Some(&Outcome::Cancelled));
}

#[tokio::test]
async fn an_answer_of_somebody_without_a_say_holds_up_nobody_who_has_one() {
    let rules = Rules { standing_active: 1, ..Rules::default() };
    let world = World::new(&["server!"], rules, |_| needs(&["ann"], 1));
    let [(_, one), (_, two)] = [world.asks("a", "tool_0").await, world.asks("b", "tool_0").await];
    // Dan's answer has been looked at and waits for two links that are being made.
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
    assert_eq!(refused, "the operator names others who may answer this");
    for link in links {
        link.await.unwrap();
    }
}

#[tokio::test]
async fn votes_for_the_same_edit_count_together_however_it_is_written() {
    let world = World::new(&["server!"], Rules::default(), |_| needs(&["ann", "bob"], 2));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let first = world.begin("ann", edit(suspension, r#"{"v":1,"w":2}"#)).await.await.unwrap().unwrap();
    assert_eq!((first.state.as_str(), first.votes_missing), ("open", 1));
    let long = "x".repeat(Bounds::default().comment + 1);
    let to = Named::Somebody(approver("dan"));
    let refused = world.handle.delegate(&approver("bob"), suspension, to, Some(long)).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let second = world.begin("bob", edit(suspension, r#"{ "w": 2, "v": 1 }"#)).await.await.unwrap().unwrap();
    assert_eq!(second.state.as_str(), "approve");
    assert_eq!(world.turn(turn).await.calls[0].arguments.as_str(), r#"{"v":1,"w":2}"#, "as it was written first");
}
