//! The plugin from `toolgate new --durable` in every language. It conforms, and its call survives a kill of the host at each of
//! its waits. Its sleep is that of the language, where the language has one. Calls of another plugin survive kills at random
//! moments: `cargo xtask kills --guests 600` is the long form.

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::dev::change;
use toolgate_tests::effects::Server;
use toolgate_tests::host::{Host, Setup, say};
use toolgate_tests::http::outcomes;
use toolgate_tests::kills::languages::{self, Language, Plan, Worker};
use toolgate_tests::steps::{answer, waiting};

use super::{done, left_out, root};

/// The kills at random moments in each language.
const KILLS: u32 = 4;

/// Checks a language. The changes of its files shorten the sleep.
#[track_caller]
fn check(of: Language, changes: &[(&str, &str, &str)]) {
    if left_out() {
        return;
    }
    let (language, author) = (of.name(), Setup::default().prepare());
    done(&author, &["new", "hello", "--lang", language, "--durable"]);
    let plugin = author.folder().join("hello");
    if of == Language::Rust {
        // With the versions of the example plugins, cargo needs no registry.
        fs::copy(root().join("plugins/Cargo.lock"), plugin.join("Cargo.lock")).unwrap();
    }
    for (file, from, to) in changes {
        change(&plugin.join(file), (from, to));
    }
    let said = done(&author, &["build", "hello"]);
    assert!(said.contains("hello_roll_out"), "{said}");
    let built = plugin.join("build/hello.wasm");
    let said = done(&author, &["conform", &built.display().to_string()]);
    assert!(said.contains("0 failed"), "{said}");
    survives_kills(fs::read(built).unwrap());

    let (plan, server) = (Plan { kills: KILLS, seed: 0x7001_6a7e, say }, Server::start());
    let tally = languages::run(plan, &[Worker::rebuild(of, &author, "hello", &server)], &server);
    say(&format!("{tally:?}"));
    assert!(tally.calls > 0, "{tally:?}");
}

#[track_caller]
fn survives_kills(component: Vec<u8>) {
    let mut host = Setup::default().component("hello", component).start();
    let call = json!({"id": "r", "tool": "hello_roll_out", "arguments": {"version": "1.4.2"}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);

    let asked = waiting(&host, &turn, 1);
    host.restart();
    let place = |name: &str| json!({"decision": "answer", "data": {"environment": name}});
    answer(&host, &asked, &place("live"), &place("test"));

    let proposed = waiting(&host, &turn, 2);
    host.restart();
    let plan = |instances: u32| json!({"version": "1.4.2", "environment": "live", "instances": instances});
    assert_eq!((&proposed["kind"], &proposed["arguments"]), (&json!("approval"), &plan(3)), "{proposed:#}");
    answer(&host, &proposed, &json!({"decision": "approve", "arguments": plan(2)}), &json!({"decision": "deny"}));

    // On a slow machine it may have ended already.
    let _ = waiting(&host, &turn, 3);
    host.restart();

    let last = waiting(&host, &turn, 4);
    assert_eq!(last["prompt"], "Is 1.4.2 healthy in live?", "{last:#}");
    host.restart();
    answer(&host, &last, &json!({"decision": "healthy"}), &json!({"decision": "broken"}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    let call = &settled["calls"][0];
    assert_eq!(call["content"]["result"], json!({"state": "done", "plan": plan(2)}), "{call:#}");
    assert_eq!(call["attempt"], 1, "{call:#}");
    let log = host.agent.get("/v1/conversations/c/calls/r/log").ok(200);
    let runs = log["runs"].as_array().unwrap();
    let lines: Vec<&Value> = runs.iter().flat_map(|run| run["lines"].as_array().unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["message"]), (1, &json!("it goes to live")), "no run repeats a line: {log:#}");
    denial_reaches_the_code(&host);
}

#[track_caller]
fn denial_reaches_the_code(host: &Host) {
    let call = json!({"id": "d", "tool": "hello_roll_out", "arguments": {"version": "1.4.2"}});
    let turn = host.agent.post("/v1/conversations/d/turns", &json!({"calls": [call]})).ok(201);
    let place = |name: &str| json!({"decision": "answer", "data": {"environment": name}});
    answer(host, &waiting(host, &turn, 1), &place("live"), &place("test"));
    let denied = json!({"decision": "deny", "comment": "not today"});
    answer(host, &waiting(host, &turn, 2), &denied, &json!({"decision": "approve"}));
    let settled = host.agent.settled(&turn);
    let result = &settled["calls"][0]["content"]["result"];
    assert_eq!(*result, json!({"state": "rejected", "comment": "not today"}), "{settled:#}");
}

#[test]
fn rust() {
    let sleep = "std::thread::sleep(Duration::from_secs(2))";
    check(Language::Rust, &[("src/lib.rs", "call.sleep(Duration::from_secs(60))", sleep)]);
}

#[test]
fn python() {
    let import = ("plugin.py", "from dataclasses import dataclass", "import time\nfrom dataclasses import dataclass");
    check(Language::Python, &[import, ("plugin.py", "call.sleep(60)", "time.sleep(2)")]);
}

#[test]
fn javascript() {
    check(Language::JavaScript, &[("plugin.js", "60_000", "2_000")]);
}

#[test]
fn typescript() {
    let types = ("tsconfig.json", r#""lib": ["ES2023"]"#, r#""lib": ["ES2023", "DOM"]"#);
    let sleep = "await new Promise((ended) => setTimeout(ended, 2_000))";
    check(Language::TypeScript, &[types, ("plugin.ts", "call.sleep(60_000)", sleep)]);
}

#[test]
fn go() {
    check(Language::Go, &[("plugin.go", "durable.Sleep(time.Minute)", "time.Sleep(2 * time.Second)")]);
}

#[test]
fn c() {
    check(Language::C, &[("plugin.c", "60000", "2000")]);
}
