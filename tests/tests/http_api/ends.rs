//! Ends of calls that do not run: denial and its effect on siblings, cancellation, expiry, no client.

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, path, suspension_of};

use crate::{balance, ledger_host, stats, transfer};

#[test]
fn denial_affects_siblings_as_the_turn_requests() {
    let host = ledger_host("");
    for (rejection, state, expected) in [
        ("continue_siblings", "open", ["denied", "awaiting", "ok"]),
        ("cancel_siblings", "settled", ["denied", "cancelled_by_sibling", "ok"]),
        ("abort_turn", "aborted", ["denied", "cancelled_by_sibling", "ok"]),
    ] {
        let calls = json!([transfer("a", 1), transfer("b", 2), stats("c")]);
        let turn = host.agent.submit_turn(rejection, &json!({"calls": calls, "rejection": rejection}));
        assert_eq!(outcomes(&turn), ["awaiting", "awaiting", "ok"]);
        let [first, second] = [0, 1].map(|n| turn["pending"][n]["suspension"].as_str().unwrap().to_owned());
        assert_eq!(host.approver.resolve(&first, json!({"decision": "deny"})).ok(200)["ok"], true);
        let turn = host.agent.get(&path(&turn)).ok(200);
        assert_eq!(
            (turn["state"].as_str(), outcomes(&turn)),
            (Some(state), expected.map(str::to_owned).to_vec()),
            "{rejection}"
        );
        let late = host.approver.resolve(&second, json!({"decision": "approve"}));
        if state == "open" {
            assert_eq!(late.ok(200)["ok"], true);
            assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied", "ok", "ok"]);
        } else {
            assert_eq!(late.problem(409, "stale")["state"], "withdrawn");
        }
    }
    assert_eq!(balance(&host, "bob"), 1002);
}

#[test]
fn cancelled_turn_stops_guests_and_settles_every_call() {
    let host = Setup::with(&["lab", "textkit"]).start();
    let calls = json!([
        {"id": "a", "tool": "sleep", "arguments": {"ms": 3_600_000}},
        {"id": "b", "tool": "gated_echo", "arguments": {"value": 1}},
        stats("c"),
    ]);
    // Without waiting, because one of its calls keeps running.
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": calls})).ok(201);
    let cancelled = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(cancelled["state"], "cancelled");
    let outcomes = outcomes(&cancelled);
    assert_eq!(outcomes[..2], ["cancelled", "cancelled"]);
    assert!(["ok", "cancelled"].contains(&outcomes[2].as_str()), "{outcomes:?}");
    for (call, started, effect) in [(0, true, "may have taken effect"), (1, false, "has no effect")] {
        let call = &cancelled["calls"][call];
        assert_eq!(call["started"], started, "{call}");
        let message = call["content"]["error"]["message"].as_str().unwrap();
        assert!(message.contains(effect), "{message}");
    }
    assert_eq!(cancelled["pending"], json!([]));
    assert_eq!(host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200), cancelled);
    let late =
        host.approver.resolve(turn["pending"][0]["suspension"].as_str().unwrap(), json!({"decision": "approve"}));
    assert_eq!(late.problem(409, "stale")["state"], "withdrawn");
}

#[test]
fn expiry_follows_the_tool_and_is_decided_by_system() {
    let gated = |name: &str, on_expiry: Value| json!({"name": name, "approval": "requires-approval", "options": {"expires_ms": 60, "on_expiry": on_expiry}});
    let question =
        json!({"name": "guess", "executor": "human", "options": {"expires_ms": 60, "on_expiry": {"answer": 7}}});
    let tools = json!([
        gated("error", json!("error")),
        gated("deny", json!("deny")),
        gated("approve", json!("approve")),
        question
    ]);
    let settings = "approve_on_expiry = [\"approve\"]";
    let host = Setup::default().component("silent", fixture(&tools)).settings(settings).start();
    for (tool, expected, state) in [
        ("error", "expired", "expired"),
        ("deny", "denied", "expired"),
        ("approve", "ok", "expired"),
        ("guess", "ok", "expired"),
    ] {
        let turn = host.agent.settled(&host.agent.call("c", tool, json!({"a": 1})));
        assert_eq!(outcomes(&turn), [expected], "{tool}");
        let closed = host.admin.get(&format!("/v1/pending?state=closed&tool={tool}")).ok(200);
        let closed = &closed["suspensions"][0];
        assert_eq!((&closed["state"], &closed["closed"]["by"]), (&json!(state), &json!("system")), "{tool}");
        let late = host.approver.resolve(closed["suspension"].as_str().unwrap(), json!({"decision": "approve"}));
        assert_eq!(late.problem(409, "stale")["by"], "system");
        if tool == "guess" {
            assert_eq!(turn["calls"][0]["content"]["result"], 7);
        }
    }
}

