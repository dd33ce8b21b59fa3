//! One call: one store, one instance, one outcome. Whatever the guest does, the call ends with an outcome, and what the
//! guest left behind goes with its store.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::{Failure, FailureCode, Json, Limits, Outcome, PluginName, Span};
use futures::FutureExt as _;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::capability::Grants;
use crate::clock::Stopwatch;
use crate::ending::{self, Stop};
use crate::guest::Guest;
use crate::json;
use crate::plugin::Plugin;
use crate::report::Sink;

/// What a guest is asked to carry out.
#[derive(Debug, Clone)]
pub struct Job {
    /// The plugin on whose behalf it runs: what it keeps is kept under this name.
    pub plugin: PluginName,
    /// What it may use.
    pub grants: Arc<Grants>,
    /// The caller's id of the call.
    pub call_id: Arc<str>,
    /// The tool, one that the plugin declared with the executor `server`.
    pub tool: Arc<str>,
    /// Valid against the tool's schema.
    pub arguments: Json,
    /// The same at every attempt.
    pub idempotency_key: Arc<str>,
    /// 1, then one more after each crash of the host.
    pub attempt: u32,
    /// A JSON object: who asked, in what conversation.
    pub scope: Json,
    /// Whether the tool is declared to report progress; if not, what it reports is dropped.
    pub streaming: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// `Ok` or `Failed`; a run ends in no other way.
    pub outcome: Outcome,
    /// What it spent; `None` where no guest ran.
    pub spent: Option<Spent>,
    /// Whether it may have changed what is kept in its buckets, so that this has to be on disk before the outcome is.
    pub wrote_keyvalue: bool,
}

/// What a run spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// From the moment that it had a place to its end.
    pub time: Duration,
    /// Its linear memories at their largest, in bytes.
    pub peak_memory: usize,
    /// What the host held in its own memory on its behalf, at its largest, in bytes.
    pub peak_host_bytes: usize,
    /// Calls of host functions.
    pub host_calls: u64,
    /// What went into the guest, in bytes: arguments, and what host functions gave it of the world outside.
    pub bytes_in: u64,
    /// What came out of it, in bytes: result, progress, log, and what it had host functions store, write or send.
    pub bytes_out: u64,
}

/// The text of a failure that a guest reports is cut at this many bytes: it is a sentence for a model, not a channel.
const MAX_FAILURE: usize = 16 << 10;

/// Runs a job to its end.
pub(crate) async fn run(plugin: &Plugin, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> End {
    let refused = |failure| End { outcome: Outcome::Failed(failure), spent: None, wrote_keyvalue: false };
    let (size, most) = (job.arguments.size(), limits.arguments);
    if size > most {
        let message = format!("the arguments have {size} bytes, at most {most} are allowed (limit `arguments`)");
        return refused(ending::exceeded(message));
    }
    if !plugin.has_server() {
        return refused(ending::fault("asked to run a plugin without `server`"));
    }
    let sandbox = plugin.sandbox();
    let Some(_place) = sandbox.place(Duration::from_millis(limits.time.millis())).await else {
        return refused(ending::busy());
    };
    let grace = if plugin.hears_of_stop() { limits.stop_grace } else { Span::ZERO };
    if !sink.begins(grace) {
        let message = "the call ended before the tool began to run; nothing was carried out";
        return refused(Failure::new(FailureCode::ToolUnavailable, message));
    }
    let watch = Stopwatch::start(limits.time);
    let guest = Guest::new(&sandbox.outside, Some(job), job.streaming, watch, limits, sink);
    let mut store = store(&sandbox.engine, guest, watch, limits);
    store.data().traffic.into_guest(size);
    let carried_out = async {
        store.data_mut().give_folders()?;
        plugin.exports().run(plugin.pre(), &mut store, job).await
    };
    let answer = bounded(carried_out, watch).await;
    store.data_mut().finish();
    let vault = store.data().vault.clone();
    let outcome = match answer {
        Ok(Ok(text)) if text.len() <= limits.result => result(vault.masked_in_steps(text).await, limits),
        Ok(Ok(text)) => Outcome::Failed(too_long(text.len(), limits)),
        Ok(Err(failure)) => {
            let (beginning, rest) = vault.masked_beginning(failure.message, MAX_FAILURE);
            Outcome::Failed(Failure { message: cut(beginning, rest), ..failure })
        }
        Err(error) => Outcome::Failed(explain(&error, store.data(), limits)),
    };
    let guest = store.data();
    guest.traffic.out_of_guest(said(&outcome));
    End {
        outcome,
        spent: Some(guest.spent(watch.spent())),
        wrote_keyvalue: guest.keyvalue.as_ref().is_some_and(|session| session.wrote()),
    }
}

/// The bytes of what the guest returned. A failure that the host describes counts as well: most of its text is the guest's.
fn said(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Ok { value, .. } => value.size(),
        Outcome::Failed(failure) => failure.message.len(),
        _ => 0,
    }
}

