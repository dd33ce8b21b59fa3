//! JSON from outside is parsed once and has one depth everywhere.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use dispatch::ports::{Checks, End, KnownTool, Policy, PolicyQuery, Run, Tools};
use dispatch::{Answer, CallRequest, Dispatcher, Error, Handle, Parts, ProviderResult, TurnRequest};
use domain::json::{MAX_DEPTH, Value};
use domain::{
    Digest, Json, Outcome, PluginName, Refusal, SuspensionId, ToolName, Turn, Violation, gate::Verdict,
    outcome::FailureCode, principal::Role,
};
use tokio::task::yield_now;
use toolgate_tests::requests::{self, answer, done, principal};
use toolgate_tests::tools::live;
use toolgate_tests::world::World;

/// The values that checks and policy were given. A weak pointer keeps the address, so no later value has the same.
#[derive(Default)]
struct Seen(Mutex<Vec<Weak<Value>>>);

impl Seen {
    fn note(&self, json: &Json) {
        if let Ok(value) = json.value() {
            self.0.lock().unwrap().push(Arc::downgrade(&value));
        }
    }

    fn take(&self) -> Vec<Weak<Value>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Accepts everything.
struct Spy(Arc<Seen>);

impl Checks for Spy {
    fn arguments(&self, value: &Json) -> Vec<Violation> {
        self.0.note(value);
        Vec::new()
    }

    fn result(&self, _: &Json) -> Vec<Violation> {
        Vec::new()
    }

    fn response(&self, _: &Json) -> Vec<Violation> {
        Vec::new()
    }
}

#[async_trait]
impl Policy for Spy {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        // Slow, so that a value that nobody holds is freed before it is needed again.
        yield_now().await;
        self.0.note(&question.arguments);
        Verdict::default()
    }
}

struct SpiedTools(Vec<Arc<KnownTool>>);

#[async_trait]
impl Tools for SpiedTools {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.0.iter().find(|live| live.tool.name.as_str() == name).cloned().ok_or(None)
    }

    fn pinned(&self, _: &PluginName, _: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.find(name).ok()
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.0.clone()
    }

    async fn run(&self, _: Run) -> End {
        done()
    }
}

struct SpiedHost {
    handle: Handle,
    _host: Dispatcher,
    seen: Arc<Seen>,
}

impl SpiedHost {
    fn new() -> Self {
        let seen = Arc::<Seen>::default();
        let tool = |(name, words)| Arc::new(KnownTool { checks: Arc::new(Spy(seen.clone())), ..live(name, words) });
        let words =
            [("run", "server"), ("gated", "server!"), ("ask", "human"), ("page", "client"), ("own", "provider")];
        let tools = Arc::new(SpiedTools(words.into_iter().map(tool).collect()));
        let host = Dispatcher::start(Parts { policy: Arc::new(Spy(seen.clone())), ..World::default().parts(tools) });
        Self { handle: host.handle(), _host: host, seen }
    }

    async fn submit(&self, call: CallRequest, context: Option<Json>) -> Result<Turn, Error> {
        let request = TurnRequest { context, ..requests::turn("talk", [call]) };
        Ok(self.handle.submit(&principal("agent", Role::Caller), request).await?.turn)
    }

    /// A call that waits, with arguments that are not small.
    async fn waits(&self, tool: &str) -> (Turn, SuspensionId) {
        let turn = self.submit(call(tool, "{\"a\":1}"), None).await.unwrap();
        let suspension = turn.pending().next().unwrap().2.id;
        (turn, suspension)
    }
}

fn call(tool: &str, arguments: &str) -> CallRequest {
    let result = (tool == "own").then(|| ProviderResult::Value(Json::unchecked("{}")));
    CallRequest { result, ..requests::call(tool, tool, arguments) }
}

/// An object of this many levels.
fn nested(levels: usize) -> Json {
    Json::unchecked(format!("{{\"a\":{}0{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1)))
}

#[tokio::test]
async fn submitted_arguments_are_parsed_once() {
    for arguments in ["{\"a\":1}".to_owned(), format!("{{\"a\":\"{}\"}}", "x".repeat(100_000))] {
        let world = SpiedHost::new();
        let turn = world.submit(call("gated", &arguments), None).await.unwrap();
        let seen = world.seen.take();
        assert_eq!(seen.len(), 2, "the schema and the policy");
        assert!(seen.iter().all(|value| value.ptr_eq(&seen[0])));
        assert!(seen[0].upgrade().is_none(), "a call that waits keeps only its text");

        let suspension = turn.pending().next().unwrap().2.id;
        let edited = Some(Json::unchecked(arguments.replacen('a', "b", 1)));
        let approval = Answer { arguments: edited, ..answer(suspension, "approve") };
        world.handle.resolve(&principal("ann", Role::Approver), approval).await.unwrap();
        let seen = world.seen.take();
        assert!(seen.len() >= 3, "the schema twice and the policy");
        assert!(seen.iter().all(|value| value.ptr_eq(&seen[0])));
    }
}

#[tokio::test]
async fn submission_has_one_depth() {
    for (levels, accepted) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
        let world = SpiedHost::new();
        let turn = world.submit(CallRequest { arguments: nested(levels), ..call("gated", "") }, None).await.unwrap();
        match turn.calls[0].outcome() {
            None => assert!(accepted),
            Some(Outcome::Failed(failure)) => {
                assert!(!accepted && failure.code == FailureCode::InvalidArguments, "{failure:?}");
                assert!(failure.message.contains("nested deeper than 100 levels"), "{failure:?}");
            }
            other => panic!("{other:?}"),
        }
        let result = Some(ProviderResult::Value(nested(levels)));
        let turn = world.submit(CallRequest { result, ..call("own", "{}") }, None).await.unwrap();
        match turn.calls[0].outcome() {
            Some(Outcome::Ok { .. }) => assert!(accepted),
            Some(Outcome::Failed(failure)) => assert!(!accepted && failure.code == FailureCode::InvalidResult),
            other => panic!("{other:?}"),
        }
        match world.submit(call("run", "{}"), Some(nested(levels))).await {
            Ok(_) => assert!(accepted),
            Err(Error::Refused(Refusal::Invalid(violations))) => {
                assert!(!accepted && violations[0].pointer == "/context", "{violations:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn answers_have_the_same_depth() {
    for (tool, role, decision) in
        [("ask", Role::Approver, "answer"), ("page", Role::Client, "result"), ("gated", Role::Approver, "approve")]
    {
        let world = SpiedHost::new();
        let (_, suspension) = world.waits(tool).await;
        let by = principal("ann", role);
        let answer = |levels| match tool {
            "gated" => Answer { arguments: Some(nested(levels)), ..answer(suspension, decision) },
            _ => Answer { data: Some(nested(levels)), ..answer(suspension, decision) },
        };
        let refused = world.handle.resolve(&by, answer(MAX_DEPTH + 1)).await;
        let Err(Error::Refused(Refusal::Invalid(violations))) = refused else { panic!("{tool}: {refused:?}") };
        assert!(violations[0].message.contains("nested deeper than 100 levels"), "{tool}: {violations:?}");
        world.handle.resolve(&by, answer(MAX_DEPTH)).await.unwrap();
    }
}
