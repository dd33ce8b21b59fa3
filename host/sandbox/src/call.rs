//! One call: one store, one instance, one outcome. The call always ends with an outcome, and dropping the store removes
//! everything that the guest leaves behind. An instance of a durable call may be kept while the call waits (`lingering.rs`).

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use capabilities::{Stop, Vault, excerpt};
use domain::{
    Digest, Json, Limits, Outcome, Span,
    call::Level,
    doubt::{self, DoubtfulRequest},
    outcome::{Failure, FailureCode},
    step::{StepRequest, StepWait},
};
use futures::FutureExt as _;
use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::abi::Exports;
use crate::clock::Stopwatch;
use crate::durable::{self, PausedGuest, Waits};
use crate::ending::{self, Purpose};
use crate::guest::{Guest, lost, written};
use crate::instance::{Driven, Instance, KeptInstance, without_journal};
use crate::job::{Durable, GuestEnd, Job, RunEnd, RunUsage};
use crate::pool::{Part, Peak, Reservation, User};
use crate::report::{CurrentSink, Sink};
use crate::shared::Shared;

/// A plugin that calls can run.
pub(crate) struct LoadedPlugin {
    pub(crate) digest: Digest,
    pub(crate) has_server: bool,
    /// Whether the plugin can check if a call should stop. If not, it gets no grace.
    pub(crate) can_stop: bool,
    pub(crate) exports: Exports,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) peak: Peak,
    pub(crate) shared: Arc<Shared>,
}

/// Bytes of a failure that a guest reports. It is a sentence for a model, not a channel.
const MAX_FAILURE: usize = 16 << 10;