#[test]
fn expiry_due_while_the_host_is_down_happens_at_start() {
    let tools = json!([{"name": "brief", "approval": "requires-approval", "options": {"expires_ms": 1000}}]);
    let mut host = Setup::default().component("brief", fixture(&tools)).start();
    let turn = host.agent.call("c", "brief", json!({}));
    host.restart();
    let turn = host.agent.settled(&turn);
    assert_eq!((outcomes(&turn), &turn["calls"][0]["started"]), (vec!["expired".to_owned()], &json!(false)));
}

#[test]
fn wait_without_a_time_has_the_hosts_default() {
    let tools = json!([
        {"name": "short", "approval": "requires-approval"},
        {"name": "long", "approval": "requires-approval", "options": {"expires_ms": 600_000}},
    ]);
    let host = Setup::default().component("waits", fixture(&tools)).settings("expires_ms = 50").start();
    let long = host.agent.call("c", "long", json!({}));
    assert_eq!(outcomes(&host.agent.settled(&host.agent.call("c", "short", json!({})))), ["expired"]);
    assert_eq!(outcomes(&host.agent.get(&path(&long)).ok(200)), ["awaiting"], "a tool's own time comes first");
}

#[test]
fn client_call_waits_for_a_client_until_the_grace_ends() {
    let host = Setup::with(&["browser"]).settings("client_grace_ms = 40").start();
    let turn = host.agent.settled(&host.agent.call("nobody", "get_location", json!({})));
    assert_eq!(outcomes(&turn), ["unavailable"]);

    let page = host.page.events("/v1/conversations/c/events?client=get_location");
    let turn = host.agent.call("c", "get_location", json!({}));
    // Another call has waited for the whole grace meanwhile. This one still waits, because its client is attached.
    let other = host.agent.settled(&host.agent.call("nobody", "get_location", json!({})));
    assert_eq!(outcomes(&other), ["unavailable"]);
    assert_eq!(outcomes(&host.agent.get(&path(&turn)).ok(200)), ["awaiting"]);
    drop(page);
    let turn = host.agent.settled(&turn);
    assert_eq!((outcomes(&turn), &turn["calls"][0]["started"]), (vec!["unavailable".to_owned()], &json!(true)));
}

#[test]
fn second_clients_answer_is_stale() {
    let host = Setup::with(&["browser"]).start();
    let other = host.token("phone", &["client"], None);
    let follow = "/v1/conversations/c/events?client=get_location";
    let (mut page, mut phone) = (host.page.events(follow), other.events(follow));
    let turn = host.agent.call("c", "get_location", json!({}));
    assert_eq!(page.named("call.suspended").data, phone.named("call.suspended").data);
    let place =
        |latitude: u64| json!({"decision": "result", "data": {"latitude": latitude, "longitude": 1, "accuracy": 1}});
    assert_eq!(other.resolve(&suspension_of(&turn), place(1)).ok(200)["ok"], true);
    let late = host.page.resolve(&suspension_of(&turn), place(2)).problem(409, "stale");
    assert_eq!((&late["state"], &late["by"]), (&json!("result"), &json!("phone")));
    assert_eq!(page.named("call.resolved").data["by"], "phone");
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"]["latitude"], 1);
}
