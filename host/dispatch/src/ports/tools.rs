//! The port to tools: finding them, checking values against their schemas, and running the guests of server tools.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    CallId, Digest, Json, Limits, Outcome, PluginName, Receipt, Span, Tool, ToolName, Violation,
    call::Level,
    call::{Pinned, Wait},
    gate::RuleEffect,
    journal::JournalBounds,
    json::{Defaults, TooManyDefaults, Value},
    step::{Durable, RunEnd},
};

use super::journal::RunJournal;

/// The tools of all loaded plugins.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The live tool of this name.
    ///
    /// # Errors
    /// The live tool with the most similar name, if one is similar.
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>>;

    /// The outcome of a call whose tool [`Tools::find`] did not find, if the tool is known and not offered. `None`: it is unknown.
    fn refusal(&self, _name: &str) -> Option<Outcome> {
        None
    }

    /// The tool of a component that may no longer be live: a waiting call stays pinned to the component it was
    /// submitted to. `None` once the component's bytes are removed.
    fn pinned(&self, plugin: &PluginName, component: Digest, name: &str) -> Option<Arc<KnownTool>>;

    /// Loads a component again that [`Tools::pinned`] has forgotten and whose bytes still exist. Does nothing for tools
    /// that are never forgotten.
    ///
    /// # Errors
    /// The outcome of a call whose component cannot be loaded.
    async fn recall(&self, _pinned: &Pinned) -> Result<(), Outcome> {
        Ok(())
    }

    /// Why a component may not call a tool: the operator does not grant it, or no longer does. `None`: it may.
    ///
    /// # Errors
    /// As [`Tools::recall`].
    async fn call_refusal(&self, _by: &Pinned, _tool: &str) -> Result<Option<String>, Outcome> {
        Ok(None)
    }

    /// How many plugins are being loaded that have no live component, so that their tools are not known yet.
    fn loading(&self) -> usize {
        0
    }

    /// The limits on the calls of a plugin. Those on progress also apply to clients that carry out its tools.
    fn limits(&self, _plugin: &PluginName) -> Limits {
        Limits::default()
    }

    /// How a value breaks a schema that a guest gave.
    fn violations(&self, _schema: &Json, _value: &Json) -> Vec<Violation> {
        Vec::new()
    }

    /// Every live tool, sorted by name.
    fn list(&self) -> Vec<Arc<KnownTool>>;

    /// Drops what is kept of the last run of a durable call that waits. The call has ended, or its wait was not recorded.
    fn release(&self, _pinned: &Pinned, _idempotency_key: &str) {}

    /// The instances of durable calls that are kept while the calls wait.
    fn lingering(&self) -> Lingering {
        Lingering::default()
    }

    /// Allows a run of a plugin, as soon as few enough of its calls run. A call that has begun waits as long as it takes.
    ///
    /// # Errors
    /// The outcome of a call that waited too long, or whose component cannot be loaded.
    async fn permit(&self, _pinned: &Pinned, _has_begun: bool) -> Result<Permit, Outcome> {
        Ok(Box::new(()))
    }

    /// Runs a guest to its end. The caller has a permit for it. Never panics and never hangs: the outcome says how the guest
    /// ended. Dropping the future aborts the guest. [`RunMonitor`] describes the stop that comes before.
    async fn run(&self, run: Run) -> End;
}

/// Allows one run until it is dropped.
pub type Permit = Box<dyn Send + Sync>;

/// Counts of instances that are kept while their calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lingering {
    /// The number that is kept now.
    pub now: usize,
    /// How many were kept since the start, how many of them a run continued, and how many were dropped.
    pub kept: u64,
    pub resumed: u64,
    pub dropped: u64,
}

/// A tool whose calls can run: a live one, or one that waiting calls are pinned to.
pub struct KnownTool {
    pub tool: Tool,
    /// The component, declaration and approval of its calls, with the operator's policy applied.
    pub pinned: Arc<Pinned>,
    /// How a call of it waits, if it has to.
    pub wait: Wait,
    /// The effect of the operator's rules on all of its calls.
    pub effect: RuleEffect,
    /// The effects that the access of its component allows.
    pub allowed: AllowedEffects,
    /// The compiled schemas.
    pub checks: Arc<dyn Checks>,
}

