//! Reading and answering under a caller's own ids: the turns of a conversation, and the suspensions of a call.

use serde_json::{Value, json};
use toolgate_tests::host::Setup;
use toolgate_tests::http::{Client, outcomes, path};

use crate::stats;

fn gated(id: &str) -> Value {
    json!({"id": id, "tool": "gated_echo", "arguments": {"value": id}})
}

/// The ids of a list, and where the next page begins.
fn listed(by: &Client, path: &str, list: &str, id: &str) -> (Vec<String>, Value) {
    let page = by.get(path).ok(200);
    let ids = page[list].as_array().unwrap().iter().map(|item| item[id].as_str().unwrap().to_owned());
    (ids.collect(), page["next"].clone())
}

#[test]
fn turns_come_newest_first_by_state_and_in_pages() {
    let mut host = Setup::with(&["lab", "textkit"]).start();
    let ids = |turns: &[&Value]| turns.iter().map(|turn| turn["turn"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let open = host.agent.submit("c", json!([gated("open"), stats("s1")]));
    let ended = host.agent.submit("c", json!([stats("s2")]));
    let cancelled = host.agent.submit("c", json!([gated("cancelled")]));
    let _ = host.agent.submit("d", json!([stats("s3")]));
    let _ = host.agent.post_nothing(&format!("{}/cancel", path(&cancelled))).ok(200);
    // The list comes from the disk.
    host.restart();
    let turns = |query: &str| listed(&host.agent, &format!("/v1/conversations/c/turns{query}"), "turns", "turn");
    assert_eq!(turns(""), (ids(&[&cancelled, &ended, &open]), Value::Null));
    assert_eq!(turns("?state=open"), (ids(&[&open]), Value::Null));
    assert_eq!(turns("?state=settled"), (ids(&[&ended]), Value::Null));
    assert_eq!(turns("?state=cancelled"), (ids(&[&cancelled]), Value::Null));
    assert_eq!(turns("?state=aborted"), (ids(&[]), Value::Null));
    let (mut seen, mut next) = turns("?limit=1");
    while let Some(after) = next.as_u64() {
        let (more, behind) = turns(&format!("?limit=1&after={after}"));
        seen.extend(more);
        next = behind;
    }
    assert_eq!(seen, ids(&[&cancelled, &ended, &open]));

    let page = host.agent.get("/v1/conversations/c/turns?state=open").ok(200);
    let calls = &page["turns"][0]["calls"];
    assert_eq!((&calls[0]["status"], &calls[0]["outcome"]), (&json!("awaiting"), &Value::Null));
    assert_eq!(calls[0]["suspension"], open["pending"][0]["suspension"]);
    assert_eq!((&calls[1]["tool"], &calls[1]["outcome"]), (&json!("text_stats"), &json!("ok")));
    assert!(calls[0].get("arguments").is_none(), "{page:#}");

    host.agent.get("/v1/conversations/none/turns").problem(404, "not-found");
    let other = host.token("other", &["caller"], None);
    other.get("/v1/conversations/c/turns").problem(404, "not-found");
    host.agent.get("/v1/conversations/c/turns?limit=501").problem(400, "bad-request");
}

#[test]
fn answer_by_call_id_never_reaches_the_next_wait() {
    let host = Setup::with(&["browser"]).start();
    let mut page = host.page.events("/v1/conversations/c/events?client=pick_file");
    let turn =
        host.agent.submit("c", json!([{"id": "pick", "tool": "pick_file", "arguments": {"purpose": "the invoice"}}]));
    assert_eq!(turn["pending"][0]["number"], 1);
    let resolve = "/v1/conversations/c/calls/pick/resolve";
    let approve = json!({"decision": "approve"});
    let answered = host.approver.post(resolve, &approve).ok(200);
    assert_eq!((&answered["replayed"], &answered["suspension"]), (&json!(false), &turn["pending"][0]["suspension"]));
    let asked =
        page.until(|event| event.name == "call.suspended" && event.data["kind"] == "client_exec").pop().unwrap();
    assert_eq!(asked.data["number"], 2);

    // Sent again, each answer is about the first wait, although the second is open now.
    assert_eq!(host.approver.post(resolve, &approve).ok(200)["replayed"], true);
    let picked = json!({"name": "a.csv", "media_type": "text/csv", "content": "YQ=="});
    let result = |number: u32| json!({"decision": "result", "data": picked, "number": number});
    let late = host.approver.post(resolve, &json!({"decision": "deny"})).problem(409, "stale");
    assert_eq!((&late["state"], &late["by"]), (&json!("approve"), &json!("alice")));
    let unnumbered = json!({"decision": "result", "data": picked});
    for body in [unnumbered, result(1)] {
        assert_eq!(host.page.post(resolve, &body).problem(403, "not-allowed")["role"], "approver");
    }
    assert_eq!(outcomes(&host.agent.get(&path(&turn)).ok(200)), ["awaiting"]);
    assert_eq!(host.page.post(resolve, &result(3)).problem(409, "stale")["state"], "unknown");
    assert_eq!(host.page.post(resolve, &result(2)).ok(200)["suspension"], asked.data["suspension"]);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);

    host.approver.post("/v1/conversations/c/calls/none/resolve", &approve).problem(404, "not-found");
    let other = host.token("other", &["caller"], None);
    let hidden = other.post(resolve, &approve).problem(404, "not-found")["detail"].clone();
    let absent = other.post("/v1/conversations/c/calls/none/resolve", &approve).problem(404, "not-found");
    assert_eq!(hidden, absent["detail"], "nobody learns which calls others made");
}

#[test]
fn suspensions_are_found_by_call_decision_and_principal() {
    let host = Setup::with(&["lab"]).start();
    let bob = host.token("bob", &["approver"], None);
    let turn = host.agent.submit("c", json!([gated("a"), gated("b"), gated("d"), gated("e")]));
    let id = |n: usize| turn["pending"][n]["suspension"].as_str().unwrap().to_owned();
    let _ = host.approver.resolve(&id(0), json!({"decision": "approve"})).ok(200);
    let _ = bob.resolve(&id(1), json!({"decision": "approve"})).ok(200);
    let _ = bob.resolve(&id(2), json!({"decision": "deny"})).ok(200);
    let found = |by: &Client, query: &str| listed(by, &format!("/v1/pending?{query}"), "suspensions", "suspension").0;
    let agent = &host.agent;
    assert_eq!(found(agent, "conversation=c&call=e"), [id(3)]);
    assert_eq!(found(agent, "conversation=c&call=a"), [""; 0], "it is not open");
    assert_eq!(found(agent, "conversation=c&call=a&state=all"), [id(0)]);
    assert_eq!(found(agent, &format!("conversation=c&call=e&after={}", id(3))), [""; 0]);
    assert_eq!(found(agent, "conversation=c&call=none"), [""; 0]);
    assert_eq!(found(agent, "conversation=none&call=e"), [""; 0]);
    assert_eq!(found(&host.page, "conversation=c&call=e"), [""; 0], "a client sees client tools only");
    agent.get("/v1/pending?call=e").problem(400, "bad-request");

    assert_eq!(found(agent, "decision=approve"), [id(0), id(1)]);
    assert_eq!(found(agent, "decision=deny"), [id(2)]);
    assert_eq!(found(agent, "by=bob"), [id(1), id(2)]);
    assert_eq!(found(agent, "decision=approve&by=bob"), [id(1)]);
    assert_eq!(found(agent, "decision=deny&by=alice"), [""; 0]);
    assert_eq!(found(agent, "decision=approve&state=open"), [""; 0]);
    assert_eq!(found(&host.token("other", &["caller"], None), "decision=approve"), [""; 0]);
}
