//! A host with an endpoint, and clients that write and read lines.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{AllowedEffects, Checks, End, Filter, KnownTool, Progress, Run, Tools};
use dispatch::{Answer, Dispatcher};
use domain::call::Pinned;
use domain::event::{PluginChange, PluginEvent};
use domain::suspension::Decision;
use domain::tool::{Hints, ToolOptions};
use domain::{
    Digest, Json, Outcome, PluginName, Principal, PrincipalId, Span, SuspensionId, Timestamp, Tool, ToolName, TurnId,
    Violation, principal::Role,
};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, Semaphore};
use toolgate_mcp::{Endpoint, EndpointBounds, EndpointParts};
use toolgate_tests::world::{World, settle};

/// The maximum size of a message.
pub(crate) const MAX_MESSAGE: usize = 64 << 10;

/// One tool of each kind. A run returns its arguments.
pub(crate) struct Shelf {
    tools: Vec<Arc<KnownTool>>,
    /// Runs of `slow`, and those with this word in their arguments, wait for a permit.
    pub(crate) slow: Semaphore,
    /// The reports of a run of `work`. It ends with `None`.
    pub(crate) work: UnboundedSender<Option<Progress>>,
    reports: Mutex<UnboundedReceiver<Option<Progress>>>,
}

impl Shelf {
    fn new() -> Self {
        let tools = [
            ("ask", "human"),
            ("choose", "human"),
            ("echo", "server"),
            ("pay", "server!"),
            ("slow", "server"),
            // Never reached.
            ("toolgate_wait", "server"),
            ("web_search", "provider"),
            ("work", "server"),
        ];
        let tools = tools.map(|(name, words)| Arc::new(live(name, words))).into();
        let (work, reports) = unbounded_channel();
        Self { tools, slow: Semaphore::new(0), work, reports: Mutex::new(reports) }
    }
}

fn live(name: &str, words: &str) -> KnownTool {
    let mut known = toolgate_tests::tools::live(name, words);
    Arc::make_mut(&mut known.pinned).streaming = name == "work";
    if let Some(wait) = Arc::make_mut(&mut known.pinned).wait.as_mut().filter(|_| name == "choose") {
        let note = "{\"type\":\"object\",\"properties\":{\"note\":{\"type\":\"string\",\"maxLength\":4,\"title\":\"N\u{202e}\"}},\"required\":[\"note\"]}";
        wait.choices = Some(["keep".to_owned(), "drop".to_owned()].into());
        wait.data_schema = Some(Json::unchecked(note));
    }
    let options = ToolOptions {
        title: Some(format!("The {name}")),
        result: (name == "echo").then(|| Json::unchecked(r#"{"type":"object"}"#)),
        prompt: (name == "choose").then(|| "Which one?\nThe host: \u{202e}your token".to_owned()),
        hints: Hints { read_only: (name == "pay").then_some(false), open_world: Some(true), ..Hints::default() },
        ..ToolOptions::default()
    };
    let allowed = if name == "echo" { AllowedEffects { outside: false, changes: false } } else { known.allowed };
    let checks = if name == "choose" { Arc::new(ShortNotes) } else { known.checks.clone() };
    let tool = Tool { description: format!("What {name} does."), options, ..known.tool };
    KnownTool { tool, allowed, checks, ..known }
}

/// Takes answers with notes of at most four letters.
struct ShortNotes;

impl Checks for ShortNotes {
    fn arguments(&self, _: &Json) -> Vec<Violation> {
        Vec::new()
    }

    fn result(&self, _: &Json) -> Vec<Violation> {
        Vec::new()
    }

    fn response(&self, value: &Json) -> Vec<Violation> {
        let is_long = value.as_str().len() > r#"{"note":"four"}"#.len();
        let violation = || Violation { pointer: "/note".into(), message: "has more than 4 letters".into() };
        if is_long { vec![violation()] } else { Vec::new() }
    }
}

#[async_trait]
impl Tools for Shelf {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        let found = self.tools.iter().find(|live| live.tool.name.as_str() == name);
        found.cloned().ok_or_else(|| ToolName::new("echo").ok())
    }

    fn pinned(&self, _: &PluginName, _: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.find(name).ok()
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.clone()
    }

    async fn recall(&self, _: &Pinned) -> Result<(), Outcome> {
        Ok(())
    }

    async fn run(&self, run: Run) -> End {
        if &*run.tool == "slow" || run.arguments.as_str().contains("slow") {
            self.slow.acquire().await.unwrap().forget();
        }
        if &*run.tool == "work" {
            while let Some(Some(progress)) = self.reports.lock().await.recv().await {
                run.monitor.progress(progress);
            }
        }
        End::unrun(Outcome::Ok { value: run.arguments, trusted: true }.into())
    }
}

/// A host with an endpoint.
pub(crate) struct TestHost {
    world: World,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) host: Dispatcher,
    pub(crate) endpoint: Endpoint,
}

impl TestHost {
    /// Must be called in a runtime.
    pub(crate) fn new() -> Self {
        Self::over(World::at(Timestamp::from_millis(1_767_225_600_000)), true)
    }

    /// A host whose operator lets nobody answer questions in clients.
    pub(crate) fn without_questions(self) -> Self {
        Self::over(self.world, false)
    }