impl KnownTool {
    /// The defaults of its schema for what arguments that fit it leave out.
    ///
    /// # Errors
    /// [`TooManyDefaults`].
    pub fn defaults(&self, arguments: &Value) -> Result<Option<Json>, TooManyDefaults> {
        let Ok(schema) = self.tool.parameters.value() else { return Ok(None) };
        let matches = |pattern: &str, name: &str| self.checks.name_matches(pattern, name);
        Ok(Defaults::of(&schema, arguments, &matches)?.to_json())
    }
}

/// The effects that a tool can have, whether or not its hints name them. A call may have fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedEffects {
    /// It can reach systems outside the host.
    pub outside: bool,
    /// It can change something that outlasts the call.
    pub changes: bool,
}

impl AllowedEffects {
    /// Nothing limits it.
    pub const ANY: Self = Self { outside: true, changes: true };
}

/// The memory that a check takes for each byte of the value's text, at most. The parsed value is not included.
pub const CHECK_COST: usize = 48;

/// The schemas of one tool. Each check returns how a value breaks the schema: nothing if it fits, or if there is no
/// schema. While it runs, it may take [`CHECK_COST`] times the memory of the text.
pub trait Checks: Send + Sync {
    /// The arguments of a call.
    fn arguments(&self, value: &Json) -> Vec<Violation>;
    /// The result of a call.
    fn result(&self, value: &Json) -> Vec<Violation>;
    /// The data of a person's answer.
    fn response(&self, value: &Json) -> Vec<Violation>;
    /// Whether a name of a member matches a pattern of `patternProperties` in the schema of the arguments.
    fn name_matches(&self, _pattern: &str, _name: &str) -> bool {
        false
    }
}

/// One run of a guest.
pub struct Run {
    pub pinned: Arc<Pinned>,
    pub tool: Arc<str>,
    /// The caller's id of the call, the same at every attempt.
    pub call: CallId,
    /// The checked arguments.
    pub arguments: Json,
    /// The same at every attempt.
    pub idempotency_key: String,
    /// 1, then one more each time that the call is started again after a kill.
    pub attempt: u32,
    /// A JSON object: conversation, turn, caller, approver, context.
    pub scope_json: Json,
    /// The part that the run repeats, if the call is durable.
    pub durable: Option<Durable>,
    /// Where the run of a durable call records the results of host functions, and how much of it.
    pub journal: Option<(Arc<dyn RunJournal>, JournalBounds)>,
    /// Receives progress and log lines, and tells the guest to stop.
    pub monitor: Arc<dyn RunMonitor>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub ended: RunEnd,
    /// Whether it changed its plugin's store, so that its result must not be seen before that is durable.
    pub wrote: bool,
    /// The guest's usage. `None` if it never ran.
    pub receipt: Option<Receipt>,
}

impl End {
    /// The end of a run whose guest never ran.
    #[must_use]
    pub const fn unrun(ended: RunEnd) -> Self {
        Self { ended, wrote: false, receipt: None }
    }
}

/// Receives the progress and the log of a run, and tells it to stop. Live followers see what it receives. They may
/// miss some of it. Progress is not stored. Of the log, the last lines are stored ([`CallLogs`](super::CallLogs)).
pub trait RunMonitor: Send + Sync {
    /// A guest is about to run, with this grace period. Returns false if the call has ended meanwhile, and then no
    /// guest may run for it. A run that never calls this is dropped at once when the call ends.
    fn try_start(&self, grace: Span) -> bool;
    /// Whether the call has ended: the guest should stop, and nobody will see its result.
    fn stop_requested(&self) -> bool;
    fn progress(&self, progress: Progress);
    /// The guest logs a line, or wrote one to its standard output or error. Secrets are redacted.
    fn log(&self, level: Level, line: &str);
}

/// A report of a call's progress, by the guest or the client that carries it out.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The message for people.
    pub message: String,
    /// 0.0 to 1.0, where it is known.
    pub fraction: Option<f64>,
    /// For the program that renders the call.
    pub data: Option<Json>,
}
