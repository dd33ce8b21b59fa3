//! The live tools: finding them, checking values against their schemas, and running the guests of server tools.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{CallId, Digest, Json, Outcome, Pinned, PluginName, Receipt, Rule, Span, Tool, ToolName, Violation, Wait};

/// The tools of all loaded plugins.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The live tool of this name.
    ///
    /// # Errors
    /// The live tool whose name is nearest, if one is near.
    fn find(&self, name: &str) -> Result<Arc<LiveTool>, Option<ToolName>>;

    /// The tool of a component that may no longer be live: a waiting call stays pinned to what it was submitted to.
    /// `None` once the component's bytes are gone.
    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<LiveTool>>;

    /// Makes known again what [`Tools::pinned`] does not know any more of a component whose bytes are still there. Tools of which
    /// nothing can be lost have nothing to do.
    ///
    /// # Errors
    /// The outcome of a call that cannot run for that.
    async fn recall(&self, _pinned: &Pinned) -> Result<(), Outcome> {
        Ok(())
    }

    /// Every live tool, sorted by name.
    fn list(&self) -> Vec<Arc<LiveTool>>;

    /// Runs a guest to its end. Never panics and never hangs: whatever the guest does is the outcome. Dropping the future
    /// ends the guest as it stands; [`Report`] says what comes before that.
    async fn run(&self, run: Run) -> End;
}

/// A tool that calls can be made of.
pub struct LiveTool {
    /// Its declaration.
    pub tool: Tool,
    /// What a call of it is pinned to, the operator's policy applied.
    pub pinned: Arc<Pinned>,
    /// How its waits look, should a call of it have to wait.
    pub wait: Wait,
    /// What the policy says of it.
    pub rule: Rule,
    /// Its schemas, compiled.
    pub checks: Arc<dyn Checks>,
}

/// The schemas of one tool. Each returns how a value breaks the schema; nothing if it does not, or if there is none.
pub trait Checks: Send + Sync {
    /// The arguments of a call.
    fn arguments(&self, value: &Json) -> Vec<Violation>;
    /// The result of a call.
    fn result(&self, value: &Json) -> Vec<Violation>;
    /// The data of a person's answer.
    fn response(&self, value: &Json) -> Vec<Violation>;
}

/// One run of a guest.
pub struct Run {
    /// What to run.
    pub pinned: Arc<Pinned>,
    /// Which tool of it.
    pub tool: Arc<str>,
    /// The caller's id of the call, the same at every attempt.
    pub call: CallId,
    /// The arguments, checked.
    pub arguments: Json,
    /// Stable over every attempt at the call.
    pub idempotency_key: String,
    /// 1, then one more each time that the call is dispatched again after a kill.
    pub attempt: u32,
    /// A JSON object: conversation, turn, caller, approver, context.
    pub scope: Json,
    /// Where progress and log lines go while it runs, and where it hears that it should stop.
    pub report: Arc<dyn Report>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// How the call ended.
    pub outcome: Outcome,
    /// Whether it changed state that the host keeps for it, so that a result must not be told before that is durable.
    pub wrote: bool,
    /// What the guest spent; `None` where it never ran.
    pub receipt: Option<Receipt>,
}

impl End {
    /// The end of a run whose guest never ran.
    #[must_use]
    pub const fn unrun(outcome: Outcome) -> Self {
        Self { outcome, wrote: false, receipt: None }
    }
}

/// The other end of a run. What it reports goes to the live plane, where it may be dropped; it is never stored.
pub trait Report: Send + Sync {
    /// A guest is about to run, and needs so long to stop should it be told to. False: the call has ended meanwhile, and no
    /// guest may run for it. Who never says this is dropped at once when the call ends.
    fn begins(&self, grace: Span) -> bool;
    /// Whether the call has ended: the guest should stop, and nobody will see its result.
    fn stop_requested(&self) -> bool;
    /// The guest reports progress.
    fn progress(&self, progress: Progress);
    /// The guest logs a line, or wrote one to its standard output or error.
    fn log(&self, level: &'static str, line: &str);
}

/// What a guest says of its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// For a person.
    pub message: String,
    /// 0.0 to 1.0, where it is known.
    pub fraction: Option<f64>,
    /// For whoever renders the call.
    pub data: Option<Json>,
}
