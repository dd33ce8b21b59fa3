//! The signal to stop in every language: a component of each hears it of a cancelled call, in time to write down that it did,
//! and of a call whose time is nearly up, in time to give what it has.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{path, told};

use super::reaching::Server;

/// Half of the time before the guest hears of the end of its time, so that a call is cancelled well before that.
const LIMITS: &str = "[plugin.outside.limits]\nconcurrency = 1\ntime_ms = 10000\nstop_grace_ms = 5000";

/// Longer than the grace: the next call has its place once the one before has ended, however that went.
const SETTINGS: &str = "queue_ms = 20000";

/// More than any language takes in that time.
const STEPS: u64 = 100_000_000;

/// How many calls were asked to stop and did. With one place for the plugin, those before have ended.
fn stopped(host: &Host) -> Value {
    let turn = host.agent.settled(&host.agent.call("c", "stopped", json!({})));
    assert_eq!(told(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].clone()
}

/// Holds its component to that, and gives the host that has it.
#[track_caller]
pub(crate) fn check(component: Vec<u8>, server: &Server) -> Host {
    let tables = server.grants("outside") + LIMITS;
    let host = Setup::default().settings(SETTINGS).tables(&tables).component("outside", component).start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let cancelled = json!({"calls": [{"id": "cancelled", "tool": "work", "arguments": {"steps": STEPS}}]});
    let turn = host.agent.post("/v1/conversations/c/turns", &cancelled).ok(201);
    stream.named("call.progress");
    let turn = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(told(&turn), ["cancelled"], "{turn:#}");
    assert_eq!(stopped(&host), 1, "it was cancelled, and heard of it before it was ended");

    let turn = host.agent.settled(&host.agent.call("c", "work", json!({"steps": STEPS})));
    assert_eq!(told(&turn), ["ok"], "it heard that its time was nearly up: {turn:#}");
    let steps = turn["calls"][0]["content"]["result"].as_u64().unwrap();
    assert!(steps > 0 && steps < STEPS, "{turn:#}");
    assert_eq!(stopped(&host), 2);
    host
}
