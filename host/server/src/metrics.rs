//! Metrics in the text format of Prometheus. They belong to one router and not to the process, so that a program can
//! embed several hosts.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use dispatch::ports::StoreHealth;
use domain::outcome::FailureCode;
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The counters and their meanings.
const COUNTERS: [(&str, &str); 9] = [
    ("toolgate_http_requests_total", "Requests answered, by method, route and status."),
    ("toolgate_turns_submitted_total", "Turns submitted, by kind: new, replayed or ephemeral."),
    ("toolgate_answers_total", "Accepted answers to suspensions: new or replayed."),
    ("toolgate_calls_ended_total", "Calls that ended, by outcome, and failures by code."),
    ("toolgate_refused_busy_total", "Requests refused because their principal has used up a quota, by the quota."),
    (
        "toolgate_store_failures_total",
        "How often the disk refused a change, so that the store took no more changes for a time or until a restart.",
    ),
    (
        "toolgate_lingering_instances_total",
        "Instances of durable calls that were kept while the call waited, and what became of them: kept, resumed or dropped.",
    ),
    ("toolgate_store_syncs_total", "Syncs of the files of the store. Commits at the same time share one."),
    ("toolgate_store_reads_timed_out_total", "Reads that failed because the disk did not answer in time."),
];
const GAUGES: [(&str, &str); 14] = [
    ("toolgate_event_streams", "Open event streams."),
    ("toolgate_turns_in_memory", "Turns in memory, because they run or a request waits for them."),
    ("toolgate_live_tools", "Live tools."),
    ("toolgate_store_failed", "1 while the store takes no changes or reads take too long, because of the disk."),
    (
        "toolgate_damaged_records",
        "Damaged records and pages that were found since the start. The log of a turn counts once, and so do all pages of \
         the turns and all pages of plugins' data.",
    ),
    ("toolgate_disk_free_bytes", "Free space of the disk that the store writes to."),
    ("toolgate_disk_low", "1 while new turns are refused, because the disk has less free space than its reserve."),
    (
        "toolgate_retention_lag_seconds",
        "How far the time of retention is behind the clock, because the clock is far ahead of the last known time.",
    ),
    ("toolgate_open_turns", "Turns that have not ended."),
    ("toolgate_open_turn_bytes", "Bytes of the turns that have not ended: submissions, and results so far."),
    ("toolgate_pending_suspensions", "Open suspensions."),
    ("toolgate_running_calls", "Calls that run or wait for a permit of their plugin."),
    ("toolgate_lingering_instances", "Instances of durable calls that are kept while the call waits."),
    ("toolgate_waiting_calls", "Calls that wait for their caller's other calls to end."),
];

/// The counts of one router.
pub(crate) struct Meters(PrometheusRecorder);

impl Meters {
    pub(crate) fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for (name, meaning) in COUNTERS {
            recorder.describe_counter(name.into(), None, meaning.into());
        }
        for (name, meaning) in GAUGES {
            recorder.describe_gauge(name.into(), None, meaning.into());
        }
        Self(recorder)
    }

    pub(crate) fn submitted(&self, how: &'static str) {
        self.count("toolgate_turns_submitted_total", vec![Label::from_static_parts("how", how)]);
    }

    pub(crate) fn answered(&self, how: &'static str) {
        self.count("toolgate_answers_total", vec![Label::from_static_parts("how", how)]);
    }

    pub(crate) fn refused(&self, bound: &'static str) {
        self.count("toolgate_refused_busy_total", vec![Label::from_static_parts("bound", bound)]);
    }

    pub(crate) fn stream_opened(&self) {
        self.gauge("toolgate_event_streams").increment(1.0);
    }

    pub(crate) fn stream_closed(&self) {
        self.gauge("toolgate_event_streams").decrement(1.0);
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) async fn render(&self, handle: &dispatch::Handle) -> String {
        // Unknown while the database is away.
        let of_all_hosts = handle.open_turns().await.ok().flatten().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a count that needs more than 52 bits does not fit in memory")]
        let set = |name, count: usize| self.gauge(name).set(count as f64);
        set("toolgate_turns_in_memory", handle.turns_in_memory());
        set("toolgate_live_tools", handle.tools().len());
        let StoreHealth { failure, failures, damaged_records, timed_out_reads, syncs } = handle.store_health();
        set("toolgate_store_failed", usize::from(failure.is_some()));
        set("toolgate_damaged_records", damaged_records);
        self.counter("toolgate_store_reads_timed_out_total", Vec::new()).absolute(timed_out_reads);
        self.counter("toolgate_store_failures_total", Vec::new()).absolute(failures);
        self.counter("toolgate_store_syncs_total", Vec::new()).absolute(syncs);
        set("toolgate_disk_low", usize::from(handle.is_disk_low()));
        if let Some(free) = handle.free_disk() {
            set("toolgate_disk_free_bytes", usize::try_from(free).unwrap_or(usize::MAX));
        }
        let lag = handle.retention_lag().millis() / 1_000;
        set("toolgate_retention_lag_seconds", usize::try_from(lag).unwrap_or(usize::MAX));
        let lingering = handle.lingering();
        set("toolgate_lingering_instances", lingering.now);
        for (what, count) in [("kept", lingering.kept), ("resumed", lingering.resumed), ("dropped", lingering.dropped)]
        {
            let labels = vec![Label::from_static_parts("what", what)];
            self.counter("toolgate_lingering_instances_total", labels).absolute(count);
        }
        let counts = handle.counts();
        set("toolgate_open_turns", counts.open_turns + of_all_hosts.turns);
        set("toolgate_open_turn_bytes", counts.open_bytes + of_all_hosts.bytes);
        set("toolgate_pending_suspensions", counts.suspensions + of_all_hosts.suspensions);
        set("toolgate_running_calls", counts.running_calls);
        set("toolgate_waiting_calls", counts.waiting_calls);
        for (outcome, code, count) in counts.settled {
            let outcome = Label::from_static_parts("outcome", outcome.as_str());
            let labels = vec![outcome, Label::from_static_parts("code", code.map_or("", FailureCode::as_str))];
            self.counter("toolgate_calls_ended_total", labels).absolute(count);
        }
        for (bound, count) in counts.refused {
            let bound = Label::from_static_parts("bound", bound.as_str());
            self.counter("toolgate_refused_busy_total", vec![bound]).absolute(count);
        }
        self.0.handle().render()
    }

    fn count(&self, name: &'static str, labels: Vec<Label>) {
        self.counter(name, labels).increment(1);
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> metrics::Counter {
        self.0.register_counter(&Key::from_parts(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str) -> metrics::Gauge {
        self.0.register_gauge(&Key::from_static_name(name), &METADATA)
    }
}

/// Counts a request by the route that it matched. Never by its path, because clients can send any number of paths.
pub(crate) async fn requests(State(meters): State<Arc<Meters>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none".into(), |path| path.as_str().to_owned());
    let method = if route == "none" { "any".to_owned() } else { known(&request).to_owned() };
    let response = next.run(request).await;
    let labels = vec![
        Label::new("method", method),
        Label::new("route", route),
        Label::new("status", response.status().as_str().to_owned()),
    ];
    meters.count("toolgate_http_requests_total", labels);
    response
}

/// The method, if a route has it. Clients can send any method.
fn known(request: &Request) -> &str {
    match request.method().as_str() {
        method @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE") => method,
        _ => "other",
    }
}
