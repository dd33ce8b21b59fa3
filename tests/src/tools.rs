//! Tools that are described by words: `server`, `server!` (gated), `human`, `client`, `client!`, `provider`, with
//! options as in `server:recovery=ask,days=2` or `server:durable=yes`. The test defines what a run does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use dispatch::ports::{AllowedEffects, Checks, End, KnownTool, Run, Tools};
use domain::{
    Digest, Json, Outcome, PluginName, Span, Tool, ToolName, Violation,
    call::{Pinned, Wait},
    gate::RuleEffect,
    tool::{Approval, Editable, Executor, OnExpiry, Recovery, Retention, ToolOptions},
};

type Runs = dyn Fn(Run) -> Pin<Box<dyn Future<Output = End> + Send>> + Send + Sync;

/// The component of the tools is known.
const KNOWN: u8 = 0;
/// It can be recalled.
const FORGOTTEN: u8 = 1;
/// It cannot.
const GONE: u8 = 2;
/// Recalling it panics.
const BROKEN: u8 = 3;
/// Running it panics.
const CRASHING: u8 = 4;
/// The operator no longer allows timeout approvals.
const WITHDRAWN: u8 = 5;
/// The operator no longer grants calls of other tools.
const UNGRANTED: u8 = 6;

/// A set of such tools.
pub struct WordTools {
    tools: Vec<Arc<KnownTool>>,
    run: Box<Runs>,
    known: AtomicU8,
}

impl WordTools {
    /// These tools, with the names `tool_0`, `tool_1`, … and the function that runs them.
    pub fn new<F>(words: &[&str], run: impl Fn(Run) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = End> + Send + 'static,
    {
        let tools = words.iter().enumerate().map(|(n, words)| Arc::new(live(&format!("tool_{n}"), words))).collect();
        Self { tools, run: Box::new(move |job| Box::pin(run(job))), known: AtomicU8::new(KNOWN) }
    }

    /// From now on the component that calls are pinned to no longer exists.
    pub fn lose(&self) {
        self.known.store(GONE, Ordering::Relaxed);
    }

    /// From now on the component is unknown until it is recalled.
    pub fn lose_record(&self) {
        self.known.store(FORGOTTEN, Ordering::Relaxed);
    }

    /// From now on the component is unknown, and recalling it panics.
    pub fn break_recall(&self) {
        self.known.store(BROKEN, Ordering::Relaxed);
    }

    /// From now on every run panics.
    pub fn break_run(&self) {
        self.known.store(CRASHING, Ordering::Relaxed);
    }

    /// From now on there are no timeout approvals, as after a restart with other settings.
    pub fn forbid_timeout_approvals(&self) {
        self.known.store(WITHDRAWN, Ordering::Relaxed);
    }

    /// From now on the tools may not call each other, as after a restart with other grants.
    pub fn withdraw_calls(&self) {
        self.known.store(UNGRANTED, Ordering::Relaxed);
    }

    /// The component is known again.
    pub fn restore(&self) {
        self.known.store(KNOWN, Ordering::Relaxed);
    }
}

/// A schema that accepts only objects.
struct ObjectsOnly;

impl Checks for ObjectsOnly {
    fn arguments(&self, value: &Json) -> Vec<Violation> {
        if value.as_str().starts_with('{') {
            Vec::new()
        } else {
            vec![Violation { pointer: String::new(), message: "an object is expected".into() }]
        }
    }

    fn result(&self, value: &Json) -> Vec<Violation> {
        self.arguments(value)
    }

    fn response(&self, value: &Json) -> Vec<Violation> {
        self.arguments(value)
    }
}

#[async_trait]
impl Tools for WordTools {
    fn find(&self, name: &str) -> Result<Arc<KnownTool>, Option<ToolName>> {
        self.tools.iter().find(|live| live.tool.name.as_str() == name).cloned().ok_or(None)
    }