/// Runs a job to its end, in a new instance or in the one that was kept while the call waited.
pub(crate) async fn run(plugin: &Arc<LoadedPlugin>, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> GuestEnd {
    let refused = |failure| unrun(job, failure);
    let (size, max) = (job.arguments.size(), limits.arguments);
    if size > max {
        let message =
            format!("the arguments have {size} bytes, at most {max} are allowed (limit `limits.arguments_bytes`)");
        return refused(ending::exceeded(message));
    }
    if !plugin.has_server {
        return refused(ending::fault("asked to run a plugin without `server`"));
    }
    if let Some(in_doubt) = in_doubt(job, sink.as_ref()) {
        return in_doubt;
    }
    let shared = &plugin.shared;
    let grace = if plugin.can_stop { limits.stop_grace } else { Span::ZERO };
    let ended_before = || {
        let message = "the call ended before the tool began to run; nothing was carried out";
        refused(Failure::new(FailureCode::ToolUnavailable, message))
    };
    let guest = plugin.peak.expected(limits).bytes();
    if may_linger(job, limits)
        && let Some(kept) = shared.lingering.take(plugin.digest, job, limits, guest)
    {
        if !sink.try_start(grace) {
            return ended_before();
        }
        if let Some(instance) = kept.continued(job, Arc::clone(&sink)) {
            return continue_guest(plugin, instance).await;
        }
    }
    // Outlives the store, which occupies the instance.
    let Some(reservation) = reserved(plugin, job, limits).await.map(Arc::new) else {
        return refused(ending::busy());
    };
    if !sink.try_start(grace) {
        return ended_before();
    }
    if !may_linger(job, limits) {
        let (store, watch) = started(plugin, job, limits, &reservation, sink, None);
        let guest = carry_out(Arc::clone(plugin), job.clone(), *limits, store, watch);
        return reservation.fair_share().drive(guest).await;
    }
    let (sink, paused) = (Arc::new(CurrentSink::new(sink)), Arc::<PausedGuest>::default());
    let (store, watch) = started(plugin, job, limits, &reservation, sink.clone(), Some(Arc::clone(&paused)));
    let (job, limits, journal, vault) =
        (without_journal(job), *limits, store.data().journal(), store.data().vault.clone());
    let guest = Box::pin(carry_out(Arc::clone(plugin), job.clone(), limits, store, watch));
    continue_guest(plugin, Instance { guest, paused, sink, journal, vault, reservation, job, limits }).await
}

/// Whether the instance of a call may be kept while it waits.
fn may_linger(job: &Job, limits: &Limits) -> bool {
    limits.linger > Span::ZERO && job.durable.is_some() && job.recording.is_some()
}

/// The store of a guest that has not begun, and the watch of its run.
fn started(
    plugin: &LoadedPlugin,
    job: &Job,
    limits: &Limits,
    reservation: &Arc<Reservation>,
    sink: Arc<dyn Sink>,
    paused: Option<Arc<PausedGuest>>,
) -> (Store<Guest>, Stopwatch) {
    let (shared, watch) = (&plugin.shared, Stopwatch::start(limits.time, limits.replay));
    let guest = Guest::new(&shared.services, Some(job), watch.clone(), limits, Arc::clone(reservation), sink, paused);
    let store = store(&shared.engine, guest, watch.clone(), limits);
    store.data().run.usage.bytes.count_in(job.arguments.size());
    (store, watch)
}

/// Drives a guest to the end of its run. If the call waits then, its instance is kept.
async fn continue_guest(plugin: &LoadedPlugin, mut instance: Instance) -> GuestEnd {
    let Waits { request, spent, wrote } = match instance.drive().await {
        Driven::Ended(end) => return end,
        Driven::Waits(waits) => waits,
    };
    plugin.peak.record(instance.reservation.peak());
    let head = match &instance.journal {
        Some(journal) => journal.flush().await.map(|()| journal.head()),
        None => Ok(None),
    };
    let end = |ended| GuestEnd { ended, spent: Some(spent), wrote };
    let head = match head {
        Ok(head) => head,
        Err(error) => return end(RunEnd::Repeating(lost(&error.to_string()))),
    };
    let ended = durable::redacted(request, |text| instance.vault.redacted(text));
    let time = Duration::from_millis(instance.limits.linger.millis());
    if let (Some(head), RunEnd::Waits(StepRequest { digest, wait })) = (head, &ended)
        && !outlasts(wait, plugin.shared.services.clock.wall().saturating_add(time))
    {
        let guest = plugin.peak.expected(&instance.limits).bytes();
        let kept = KeptInstance::new(instance, *digest, head, guest);
        plugin.shared.keep(plugin.digest, kept, time);
    }
    end(ended)
}

/// Whether a wait certainly lasts longer than an instance is kept.
fn outlasts(wait: &StepWait, kept_until: Duration) -> bool {
    match wait {
        StepWait::Time(until) | StepWait::RateLimit(until) => Duration::from_millis(until.millis()) > kept_until,
        StepWait::Answer(_) | StepWait::Approval { .. } | StepWait::External { .. } | StepWait::Calls(_) => false,
    }
}

/// Carries out a job. Its guest ends with a result, or at a wait if no instance is kept.
async fn carry_out(
    plugin: Arc<LoadedPlugin>,
    job: Job,
    limits: Limits,
    mut store: Store<Guest>,
    watch: Stopwatch,
) -> GuestEnd {
    let limits = &limits;
    let carried_out = async {
        store.data_mut().capabilities.start(&job.grants)?;
        plugin.exports.run(&plugin.pre, &mut store, &job).await
    };
    let answer = bounded(pin!(carried_out), &watch).await;
    let (early, journal) = (store.data().early_end(&answer), store.data().journal());
    let early = written(journal, early).await;
    let is_continued = match (&early, &answer) {
        (None, Err(error)) => store.data().is_continued_after(&explain(error, store.data(), limits, Purpose::Call)),
        (early, _) => matches!(early, Some(RunEnd::Waits(_) | RunEnd::Repeating(_))),
    };
    store.data_mut().finish(is_continued);
    let vault = store.data().vault.clone();
    let ended: RunEnd = match (early, answer) {
        (Some(RunEnd::Waits(request)), _) => durable::redacted(request, |text| vault.redacted(text)),
        (Some(RunEnd::Outcome(Outcome::Failed(failure))), _) => Outcome::Failed(redacted(failure, &vault)).into(),
        // A request in it has a path of the guest.
        (Some(RunEnd::Repeating(failure)), _) => RunEnd::Repeating(redacted(failure, &vault)),
        (Some(ended), _) => ended,
        (None, Ok(Ok(text))) if text.len() <= limits.result => {
            result(vault.redacted_in_steps(text).await, limits).into()
        }
        (None, Ok(Ok(text))) => Outcome::Failed(too_long(text.len(), limits)).into(),
        (None, Ok(Err(failure))) => {
            let (beginning, rest) = vault.redacted_beginning(failure.message, MAX_FAILURE);
            Outcome::Failed(Failure { message: cut(beginning, rest), ..failure }).into()
        }
        (None, Err(error)) => {
            let failure = explain(&error, store.data(), limits, Purpose::Call);
            if is_continued { RunEnd::Repeating(failure) } else { Outcome::Failed(failure).into() }
        }
    };
    let guest = store.data();
    plugin.peak.record(guest.run.meter.peak());
    guest.run.usage.bytes.count_out(returned(&ended));
    GuestEnd { ended, spent: Some(guest.spent()), wrote: guest.capabilities.wrote() }
}

/// The end of a run that the host does not carry out.
fn unrun(job: &Job, failure: Failure) -> GuestEnd {
    let has_begun = job.durable.as_ref().is_some_and(Durable::has_begun);
    let ended = RunEnd::unrun(has_begun, Outcome::Failed(failure));
    GuestEnd { ended, spent: None, wrote: false }
}

/// The end of a run that does not begin, because requests of its call are in doubt.
fn in_doubt(job: &Job, sink: &dyn Sink) -> Option<GuestEnd> {
    let requests = job.grants.doubtful_requests(job.durable.as_ref()?)?;
    for DoubtfulRequest { entry, request, .. } in requests.all().iter().take(doubt::MAX_REQUESTS) {
        let why = "was begun by a run that was interrupted, and nobody knows whether it was carried out";
        sink.log(Level::Warn, &format!("{request} {why} (entry {entry} of the journal)"));
    }
    Some(GuestEnd { ended: RunEnd::InDoubt(requests), spent: Some(RunUsage::default()), wrote: false })
}

/// An instance, with memory for the guest and for the journal that it repeats. `None` if they are not free in time.
async fn reserved(plugin: &LoadedPlugin, job: &Job, limits: &Limits) -> Option<Reservation> {
    let journal = job.repeated_bytes();
    let (user, expected) = (User::Plugin(job.plugin.clone()), plugin.peak.expected(limits).with_journal(journal));
    let reservation = plugin.shared.pool.reserve(user, expected, patience(job, limits)).await?;
    reservation.covers(Part::Journal, journal).then_some(reservation)
}

/// How long a call waits for memory. Too little memory must not end a call that has begun, so that waits as long as it takes.
fn patience(job: &Job, limits: &Limits) -> Duration {
    match &job.durable {
        Some(durable) if durable.has_begun() => Duration::MAX,
        _ => Duration::from_millis(limits.time.millis()),
    }
}

/// The bytes that the guest returned. A failure that the host describes counts as well, because most of its text is the
/// guest's.
fn returned(ended: &RunEnd) -> usize {
    match ended {
        RunEnd::Outcome(Outcome::Ok { value, .. }) => value.size(),
        RunEnd::Outcome(Outcome::Failed(failure)) => failure.message.len(),
        _ => 0,
    }
}

/// A store with every limit set.
pub(crate) fn store(engine: &Engine, guest: Guest, watch: Stopwatch, limits: &Limits) -> Store<Guest> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.run.meter);
    store.set_hostcall_fuel(limits.hostcall_bytes);
    store.set_max_component_handles(limits.handles);
    store.set_epoch_deadline(1);
    // A guest that computes yields at each tick, so that other guests run, and ends at the first tick after its time.
    store.epoch_deadline_callback(move |_| match watch.over() {
        Some(stop) => Err(stop.into()),
        None => Ok(UpdateDeadline::Yield(1)),
    });
    store
}

