//! Several real hosts on one PostgreSQL database.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../host/store/tests/laws/server.rs"]
mod server;

#[path = "hosts/named.rs"]
mod named;
#[path = "hosts/paused.rs"]
mod paused;

use std::fs;
use std::process::Command;

use named::{host, setup};
use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path, suspension_of};
use toolgate_tests::parts::Part;

/// Two hosts on one new database.
fn two(plugins: &[&str]) -> Option<(Host, Host)> {
    if Part::Postgres.is_left_out() {
        return None;
    }
    let (_, url) = server::database();
    let first = host(&url, "a", plugins, None);
    let second = host(&url, "b", plugins, Some(&first));
    Some((first, second))
}

fn balance(host: &Host, account: &str) -> Value {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": account}));
    turn["calls"][0]["content"]["result"]["balance_cents"].clone()
}

#[test]
fn call_that_waits_is_answered_at_another_host() {
    let Some((a, b)) = two(&["ledger"]) else { return };
    for account in ["alice", "bob"] {
        let opened = a.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
        assert_eq!(outcomes(&opened), ["ok"], "{opened}");
    }
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    let waits = a.agent.submit("c", json!([{"id": "pay", "tool": "ledger_transfer", "arguments": arguments}]));
    let suspension = suspension_of(&waits);
    assert_eq!(b.approver.get("/v1/pending").ok(200)["suspensions"].as_array().unwrap().len(), 1);
    for host in [&a, &b] {
        let metrics = host.admin.get("/metrics").text;
        for gauge in ["toolgate_open_turns 1", "toolgate_pending_suspensions 1"] {
            assert!(metrics.lines().any(|line| line == gauge), "{metrics}");
        }
    }
    let _ = b.approver.resolve(&suspension, json!({"decision": "approve"})).ok(200);
    // The host of the caller waits for the call that the other host runs.
    let settled = a.agent.settled(&waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
    assert_eq!(b.agent.get(&path(&waits)).ok(200)["calls"], settled["calls"]);
    assert_eq!((balance(&a, "alice"), balance(&b, "bob")), (json!(900), json!(1100)));
    // A second answer, at either host, is the same answer again.
    let again = a.approver.resolve(&suspension, json!({"decision": "approve"})).ok(200);
    assert_eq!(again["replayed"], json!(true), "{again}");
    let late = a.approver.resolve(&suspension, json!({"decision": "deny"}));
    assert_eq!(late.status, 409, "{}", late.text);
    for host in [&a, &b] {
        let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}

#[test]
fn call_runs_at_a_host_that_lacks_its_plugin() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let mut a = host(&url, "a", &["lab"], None);
    let b = host(&url, "b", &[], Some(&a));
    let call = json!([{"id": "gated", "tool": "gated_key", "arguments": {"ms": 1}}]);
    let waits = a.agent.submit("c", call);
    assert_eq!(b.admin.get("/v1/tools").ok(200)["tools"], json!([]));
    // Only the database has the component now.
    a.kill();
    let _ = b.approver.resolve(&suspension_of(&waits), json!({"decision": "approve"})).ok(200);
    let settled = b.agent.settled(&waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
}

#[test]
fn calls_of_a_killed_host_are_carried_on() {
    let Some((mut a, b)) = two(&["lab"]) else { return };
    let sleeps = json!([{"id": "long", "tool": "sleep", "arguments": {"ms": 30_000}}]);
    let runs = a.agent.post("/v1/conversations/c/turns", &json!({"calls": sleeps})).ok(201);
    let waits = a.agent.submit("c", json!([{"id": "ask", "tool": "gated_key", "arguments": {"ms": 1}}]));
    a.kill();
    // The other host runs it again when the lease of the first has ended.
    b.agent.until(&path(&runs), |turn| (turn.json()["calls"][0]["attempt"] == 2).then_some(()));
    let _ = b.agent.post(&format!("{}/cancel", path(&runs)), &json!({})).ok(200);
    let _ = b.approver.resolve(&suspension_of(&waits), json!({"decision": "approve"})).ok(200);
    assert_eq!(outcomes(&b.agent.settled(&waits)), ["ok"]);
    // The first host comes back, with what happened meanwhile.
    a.start();
    assert_eq!(outcomes(&a.agent.get(&path(&runs)).ok(200)), ["cancelled"]);
    assert_eq!(outcomes(&a.agent.get(&path(&waits)).ok(200)), ["ok"]);
}

#[test]
fn followers_hear_of_commits_at_another_host() {
    let Some((a, b)) = two(&["lab"]) else { return };
    let begun = a.agent.submit("c", json!([{"id": "one", "tool": "gated_key", "arguments": {"ms": 1}}]));
    let mut events = b.agent.events("/v1/conversations/c/events");
    let mut inbox = b.approver.events("/v1/pending/events");
    let asks = a.agent.submit("c", json!([{"id": "two", "tool": "gated_key", "arguments": {"ms": 1}}]));
    for turn in [&begun, &asks] {
        events.until(|event| event.data.to_string().contains(&suspension_of(turn)));
    }
    inbox.until(|event| event.data.to_string().contains(&suspension_of(&asks)));
}

#[test]
fn follower_goes_on_at_another_host_where_it_left_off() {
    let Some((a, b)) = two(&["lab"]) else { return };
    let first = a.agent.submit("c", json!([{"id": "one", "tool": "gated_key", "arguments": {"ms": 1}}]));
    let mut events = a.agent.events("/v1/conversations/c/events");
    let suspended = events.until(|event| event.data.to_string().contains(&suspension_of(&first)) && event.id.is_some());
    let last = suspended.last().unwrap().id.clone().unwrap();
    let second = a.agent.submit("c", json!([{"id": "two", "tool": "gated_key", "arguments": {"ms": 1}}]));
    let mut elsewhere = b.agent.events_after("/v1/conversations/c/events", Some(&last));
    let missed = elsewhere.until(|event| event.data.to_string().contains(&suspension_of(&second)));
    assert!(missed.iter().all(|event| !event.data.to_string().contains(&suspension_of(&first))), "{missed:?}");
    assert_eq!(missed[0].name, "turn.started");
}

#[test]
fn client_at_another_host_runs_a_call() {
    let Some((a, b)) = two(&["browser"]) else { return };
    // The conversation has an owner.
    let opened = a.agent.submit("c", json!([{"id": "no", "tool": "none", "arguments": {}}]));
    assert_eq!(outcomes(&opened), ["failed(unknown_tool)"]);
    let mut page = b.page.events("/v1/conversations/c/events?client=get_location");
    let waits = a.agent.submit("c", json!([{"id": "where", "tool": "get_location", "arguments": {}}]));
    let asked = page.until(|event| event.data["kind"] == "client_exec").pop().unwrap();
    let place = json!({"latitude": 52.5, "longitude": 13.4, "accuracy": 20});
    let suspension = asked.data["suspension"].as_str().unwrap();
    let _ = b.page.resolve(suspension, json!({"decision": "result", "data": place})).ok(200);
    let settled = a.agent.settled(&waits);
    assert_eq!((outcomes(&settled), &settled["calls"][0]["content"]["result"]), (vec!["ok".to_owned()], &place));
}

#[test]
fn call_that_a_stopping_host_cannot_end_goes_on_elsewhere() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let hasty = "[server]\ndrain_seconds = 0";
    let mut a = setup(&url, "a", 10, &["lab"], None).tables(hasty).start();
    let b = setup(&url, "b", 10, &["lab"], Some(&a)).tables(hasty).start();
    let sleeps = json!([{"id": "long", "tool": "sleep", "arguments": {"ms": 30_000}}]);
    let runs = a.agent.post("/v1/conversations/c/turns", &json!({"calls": sleeps})).ok(201);
    a.agent.until(&path(&runs), |turn| (turn.json()["calls"][0]["attempt"] == 1).then_some(()));
    a.terminate();
    assert_eq!(a.wait(), Some(0));
    b.agent.until(&path(&runs), |turn| (turn.json()["calls"][0]["attempt"] == 2).then_some(()));
    let _ = b.agent.post(&format!("{}/cancel", path(&runs)), &json!({})).ok(200);
}

#[test]
fn another_host_with_the_same_name_or_another_secret_is_refused() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let mut first = host(&url, "a", &[], None);
    let table = |name: &str| format!("[store]\nurl = \"{url}\"\nhost = \"{name}\"\nkey_file = \"shared\"");
    let beside = |name: &str| Setup::with(&[]).tables(&table(name)).beside(&first);
    let same = beside("a").file("shared", "a secret of at least thirty-two bytes").prepare();
    let refused = same.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != 0 && refused.err.contains("another host"), "{}", refused.err);
    let other = beside("b").file("shared", "another secret of at least thirty-two bytes").prepare();
    let refused = other.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != 0 && refused.err.contains("key_file"), "{}", refused.err);
    fs::write(other.folder().join("shared"), "a secret of at least thirty-two bytes").unwrap();
    let mut other = other;
    other.start();
    assert_eq!(other.admin.get("/v1/status").ok(200)["store"], "ok");
    // The steps of docs/how-to/use-postgresql.md#replace-the-secret.
    let approver = first.approver.token().to_owned();
    let session = Browser::log_in(&first.stranger(), &approver);
    for host in [&mut first, &mut other] {
        assert_eq!(session.at(host.stranger()).whose().status, 200);
        host.terminate();
        assert_eq!(host.wait(), Some(0));
    }
    for host in [&mut first, &mut other] {
        fs::write(host.folder().join("shared"), "another secret of at least thirty-two bytes").unwrap();
        host.start();
        session.at(host.stranger()).whose().problem(401, "unauthorized");
        assert_eq!(host.client(&approver).get("/v1/session").status, 200, "tokens stay valid");
    }
}