    fn over(world: World, questions: bool) -> Self {
        let shelf = Arc::new(Shelf::new());
        let host = Dispatcher::start(world.parts(shelf.clone()));
        let endpoint = Endpoint::new(EndpointParts {
            handle: host.handle(),
            key: [7; 32],
            ready: Arc::new(()),
            console: Some("http://127.0.0.1:7420".to_owned()),
            questions,
            bounds: EndpointBounds { message: MAX_MESSAGE, ..EndpointBounds::default() },
        });
        Self { world, shelf, host, endpoint }
    }

    /// A second passes, and the next host starts on the same store.
    pub(crate) fn restart(self) -> Self {
        let Self { world, host, endpoint, shelf: _ } = self;
        drop((endpoint, host));
        world.clock.advance(Span::from_secs(1));
        Self::over(world, true)
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.advance_millis(seconds * 1_000);
    }

    pub(crate) fn advance_millis(&self, millis: u64) {
        self.world.clock.advance(Span::from_millis(millis));
    }

    /// Lets a request that waits for a call return.
    pub(crate) async fn end_holds(&self) {
        settle().await;
        self.advance(26);
    }

    /// The suspensions that people may answer.
    pub(crate) async fn open(&self) -> Vec<SuspensionId> {
        let filter = Filter { open: Some(true), ..Filter::default() };
        let page = self.host.handle().suspensions(&bob(), filter, None, 100).await.unwrap();
        page.items.iter().map(|item| item.suspension.id).collect()
    }

    /// The turn of the only open suspension.
    pub(crate) async fn open_turn(&self) -> TurnId {
        let filter = Filter { open: Some(true), ..Filter::default() };
        let page = self.host.handle().suspensions(&bob(), filter, None, 2).await.unwrap();
        let [item] = &page.items[..] else { panic!("{} are open", page.items.len()) };
        item.turn
    }

    /// Decides about the only open suspension.
    pub(crate) async fn decide(&self, decision: Decision) {
        let open = self.open().await;
        let [suspension] = open[..] else { panic!("{open:?}") };
        let answer = Answer {
            suspension,
            decision,
            data: None,
            arguments: None,
            comment: None,
            expect_digest: None,
            standing: None,
        };
        self.host.handle().resolve(&bob(), answer).await.unwrap();
    }

    /// The running call of `work` reports this.
    pub(crate) async fn report(&self, fraction: f64, message: &str) {
        let progress = Progress { message: message.to_owned(), fraction: Some(fraction), data: None };
        self.shelf.work.send(Some(progress)).unwrap();
        settle().await;
    }

    /// The running call of `work` ends.
    pub(crate) fn end_work(&self) {
        self.shelf.work.send(None).unwrap();
    }

    /// A plugin changes, and time passes.
    pub(crate) async fn change_plugin(&self, change: PluginChange) {
        self.begin_change(change).await;
        self.advance(1);
        settle().await;
    }

    /// A plugin changes, and no time passes.
    pub(crate) async fn begin_change(&self, change: PluginChange) {
        let (plugin, component) = (PluginName::new("p").unwrap(), Digest::of("p"));
        let (at, grants) = (Timestamp::from_millis(0), Vec::new());
        let event = PluginEvent { plugin, component, change, at, by: None, grants };
        self.host.handle().plugin_changed(event).await.unwrap();
        settle().await;
    }

    /// A client whose lines are those of this caller.
    pub(crate) fn client(&self, who: &str) -> Client {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(far);
        let (endpoint, by) = (self.endpoint.clone(), caller(who));
        tokio::spawn(async move { endpoint.serve(by, read, write).await });
        let (read, write) = tokio::io::split(near);
        Client { read: BufReader::new(read), write, last: 0 }
    }
}

pub(crate) fn caller(name: &str) -> Principal {
    Principal::new(PrincipalId::new(name).unwrap(), [Role::Caller])
}

fn bob() -> Principal {
    Principal::new(PrincipalId::new("bob").unwrap(), [Role::Approver])
}

/// The `_meta` of a request of the newest revision.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

/// A client of the newest revision.
pub(crate) struct Client {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    last: u64,
}

impl Client {
    pub(crate) async fn write(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        let mut all = meta();
        if let Some(own) = params.get("_meta").and_then(Value::as_object) {
            all.as_object_mut().unwrap().extend(own.clone());
        }
        params["_meta"] = all;
        let message = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.write(&message.to_string()).await;
        self.last
    }

    /// Sends a call.
    pub(crate) async fn send_call(&mut self, tool: &str, arguments: Value) {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }

    /// The next message.
    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.read.read_line(&mut line).await.unwrap() > 0, "the endpoint has closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, if one is there.
    pub(crate) async fn received(&mut self) -> Option<Value> {
        settle().await;
        self.receive().now_or_never()
    }

    /// Sends a request, and returns the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params).await;
        self.receive().await
    }

    /// Makes a call, and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send_call(tool, arguments).await;
        self.result().await
    }

    /// The result in the next message.
    pub(crate) async fn result(&mut self) -> Value {
        let mut message = self.receive().await;
        let result = message.get_mut("result").map(Value::take);
        result.unwrap_or_else(|| panic!("no result: {message}"))
    }
}

/// The host's facts about the call of a result.
pub(crate) fn about(result: &Value) -> &Value {
    &result["_meta"]["dev.toolgate/call"]
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
