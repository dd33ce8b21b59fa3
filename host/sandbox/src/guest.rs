//! What a store holds for one call: the guest's side of the host.
//!
//! Most calls touch little of it, so whatever costs anything is made when it is first asked for.

use std::sync::Arc;
use std::time::Duration;

use domain::Limits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::blocking::{Blocking, Places};
use crate::call::{Job, Spent};
use crate::capability::Grants;
use crate::capability::filesystem::Files;
use crate::capability::http::{self, HttpClient};
use crate::capability::keyvalue::{self, Buckets};
use crate::capability::secrets::{Masking, Vault};
use crate::clock::{Clock, Stopwatch};
use crate::ending::Stop;
use crate::handles::Handles;
use crate::limits::Meter;
use crate::random::{self, Random};
use crate::report::{Level, Log, Progress, Sink};
use crate::spending::{Held, Traffic};
use crate::wasi;

/// The world outside of guests, as the host was given it.
#[derive(Clone)]
pub(crate) struct Outside {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) keyvalue: Option<Arc<dyn Buckets>>,
    pub(crate) http: Option<HttpClient>,
    /// The places of what may wait for a disk and of files that are open.
    pub(crate) places: Arc<Places>,
}

/// The data of one call's store.
pub(crate) struct Guest {
    pub(crate) meter: Meter,
    pub(crate) table: ResourceTable,
    pub(crate) random: random::Guests,
    pub(crate) keyvalue: Option<keyvalue::Session>,
    pub(crate) grants: Option<Arc<Grants>>,
    pub(crate) files: Files,
    pub(crate) vault: Vault,
    http: Option<Box<http::Session>>,
    http_terms: Option<Box<http::Terms>>,
    pub(crate) held: Held,
    handles: Handles,
    pub(crate) traffic: Traffic,
    pub(crate) blocking: Blocking,
    host_calls: u64,
    most_host_calls: u64,
    progress: Progress,
    clock: Arc<dyn Clock>,
    sink: Arc<dyn Sink>,
    log: Option<Log>,
    log_limit: usize,
    watch: Stopwatch,
    /// When less than this is left of its time, it hears that it should stop.
    last_part: Duration,
    wasi: Option<Box<WasiCtx>>,
}

impl Guest {
    /// The data of a call that has not begun. Without a job, as when a plugin is asked for its tools, nothing is granted.
    pub(crate) fn new(
        outside: &Outside,
        job: Option<&Job>,
        streaming: bool,
        watch: Stopwatch,
        limits: &Limits,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let vault = job.map(Vault::of).unwrap_or_default();
        let sink = Masking::over(sink, &vault);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let session = |(buckets, job): (&Arc<dyn Buckets>, &Job)| {
            job.grants.keyvalue.map(|quota| keyvalue::Session::new(Arc::clone(buckets), job.plugin.clone(), quota))
        };
        let granted = job.filter(|job| !job.grants.http.is_empty());
        let held = Held::new(limits.host_bytes);
        let terms = granted.map(|job| Box::new(http::Terms::new(outside.http.as_ref(), job, &vault, limits)));
        Self {
            meter: Meter::new(limits),
            table,
            random: random::Guests(Arc::clone(&outside.random)),
            keyvalue: outside.keyvalue.as_ref().zip(job).and_then(session),
            grants: job.map(|job| Arc::clone(&job.grants)),
            files: Files::new(limits.files_written),
            vault,
            http: None,
            http_terms: terms,
            handles: Handles::new(&held),
            held,
            traffic: Traffic::default(),
            blocking: Blocking::new(outside.places.share(job.map(|job| &job.plugin)), limits.host_call_time),
            host_calls: 0,
            most_host_calls: limits.host_calls,
            progress: Progress::new(Arc::clone(&sink), streaming, limits),
            clock: Arc::clone(&outside.clock),
            sink,
            log: None,
            log_limit: limits.log_bytes,
            watch,
            last_part: Duration::from_millis(limits.stop_grace.millis().min(limits.time.millis() / 2)),
            wasi: None,
        }
    }

