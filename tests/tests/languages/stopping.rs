//! Cancellation in every language. A component sees that its call was cancelled and has time to store that. It also
//! sees that its time is nearly up and can return a partial result.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};

use super::reaching::Server;

/// The grace is half of the time, so that the cancellation comes well before the warning about the time.
const LIMITS: &str = "[plugin.outside.limits]\nconcurrency = 1\ntime_ms = 10000\nstop_grace_ms = 5000";

/// Longer than the grace, so that the next call gets its permit in any case.
const SETTINGS: &str = "queue_ms = 20000";

/// More steps than any language can do in that time.
const STEPS: u64 = 100_000_000;

/// The number of calls that stopped when they were asked to. The plugin has one permit, so earlier calls have ended.
fn stopped(host: &Host) -> Value {
    let turn = host.agent.settled(&host.agent.call("c", "stopped", json!({})));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].clone()
}

/// Checks cancellation of a component, and returns its host.
#[track_caller]
pub(crate) fn check(component: Vec<u8>, server: &Server) -> Host {
    let tables = server.grants("outside") + LIMITS;
    let host = Setup::default().settings(SETTINGS).tables(&tables).component("outside", component).start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let cancelled = json!({"calls": [{"id": "cancelled", "tool": "work", "arguments": {"steps": STEPS}}]});
    let turn = host.agent.post("/v1/conversations/c/turns", &cancelled).ok(201);
    stream.named("call.progress");
    let turn = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(outcomes(&turn), ["cancelled"], "{turn:#}");
    assert_eq!(stopped(&host), 1, "the cancelled call saw the request to stop in time");

    let turn = host.agent.settled(&host.agent.call("c", "work", json!({"steps": STEPS})));
    assert_eq!(outcomes(&turn), ["ok"], "the call saw that its time was nearly up: {turn:#}");
    let steps = turn["calls"][0]["content"]["result"].as_u64().unwrap();
    assert!(steps > 0 && steps < STEPS, "{turn:#}");
    assert_eq!(stopped(&host), 2);
    host
}
