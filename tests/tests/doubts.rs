//! The questions about what a kill of the host left in doubt: whether to run a call again, and what to do about the requests of a
//! durable call.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::{Arc, Mutex};

use capabilities::Grants;
use dispatch::ports::{End, Run};
use dispatch::{Answer, Dispatcher, Handle};
use domain::{
    Digest, Json, Outcome, Span, Timestamp, Turn, TurnId,
    doubt::{DecidedRequest, Doubt, RequestDecision},
    journal::{Entry, Record},
    principal::Role,
    step::RunEnd,
};
use toolgate_tests::requests::{answer, call, conversation, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

#[tokio::test]
async fn question_about_a_call_without_a_gate_shows_the_defaults() {
    let world = World::default();
    let words = r#"server:recovery=ask,parameters={"properties":{"b":{"default":2}}}"#;
    let start = || {
        let tools = WordTools::new(&[words], |_| std::future::pending());
        Dispatcher::start(world.parts(Arc::new(tools)))
    };
    let host = start();
    let agent = principal("agent", Role::Caller);
    let submitted = host.handle().submit(&agent, turn("c", [call("a", "tool_0", r#"{"a":1}"#)])).await.unwrap();
    settle().await;
    drop(host);
    let host = start();
    settle().await;
    let turn = host.handle().turn(&agent, &conversation("c"), submitted.turn.id).await.unwrap();
    let (.., open) = turn.pending().next().unwrap();
    assert_eq!(open.doubt(), Some(&Doubt::Run(1)));
    assert_eq!(open.asked().unwrap().defaults.as_ref().map(Json::as_str), Some(r#"{"/b":2}"#));
}

/// A host with a durable tool that begins two requests and never gets an answer. Once somebody has decided, it returns.
struct Sending {
    world: World,
    words: &'static str,
    /// The decisions that the last run got.
    decided: Arc<Mutex<Vec<DecidedRequest>>>,
    running: Option<Dispatcher>,
}

impl Sending {
    fn new(words: &'static str) -> Self {
        let mut host = Self { world: World::default(), words, decided: Arc::default(), running: None };
        host.restart();
        host
    }

    fn restart(&mut self) {
        self.running = None;
        let decided = self.decided.clone();
        let tools = WordTools::new(&[self.words], move |run: Run| send(run, decided.clone()));
        self.running = Some(Dispatcher::start(self.world.parts(Arc::new(tools))));
    }

    fn handle(&self) -> Handle {
        self.running.as_ref().unwrap().handle()
    }

    /// A turn whose host was killed while its call waited for the answers.
    async fn killed(&mut self) -> TurnId {
        let request = turn("c", [call("a", "tool_0", "{}")]);
        let id = self.handle().submit(&principal("agent", Role::Caller), request).await.unwrap().turn.id;
        settle().await;
        self.restart();
        settle().await;
        id
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.handle().turn(&principal("agent", Role::Caller), &conversation("c"), id).await.unwrap()
    }

    async fn decide(&self, turn: &Turn, decision: &str, arguments: Option<&str>) -> Result<(), dispatch::Error> {
        let (.., open) = turn.pending().next().unwrap();
        let answer = Answer { arguments: arguments.map(Json::unchecked), ..answer(open.id, decision) };
        self.handle().resolve(&principal("ann", Role::Approver), answer).await?;
        settle().await;
        Ok(())
    }
}

async fn send(run: Run, decided: Arc<Mutex<Vec<DecidedRequest>>>) -> End {
    let durable = run.durable.unwrap();
    if let Some(requests) = Grants::default().doubtful_requests(&durable) {
        return End::unrun(RunEnd::InDoubt(requests));
    }
    if !durable.decided.is_empty() {
        *decided.lock().unwrap() = durable.decided.to_vec();
        return End::unrun(Outcome::Ok { value: Json::unchecked("1"), trusted: true }.into());
    }
    let entry = |number, path: &str| Entry {
        number,
        step: 0,
        run: None,
        function: None,
        digest: Digest::of(path),
        at: Timestamp::from_millis(0),
        salt: None,
        transferred: None,
        record: Record::Begun(format!("http POST https://a{path}").into()),
    };
    let (journal, _) = run.journal.unwrap();
    journal.append(vec![entry(0, "/x"), entry(1, "/y")], Vec::new()).await.unwrap();
    std::future::pending().await
}

#[tokio::test]
async fn killed_requests_are_decided_in_one_suspension() {
    let mut host = Sending::new("server:durable=yes,recovery=ask");
    let id = host.killed().await;
    let turn = host.turn(id).await;
    let [(.., open)] = turn.pending().collect::<Vec<_>>()[..] else { panic!("{turn:?}") };
    let requests: Vec<_> = open.doubtful_requests().unwrap().all().iter().map(|each| &*each.request).collect();
    assert_eq!(requests, ["http POST https://a/x", "http POST https://a/y"]);
    let prompt = open.about().unwrap().prompt.as_deref().unwrap();
    assert!(prompt.contains("\n0: http POST https://a/x, begun at ") && prompt.contains("\n1: "), "{prompt}");

    // Each request needs a decision, and the question survives another kill.
    assert!(host.decide(&turn, "approve", None).await.is_err());
    assert!(host.decide(&turn, "approve", Some(r#"{"0":"send_again"}"#)).await.is_err());
    host.restart();
    settle().await;
    let decisions = r#"{"1":{"status":201,"body":"done"},"0":"fail"}"#;
    host.decide(&turn, "approve", Some(decisions)).await.unwrap();
    let done = RequestDecision::Done { status: 201, body: "done".into() };
    let expected = [(0, RequestDecision::Fail), (1, done)];
    let expected = expected.map(|(entry, decision)| DecidedRequest { entry, decision });
    assert_eq!(*host.decided.lock().unwrap(), expected);
    let turn = host.turn(id).await;
    assert!(matches!(turn.calls[0].outcome(), Some(Outcome::Ok { .. })), "{turn:?}");
    assert_eq!(turn.calls[0].arguments.as_str(), "{}", "the arguments of the call are not edited");
}

#[tokio::test]
async fn recovery_of_the_tool_decides_about_requests() {
    let mut host = Sending::new("server:durable=yes,recovery=fail");
    let id = host.killed().await;
    assert_eq!(host.turn(id).await.calls[0].outcome(), Some(&Outcome::InDoubt));

    let mut host = Sending::new("server:durable=yes,recovery=retry");
    let id = host.killed().await;
    assert!(matches!(host.turn(id).await.calls[0].outcome(), Some(Outcome::Ok { .. })));
    let is_again = |decided: &DecidedRequest| decided.decision == RequestDecision::SendAgain;
    assert!(host.decided.lock().unwrap().iter().all(is_again));
}

#[tokio::test]
async fn denial_or_expiry_of_the_question_ends_the_call_in_doubt() {
    for denies in [true, false] {
        let mut host = Sending::new("server:durable=yes,recovery=ask");
        let id = host.killed().await;
        if denies {
            host.decide(&host.turn(id).await, "deny", None).await.unwrap();
        } else {
            host.world.clock.advance(Span::from_secs(86_400));
            settle().await;
        }
        assert_eq!(host.turn(id).await.calls[0].outcome(), Some(&Outcome::InDoubt));
        assert!(host.decided.lock().unwrap().is_empty());
    }
}
