//! One call, as the function of a server tool sees it.

use serde::Deserialize;
use serde_json::Value;

/// How much a log line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For the author of the plugin.
    Debug,
    /// Worth knowing, nothing to do.
    Info,
    /// Something is off and the call goes on.
    Warn,
    /// The call will not have its result.
    Error,
}

/// The other end of a running call: the host, or a test.
pub trait Outlet {
    /// Takes one report of progress; `data` is a JSON text.
    fn progress(&self, message: &str, fraction: Option<f64>, data: Option<String>);

    /// Takes one log line.
    fn log(&self, level: Level, message: &str);

    /// Whether the call should come to its end. In tests alone: what is behind a trait object is linked whether anybody
    /// calls it or not, and a plugin that never asks would need a host that can be asked.
    #[cfg(not(target_family = "wasm"))]
    fn stop_requested(&self) -> bool;
}

/// What the host hands to `server.run`, as it came over the interface.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id that the caller gave the call.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// A JSON text, valid against the tool's schema.
    pub arguments: String,
    /// Stable over every attempt.
    pub idempotency_key: String,
    /// 1, then one more after each crash.
    pub attempt: u32,
    /// A JSON object.
    pub scope: String,
}

/// Where a call belongs and who is behind it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// The conversation that the call's turn belongs to.
    pub conversation: String,
    /// The turn that asked for the call.
    pub turn: String,
    /// The principal that submitted the turn.
    pub caller: String,
    /// The principal that approved the call, if there was one.
    pub approver: Option<String>,
    /// What the caller passed along with the turn; `null` where it passed nothing.
    pub context: Value,
}

/// One call: its identity, its way to report progress, and whether it should stop.
pub struct Call<'a> {
    request: &'a Request,
    outlet: &'a dyn Outlet,
}

impl<'a> Call<'a> {
    pub(crate) fn new(request: &'a Request, outlet: &'a dyn Outlet) -> Self {
        Self { request, outlet }
    }

    /// The id that the caller gave the call, the same at every attempt.
    pub fn id(&self) -> &str {
        &self.request.id
    }

    /// Stable over every attempt at this call and never used for another: pass it to services with side effects.
    pub fn idempotency_key(&self) -> &str {
        &self.request.idempotency_key
    }

    /// 1, then one more each time that the call is dispatched again after a crash.
    pub fn attempt(&self) -> u32 {
        self.request.attempt
    }

    /// Where the call belongs and who is behind it. Read on demand, because most tools never ask.
    pub fn scope(&self) -> Scope {
        serde_json::from_str(&self.request.scope).unwrap_or_default()
    }

    /// Reports progress. `fraction` is 0.0 to 1.0 where it is known.
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

    /// Whether the call should come to its end: it was cancelled, or its time is nearly up. A tool that works for long asks
    /// between its steps, lets go of what it holds outside, and returns what it has, or a failure. It has about a second for
    /// that; then the host ends it as it stands.
    ///
    /// Since 0.1.1 of the interface: a plugin that asks needs a host that has it, and one that does not ask loads on older ones.
    pub fn stop_requested(&self) -> bool {
        #[cfg(target_family = "wasm")]
        let requested = crate::guest::stop_requested();
        #[cfg(not(target_family = "wasm"))]
        let requested = self.outlet.stop_requested();
        requested
    }
}
