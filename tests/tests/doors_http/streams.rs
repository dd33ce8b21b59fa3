//! Event streams: in order, from any event, across a kill of the host, with live events between stored ones.

use std::collections::BTreeSet;

use serde_json::json;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};
use toolgate_tests::sse::Event;

use crate::{stats, transfer};

const EVENTS: &str = "/v1/conversations/c/events";

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.id.clone().expect("a committed event has an id")).collect()
}

#[test]
fn stream_resumes_after_any_event_and_after_a_kill() {
    let mut host = crate::ledger_host("");
    let turn = host.agent.submit("c", json!([transfer("t", 1), stats("s")]));
    let mut stream = host.agent.events(EVENTS);
    let before = stream.until(|event| event.name == "call.settled");
    assert_eq!(names(&before)[..4], ["turn.started", "call.requested", "call.requested", "call.suspended"]);

    host.kill();
    assert!(stream.next_or_end().is_none(), "the stream breaks with the host");
    host.start();
    let last = before.last().unwrap().id.clone();
    let mut resumed = host.agent.events_after(EVENTS, last.as_deref());
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    let after = resumed.until(|event| event.name == "turn.settled");
    assert_eq!(names(&after), ["call.resolved", "call.started", "call.settled", "turn.settled"]);

    let whole = host.agent.events(EVENTS).until(|event| event.name == "turn.settled");
    let mut parts = ids(&before);
    parts.extend(ids(&after));
    assert_eq!(ids(&whole), parts, "no event is repeated or missing");
    assert_eq!(parts.iter().collect::<BTreeSet<_>>().len(), parts.len());
    for (n, id) in parts.iter().enumerate().take(parts.len() - 1) {
        let rest = host.agent.events_after(EVENTS, Some(id)).until(|event| event.name == "turn.settled");
        assert_eq!(ids(&rest), parts[n + 1..], "after {id}");
    }
}

#[test]
fn progress_and_logs_are_live_without_event_id() {
    let host = Setup::with(&["lab"]).start();
    let mut stream = host.agent.events(EVENTS);
    assert_eq!(outcomes(&host.agent.call("c", "count", json!({"to": 3}))), ["ok"]);
    let progress = [(); 3].map(|()| stream.named("call.progress"));
    let counted = progress.map(|event| (event.data["data"]["n"].clone(), event.id));
    assert_eq!(counted, [(json!(1), None), (json!(2), None), (json!(3), None)]);
    assert_eq!(outcomes(&host.agent.call("c", "stdout", json!({"bytes": 3}))), ["ok"]);
    let line = stream.named("call.log");
    assert_eq!((&line.data["level"], &line.data["message"], line.id), (&json!("info"), &json!("xxx"), None));
    // A later follower does not get it.
    let later = host.agent.events(EVENTS).until(|event| event.name == "turn.settled");
    assert!(later.iter().all(|event| event.name != "call.progress"));
}

#[test]
fn ephemeral_turn_is_live_only_and_not_stored() {
    let host = Setup::with(&["lab"]).start();
    let mut stream = host.agent.events(EVENTS);
    let call = |id: &str| json!([{"id": id, "tool": "echo", "arguments": {"value": 1}}]);
    // A conversation has an owner after the first commit.
    assert_eq!(outcomes(&host.agent.submit("c", call("first"))), ["ok"]);
    stream.named("turn.settled");
    let turn = host.agent.submit_turn("c", &json!({"calls": call("e"), "ephemeral": true}));
    let events = stream.until(|event| event.name == "turn.settled");
    assert!(events.iter().all(|event| event.id.is_none()), "{:?}", names(&events));
    assert_eq!(events[0].data["turn"], turn["turn"]);
}
