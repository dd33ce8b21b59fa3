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

/// The failure of a call that ended with an error of the engine.
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
        Some(Refused::GuestMemory) => {
            let budget = size(meter.budget());
            let message = format!(
                "all tools of this host together may use {budget} (`guest_memory_bytes`), and one plugin only a part of it \
                 while it runs several calls; this call needed more and was stopped. It may have taken effect; check \
                 before repeating it"
            );
            return Failure::new(FailureCode::Busy, message);
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

/// The limits for which the engine has no error type.
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

/// A trap of the guest, with its stack.
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

pub(crate) fn out_of_time(limits: &Limits) -> Failure {
    let message = format!("the tool did not return within {} ms (limit `time`)", limits.time.millis());
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
