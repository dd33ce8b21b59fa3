//! How a run that did not return came to its end: every error of the engine becomes a failure of the call.
//!
//! The engine has no types for some of its errors; those are known by their text, and `tests/limits.rs` holds each of them
//! to what it is mapped to here.

use std::fmt::Write as _;

use domain::{Failure, FailureCode, Limits};
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::engine::WASM_STACK;
use crate::limits::{Meter, Refused};

/// Why the host ended a run. Carried through the guest's frames as the error of a host function.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// Its time is spent.
    #[error("out of time")]
    OutOfTime,
    /// It wanted more of something than it may have.
    #[error("{0}")]
    Limit(String),
    /// The host failed.
    #[error("{0}")]
    Fault(String),
}

/// Frames of the guest that a message shows, innermost first.
const FRAMES: usize = 4;

/// Characters of a text from the guest that a message shows.
const EXCERPT: usize = 400;

/// What an error of the engine means for the call.
pub(crate) fn failure(error: &wasmtime::Error, meter: &Meter, limits: &Limits) -> Failure {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return match stop {
            Stop::OutOfTime => out_of_time(limits),
            Stop::Limit(what) => exceeded(format!("the tool {what}")),
            Stop::Fault(what) => fault(what),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return busy();
    }
    match meter.refused() {
        Some(Refused::Memory) => {
            let message = format!("the tool needs more than the {} it may have (limit `memory`)", size(limits.memory));
            return Failure::new(FailureCode::OutOfMemory, message);
        }
        Some(Refused::Elements) => {
            let most = limits.table_elements;
            return exceeded(format!("the tool's tables need more than {most} elements (limit `table_elements`)"));
        }
        None => {}
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
        return exceeded(format!("the tool's calls are nested too deeply: its stack of {} is full", size(WASM_STACK)));
    }
    by_text(error, limits).unwrap_or_else(|| trapped(error))
}

/// The limits for whose violation the engine has no type.
fn by_text(error: &wasmtime::Error, limits: &Limits) -> Option<Failure> {
    let handles =
        || exceeded(format!("the tool holds more than {} resource handles (limit `handles`)", limits.handles));
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return Some(handles());
    }
    let text = error.root_cause().to_string();
    if text.contains("too much data is being copied") {
        let most = size(limits.hostcall_bytes);
        return Some(exceeded(format!(
            "the tool passed more than {most} to the host at once (limit `hostcall_bytes`)"
        )));
    }
    if text.contains("store handle limit exceeded") || text.contains("resource table has no free keys") {
        return Some(handles());
    }
    if text.contains("instance count too high") {
        return Some(exceeded(format!(
            "the tool needs more than {} core instances (limit `instances`)",
            limits.instances
        )));
    }
    None
}

/// A trap of the guest, with where it happened.
fn trapped(error: &wasmtime::Error) -> Failure {
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        let message = format!("the tool exited with status {status} before it returned a result");
        return Failure::new(FailureCode::Trapped, message);
    }
    let cause = error.root_cause().to_string();
    let mut message = format!("the tool crashed: {}", excerpt(cause.trim_start_matches("wasm trap: ")));
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        let names = backtrace.frames().iter().filter_map(wasmtime::FrameInfo::func_name);
        for (index, name) in names.take(FRAMES).enumerate() {
            let _ = write!(message, "{} {}", if index == 0 { " in" } else { " <-" }, excerpt(name));
        }
    }
    Failure::new(FailureCode::Trapped, message)
}

/// The budget of time is spent.
pub(crate) fn out_of_time(limits: &Limits) -> Failure {
    let message = format!("the tool did not return within {} ms (limit `time`)", limits.time.millis());
    Failure::new(FailureCode::OutOfTime, message)
}

/// Another limit is exceeded.
pub(crate) fn exceeded(message: String) -> Failure {
    Failure::new(FailureCode::LimitExceeded, message)
}

/// Every place for an instance is taken.
pub(crate) fn busy() -> Failure {
    Failure::new(FailureCode::Busy, "the host runs as many tools as it can at once; try again later")
}

/// Our mistake: the caller reads that it was ours, the operator's log has the rest.
pub(crate) fn fault(detail: &str) -> Failure {
    tracing::error!(detail, "the sandbox failed a call");
    Failure::new(FailureCode::HostFault, "the host failed while it ran the tool; its log says why")
}

/// A size as people write it.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// The beginning of a text that a guest made, on one line: it goes into messages that people and models read.
pub(crate) fn excerpt(text: &str) -> String {
    text::excerpt(text, EXCERPT).into_owned()
}