#[test]
fn standby_takes_over_from_the_primary() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let primary = server::start("");
    let standby = server::standby(&primary);
    // A commit is on the standby before it is acknowledged.
    for statement in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
        server::run_at(&primary, "postgres", statement);
    }
    let [one, other] = [&primary, &standby].map(|folder| folder.to_str().unwrap().replace('/', "%2F"));
    let url = format!("postgres://toolgate@{one},{other}/postgres?target_session_attrs=read-write");
    let a = host(&url, "a", &["ledger"], None);
    let b = host(&url, "b", &["ledger"], Some(&a));
    for account in ["alice", "bob"] {
        let opened = a.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
        assert_eq!(outcomes(&opened), ["ok"], "{opened}");
    }
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    let waits = a.agent.submit("c", json!([{"id": "pay", "tool": "ledger_transfer", "arguments": arguments}]));
    let processes = fs::read_to_string(primary.join("data/postmaster.pid")).unwrap();
    let killed = Command::new("kill").args(["-KILL", processes.lines().next().unwrap()]).status().unwrap();
    assert!(killed.success());
    server::run_at(&standby, "postgres", "SELECT pg_promote()");
    // The new primary has no standby.
    for statement in ["ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"] {
        server::run_at(&standby, "postgres", statement);
    }
    let answer = json!({"decision": "approve"}).to_string();
    let path = format!("/v1/suspensions/{}/resolve", suspension_of(&waits));
    let headers = [("content-type", "application/json")];
    let is_answered = || b.approver.send("POST", &path, &headers, answer.as_bytes()).unwrap().status == 200;
    assert!((0..100_000).any(|_| is_answered()), "no standby takes over");
    b.agent.until(&toolgate_tests::http::path(&waits), |turn| (turn.status == 200).then_some(()));
    let settled = b.agent.settled(&waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
    a.agent.until(&toolgate_tests::http::path(&waits), |turn| {
        (turn.status == 200 && turn.json()["calls"] == settled["calls"]).then_some(())
    });
    assert_eq!((balance(&b, "alice"), balance(&a, "bob")), (json!(900), json!(1100)));
    for host in [&a, &b] {
        let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}