/// A store with every limit set.
pub(crate) fn store(engine: &Engine, guest: Guest, watch: Stopwatch, limits: &Limits) -> Store<Guest> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.meter);
    store.set_hostcall_fuel(limits.hostcall_bytes);
    store.set_max_component_handles(limits.handles);
    store.set_epoch_deadline(1);
    // A guest that computes yields at each tick, so that its neighbours run, and ends at the first tick past its budget.
    store.epoch_deadline_callback(move |_| {
        if watch.is_over() { Err(Stop::OutOfTime.into()) } else { Ok(UpdateDeadline::Yield(1)) }
    });
    store
}

/// Drives a guest within its budget. The deadline covers instantiation, the lifting of the result and post-return as well,
/// all of which run the guest's code; the timer is for a guest that waits in a host function, where no tick reaches it.
///
/// A [`Stop`] that unwinds is that stop: it comes from where a host function can return no error (see [`Guest::called`]). Any
/// other panic of a host function becomes an error: wasmtime carries it through the guest's frames to here, nothing but the
/// store was in reach of it, and the store is thrown away.
pub(crate) async fn bounded<T>(
    guest: impl Future<Output = wasmtime::Result<T>>,
    watch: Stopwatch,
) -> wasmtime::Result<T> {
    let guarded = tokio::time::timeout(watch.left(), AssertUnwindSafe(guest).catch_unwind());
    match guarded.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => Err(match panic.downcast::<Stop>() {
            Ok(stop) => (*stop).into(),
            Err(panic) => Stop::Fault(format!("a host function panicked: {}", panic_text(&*panic))).into(),
        }),
        Err(_) => Err(Stop::OutOfTime.into()),
    }
}

/// The failure that an error of the engine stands for, with what the guest printed last, which is where most languages say
/// what went wrong.
pub(crate) fn explain(error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Failure {
    let mut failure = ending::failure(error, &guest.meter, limits);
    if failure.code == FailureCode::Trapped
        && let Some(words) = guest.last_words()
    {
        failure.message.push_str("; it said: ");
        failure.message.push_str(&ending::excerpt(&guest.vault.masked(words)));
    }
    failure
}

/// What the guest returned as a result.
fn result(text: String, limits: &Limits) -> Outcome {
    if text.len() > limits.result {
        return Outcome::Failed(too_long(text.len(), limits));
    }
    match json::check(&text) {
        Ok(()) => Outcome::Ok { value: Json::new(text), trusted: true },
        Err(error) => {
            let message = format!("the tool's result is not JSON: {error}");
            Outcome::Failed(Failure::new(FailureCode::InvalidResult, message))
        }
    }
}

fn too_long(size: usize, limits: &Limits) -> Failure {
    let most = limits.result;
    ending::exceeded(format!("the tool's result has {size} bytes, at most {most} are allowed (limit `result`)"))
}

/// The beginning of a text that has so many bytes more, and says so if it is not the whole.
fn cut(mut message: String, mut rest: usize) -> String {
    if message.len() > MAX_FAILURE {
        let kept = message.floor_char_boundary(MAX_FAILURE);
        rest += message.len() - kept;
        message.truncate(kept);
    }
    if rest > 0 {
        message.push_str(&format!(" … and {rest} bytes more"));
    }
    message
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
