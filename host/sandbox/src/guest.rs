//! The data of a call's store: the host's side of one guest.
//!
//! Most calls use little of it, so the expensive parts are made on their first use.

mod waiting;

use std::sync::Arc;
use std::time::Duration;

use capabilities::blocking::Permits;
use capabilities::interface::{Granted, NewCall, Now};
use capabilities::secrets::Vault;
use capabilities::{CallParts, Services, States, Stop, Usage};
use domain::{Limits, call::Level};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub(crate) use self::waiting::written;
use crate::clock::{GuestClock, Stopwatch};
use crate::durable::{RepeatedPart, Replay, Seeded, Timers, VirtualClock};
use crate::handles::Handles;
use crate::job::{Job, RunUsage};
use crate::limits::Meter;
use crate::pool::Reservation;
use crate::random::{self, Random};
use crate::report::{Log, Progress, Redacting, Sink};
use crate::wasi::{self, Inert};

/// The host services behind guests' imports.
pub(crate) struct HostServices {
    pub(crate) clock: Arc<dyn GuestClock>,
    pub(crate) random: Arc<dyn Random>,
    /// The monotonic clock, for rates.
    pub(crate) now: Now,
    pub(crate) capabilities: Services,
    pub(crate) permits: Permits,
}

pub(crate) struct Guest {
    pub(crate) meter: Meter,
    pub(crate) capabilities: States,
    pub(crate) vault: Vault,
    pub(crate) usage: Usage,
    pub(crate) log: Log,
    /// The run of a durable call.
    pub(crate) replay: Option<Replay>,
    table: ResourceTable,
    random: random::Guests,
    handles: Handles,
    host_calls: u64,
    max_host_calls: u64,
    progress: Progress,
    clock: Arc<dyn GuestClock>,
    sink: Arc<dyn Sink>,
    log_limit: usize,
    watch: Stopwatch,
    /// When less time than this is left, the guest is asked to stop.
    last_part: Duration,
    wasi: Option<Box<WasiCtx>>,
}

impl Guest {
    /// The data of a call that has not started. Without a job, as when a plugin is asked for its tools, it has no
    /// grants.
    pub(crate) fn new(
        services: &HostServices,
        job: Option<&Job>,
        watch: Stopwatch,
        limits: &Limits,
        reservation: Arc<Reservation>,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let vault =
            job.map(|job| Vault::new(&job.plugin, &job.idempotency_key, &job.grants.secrets)).unwrap_or_default();
        let sink = Redacting::over(sink, &vault);
        let usage = Usage::new(&services.permits, job.map(|job| &job.plugin), limits, reservation.clone());
        let log = Log::new(Arc::clone(&sink), limits.log_bytes, &usage);
        let mut clock = Arc::clone(&services.clock);
        let mut random = Arc::clone(&services.random);
        let replay = job.and_then(|job| job.durable.as_ref().map(|durable| (job, durable))).map(|(job, durable)| {
            let virtual_clock = Arc::new(VirtualClock::at(durable.started_at));
            random = Arc::new(Seeded::with(Arc::clone(&job.idempotency_key)));
            let real = std::mem::replace(&mut clock, virtual_clock.clone());
            Replay::new(
                durable,
                job,
                virtual_clock,
                real,
                RepeatedPart { log: log.clone(), watch: watch.clone() },
                Arc::clone(&sink),
            )
        });
        let granted = job.map(|job| Granted {
            plugin: &job.plugin,
            grants: job.grants.clone(),
            idempotency_key: &job.idempotency_key,
            vault: &vault,
        });
        let journal = replay.as_ref().and_then(Replay::journal);
        let call = NewCall { limits, usage: &usage, now: &services.now, log: Arc::new(log.clone()), journal };
        let states = States::new(&services.capabilities, &call, granted.as_ref());
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        Self {
            meter: Meter::new(limits, reservation, replay.is_some()),
            capabilities: states,
            vault,
            log,
            replay,
            table,
            random: random::Guests(random),
            handles: Handles::new(&usage.memory),
            usage,
            host_calls: 0,
            max_host_calls: limits.host_calls,
            progress: Progress::new(Arc::clone(&sink), job.is_some_and(|job| job.streaming), limits),
            clock,
            sink,
            log_limit: limits.log_bytes,
            watch,
            last_part: Duration::from_millis(limits.stop_grace.millis().min(limits.time.millis() / 2)),
            wasi: None,
        }
    }

