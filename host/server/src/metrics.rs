//! Counting what passes through the doors, in the text form of Prometheus. The counts belong to one router: nothing is
//! registered globally, so that a program can embed several hosts.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

use crate::in_flight::Kind;

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What is counted, with what it means.
const COUNTERS: [(&str, &str); 5] = [
    ("toolgate_http_requests_total", "Requests answered, by method, route and status."),
    ("toolgate_turns_submitted_total", "Turns submitted, by what became of them: new, replayed or ephemeral."),
    ("toolgate_answers_total", "Answers to suspensions that stand: new or replayed."),
    ("toolgate_calls_ended_total", "Calls that ended, by outcome, and failures by code."),
    ("toolgate_refused_busy_total", "Requests refused because their principal has as much as it may, by the bound."),
];
const GAUGES: [(&str, &str); 8] = [
    ("toolgate_event_streams", "Event streams that are open."),
    ("toolgate_turns_in_memory", "Turns that run or are waited for."),
    ("toolgate_live_tools", "Tools that can be called."),
    ("toolgate_open_turns", "Turns that have not ended."),
    ("toolgate_open_turn_bytes", "What those turns were submitted with."),
    ("toolgate_pending_suspensions", "What waits for people and clients."),
    ("toolgate_running_calls", "Calls that run, or wait for a place of their plugin."),
    ("toolgate_waiting_calls", "Calls that wait for other calls of their caller to end."),
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

    pub(crate) fn refused(&self, kind: Kind) {
        let bound = match kind {
            Kind::Request => "requests",
            Kind::Stream => "event_streams",
        };
        self.count("toolgate_refused_busy_total", vec![Label::from_static_parts("bound", bound)]);
    }

    pub(crate) fn stream_opened(&self) {
        self.gauge("toolgate_event_streams").increment(1.0);
    }

    pub(crate) fn stream_closed(&self) {
        self.gauge("toolgate_event_streams").decrement(1.0);
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self, handle: &dispatch::Handle) -> String {
        #[expect(clippy::cast_precision_loss, reason = "a count that needs more than 52 bits does not fit in memory")]
        let set = |name, count: usize| self.gauge(name).set(count as f64);
        set("toolgate_turns_in_memory", handle.turns_in_memory());
        set("toolgate_live_tools", handle.tools().len());
        let counts = handle.counts();
        set("toolgate_open_turns", counts.open_turns);
        set("toolgate_open_turn_bytes", counts.open_bytes);
        set("toolgate_pending_suspensions", counts.suspensions);
        set("toolgate_running_calls", counts.running_calls);
        set("toolgate_waiting_calls", counts.waiting_calls);
        for (outcome, code, count) in counts.settled {
            let outcome = Label::from_static_parts("outcome", outcome);
            let labels = vec![outcome, Label::from_static_parts("code", code)];
            self.counter("toolgate_calls_ended_total", labels).absolute(count);
        }
        for (bound, count) in counts.refused {
            let bound = Label::from_static_parts("bound", bound);
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

/// Counts a request by the route that it matched, never by the path that it asked for: paths are strangers' words, and
/// there is no end to them.
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

/// The method, where it is one that a door has: a method is a stranger's word, too.
fn known(request: &Request) -> &str {
    match request.method().as_str() {
        method @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE") => method,
        _ => "other",
    }
}
