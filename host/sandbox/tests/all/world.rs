//! A sandbox, a runtime for its guests, and functions to run them.

use std::sync::{Arc, LazyLock, Mutex, mpsc};

use capabilities::journal::{JournalWriter, Recording};
use capabilities::keyvalue::{KeyValueQuota, MemoryBuckets, Service};
use capabilities::{Capabilities, Grants, Services};
use domain::{
    Digest, Json, Limits, Outcome, PluginName, Span,
    call::Level,
    journal::{Entry, JournalBounds, ValueChange},
    outcome::{Failure, FailureCode},
};
use tokio::runtime::Runtime;
use toolgate_sandbox::{GuestEnd, Job, Plugin, RunEnd, Sandbox, SandboxSettings, Sink, Update, guest_runtime};

/// The guests of all tests share one runtime and one pool, as on a host.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| guest_runtime(2).expect("threads"));

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let services = Services { keyvalue: Service::over(Arc::new(MemoryBuckets::default())), ..Services::default() };
    Sandbox::new(SandboxSettings { pool: 50, services, ..SandboxSettings::default() }).expect("a pool")
});

/// The sandbox of the tests.
pub(crate) fn sandbox() -> &'static Sandbox {
    &SANDBOX
}

/// Loads a component without grants.
pub(crate) fn load(component: &[u8]) -> Plugin {
    sandbox().load(Digest::of(component), component, Capabilities::default()).expect("it loads")
}

/// The reports of a call.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) updates: Mutex<Vec<Update>>,
    pub(crate) lines: Mutex<Vec<(Level, String)>>,
}

impl Sink for Heard {
    fn progress(&self, update: Update) {
        self.updates.lock().expect("no panic").push(update);
    }

    fn log(&self, level: Level, line: &str) {
        self.lines.lock().expect("no panic").push((level, line.to_owned()));
    }
}

impl Heard {
    /// The log, one line for each.
    pub(crate) fn log(&self) -> Vec<String> {
        let lines = self.lines.lock().expect("no panic");
        lines.iter().map(|(level, line)| format!("{}: {line}", level.as_str())).collect()
    }
}

/// Notifies the test when a guest has logged a line.
pub(crate) struct Began(pub(crate) mpsc::Sender<()>);

impl Sink for Began {
    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {
        // The waiting call has seen the end of the first one.
        let _ = self.0.send(());
    }
}

struct Nowhere;

#[wasmtime_wasi::async_trait]
impl JournalWriter for Nowhere {
    async fn write(&self, _: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        Ok(true)
    }
}

/// A journal that nobody reads.
pub(crate) fn nowhere() -> Recording {
    Recording { writer: Arc::new(Nowhere), bounds: JournalBounds::default() }
}

/// A job with these arguments, for a streaming tool of a plugin of this name.
pub(crate) fn job(plugin: &str, arguments: &str) -> Job {
    Job {
        plugin: PluginName::new(plugin).expect("a name"),
        grants: Arc::new(Grants { keyvalue: Some(KeyValueQuota::default()), ..Grants::default() }),
        call_id: "call_1".into(),
        tool: "tool".into(),
        arguments: Json::unchecked(arguments),
        idempotency_key: "key_1".into(),
        attempt: 1,
        scope: Json::unchecked("{}"),
        streaming: true,
        durable: None,
        recording: None,
    }
}

/// Limits that are small, so that tests reach them at once.
pub(crate) fn tight() -> Limits {
    Limits { time: Span::from_millis(5_000), memory: 4 << 20, result: 64 << 10, ..Limits::default() }
}

/// Runs a plugin once.
pub(crate) fn run(plugin: &Plugin, limits: &Limits) -> GuestEnd {
    RUNTIME.block_on(plugin.run(&job("test", "{}"), limits, Arc::new(())))
}

/// Runs a component once with tight limits, and returns how the run ended.
pub(crate) fn outcome(component: &[u8]) -> RunEnd {
    run(&load(component), &tight()).ended
}

/// The result, as text.
pub(crate) fn value(ended: RunEnd) -> String {
    match ended {
        RunEnd::Outcome(Outcome::Ok { value, trusted: true }) => value.as_str().to_owned(),
        other => panic!("expected a result, got {other:?}"),
    }
}

/// The message of the failure. Checks its kind.
pub(crate) fn failed(ended: RunEnd, code: FailureCode) -> String {
    match ended {
        RunEnd::Outcome(Outcome::Failed(Failure { code: found, message })) => {
            assert_eq!(found, code, "{message}");
            message
        }
        other => panic!("expected {code:?}, got {other:?}"),
    }
}
