//! A fake sandbox. A component is a JSON text that describes its behaviour. The fake counts how often it is asked.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use capabilities::Capabilities;
use dispatch::ports::{Progress, RunMonitor};
use domain::{
    CatalogLimits, Digest, Json, Limits, Outcome, PluginName, Span,
    call::Level,
    event::{PluginChange, PluginEvent},
    gate::RuleEffect,
    outcome::{Failure, FailureCode},
    step::{Question, StepRequest, StepWait},
    tool::{Approval, Executor},
};
use policy::{OperatorRule, OperatorRules, Pattern};
use sandbox::section::SeveralSections;
use sandbox::{Declared, ForeignImport, GuestEnd, Job, LoadError, RunEnd, RunUsage, Sink, Update};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_tests::clock::SimClock;

use crate::guests::{ComponentLoader, LoadedComponent, Looked};
use crate::{Registry, RegistrySettings, RemoteComponents};

/// Rules over tools only: patterns, and their decisions.
pub(crate) fn rules(rows: &[(&str, RuleEffect)]) -> OperatorRules {
    let rule = |(n, (tools, rule)): (usize, &(&str, RuleEffect))| {
        OperatorRule::new(&format!("rule-{n}"), Pattern::new(tools).expect("a pattern"), *rule)
    };
    OperatorRules::new(rows.iter().enumerate().map(rule).collect())
}

/// A fake sandbox that counts its uses.
#[derive(Default)]
pub(crate) struct FakeSandbox {
    pub(crate) loads: AtomicUsize,
    pub(crate) asked: Arc<AtomicUsize>,
    /// A component that is `held` is loaded when the other end of this is dropped.
    pub(crate) gate: Mutex<Option<Receiver<()>>>,
    /// The components of the last [`ComponentLoader::retain`].
    pub(crate) kept: Mutex<HashSet<Digest>>,
    /// The plugins whose kept instances were dropped.
    pub(crate) released: Mutex<Vec<PluginName>>,
}

struct FakeGuest {
    component: Value,
    asked: Arc<AtomicUsize>,
}

fn read(bytes: &[u8]) -> Result<Value, LoadError> {
    serde_json::from_slice(bytes).map_err(|_| LoadError::Malformed("it ends too early".into()))
}