    /// The usage of the call so far.
    pub(crate) fn spent(&self, time: Duration) -> RunUsage {
        let ([bytes_in, bytes_out], (sent, received)) = (self.usage.bytes.total(), self.capabilities.transferred());
        RunUsage {
            time,
            peak_memory: self.meter.memory(),
            peak_host_bytes: self.usage.memory.peak(),
            host_calls: self.host_calls,
            bytes_in: bytes_in + received as u64,
            bytes_out: bytes_out + sent as u64,
        }
    }

    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        if self.repeats() {
            return;
        }
        self.usage.bytes.count_out(message.len() + data.as_ref().map_or(0, String::len));
        self.progress.update(message, fraction, data);
    }

    /// Whether the call should stop. Once true, it stays true.
    pub(crate) fn stop_requested(&mut self) -> wasmtime::Result<bool> {
        let requested = self.watch.left() < self.last_part || self.sink.stop_requested();
        match &mut self.replay {
            None => Ok(requested),
            Some(replay) => Ok(replay.stop_requested(requested)?),
        }
    }

    /// The guest's last lines before it crashed.
    pub(crate) fn last_words(&self) -> Option<String> {
        Some(self.log.last_words()).filter(|words| !words.is_empty())
    }

    /// Ends the log of a run. A later run may continue the call.
    pub(crate) fn finish(&mut self, is_continued: bool) {
        if !is_continued {
            self.capabilities.finish();
        }
        let dropped = self.progress.dropped_updates();
        self.log.finish(self.log_limit);
        if dropped > 0 {
            let note = format!(
                "{dropped} progress updates were dropped: the tool is not declared `streaming`, their data is not JSON, or \
                 they are beyond `limits.progress_updates` and `limits.progress_bytes`"
            );
            self.sink.log(Level::Warn, &note);
        }
    }
}

impl Inert for Guest {
    /// Every interface is linked through this. It unwinds because the selector of an interface can return no error;
    /// `call::bounded` catches it. The engine's own hook is not used: it also counts each `memory.copy` and each tick
    /// of the epoch, so its count would differ between two equal calls.
    fn counted(&mut self) -> &mut Self {
        if self.host_calls >= self.max_host_calls {
            let what = format!("called host functions more than {} times", self.max_host_calls);
            Stop::Limit { what, key: "host_calls" }.unwind();
        }
        self.host_calls += 1;
        self.handles.count(&mut self.table).unwrap_or_else(|stop| stop.unwind());
        self
    }

    fn random(&mut self) -> &mut random::Guests {
        &mut self.random
    }

    fn timers(&mut self) -> Timers<'_> {
        let Self { wasi, clock, log, table, replay, capabilities: states, .. } = self;
        let ctx = wasi.get_or_insert_with(|| Box::new(wasi::context(Arc::clone(clock), log.clone())));
        Timers { clocks: WasiClocksCtxView { ctx: ctx.clocks(), table }, states, replay: replay.as_mut() }
    }
}

impl CallParts for Guest {
    fn called(&mut self) -> (&mut States, &mut ResourceTable, &Usage) {
        let Self { capabilities: states, table, usage, .. } = self.counted();
        (states, table, usage)
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, clock, log, table, .. } = self;
        let ctx = wasi.get_or_insert_with(|| Box::new(wasi::context(Arc::clone(clock), log.clone())));
        WasiCtxView { ctx, table }
    }
}
