//! The data of a call's store: the host's side of one guest.
//!
//! Most calls use little of it, so the expensive parts are made on their first use.

mod waiting;

use std::sync::Arc;

use capabilities::blocking::Permits;
use capabilities::interface::{Granted, NewCall, Now};
use capabilities::{CallParts, Services, States, Usage, Vault};
use domain::Limits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub(crate) use self::waiting::{lost, written};
use crate::clock::{GuestClock, Stopwatch};
use crate::durable::{PausedGuest, RepeatedPart, Replay, Seeded, Timers, VirtualClock};
use crate::handles::Handles;
use crate::job::{Job, RunUsage};
use crate::limits::Meter;
use crate::pool::Reservation;
use crate::random::{self, Random};
use crate::report::{Log, Redacting, Sink};
use crate::run::Run;
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
    pub(crate) capabilities: States,
    pub(crate) vault: Vault,
    pub(crate) run: Run,
    /// The run of a durable call.
    pub(crate) replay: Option<Replay>,
    table: ResourceTable,
    random: random::Guests,
    handles: Handles,
    clock: Arc<dyn GuestClock>,
    wasi: Option<Box<WasiCtx>>,
}

impl Guest {
    /// The data of a call that has not started. Without a job, as when a plugin is asked for its tools, it has no
    /// grants. With `paused`, its instance may be kept while it waits.
    pub(crate) fn new(
        services: &HostServices,
        job: Option<&Job>,
        watch: Stopwatch,
        limits: &Limits,
        reservation: Arc<Reservation>,
        sink: Arc<dyn Sink>,
        paused: Option<Arc<PausedGuest>>,
    ) -> Self {
        let vault =
            job.map(|job| Vault::of(&job.plugin, &job.idempotency_key, job.grants.as_ref())).unwrap_or_default();
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
                (Arc::clone(&sink), paused),
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
        let meter = Meter::new(limits, reservation, replay.is_some());
        let (handles, streaming) = (Handles::new(&usage.memory), job.is_some_and(|job| job.streaming));
        Self {
            capabilities: states,
            vault,
            run: Run::new(limits, streaming, watch, meter, usage, log, sink),
            replay,
            table,
            random: random::Guests(random),
            handles,
            clock,
            wasi: None,
        }
    }

    /// The usage of the run so far.
    pub(crate) fn spent(&self) -> RunUsage {
        self.run.spent(&self.capabilities)
    }

    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        if !self.repeats() {
            self.run.update(message, fraction, data);
        }
    }

    /// Whether the call should stop. Once true, it stays true.
    pub(crate) fn stop_requested(&mut self) -> wasmtime::Result<bool> {
        let requested = self.run.should_stop();
        match &mut self.replay {
            None => Ok(requested),
            Some(replay) => Ok(replay.stop_requested(requested)?),
        }
    }

    /// The guest's last lines before it crashed.
    pub(crate) fn last_words(&self) -> Option<String> {
        Some(self.run.log.last_words()).filter(|words| !words.is_empty())
    }

    /// Ends the log of a run. A later run may continue the call.
    pub(crate) fn finish(&mut self, is_continued: bool) {
        if !is_continued {
            self.capabilities.finish();
        }
        self.run.finish();
    }
}

impl Inert for Guest {
    /// Every interface is linked through this. It unwinds because the selector of an interface can return no error;
    /// `call::bounded` catches it. The engine's own hook is not used: it also counts each `memory.copy` and each tick
    /// of the epoch, so its count would differ between two equal calls.
    fn counted(&mut self) -> &mut Self {
        self.run.count_host_call().unwrap_or_else(|stop| stop.unwind());
        self.handles.count(&mut self.table).unwrap_or_else(|stop| stop.unwind());
        self
    }

    fn random(&mut self) -> &mut random::Guests {
        &mut self.random
    }

    fn timers(&mut self) -> Timers<'_> {
        let Self { wasi, clock, run, table, replay, capabilities: states, .. } = self;
        let ctx = wasi.get_or_insert_with(|| Box::new(wasi::context(Arc::clone(clock), run.log.clone())));
        Timers { clocks: WasiClocksCtxView { ctx: ctx.clocks(), table }, states, run, replay: replay.as_mut() }
    }
}

impl CallParts for Guest {
    fn called(&mut self) -> (&mut States, &mut ResourceTable, &Usage) {
        let Self { capabilities: states, table, run, .. } = self.counted();
        (states, table, &run.usage)
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, clock, run, table, .. } = self;
        let ctx = wasi.get_or_insert_with(|| Box::new(wasi::context(Arc::clone(clock), run.log.clone())));
        WasiCtxView { ctx, table }
    }
}
