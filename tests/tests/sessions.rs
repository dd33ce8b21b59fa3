//! Sessions and links of the real host after kills: log-ins stay valid, log-outs stay final, and used links stay used.

use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{Client, suspension_of};
use toolgate_tests::steps::waiting;

#[test]
fn kill_keeps_log_ins_log_outs_and_used_links() {
    let mut host = Setup::with(&["ask"]).start();
    let suspension = suspension_of(&host.agent.call("c", "ask_user", json!({"question": "Tea?"})));
    let token = host.approver.token().to_owned();
    let log_in = || Browser::log_in(&host.stranger(), &token);
    let (stays, ends) = (log_in(), log_in());
    host.kill();
    host.start();
    let name = stays.whose().ok(200)["principal"].clone();
    assert_eq!(ends.whose().ok(200)["principal"], name);

    assert_eq!(ends.send("DELETE", "/v1/session", &Value::Null).status, 200);
    host.kill();
    host.start();
    ends.whose().problem(401, "unauthorized");
    assert_eq!(stays.whose().ok(200)["principal"], name);

    let links = format!("/v1/suspensions/{suspension}/links");
    let link =
        |host: &toolgate_tests::host::Host| host.admin.post(&links, &json!({"principal": name})).ok(200)["url"].clone();
    let (used, unused) = (link(&host), link(&host));
    let by_link = Browser::of(host.stranger(), &host.stranger().post("/v1/session/link", &json!({"link": used})));
    host.kill();
    host.start();
    host.stranger().post("/v1/session/link", &json!({"link": used})).problem(409, "link-used");
    assert_eq!(by_link.whose().ok(200)["only"], json!(suspension), "the session that it opened is valid");
    let resolve = format!("/v1/suspensions/{suspension}/resolve");
    let declined = by_link.send("POST", &resolve, &json!({"decision": "decline"}));
    assert_eq!(declined.status, 200, "{}", declined.text);
    host.kill();
    host.start();
    let late = host.stranger().post("/v1/session/link", &json!({"link": unused})).problem(409, "stale");
    assert_eq!((&late["state"], &late["by"]), (&json!("decline"), &name));
    let read = by_link.send("GET", &format!("/v1/suspensions/{suspension}"), &Value::Null).ok(200);
    assert_eq!((&read["closed"]["by"], &read["closed"]["via"]), (&name, &json!("link")));
    let shown = host.cli(Some(&host.admin), &["show", &suspension]);
    assert!(shown.out.contains(&format!("decline by {} via link", name.as_str().unwrap())), "{shown:?}");
    let said = host.cli(Some(&host.admin), &["audit"]);
    assert_eq!(
        ["link.made", "link.used", "via link"].map(|word| said.out.matches(word).count()),
        [2, 1, 1],
        "{said:?}"
    );
}

#[test]
fn vote_through_a_link_is_marked() {
    let rule = "[[policy]]\ntools = \"echo\"\nrule = \"ask\"\n\n[[policy.needs]]\nwho = [\"principal:alice\", \"principal:bob\"]\nquorum = 2";
    let host = Setup::with(&["lab"]).tables(rule).start();
    let bob = host.token("bob", &["approver"], None);
    let suspension = suspension_of(&host.agent.call("c", "echo", json!({"value": 1})));
    let link = host.admin.post(&format!("/v1/suspensions/{suspension}/links"), &json!({"principal": "alice"}));
    let opened = host.stranger().post("/v1/session/link", &json!({"link": link.ok(200)["url"]}));
    let resolve = format!("/v1/suspensions/{suspension}/resolve");
    let voted = Browser::of(host.stranger(), &opened).send("POST", &resolve, &json!({"decision": "approve"}));
    assert_eq!(voted.ok(200)["state"], "open");
    let read = |by: &Client| by.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!(read(&bob)["votes"][0]["via"], "link");
    let _ = bob.resolve(&suspension, json!({"decision": "approve"})).ok(200);
    let read = read(&bob);
    assert_eq!((&read["votes"][0]["by"], &read["votes"][0]["via"]), (&json!("alice"), &json!("link")), "it stays");
    assert_eq!((&read["closed"]["by"], &read["closed"]["via"]), (&json!("bob"), &json!("api")));
}

#[test]
fn link_answers_a_question_in_the_middle_of_a_call() {
    let mut host = Setup::with(&["rollout"]).start();
    let call = json!([{"id": "r", "tool": "roll_out", "arguments": {"version": "1.4.2", "settles_s": 1}}]);
    let turn = host.agent.submit("c", call);
    let asked = waiting(&host, &turn, 1)["suspension"].as_str().unwrap().to_owned();
    let link = host.admin.post(&format!("/v1/suspensions/{asked}/links"), &json!({"principal": "alice"})).ok(200);
    host.restart();
    let opened = host.stranger().post("/v1/session/link", &json!({"link": link["url"]}));
    let by_link = Browser::of(host.stranger(), &opened);
    let resolve = format!("/v1/suspensions/{asked}/resolve");
    let place = json!({"decision": "answer", "data": {"environment": "live"}});
    assert_eq!(by_link.send("POST", &resolve, &place).ok(200)["state"], "answer");
    let proposed = waiting(&host, &turn, 2);
    assert_eq!(proposed["arguments"]["environment"], "live", "the call goes on with it: {proposed:#}");
    host.stranger().post("/v1/session/link", &json!({"link": link["url"]})).problem(409, "stale");
    let next = format!("/v1/suspensions/{}/resolve", proposed["suspension"].as_str().unwrap());
    let refused = by_link.send("POST", &next, &json!({"decision": "approve"}));
    assert_eq!(refused.status, 403, "the link is for one question: {}", refused.text);
    let read = host.approver.get(&format!("/v1/suspensions/{asked}")).ok(200);
    assert_eq!((&read["closed"]["by"], &read["closed"]["via"]), (&json!("alice"), &json!("link")));
}
