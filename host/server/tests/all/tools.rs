//! One tool of each kind. Tests can hold and release its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dispatch::ports::{Checks, End, KnownTool, Progress, Run, Tools};
use domain::{
    Digest, Json, Outcome, PluginName, SignalName, Tool, ToolName, Violation,
    call::{Pinned, Wait},
    step::{Question, RunEnd, StepEnd, StepRequest, StepWait},
    tool::{Approval, Editable, Executor, Hints, ToolOptions},
};
use tokio::sync::Semaphore;

/// The schema of every tool's arguments. Its odd white space must be kept.
pub(crate) const PARAMETERS: &str = r#"{"type": "object",  "properties": {"city": {"type": "string"}}, "x": 1.0}"#;

/// The tools of the tests.
pub(crate) struct Shelf {
    tools: Vec<Arc<KnownTool>>,
    /// Tools that no list has: `receive` is durable, waits for an external system, and its result is the one that it
    /// receives. Clients run `scan`.
    unlisted: [Arc<KnownTool>; 2],
    /// Runs of `slow` wait for a permit of this.
    pub(crate) slow: Semaphore,
    /// The number of plugins that are being loaded.
    pub(crate) left: AtomicUsize,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let tools = [
            ("ask", "human"),
            ("echo", "server"),
            ("locate", "client"),
            ("pay", "server!"),
            ("slow", "server"),
            ("web_search", "provider"),
        ];
        Self {
            tools: tools.map(|(name, words)| Arc::new(live(name, words))).into(),
            unlisted: [("receive", "server"), ("scan", "client")].map(|(name, words)| Arc::new(live(name, words))),
            slow: Semaphore::new(0),
            left: AtomicUsize::new(0),
        }
    }
}

impl Shelf {
    /// How many texts and turns share what a call of this tool is pinned to.
    pub(crate) fn pins(&self, name: &str) -> usize {
        Arc::strong_count(&self.find(name).unwrap().pinned)
    }
}

/// Objects whose `city` is a string, and answers that are strings.
struct Strings;

impl Checks for Strings {
    fn arguments(&self, value: &Json) -> Vec<Violation> {
        let violation =
            |pointer: &str, message: &str| vec![Violation { pointer: pointer.into(), message: message.into() }];
        match serde_json::from_str(value.as_str()) {
            Ok(serde_json::Value::Object(members)) => match members.get("city") {
                None | Some(serde_json::Value::String(_)) => Vec::new(),
                Some(_) => violation("/city", "a string is expected"),
            },
            _ => violation("", "an object is expected"),
        }
    }

    fn result(&self, _: &Json) -> Vec<Violation> {
        Vec::new()
    }

    fn response(&self, value: &Json) -> Vec<Violation> {
        if value.as_str().starts_with('"') {
            return Vec::new();
        }
        vec![Violation { pointer: String::new(), message: "a string is expected".into() }]
    }
}

#[async_trait]
impl Tools for Shelf {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        let found = self.tools.iter().chain(&self.unlisted).find(|live| live.tool.name.as_str() == name);
        found.cloned().ok_or_else(|| ToolName::new("echo").ok())
    }

    fn pinned(&self, _: &PluginName, _: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.find(name).ok()
    }

    fn violations(&self, _: &Json, value: &Json) -> Vec<Violation> {
        Strings.response(value)
    }

    fn loading(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.clone()
    }

    async fn run(&self, run: Run) -> End {
        if &*run.tool == "slow" {
            run.monitor.log(domain::call::Level::Info, "it begins");
            let data = Some(Json::unchecked("[1]"));
            run.monitor.progress(Progress { message: "half".into(), fraction: Some(0.5), data });
            self.slow.acquire().await.unwrap().forget();
        }
        if &*run.tool == "receive" {
            return End { ended: received(&run), wrote: false, receipt: None };
        }
        End { ended: Outcome::Ok { value: run.arguments, trusted: true }.into(), wrote: false, receipt: None }
    }
}

/// Waits for a string, under the name of a signal if `city` is one.
fn received(run: &Run) -> RunEnd {
    let arguments: serde_json::Value = serde_json::from_str(run.arguments.as_str()).unwrap();
    let signal = arguments["city"].as_str().and_then(|name| SignalName::new(name).ok());
    match run.durable.as_ref().and_then(|durable| durable.steps.last()).map(|step| &step.end) {
        None => {
            let response = Some(Json::unchecked(r#"{"type":"string"}"#));
            let question = Question { prompt: "The job ends".into(), response, ..Question::default() };
            let metadata = Some(Json::unchecked(r#"{"job": 7}"#));
            RunEnd::Waits(StepRequest {
                digest: Digest::of("receive"),
                wait: StepWait::External { question, signal, metadata },
            })
        }
        Some(StepEnd::Received(value)) => Outcome::Ok { value: value.clone(), trusted: true }.into(),
        Some(other) => Outcome::Ok { value: Json::unchecked(format!("\"{other:?}\"")), trusted: true }.into(),
    }
}

fn live(name: &str, words: &str) -> KnownTool {
    let KnownTool { tool, pinned, wait, effect, allowed, .. } = toolgate_tests::tools::live(name, words);
    let schema = (tool.executor == Executor::Human).then(|| Json::unchecked(r#"{"type":"string"}"#));
    let editable = match tool.approval {
        Approval::Auto => Editable::Nothing,
        Approval::RequiresApproval => Editable::Fields(Arc::new(["city".to_owned()])),
    };
    let options = ToolOptions {
        response: schema.clone(),
        editable: editable.clone(),
        result: (name == "echo").then(|| Json::unchecked(r#"{"type":"object"}"#)),
        hints: Hints { read_only: (name == "echo").then_some(true), ..Hints::default() },
        ..ToolOptions::default()
    };
    let (plugin, declaration, streaming) = (PluginName::new("shelf").unwrap(), Digest::of(name), name == "slow");
    let wait = Wait { data_schema: schema, editable, ..wait };
    let waits = pinned.wait.as_ref().map(|_| wait.clone());
    let durable = name == "receive";
    let pinned = Pinned { plugin: plugin.clone(), declaration, streaming, durable, wait: waits, ..(*pinned).clone() };
    let (description, parameters) = (format!("The tool {name}."), Json::unchecked(PARAMETERS));
    let tool = Tool { description, parameters, streaming, options, plugin, declaration, ..tool };
    KnownTool { tool, pinned: Arc::new(pinned), wait, effect, allowed, checks: Arc::new(Strings) }
}
