//! The failure of a call for each error of the engine.
//!
//! The engine has no types for some of its errors. They are recognised by their text, and `tests/all/limits.rs` checks each of
//! these texts.

use std::fmt::Write as _;

use capabilities::{Stop, excerpt, size};
use domain::{
    Limits,
    outcome::{Failure, FailureCode},
};
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::engine::WASM_STACK;
use crate::limits::{Meter, Refused};

/// Stack frames in a message, innermost first.
const FRAMES: usize = 4;

/// Why a guest runs. It decides how messages call the guest, and which key of the configuration changes a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call of a tool, under the table `[limits]`.
    Call,
    /// The declaration of a plugin's tools, under the table `[catalog]`.
    Catalog,
    /// A policy's decision. Only its time can be changed.
    Decision,
}

impl Purpose {
    const fn guest(self) -> &'static str {
        match self {
            Self::Call => "the tool",
            Self::Catalog => "the plugin",
            Self::Decision => "the policy",
        }
    }

    /// Names the key that changes a limit, in parentheses. `key` is its key in the table `[limits]`.
    fn limit(self, key: &str) -> String {
        match (self, key) {
            // A tool can only declare a shorter time than the operator allows.
            (Self::Call, "time_ms") => "(limit `limits.time_ms`, or the tool's own `timeout_ms`)".to_owned(),
            (Self::Call, key) => format!("(limit `limits.{key}`)"),
            // The declaration is all that the plugin passes to the host.
            (Self::Catalog, "hostcall_bytes") => "(limit `catalog.declaration_bytes`)".to_owned(),
            // These are constants, and a plugin without grants hardly reaches them.
            (Self::Catalog, "host_call_ms" | "files_written_bytes") => "(no setting changes this limit)".to_owned(),
            (Self::Catalog, key) => format!("(limit `catalog.{key}`)"),
            (Self::Decision, "time_ms") => "(limit `timeout_ms` of the policy)".to_owned(),
            (Self::Decision, _) => "(no setting changes this limit)".to_owned(),
        }
    }
}

/// The failure of a run that ended with an error of the engine.
pub(crate) fn failure(error: &wasmtime::Error, meter: &Meter, limits: &Limits, purpose: Purpose) -> Failure {
    let guest = purpose.guest();
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return match stop {
            Stop::OutOfTime => out_of_time(limits, purpose),
            Stop::Limit { what, key } => exceeded(format!("{guest} {what} {}", purpose.limit(key))),
            Stop::FixedLimit(what) => exceeded(format!("{guest} {what}")),
            Stop::GuestMemory => out_of_guest_memory(meter),
            Stop::Fault(what) => fault(what),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return busy();
    }
    match meter.refused() {
        Some(Refused::Memory) => {
            let (max, limit) = (size(limits.memory), purpose.limit("memory_bytes"));
            let message = format!("{guest} exceeded its memory limit of {max} {limit}");
            return Failure::new(FailureCode::OutOfMemory, message);
        }
        Some(Refused::GuestMemory) => return out_of_guest_memory(meter),
        Some(Refused::Elements) => {
            let (max, limit) = (limits.table_elements, purpose.limit("table_elements"));
            return exceeded(format!("{guest}'s tables need more than {max} elements {limit}"));
        }
        None => {}
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
        return exceeded(format!("{guest}'s calls are nested too deeply: its stack of {} is full", size(WASM_STACK)));
    }
    by_text(error, limits, purpose).unwrap_or_else(|| trapped(error, purpose))
}

/// The limits for which the engine has no error type.
fn by_text(error: &wasmtime::Error, limits: &Limits, purpose: Purpose) -> Option<Failure> {
    let exceeds = |what: String, key| Some(exceeded(format!("{} {what} {}", purpose.guest(), purpose.limit(key))));
    let handles = || exceeds(format!("holds more than {} resource handles", limits.handles), "handles");
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return handles();
    }
    let text = error.root_cause().to_string();
    if text.contains("too much data is being copied") {
        let max = size(limits.hostcall_bytes);
        return exceeds(format!("passed more than {max} to the host at once"), "hostcall_bytes");
    }
    if text.contains("store handle limit exceeded") || text.contains("resource table has no free keys") {
        return handles();
    }
    if text.contains("instance count too high") {
        return exceeds(format!("needs more than {} core instances", limits.instances), "instances");
    }
    None
}

/// A trap of the guest, with its stack.
fn trapped(error: &wasmtime::Error, purpose: Purpose) -> Failure {
    let guest = purpose.guest();
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        let message = format!("{guest} exited with status {status} before it returned a result");
        return Failure::new(FailureCode::Trapped, message);
    }
    let cause = error.root_cause().to_string();
    let mut message = format!("{guest} crashed: {}", excerpt(cause.trim_start_matches("wasm trap: ")));
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        let names = backtrace.frames().iter().filter_map(wasmtime::FrameInfo::func_name);
        for (index, name) in names.take(FRAMES).enumerate() {
            let _ = write!(message, "{} {}", if index == 0 { " in" } else { " <-" }, excerpt(name));
        }
    }
    Failure::new(FailureCode::Trapped, message)
}

fn out_of_guest_memory(meter: &Meter) -> Failure {
    let budget = size(meter.budget());
    let message = format!(
        "all tools of this host together may use {budget} (`guest_memory_bytes`), and one plugin only a part of it while it \
         runs several calls; this call needed more and was stopped. It may have taken effect; check before repeating it"
    );
    Failure::new(FailureCode::Busy, message)
}

fn out_of_time(limits: &Limits, purpose: Purpose) -> Failure {
    let (guest, max, limit) = (purpose.guest(), limits.time.millis(), purpose.limit("time_ms"));
    let message = format!("{guest} did not return within {max} ms {limit}");
    Failure::new(FailureCode::OutOfTime, message)
}

pub(crate) fn exceeded(message: String) -> Failure {
    Failure::new(FailureCode::LimitExceeded, message)
}

/// No permit for an instance was free in time, or no memory.
pub(crate) fn busy() -> Failure {
    Failure::new(
        FailureCode::Busy,
        "the host runs as many tools as it can at once (`pool`, `guest_memory_bytes`); try again later",
    )
}

/// The host's fault. The caller reads only that; the operator's log has the reason.
pub(crate) fn fault(detail: &str) -> Failure {
    tracing::error!(detail, "the sandbox failed a call");
    Failure::new(FailureCode::HostFault, "the host failed while it ran the tool; its log says why")
}