    fn pinned(&self, _: &PluginName, _: Digest, name: &str) -> Option<Arc<KnownTool>> {
        let live = self.find(name).ok()?;
        match self.known.load(Ordering::Relaxed) {
            KNOWN | CRASHING | UNGRANTED => Some(live),
            WITHDRAWN => {
                let KnownTool { tool, pinned, wait, effect, allowed, checks } = &*live;
                let wait = Wait { on_expiry: OnExpiry::Error, ..wait.clone() };
                let (tool, pinned, checks) = (tool.clone(), pinned.clone(), checks.clone());
                Some(Arc::new(KnownTool { tool, pinned, wait, effect: *effect, allowed: *allowed, checks }))
            }
            _ => None,
        }
    }

    fn list(&self) -> Vec<Arc<KnownTool>> {
        self.tools.clone()
    }

    async fn recall(&self, _pinned: &Pinned) -> Result<(), Outcome> {
        match self.known.load(Ordering::Relaxed) {
            GONE => return Err(Outcome::Invalidated),
            BROKEN => panic!("a component cannot be recalled"),
            _ => {}
        }
        self.restore();
        Ok(())
    }

    async fn call_refusal(&self, _by: &Pinned, _tool: &str) -> Result<Option<String>, Outcome> {
        let is_withdrawn = self.known.load(Ordering::Relaxed) == UNGRANTED;
        Ok(is_withdrawn.then(|| "`grants.calls` does not grant it".to_owned()))
    }

    async fn run(&self, run: Run) -> End {
        assert_ne!(self.known.load(Ordering::Relaxed), CRASHING, "a guest cannot be run");
        (self.run)(run).await
    }
}

/// A tool from its words.
///
/// # Panics
/// When the words describe no tool.
#[must_use]
pub fn live(name: &str, words: &str) -> KnownTool {
    let (head, options) = words.split_once(':').unwrap_or((words, ""));
    let option = |key: &str| options.split(',').find_map(|option| option.strip_prefix(key)?.strip_prefix('='));
    let executor = Executor::named(head.trim_end_matches('!'));
    let executor = executor.expect("the words begin with an executor");
    let approval = if head.ends_with('!') { Approval::RequiresApproval } else { Approval::Auto };
    let durable = option("durable").is_some();
    let waits =
        durable || approval == Approval::RequiresApproval || matches!(executor, Executor::Human | Executor::Client);
    let wait = Wait {
        expires: Span::from_secs(3600),
        on_expiry: match option("expiry") {
            Some("deny") => OnExpiry::Deny,
            Some("approve") => OnExpiry::Approve,
            Some("answer") => OnExpiry::Answer(Json::unchecked("{}")),
            _ => OnExpiry::Error,
        },
        choices: None,
        data_schema: None,
        result_schema: option("result").map(Json::unchecked),
        editable: Editable::All,
    };
    let pinned = Pinned {
        plugin: PluginName::new("words").expect("legal"),
        component: Digest::of("component"),
        declaration: Digest::of(words),
        executor,
        approval,
        streaming: false,
        timeout: Span::from_secs(30),
        recovery: match option("recovery") {
            Some("ask") => Recovery::Ask,
            Some("fail") => Recovery::Fail,
            _ => Recovery::Retry,
        },
        durable,
        frozen: None,
        wait: waits.then(|| wait.clone()),
    };
    let tool = Tool {
        name: ToolName::new(name).expect("legal"),
        description: String::new(),
        parameters: Json::unchecked(option("parameters").unwrap_or("{}")),
        executor,
        approval,
        streaming: false,
        options: ToolOptions {
            retention: option("days").map(|days| Retention { max_age_days: days.parse().ok(), ..Retention::default() }),
            ..ToolOptions::default()
        },
        plugin: pinned.plugin.clone(),
        component: pinned.component,
        declaration: pinned.declaration,
    };
    let allowed = AllowedEffects::ANY;
    KnownTool {
        tool,
        pinned: Arc::new(pinned),
        wait,
        effect: RuleEffect::Allow,
        allowed,
        checks: Arc::new(ObjectsOnly),
    }
}
