//! Serving from several real hosts on one PostgreSQL database: tokens, sessions, draining, and the commands for operators.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../host/store/tests/laws/server.rs"]
mod server;

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::guests::plugin;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Answer, Client, outcomes, path};
use toolgate_tests::parts::Part;

const SECRET: &str = "a secret of at least thirty-two bytes";

fn setup(url: &str, name: &str) -> Setup {
    let table = format!("[store]\nurl = \"{url}\"\nhost = \"{name}\"\nkey_file = \"shared\"");
    Setup::with(&["lab"]).tables(&table).file("shared", SECRET)
}

/// Two hosts on one new database.
fn two() -> Option<(Host, Host)> {
    if Part::Postgres.is_left_out() {
        return None;
    }
    let (_, url) = server::database();
    let a = setup(&url, "a").start();
    let b = setup(&url, "b").beside(&a).start();
    Some((a, b))
}

/// The same principal at another host.
fn at(client: &Client, host: &Host) -> Client {
    host.client(client.token())
}

/// The hosts, as one of them lists them.
fn hosts(host: &Host) -> Vec<Value> {
    host.admin.get("/v1/hosts").ok(200)["hosts"].as_array().unwrap().clone()
}

#[test]
fn token_of_one_host_is_valid_and_revoked_at_all() {
    let Some((a, b)) = two() else { return };
    let made = b.token("late", &["caller"], None);
    assert_eq!(at(&made, &a).status("GET", "/v1/tools", ""), 200);
    let listed = a.cli(None, &["token", "list"]);
    assert!(["root", "agent", "late"].iter().all(|name| listed.out.contains(name)), "{}{}", listed.out, listed.err);
    let revoked = a.cli(None, &["token", "revoke", "late"]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    for host in [&a, &b] {
        assert_eq!(at(&made, host).status("GET", "/v1/tools", ""), 401);
        assert!(!host.data().join("tokens.json").exists());
    }
    // The first token made an admin for the owner of that folder. No start of a host made another.
    assert!(a.data().join("admin-token").exists() && !b.data().join("admin-token").exists());
}

#[test]
fn log_out_at_one_host_counts_at_the_other() {
    let Some((a, b)) = two() else { return };
    let log_in = |host: &Host| Browser::log_in(&host.stranger(), host.approver.token());
    let (ends, stays) = (log_in(&a), log_in(&a));
    let elsewhere = ends.at(b.stranger());
    assert_eq!(elsewhere.whose().ok(200)["principal"], "alice", "a session of one host is one of the other");
    assert_eq!(elsewhere.send("DELETE", "/v1/session", &Value::Null).status, 200);
    ends.whose().problem(401, "unauthorized");
    assert_eq!((stays.whose().status, stays.at(b.stranger()).whose().status), (200, 200));
}

#[test]
fn drained_host_leaves_new_turns_to_the_others() {
    let Some((a, b)) = two() else { return };
    let listed = hosts(&a);
    let names: Vec<&Value> = listed.iter().map(|host| &host["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!((&listed[0]["answers"], &listed[1]["answers"]), (&json!(true), &json!(false)));
    assert_eq!(listed[1]["address"], b.admin.url());
    assert_eq!((&listed[1]["other_configuration"], &listed[1]["draining"]), (&json!(false), &json!(false)));

    let drained = a.cli(None, &["drain"]);
    assert_eq!(
        (drained.code, drained.out.as_str()),
        (0, "the host `a` takes no new turns; 0 calls run\n"),
        "{}",
        drained.err
    );
    let body = json!({"calls": [{"id": "1", "tool": "sleep", "arguments": {"ms": 1}}]});
    let refused = a.agent.post("/v1/conversations/c/turns", &body);
    refused.problem(503, "draining");
    assert_eq!(refused.headers["retry-after"], "5");
    a.stranger().get("/readyz").problem(503, "draining");
    assert_eq!(b.stranger().get("/readyz").status, 200);
    assert_eq!(outcomes(&b.agent.call("c", "sleep", json!({"ms": 1}))), ["ok"]);
    // The others read it with the next renewal.
    b.admin.until("/v1/hosts", |answer| (answer.json()["hosts"][0]["draining"] == true).then_some(()));
    let said = b.cli(None, &["hosts"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("a ") && lines[0].contains("draining"), "{}{}", said.out, said.err);
    assert!(
        lines[1].starts_with("b ") && lines[1].contains("this host") && !lines[1].contains("draining"),
        "{}",
        said.out
    );
    let json = b.cli(None, &["hosts", "--json"]);
    assert_eq!(json.out.lines().count(), 2);
}

#[test]
fn running_calls_are_listed_with_their_host() {
    let Some((a, b)) = two() else { return };
    let sleeps = json!({"calls": [{"id": "long", "tool": "sleep", "arguments": {"ms": 25_000}}]});
    let runs = a.agent.post("/v1/conversations/c/turns?wait_ms=0", &sleeps).json();
    a.agent.until(&path(&runs), |turn| (turn.json()["calls"][0]["attempt"] == 1).then_some(()));
    let listed = b.admin.get("/v1/hosts?calls=true").ok(200);
    let calls = |host: usize| listed["hosts"][host]["calls"].as_array().unwrap();
    let [call] = calls(0).as_slice() else { panic!("{listed}") };
    let expected = ["c", runs["turn"].as_str().unwrap(), "long", "sleep", "agent"];
    assert_eq!(["conversation", "turn", "call", "tool", "caller"].map(|name| call[name].as_str().unwrap()), expected);
    assert!(call["since"].is_string() && calls(1).is_empty(), "{listed}");
    assert!(hosts(&b).iter().all(|host| host["calls"].is_null()), "nobody asked");
    let said = b.cli(None, &["hosts", "--calls"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("a ") && lines[2].starts_with("b "), "{}{}", said.out, said.err);
    assert!(lines[1].starts_with("  sleep  long of agent in c  since "), "{}", said.out);
    let json = b.cli(None, &["hosts", "--calls", "--json"]).out;
    assert!(json.lines().next().unwrap().contains("\"calls\":[{"), "{json}");
}

#[test]
fn terminated_host_ends_its_calls_and_leaves_at_once() {
    let Some((mut a, b)) = two() else { return };
    let sleeps = json!({"calls": [{"id": "1", "tool": "sleep", "arguments": {"ms": 3_000}}]});
    let runs = a.agent.post("/v1/conversations/c/turns?wait_ms=0", &sleeps);
    let runs = runs.json();
    a.agent.until(&path(&runs), |turn| (turn.json()["calls"][0]["attempt"] == 1).then_some(()));
    a.terminate();
    a.stranger().until("/readyz", |answer| (answer.status == 503).then_some(()));
    a.agent.post("/v1/conversations/c/turns", &sleeps).problem(503, "draining");
    assert_eq!(a.wait(), Some(0));
    let ended = b.agent.get(&path(&runs)).ok(200);
    assert_eq!(outcomes(&ended), ["ok"], "the call ended before the host: {ended}");
    let names: Vec<Value> = hosts(&b).iter().map(|host| host["name"].clone()).collect();
    assert_eq!(names, ["b"], "nobody waits for the end of its lease");
}

#[test]
fn plugins_are_not_changed_at_one_host_only() {
    let Some((a, _b)) = two() else { return };
    let component = fs::read(a.plugin_file("lab")).unwrap();
    for answer in [a.admin.put("/v1/plugins/more", &component), a.admin.delete("/v1/plugins/lab")] {
        let problem = answer.problem(409, "deployed-plugins");
        assert!(problem["detail"].as_str().unwrap().contains("folder of plugins of each host"), "{problem}");
    }
    assert_eq!(outcomes(&a.agent.call("c", "sleep", json!({"ms": 1}))), ["ok"]);
}

#[test]
fn hosts_that_differ_are_shown_and_logged() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let of_lease = |name| setup(&url, name).tables("lease_seconds = 10");
    let a = of_lease("a").start();
    let b = of_lease("b").beside(&a).start();
    let c = of_lease("c").settings("max_calls = 9").beside(&a).start();
    // It becomes live at one host only.
    a.drop_in("ledger", &plugin("ledger"));
    let differs = |answer: &Answer| {
        let plugins = ["a", "b", "c"].map(|name| {
            let hosts = answer.json()["hosts"].as_array().unwrap().clone();
            hosts.iter().find(|host| host["name"] == name).map(|host| host["other_plugins"].clone())
        });
        (plugins == [Some(json!(["ledger"])), Some(Value::Null), Some(Value::Null)]).then_some(())
    };
    b.admin.until("/v1/hosts", differs);
    let configurations: Vec<Value> = hosts(&b).iter().map(|host| host["other_configuration"].clone()).collect();
    assert_eq!(configurations, [false, false, true]);
    let said = b.cli(None, &["hosts"]).out;
    for (line, expected) in said.lines().zip([(false, true), (false, false), (true, false)]) {
        let shown = (line.contains("other configuration"), line.contains("other plugins: ledger"));
        assert_eq!(shown, expected, "{said}");
    }
    let lines = |host: &Host, of: &str, text: &str| {
        let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
        let of = format!("host=\"{of}\"");
        log.lines().filter(|line| line.contains(&of) && line.contains(text)).count()
    };
    let (plugins, configuration) = ("plugins=\"ledger\"", "has another configuration");
    let all = [
        (&a, "b", plugins),
        (&b, "a", plugins),
        (&c, "a", plugins),
        (&c, "b", configuration),
        (&b, "c", configuration),
    ];
    for (host, of, text) in all {
        host.admin.until("/v1/status", |_| (lines(host, of, text) > 0).then_some(()));
    }
    for (host, of, text) in all {
        assert_eq!(lines(host, of, text), 1, "{of} is logged once");
    }
    assert_eq!((lines(&a, "b", configuration), lines(&b, "c", plugins)), (0, 0));
}

#[test]
fn final_failure_of_the_store_ends_the_host() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (name, url) = server::database();
    let mut host = setup(&url, "a").start();
    assert_eq!(outcomes(&host.agent.call("c", "sleep", json!({"ms": 1}))), ["ok"]);
    // As a server without the last commits.
    server::run(&name, "UPDATE toolgate.head SET position = position - 1");
    let body = json!({"calls": [{"id": "2", "tool": "sleep", "arguments": {"ms": 1}}]});
    assert_eq!(host.agent.post("/v1/conversations/c/turns", &body).status, 503);
    assert_eq!(host.wait(), Some(75));
    let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
    assert!(log.contains("so the host ends"), "{log}");
    // Only a person can decide to go on without these commits.
    for _ in 0..2 {
        host.start_unready();
        assert_eq!(host.wait(), Some(74));
    }
    let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
    assert!(log.contains("the database lacks commits that this host relied on"), "{log}");
    server::run(&name, "UPDATE toolgate.head SET position = position + 1");
    host.start();
    assert_eq!(host.admin.get("/v1/status").ok(200)["store"], "ok");
    assert!(!host.data().join("database-left-at").exists());
}

#[test]
fn mcp_starts_no_host_on_a_database() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (_, url) = server::database();
    let host = setup(&url, "a").prepare();
    let config = host.folder().join("toolgate.toml");
    let refused = host.cli(None, &["mcp", "--config", config.to_str().unwrap()]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("starts no host on one") && refused.err.contains("toolgate serve"), "{}", refused.err);
}

#[test]
fn host_on_a_folder_is_alone_and_can_be_drained() {
    let mut host = Setup::with(&["lab"]).start();
    let alone = host.cli(None, &["hosts"]);
    assert!(alone.code == 0 && alone.out.is_empty() && alone.err.contains("only host"), "{}{}", alone.out, alone.err);
    assert_eq!(host.cli(None, &["drain", "--json"]).out, "{\"draining\":true,\"running_calls\":0}\n");
    let body = json!({"calls": [{"id": "1", "tool": "sleep", "arguments": {"ms": 1}}]});
    host.agent.post("/v1/conversations/c/turns", &body).problem(503, "draining");
    host.terminate();
    assert_eq!(host.wait(), Some(0));
    host.start();
    assert_eq!(outcomes(&host.agent.call("c", "sleep", json!({"ms": 1}))), ["ok"]);
}
