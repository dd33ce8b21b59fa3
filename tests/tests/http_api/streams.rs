//! Event streams: in order, from any event, across a kill of the host, with live events between stored ones.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Answer, Client, outcomes, suspension_of};
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
fn ends_of_turns_are_followed_across_a_kill() {
    let mut host = Setup::with(&["lab"]).start();
    let other = host.token("other", &["caller"], None);
    let bound = host.token("bound", &["approver"], Some("c"));
    let echo = |client: &toolgate_tests::http::Client, conversation: &str| {
        let turn = client.call(conversation, "echo", json!({"value": 1}));
        assert_eq!(outcomes(&turn), ["ok"]);
        turn["turn"].clone()
    };
    let mut streams = [&host.agent, &other, &host.admin, &bound].map(|client| client.events("/v1/events?after=now"));
    let own = echo(&host.agent, "c");
    let others = echo(&other, "d");
    let [agent, of_other, admin, bound_to_c] = &mut streams;
    let first = agent.named("turn.settled");
    let words = ["turn", "conversation", "caller", "state"].map(|name| first.data[name].clone());
    assert_eq!(words, [own.clone(), json!("c"), json!("agent"), json!("settled")]);
    assert_eq!(of_other.named("turn.settled").data["turn"], others);
    assert_eq!([(); 2].map(|()| admin.named("turn.settled").data["turn"].clone()), [own.clone(), others]);
    let of_c = bound_to_c.named("turn.settled");
    assert_eq!(of_c.data["turn"], own);

    // A turn that settles while nobody follows, and one after the kill.
    host.kill();
    assert!(streams[0].next_or_end().is_none(), "the stream breaks with the host");
    host.start();
    let foreign = echo(&other, "d");
    let missed = echo(&host.agent, "c");
    let mut resumed = host.agent.events_after("/v1/events", first.id.as_deref());
    let next = resumed.named("turn.settled");
    assert_eq!(next.data["turn"], missed);
    let mut of_bound = bound.events_after("/v1/events", of_c.id.as_deref());
    assert_eq!(of_bound.named("turn.settled").data["turn"], missed, "it does not see {foreign}");
    let last = echo(&host.agent, "c");
    assert_eq!(resumed.named("turn.settled").data["turn"], last);
    let whole = host.agent.events("/v1/events").until(|event| event.data["turn"] == last);
    let turns: Vec<_> = whole.iter().map(|event| event.data["turn"].clone()).collect();
    assert_eq!(turns, [own, missed, last], "each of its own turns once");
    assert_eq!(whole[1].id, next.id);
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

/// A host with a streaming client tool and others, where a client may report three times and 100 bytes.
fn copying() -> Host {
    let tools = json!([
        {"name": "copy", "executor": "client", "streaming": true},
        {"name": "pick", "executor": "client"},
        {"name": "gated", "approval": "requires-approval", "streaming": true},
    ]);
    let limits = "[plugin.desk.limits]\nprogress_updates = 3\nprogress_bytes = 100";
    let setup = Setup::default().component("desk", fixture(&tools)).settings("client_grace_ms = 600000");
    setup.tables(limits).start()
}

fn report(by: &Client, turn: &Value, body: Value) -> Answer {
    by.post(&format!("/v1/suspensions/{}/progress", suspension_of(turn)), &body)
}

#[test]
fn clients_progress_reaches_followers_within_limits() {
    let host = copying();
    let turn = host.agent.call("c", "copy", json!({}));
    let read = || host.page.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
    let before = read();
    assert_eq!(before["streaming"], true);
    let mut streams = [&host.agent, &host.approver].map(|by| by.events(&format!("{EVENTS}?after=now")));
    let half = json!({"message": "half", "fraction": 0.5, "data": {"n": 1.0}});
    assert_eq!(report(&host.page, &turn, half).ok(200), json!({"ok": true, "dropped": false}));
    for stream in &mut streams {
        let event = stream.named("call.progress");
        let (id, call) = (&turn["turn"], &turn["calls"][0]["id"]);
        let expected = json!({"event": "call.progress", "turn": id, "call": call, "message": "half", "fraction": 0.5, "data": {"n": 1.0}});
        assert_eq!((event.id, event.data), (None, expected));
    }
    let dropped = |message: &str| report(&host.page, &turn, json!({"message": message})).ok(200)["dropped"].clone();
    assert_eq!([dropped(&"x".repeat(90)), dropped("2"), dropped("3"), dropped("4")], [true, false, false, true]);
    assert_eq!(read(), before, "reports change nothing, not even the time that is left");
    assert_eq!(host.page.resolve(&suspension_of(&turn), json!({"decision": "result"})).ok(200)["ok"], true);
    let [mut stream, _] = streams;
    let events = stream.until(|event| event.name == "turn.settled");
    let messages = events.iter().filter(|event| event.name == "call.progress").map(|event| &event.data["message"]);
    assert_eq!(messages.collect::<Vec<_>>(), ["2", "3"]);
    let later = host.agent.events(EVENTS).until(|event| event.name == "turn.settled");
    assert!(later.iter().all(|event| event.name != "call.progress"), "it is not stored");
    let stale = report(&host.page, &turn, json!({"message": "late"})).problem(409, "stale");
    assert_eq!((&stale["state"], &stale["by"]), (&json!("result"), &json!("page")));
}

#[test]
fn progress_is_refused_from_others_and_of_other_calls() {
    let host = copying();
    let [copy, pick, gated] = ["copy", "pick", "gated"].map(|tool| host.agent.call("c", tool, json!({})));
    let mut stream = host.agent.events(&format!("{EVENTS}?after=now"));
    let message = || json!({"message": "half"});
    report(&host.agent, &copy, message()).problem(403, "not-allowed");
    report(&host.approver, &copy, message()).problem(403, "not-allowed");
    report(&host.token("other", &["caller"], None), &copy, message()).problem(409, "stale");
    report(&host.token("elsewhere", &["client"], Some("d")), &copy, message()).problem(409, "stale");
    for (turn, says) in [(&pick, "does not declare `streaming`"), (&gated, "only a call that a client carries out")] {
        let refused = report(&host.page, turn, message()).problem(422, "invalid");
        assert!(refused["errors"][0]["message"].as_str().unwrap().contains(says), "{refused:#}");
    }
    for (body, pointer) in [(json!({"message": "x", "fraction": 1.5}), "/fraction"), (json!({"text": "x"}), "/text")] {
        assert_eq!(report(&host.page, &copy, body).problem(422, "invalid")["errors"][0]["pointer"], pointer);
    }
    let large = report(&host.page, &copy, json!({"message": "x".repeat(101)})).problem(413, "too-large");
    assert_eq!(
        large["detail"],
        "the size of the report of progress is 101 bytes; at most 100 are allowed (limit `limits.progress_bytes`)"
    );
    assert_eq!(host.page.resolve(&suspension_of(&copy), json!({"decision": "result"})).ok(200)["ok"], true);
    let events = stream.until(|event| event.name == "turn.settled");
    assert!(events.iter().all(|event| event.name != "call.progress"), "{:?}", names(&events));
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