/// Drives a guest within its time. The deadline also covers instantiation, the lifting of the result and post-return,
/// which run the guest's code as well. The timer is for a guest that waits in a host function, where no tick reaches
/// it.
///
/// A [`Stop`] that unwinds comes from [`Stop::unwind`]. Any other panic of a host function becomes an error: wasmtime
/// carries it through the guest's frames to here, the function could reach nothing but the store, and the store is
/// dropped.
///
/// The guest's future is large, so it is pinned by the caller and not moved.
pub(crate) async fn bounded<T>(
    guest: Pin<&mut impl Future<Output = wasmtime::Result<T>>>,
    watch: &Stopwatch,
) -> wasmtime::Result<T> {
    let mut guarded = pin!(AssertUnwindSafe(watch.count(guest)).catch_unwind());
    loop {
        return match tokio::time::timeout(watch.left(), guarded.as_mut()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => Err(match panic.downcast::<Stop>() {
                Ok(stop) => (*stop).into(),
                Err(panic) => Stop::Fault(format!("a host function panicked: {}", panic_text(&*panic))).into(),
            }),
            Err(_) => match watch.over() {
                Some(stop) => Err(stop.into()),
                // Meanwhile it has come to the end of what it repeats, or it waited for other guests.
                None => continue,
            },
        };
    }
}

/// The failure behind an error of the engine, with the last lines that the guest printed: most languages explain a
/// crash there.
pub(crate) fn explain(error: &wasmtime::Error, guest: &Guest, limits: &Limits, purpose: Purpose) -> Failure {
    let mut failure = ending::failure(error, &guest.run.meter, limits, purpose);
    if failure.code == FailureCode::Trapped
        && let Some(words) = guest.last_words()
    {
        failure.message.push_str("; it said: ");
        failure.message.push_str(&excerpt(&guest.vault.redacted(words)));
    }
    failure
}

fn redacted(failure: Failure, vault: &Vault) -> Failure {
    Failure { message: vault.redacted(failure.message), ..failure }
}

/// The outcome for a result of the guest.
fn result(text: String, limits: &Limits) -> Outcome {
    if text.len() > limits.result {
        return Outcome::Failed(too_long(text.len(), limits));
    }
    match Json::parse(text) {
        Ok(value) => Outcome::Ok { value, trusted: true },
        Err(malformed) => {
            let message = format!("the tool's result is not JSON: {malformed}");
            Outcome::Failed(Failure::new(FailureCode::InvalidResult, message))
        }
    }
}

fn too_long(size: usize, limits: &Limits) -> Failure {
    let max = limits.result;
    ending::exceeded(format!(
        "the tool's result has {size} bytes, at most {max} are allowed (limit `limits.result_bytes`)"
    ))
}

/// The beginning of a text that has `rest` more bytes, with a note if it is not complete.
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
