//! One call, as the function of a server tool sees it.

use serde::Deserialize;
use serde_json::Value;

/// The importance of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For the author of the plugin.
    Debug,
    /// Worth knowing, but nothing to do.
    Info,
    /// Something is wrong, but the call continues.
    Warn,
    /// The call will fail.
    Error,
}

/// The other end of a running call: the host, or a test.
pub trait Outlet {
    /// Receives a report of progress. `data` is a JSON text.
    fn progress(&self, message: &str, fraction: Option<f64>, data: Option<String>);

    /// Receives a log line.
    fn log(&self, level: Level, message: &str);

    /// Whether the call should end. This method exists only in native tests. The linker keeps all methods of a trait
    /// object, so in a component it would import `stop-requested` even if no tool asks.
    #[cfg(not(target_family = "wasm"))]
    fn stop_requested(&self) -> bool;

    /// Waits in the middle of the call. It exists only in native tests, as `stop_requested`.
    ///
    /// # Errors
    /// Why there is no answer.
    #[cfg(not(target_family = "wasm"))]
    fn wait(&self, wait: crate::waiting::Wait) -> Result<Value, crate::waiting::WaitError>;
}

/// The call as the host passes it to `server.run`.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id that the caller gave the call.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// A JSON text, valid against the tool's schema.
    pub arguments: String,
    /// The same for every attempt.
    pub idempotency_key: String,
    /// 1 at first, and one more after each crash.
    pub attempt: u32,
    /// A JSON object.
    pub scope: String,
}

/// The origin of a call, and the people behind it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// The conversation that the call's turn belongs to.
    pub conversation: String,
    /// The turn that contains the call.
    pub turn: String,
    /// The principal that submitted the turn.
    pub caller: String,
    /// The principal that approved the call, if one did.
    pub approver: Option<String>,
    /// The value that the caller passed with the turn, or `null`.
    pub context: Value,
}

/// One call: its identity, its progress reports, and whether it should stop.
pub struct Call<'a> {
    request: &'a Request,
    pub(crate) outlet: &'a dyn Outlet,
}

impl<'a> Call<'a> {
    pub(crate) fn new(request: &'a Request, outlet: &'a dyn Outlet) -> Self {
        Self { request, outlet }
    }

    /// The id that the caller gave the call. It is the same for every attempt.
    pub fn id(&self) -> &str {
        &self.request.id
    }

    /// The same for every attempt at this call, and different for every other call. Pass it to services with side
    /// effects.
    pub fn idempotency_key(&self) -> &str {
        &self.request.idempotency_key
    }

    /// 1 at first, and one more each time the host dispatches the call again after a crash.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }

    /// The origin of the call, and the people behind it. It is parsed on demand, because most tools do not need it.
    pub fn scope(&self) -> Scope {
        serde_json::from_str(&self.request.scope).unwrap_or_default()
    }

    /// Reports progress. `fraction` is 0.0 to 1.0 if it is known.
    pub fn progress(&self, message: &str, fraction: impl Into<Option<f64>>) {
        self.outlet.progress(message, fraction.into(), None);
    }

    /// Reports progress with a value for the user interface, such as a partial result.
    pub fn progress_with(&self, message: &str, fraction: impl Into<Option<f64>>, data: &Value) {
        self.outlet.progress(message, fraction.into(), Some(data.to_string()));
    }

    /// Writes a line to the call's log.
    pub fn log(&self, level: Level, message: &str) {
        self.outlet.log(level, message);
    }

    /// Whether the call should end, because it was cancelled or its time is nearly up. A tool that runs for long checks
    /// this between its steps, releases its outside resources, and returns what it has, or a failure. It has about a
    /// second for that. Then the host stops it.
    ///
    /// Since version 0.1.1 of the interface: a plugin that calls this needs a host with that version. Other plugins
    /// also load on older hosts.
    pub fn stop_requested(&self) -> bool {
        #[cfg(target_family = "wasm")]
        let requested = crate::bindings::declarations::toolgate::plugin::host::stop_requested();
        #[cfg(not(target_family = "wasm"))]
        let requested = self.outlet.stop_requested();
        requested
    }
}