/// The imports of a component beyond those that every guest has.
fn beyond(component: &Value) -> Vec<ForeignImport> {
    let needs = |name: &str| Capabilities::EVERY.iter().find(|capability| name.contains(capability.as_str()));
    let names = component["imports"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = names.filter(|name| !name.contains("filesystem") && !name.starts_with("toolgate:"));
    names.map(|name| ForeignImport { name: name.to_owned(), needs: needs(name) }).collect()
}

impl ComponentLoader for FakeSandbox {
    fn look(&self, bytes: &[u8]) -> Result<Looked, LoadError> {
        let component = read(bytes)?;
        let imports = component["imports"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(Looked {
            built_against: "toolgate:plugin@0.1.1".to_owned(),
            beyond: beyond(&component),
            asks_for_folders: imports.clone().any(|name| name.contains("filesystem")),
            has_server: component["server"].as_bool().unwrap_or(true),
            imports_durable: imports.into_iter().any(|name| name.contains("/durable@")),
            section: match &component["section"] {
                Value::Null => Ok(None),
                Value::Number(several) => Err(SeveralSections(several.as_u64().unwrap_or_default() as usize)),
                Value::String(text) => Ok(Some(text.clone().into_bytes())),
                section => Ok(Some(section.to_string().into_bytes())),
            },
        })
    }

    fn load(
        &self,
        _digest: Digest,
        bytes: &[u8],
        granted: Capabilities,
    ) -> Result<Arc<dyn LoadedComponent>, LoadError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let component = read(bytes)?;
        assert!(component["compiler"] != "panics", "as a compiler may");
        if component["held"] == true
            && let Some(gate) = self.gate.lock().expect("unpoisoned").take()
        {
            let _ = gate.recv();
        }
        let lacking = |import: &ForeignImport| import.needs.is_none_or(|needs| !granted.holds(needs));
        let imports: Vec<_> = beyond(&component).into_iter().filter(lacking).collect();
        if !imports.is_empty() {
            return Err(LoadError::Imports(imports));
        }
        Ok(Arc::new(FakeGuest { component, asked: self.asked.clone() }))
    }

    fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize> {
        self.kept.lock().expect("unpoisoned").clone_from(kept);
        Ok(0)
    }

    fn release_plugin(&self, plugin: &PluginName) {
        self.released.lock().expect("unpoisoned").push(plugin.clone());
    }
}

#[async_trait]
impl LoadedComponent for FakeGuest {
    fn has_server(&self) -> bool {
        self.component["server"].as_bool().unwrap_or(true)
    }

    async fn declarations(&self, _limits: &CatalogLimits) -> Result<Vec<Declared>, Failure> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.component["crash"].as_str() {
            Some(words) => Err(Failure::new(FailureCode::Trapped, words)),
            None => Ok(self.component["tools"].as_array().into_iter().flatten().map(declared).collect()),
        }
    }

    async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> GuestEnd {
        let result = match &*job.tool {
            "wait" => std::future::pending().await,
            "limits" => limits.time.millis().to_string(),
            "memory" => limits.memory.to_string(),
            "who" => format!("{:?}", self.component["who"].as_str().unwrap_or_default()),
            _ => job.arguments.as_str().to_owned(),
        };
        if &*job.tool == "log" {
            sink.log(Level::Error, job.arguments.as_str());
        }
        sink.progress(Update { message: "done".into(), fraction: Some(1.0), data: None });
        let ended = match &*job.tool {
            "asks" => RunEnd::Waits(asked(result, StepWait::Answer)),
            "awaits" => {
                RunEnd::Waits(asked(result, |question| StepWait::External { question, signal: None, metadata: None }))
            }
            _ => Outcome::Ok { value: Json::unchecked(result), trusted: true }.into(),
        };
        GuestEnd { ended, spent: Some(RunUsage { host_calls: 1, ..RunUsage::default() }), wrote: false }
    }
}

/// The step of a durable call that asks for an answer of this schema.
fn asked(schema: String, wait: impl FnOnce(Question) -> StepWait) -> StepRequest {
    let response = Some(Json::unchecked(schema));
    let question = Question { prompt: "Go?".into(), response, ..Question::default() };
    StepRequest { digest: Digest::of("asked"), wait: wait(question) }
}

