//! One tool of each kind. Tests can hold and release its runs.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Checks, End, KnownTool, Progress, Run, Tools};
use domain::{
    Digest, Json, Outcome, PluginName, Span, Tool, ToolName, Violation,
    call::{Pinned, Wait},
    gate::Rule,
    tool::{Approval, Editable, Executor, Hints, OnExpiry, Recovery, ToolOptions},
};
use tokio::sync::Semaphore;

/// The schema of every tool's arguments. Its odd white space must be kept.
pub(crate) const PARAMETERS: &str = r#"{"type": "object",  "properties": {"city": {"type": "string"}}, "x": 1.0}"#;

/// The tools of the tests.
pub(crate) struct Shelf {
    tools: Vec<Arc<KnownTool>>,
    /// Runs of `slow` wait for a permit of this.
    pub(crate) slow: Semaphore,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        use Approval::{Auto, RequiresApproval};
        let tools = vec![
            live("ask", Executor::Human, Auto),
            live("echo", Executor::Server, Auto),
            live("locate", Executor::Client, Auto),
            live("pay", Executor::Server, RequiresApproval),
            live("slow", Executor::Server, Auto),
            live("web_search", Executor::Provider, Auto),
        ];
        Self { tools: tools.into_iter().map(Arc::new).collect(), slow: Semaphore::new(0) }
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
        let found = self.tools.iter().find(|live| live.tool.name.as_str() == name);
        found.cloned().ok_or_else(|| ToolName::new("echo").ok())
    }

    fn pinned(&self, _: &PluginName, _: Digest, name: &str) -> Option<Arc<KnownTool>> {
        self.find(name).ok()
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.clone()
    }

    async fn run(&self, run: Run) -> End {
        if &*run.tool == "slow" {
            run.report.log(domain::call::Level::Info, "it begins");
            let data = Some(Json::new("[1]"));
            run.report.progress(Progress { message: "half".into(), fraction: Some(0.5), data });
            self.slow.acquire().await.unwrap().forget();
        }
        End { outcome: Outcome::Ok { value: run.arguments, trusted: true }, wrote: false, receipt: None }
    }
}

fn live(name: &str, executor: Executor, approval: Approval) -> KnownTool {
    let waits = approval == Approval::RequiresApproval || matches!(executor, Executor::Human | Executor::Client);
    let schema = (executor == Executor::Human).then(|| Json::new(r#"{"type":"string"}"#));
    let editable = match approval {
        Approval::Auto => Editable::Nothing,
        Approval::RequiresApproval => Editable::Fields(Arc::new(["city".to_owned()])),
    };
    let options = ToolOptions {
        response: schema.clone(),
        editable: editable.clone(),
        result: (name == "echo").then(|| Json::new(r#"{"type":"object"}"#)),
        hints: Hints { read_only: (name == "echo").then_some(true), ..Hints::default() },
        ..ToolOptions::default()
    };
    let (component, declaration) = (Digest::of("component"), Digest::of(name));
    let plugin = PluginName::new("shelf").unwrap();
    let wait = Wait {
        expires: Span::from_secs(3600),
        on_expiry: OnExpiry::Error,
        responses: None,
        response: schema,
        result: None,
        editable,
    };
    let pinned = Pinned {
        plugin: plugin.clone(),
        component,
        declaration,
        executor,
        approval,
        streaming: name == "slow",
        timeout: Span::from_secs(30),
        recovery: Recovery::Retry,
        wait: waits.then(|| wait.clone()),
    };
    let tool = Tool {
        name: ToolName::new(name).unwrap(),
        description: format!("The tool {name}."),
        parameters: Json::new(PARAMETERS),
        executor,
        approval,
        streaming: name == "slow",
        options,
        plugin,
        component,
        declaration,
    };
    KnownTool { tool, pinned: Arc::new(pinned), wait, rule: Rule::Allow, checks: Arc::new(Strings) }
}