    /// Counts a call of a host function and charges the handles that the guest has by now, and ends the guest instead if
    /// either is more than it may have. Every interface is linked through this.
    ///
    /// It unwinds because what selects an interface's part of the store can return no error; `call::bounded` knows it again.
    /// The engine's own hook is not used: it also sees what is no call of a host function, each `memory.copy` and each tick
    /// of the epoch for instance, so the count would neither mean much nor be the same twice.
    pub(crate) fn called(&mut self) -> &mut Self {
        if self.host_calls >= self.most_host_calls {
            let most = self.most_host_calls;
            unwind(Stop::Limit(format!("called host functions more than {most} times (limit `host_calls`)")));
        }
        self.host_calls += 1;
        self.handles.count(&mut self.table).unwrap_or_else(|stop| unwind(stop));
        self
    }

    /// The same for a host function of `wasi:http`, with what the guest keeps of that by now charged.
    pub(crate) fn called_http(&mut self) -> &mut Self {
        let Self { handles, table, .. } = self.called();
        handles.weigh_http(table).unwrap_or_else(|stop| unwind(stop));
        self
    }

    /// What it has spent so far.
    pub(crate) fn spent(&self, time: Duration) -> Spent {
        let (sent, received) = self.http.as_ref().map_or((0, 0), |http| http.passed());
        Spent {
            time,
            peak_memory: self.meter.memory(),
            peak_host_bytes: self.held.peak(),
            host_calls: self.host_calls,
            bytes_in: self.traffic.bytes_in() + received as u64,
            bytes_out: self.traffic.bytes_out() + sent as u64,
        }
    }

    /// The guest reports progress.
    pub(crate) fn update(&mut self, message: String, fraction: Option<f64>, data: Option<String>) {
        self.traffic.out_of_guest(message.len() + data.as_ref().map_or(0, String::len));
        self.progress.update(message, fraction, data);
    }

    /// Whether the call should come to its end. What was true once stays true: a call is not wanted again, and time goes on.
    pub(crate) fn stop_requested(&self) -> bool {
        self.watch.left() < self.last_part || self.sink.stop_requested()
    }

    /// The call's log.
    pub(crate) fn log(&mut self) -> &Log {
        let Self { sink, log_limit, held, traffic, .. } = self;
        self.log.get_or_insert_with(|| Log::new(Arc::clone(sink), *log_limit, held.clone(), traffic.clone()))
    }

    /// The call's requests, and the table that their resources are in.
    pub(crate) fn http_session(&mut self) -> (&mut http::Session, &mut ResourceTable) {
        let session = match self.http.take() {
            Some(session) => session,
            None => {
                let log = self.log().clone();
                let held = self.held.clone();
                Box::new(http::Session::new(self.http_terms.take().map(|terms| *terms), log, held))
            }
        };
        (self.http.insert(session), &mut self.table)
    }

    /// What the guest said last before it gave up.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.log.as_ref().map(Log::last_words).filter(|words| !words.is_empty())
    }

    /// Closes the reports of a call that has ended.
    pub(crate) fn finish(&mut self) {
        let dropped = self.progress.dropped();
        if let Some(log) = &self.log {
            log.finish(self.log_limit);
        }
        if dropped > 0 {
            let note = format!(
                "{dropped} progress updates were dropped: the tool is not declared `streaming`, their data is not JSON, or \
                 they are beyond the limits `progress_updates` and `progress_bytes`"
            );
            self.sink.log(Level::Warn, &note);
        }
    }
}

/// Ends the guest from where a host function can return no error.
fn unwind(stop: Stop) -> ! {
    std::panic::resume_unwind(Box::new(stop))
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        if self.wasi.is_none() {
            let clock = Arc::clone(&self.clock);
            let log = self.log().clone();
            self.wasi = Some(Box::new(wasi::context(clock, log)));
        }
        let ctx = self.wasi.get_or_insert_default();
        WasiCtxView { ctx, table: &mut self.table }
    }
}