/// A declaration from JSON. Missing members make it a plain server tool.
pub(crate) fn declared(tool: &Value) -> Declared {
    let text = |key: &str, default: &str| match &tool[key] {
        Value::Null => default.to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let executor = text("executor", "server");
    Declared {
        name: text("name", "tool"),
        description: text("description", "Does something."),
        parameters: text("parameters", r#"{"type":"object","properties":{"a":{},"b":{}}}"#),
        executor: Executor::named(&executor).expect("an executor"),
        approval: if tool["gated"] == true { Approval::RequiresApproval } else { Approval::Auto },
        streaming: tool["streaming"] == true,
        options: text("options", "{}"),
    }
}

/// The bytes of a component with these tools.
pub(crate) fn component(tools: &[Value]) -> Vec<u8> {
    json!({ "tools": tools }).to_string().into_bytes()
}

/// A component with one server tool of this name.
pub(crate) fn one(tool: &str) -> Vec<u8> {
    component(&[json!({ "name": tool })])
}

pub(crate) fn plugin(name: &str) -> PluginName {
    PluginName::new(name).expect("a name")
}

/// A report that only the test reads.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<String>>);

impl RunMonitor for Notes {
    fn try_start(&self, _grace: Span) -> bool {
        true
    }

    fn stop_requested(&self) -> bool {
        false
    }

    fn progress(&self, progress: Progress) {
        self.0.lock().expect("unpoisoned").push(progress.message);
    }

    fn log(&self, level: Level, line: &str) {
        self.0.lock().expect("unpoisoned").push(format!("{}: {line}", level.as_str()));
    }
}

/// A registry on a fake sandbox, with its folders and events.
pub(crate) struct TestRegistry {
    pub(crate) data: TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) fake: Arc<FakeSandbox>,
    pub(crate) registry: Registry,
    events: Receiver<PluginEvent>,
}

impl TestRegistry {
    /// A world without a watched folder.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A world with a watched folder.
    pub(crate) fn watching() -> Self {
        Self::with(|settings| settings.folder = Some(settings.data.join("plugins")))
    }

    /// A world with these settings.
    pub(crate) fn with(change: impl FnOnce(&mut RegistrySettings)) -> Self {
        Self::on(tempfile::tempdir().expect("a folder"), change)
    }

    /// A world on the data folder of an earlier one.
    pub(crate) fn on(data: TempDir, change: impl FnOnce(&mut RegistrySettings)) -> Self {
        let world = Self::starting(data, FakeSandbox::default(), change);
        world.wait();
        world
    }

    /// A world that shares its components.
    pub(crate) fn sharing(remote: Arc<dyn RemoteComponents>) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        Self::opened(data, FakeSandbox::default(), Some(remote), |_| {})
    }

    /// Waits for the plugins that were in the folder at the start.
    pub(crate) fn wait(&self) {
        // On a thread of its own, because the test may run in a runtime.
        let registry = self.registry.clone();
        let wait = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(registry.loaded());
        };
        std::thread::spawn(wait).join().expect("no panic");
    }

    /// A world whose plugins may still be loaded.
    pub(crate) fn starting(data: TempDir, fake: FakeSandbox, change: impl FnOnce(&mut RegistrySettings)) -> Self {
        Self::opened(data, fake, None, change)
    }

    fn opened(
        data: TempDir,
        fake: FakeSandbox,
        remote: Option<Arc<dyn RemoteComponents>>,
        change: impl FnOnce(&mut RegistrySettings),
    ) -> Self {
        let mut settings = RegistrySettings::new(data.path());
        change(&mut settings);
        let folder = settings.folder.clone().unwrap_or_default();
        let fake = Arc::new(fake);
        let (sender, events): (Sender<PluginEvent>, _) = channel();
        let sink = Arc::new(move |event| drop(sender.send(event)));
        let registry = Registry::start(settings, fake.clone(), Arc::<SimClock>::default(), sink, remote);
        let registry = registry.expect("a registry");
        Self { data, folder, fake, registry, events }
    }

    /// Loads a component without a folder.
    pub(crate) fn load(&self, name: &str, bytes: &[u8]) -> Result<crate::LoadReport, crate::NotLoaded> {
        self.registry.shared.load(&plugin(name), bytes, None)
    }

    /// The names of the live tools.
    pub(crate) fn tools(&self) -> Vec<String> {
        let catalog = self.registry.shared.catalog.load();
        catalog.sorted().iter().map(|tool| tool.tool.name.to_string()).collect()
    }

    /// The next event, in short. An event comes within a second, so the test fails after five.
    pub(crate) fn event(&self) -> String {
        let event = self.events.recv_timeout(Duration::from_secs(5)).expect("an event");
        let what = match event.change {
            PluginChange::Loaded { tools } => format!("loaded {tools:?}"),
            PluginChange::Rejected { findings } => format!("rejected {findings:?}"),
            PluginChange::Unloaded => "unloaded".to_owned(),
        };
        format!("{} {what}", event.plugin)
    }

    /// Whether there is no further event.
    pub(crate) fn is_quiet(&self) -> bool {
        self.events.try_recv().is_err()
    }
}
