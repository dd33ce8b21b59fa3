//! A durable call waits in the middle of its code. A kill of the host costs it nothing and repeats nothing.

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, path};
use toolgate_tests::steps::{answer, waiting};

use toolgate_tests::effects::Server;

#[test]
fn durable_call_survives_a_kill_at_each_of_its_waits() {
    let mut host = Setup::with(&["rollout"]).start();
    let call = json!({"id": "r", "tool": "roll_out", "arguments": {"version": "1.4.2", "settles_s": 1}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);

    let asked = waiting(&host, &turn, 1);
    assert_eq!((&asked["kind"], &asked["on_expiry"]), (&json!("elicitation"), &json!("continue")), "{asked:#}");
    host.restart();
    let place = |name: &str| json!({"decision": "answer", "data": {"environment": name}});
    assert_eq!(host.approver.resolve(asked["suspension"].as_str().unwrap(), json!({"decision": "answer"})).status, 422);
    answer(&host, &asked, &place("live"), &place("test"));

    let proposed = waiting(&host, &turn, 2);
    host.restart();
    let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    assert_eq!((&proposed["kind"], &proposed["arguments"]), (&json!("approval"), &plan), "{proposed:#}");
    let edited = |member: &str, value: Value| {
        let mut plan = plan.clone();
        plan[member] = value;
        json!({"decision": "approve", "arguments": plan})
    };
    let id = proposed["suspension"].as_str().unwrap();
    assert_eq!(host.approver.resolve(id, edited("environment", json!("test"))).status, 422, "not editable");
    answer(&host, &proposed, &edited("instances", json!(2)), &json!({"decision": "approve"}));

    // On a slow machine it may have ended already.
    let sleeps = waiting(&host, &turn, 3);
    if sleeps["kind"] == "timer" {
        let id = sleeps["suspension"].as_str().unwrap();
        assert_eq!(host.approver.resolve(id, json!({"decision": "approve"})).status, 409, "nobody ends a sleep");
    }
    let listed = host.approver.get("/v1/pending").ok(200);
    let mut listed = listed["suspensions"].as_array().unwrap().iter();
    assert!(listed.all(|open| open["kind"] != "timer"), "people do not see a sleep");
    host.restart();

    let last = waiting(&host, &turn, 4);
    host.restart();
    answer(&host, &last, &json!({"decision": "healthy"}), &json!({"decision": "broken"}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"]);
    let log = host.agent.get("/v1/conversations/c/calls/r/log").ok(200);
    let line = |run: &Value| (run["run"].clone(), run["lines"][0]["message"].clone(), run["lines"][1].clone());
    let lines: Vec<_> = log["runs"].as_array().unwrap().iter().map(line).collect();
    let [first, second] = [(2, "it goes to live"), (5, "people say that it is healthy")];
    let only = |(run, text): (u32, &str)| (json!(run), json!(text), Value::Null);
    assert_eq!(lines, [only(first), only(second)], "each run has its own log, and repeats no line: {log:#}");
    let call = &settled["calls"][0];
    assert_eq!(call["content"]["result"]["plan"]["instances"], 2, "{call:#}");
    assert_eq!((&call["attempt"], &call["arguments"]["version"]), (&json!(1), &json!("1.4.2")), "{call:#}");
}

/// A host with the plugin that carries out programs.
pub(crate) fn programs(server: &Server) -> Host {
    programs_with(server, "")
}

/// The same with more keys of the grant.
fn programs_with(server: &Server, keys: &str) -> Host {
    let grants = format!(
        "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true\n[plugin.program.grants.config]\nregion = \"eu\"\n\
         [[plugin.program.grants.http]]\nurl = \"{}\"\nmethods = [\"GET\", \"POST\"]\nprivate = true\n{keys}",
        server.url("/")
    );
    Setup::default().component("program", illegal("program")).tables(&grants).start()
}

#[test]
fn durable_call_repeats_no_write_and_no_request_after_a_kill() {
    let server = Server::start();
    let mut host = programs(&server);
    let send = |body: &str| json!({"do": "send", "method": "POST", "url": server.url("/add"), "body": body});
    let count = json!({"do": "increment", "key": "n", "by": 1});
    let program = json!([
        {"do": "config", "name": "region"}, count, send("x"), {"do": "ask", "prompt": "Go on?"}, count, send("y"), count,
    ]);
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let asked = waiting(&host, &turn, 1);
    host.restart();
    answer(&host, &asked, &json!({"decision": "answer", "data": "yes"}), &json!({"decision": "answer", "data": "no"}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    let sent = |text: &str| json!({"status": 200, "text": text});
    let expected = json!(["eu", 1, sent("x: 1"), "yes", 2, sent("y: 2"), 3]);
    assert_eq!(settled["calls"][0]["content"]["result"], expected, "{settled:#}");
    let bodies: Vec<_> = server.requests().into_iter().map(|request| (request.method, request.body)).collect();
    assert_eq!(bodies, [("POST".to_owned(), "x".to_owned()), ("POST".to_owned(), "y".to_owned())]);
    let keys: std::collections::BTreeSet<_> = server.requests().into_iter().map(|request| request.key).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
}

#[test]
fn call_waits_for_a_server_across_a_kill() {
    let server = Server::start();
    server.refuse([(429, "2")]);
    let mut host = programs_with(&server, "retry = { at_most = \"15m\" }");
    let send = json!({"do": "send", "method": "POST", "url": server.url("/add"), "body": "x"});
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": [send]}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    host.agent.until(&path(&turn), |answer| answer.text.contains("\"rate_limit\"").then_some(()));
    let listed = host.approver.get("/v1/pending").ok(200);
    assert_eq!(listed["suspensions"], json!([]), "people do not see it");
    host.restart();
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    let expected = json!([{"status": 200, "text": "x: 1"}]);
    assert_eq!(settled["calls"][0]["content"]["result"], expected, "{settled:#}");
    let keys: Vec<_> = server.requests().into_iter().map(|request| request.key).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]), "the key is the same");
    let log = host.agent.get("/v1/conversations/c/calls/p/log").ok(200);
    let line = log["runs"][0]["lines"][0]["message"].as_str().unwrap();
    assert!(line.contains("/add was answered 429; it is sent again after 2 s"), "{log:#}");
}

/// A turn with one rollout, which waits for the environment.
fn rollout(host: &Host, id: &str) -> (Value, Value) {
    let call = json!({"id": id, "tool": "roll_out", "arguments": {"version": "1.4.2"}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let asked = waiting(host, &turn, 1);
    (turn, asked)
}

/// Answers the first question of a rollout, and returns the second one.
fn to_live(host: &Host, turn: &Value, asked: &Value) -> Value {
    assert_eq!(host.approver.resolve(asked["suspension"].as_str().unwrap(), live()).ok(200)["ok"], true);
    waiting(host, turn, 2)
}

#[test]
fn call_that_waits_leaves_its_permits_to_others() {
    let tables = "[plugin.rollout.limits]\nconcurrency = 1\n[quota]\nrunning_calls = 1";
    let host = Setup::with(&["rollout"]).tables(tables).start();
    let (first, asked) = rollout(&host, "first");
    let (second, asked_too) = rollout(&host, "second");
    let _ = to_live(&host, &first, &asked);
    let _ = to_live(&host, &second, &asked_too);
}

#[test]
fn call_goes_on_with_the_component_it_began_with() {
    let mut host = Setup::with(&["rollout"]).start();
    let (turn, asked) = rollout(&host, "old");
    let component = |turn: &Value| host.agent.get(&path(turn)).ok(200)["calls"][0]["component"].clone();
    let old = component(&turn);
    let mut events = host.admin.events("/v1/events?after=now");
    // It has the same tool with other code: it returns its arguments.
    host.drop_in("rollout", &fixture(&json!([{"name": "roll_out", "parameters": {"type": "object"}}])));
    let newer = events.named("plugin.loaded").data["component"].clone();
    assert_ne!(newer, old);

    let proposed = to_live(&host, &turn, &asked);
    assert_eq!(proposed["prompt"], "Roll 1.4.2 out to live?", "its code computes the prompt");
    let arguments = json!({"version": "2.0.0"});
    let new = host.agent.call("c", "roll_out", arguments.clone());
    let call = &new["calls"][0];
    assert_eq!((&call["component"], &call["content"]["result"]), (&newer, &arguments), "{new:#}");
    host.restart();
    let denied = json!({"decision": "deny", "comment": "not today"});
    assert_eq!(host.approver.resolve(proposed["suspension"].as_str().unwrap(), denied).ok(200)["ok"], true);
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    let call = &settled["calls"][0];
    let rejected = json!({"state": "rejected", "comment": "not today"});
    assert_eq!((&call["component"], &call["content"]["result"]), (&old, &rejected), "{settled:#}");
}

/// A host with a call that waits until two of `ann`, `bob` and `cid` have approved a value.
struct Proposed {
    host: Host,
    people: [Client; 3],
    turn: Value,
    step: String,
}

fn proposed() -> Proposed {
    let host = programs(&Server::start());
    let names = ["ann", "bob", "cid"];
    let people = names.map(|name| host.token(name, &["approver"], None));
    let who = names.map(|name| format!("principal:{name}"));
    let program = json!([{"do": "approve", "value": "live", "who": who, "quorum": 2}]);
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let step = waiting(&host, &turn, 1)["suspension"].as_str().unwrap().to_owned();
    Proposed { host, people, turn, step }
}

impl Proposed {
    /// The state of the step after this approval, and the number of missing votes.
    fn approve(&self, by: &Client) -> (Value, Value) {
        let answered = by.resolve(&self.step, json!({"decision": "approve"})).ok(200);
        (answered["state"].clone(), answered["votes_missing"].clone())
    }

    fn may_not_approve(&self, by: &Client) {
        by.resolve(&self.step, json!({"decision": "approve"})).problem(403, "not-allowed");
    }

    /// The call goes on after the vote of the last approver.
    fn goes_on_after(&self, by: &Client) {
        assert_eq!(self.approve(by).0, "approve");
        let settled = self.host.agent.settled(&self.turn);
        assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
        assert_eq!(settled["calls"][0]["content"]["result"], json!(["live"]), "{settled:#}");
    }
}

fn open(votes_missing: u32) -> (Value, Value) {
    (json!("open"), json!(votes_missing))
}

#[test]
fn step_waits_until_enough_people_have_approved() {
    let mut proposed = proposed();
    let [ann, bob, cid] = proposed.people.clone();
    proposed.may_not_approve(&proposed.host.approver);
    assert_eq!(proposed.approve(&ann), open(1));
    assert_eq!(proposed.approve(&ann), open(1), "a second vote of the same person is a replay");
    // The vote is on disk, so the host knows it after a kill.
    proposed.host.restart();
    proposed.goes_on_after(&bob);
    let ended = cid.get(&format!("/v1/suspensions/{}", proposed.step)).ok(200);
    assert_eq!(ended["closed"]["approvers"], json!(["ann", "bob"]), "{ended:#}");
}

#[test]
fn authority_over_a_step_can_be_delegated() {
    let proposed = proposed();
    let [ann, bob, _] = &proposed.people;
    let dan = proposed.host.token("dan", &["approver"], None);
    proposed.may_not_approve(&dan);
    let delegate = format!("/v1/suspensions/{}/delegate", proposed.step);
    assert_eq!(ann.post(&delegate, &json!({"to": "dan"})).ok(200)["ok"], true);
    proposed.may_not_approve(ann);
    assert_eq!(proposed.approve(&dan), open(1));
    proposed.goes_on_after(bob);
}

#[test]
fn vote_of_a_revoked_approver_does_not_end_a_step() {
    let proposed = proposed();
    let [ann, bob, cid] = &proposed.people;
    assert_eq!(proposed.approve(ann), open(1));
    let revoked = proposed.host.cli(None, &["token", "revoke", "ann"]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    assert_eq!(proposed.approve(bob), open(1));
    proposed.goes_on_after(cid);
}

/// A host with the rollout, and a rule about its approval.
fn ruled(rule: &str) -> Host {
    let rule = format!("[[policy]]\nname = \"freeze\"\ntools = \"roll_out\"\nstep = \"approve\"\n{rule}");
    Setup::with(&["rollout"]).tables(&rule).start()
}

fn live() -> Value {
    json!({"decision": "answer", "data": {"environment": "live"}})
}

#[test]
fn rule_denies_a_step_and_the_audit_names_it() {
    let host = ruled("rule = \"deny\"\nreason = \"not in December\"");
    let (turn, asked) = rollout(&host, "r");
    answer(&host, &asked, &live(), &json!({"decision": "answer", "data": {"environment": "test"}}));
    let settled = host.agent.settled(&turn);
    let rejected = json!({"state": "rejected", "comment": "not in December"});
    assert_eq!(settled["calls"][0]["content"]["result"], rejected, "{settled:#}");
    let audit = host.admin.get("/v1/audit?action=deny").ok(200);
    let [denied] = audit["entries"].as_array().unwrap().as_slice() else { panic!("{audit:#}") };
    let named = (&denied["by"], &denied["rule"], &denied["comment"]);
    assert_eq!(named, (&json!("system"), &json!("freeze"), &json!("not in December")), "{audit:#}");
    let step = host.approver.get(&format!("/v1/suspensions/{}", denied["suspension"].as_str().unwrap())).ok(200);
    assert_eq!((&step["step"], &step["state"], &step["asked_by"]), (&json!(2), &json!("deny"), &json!("freeze")));
}

#[test]
fn explanation_of_a_step_differs_from_that_of_its_call() {
    let host = ruled("rule = \"deny\"\nreason = \"not in December\"");
    let explain = |step: &[&str]| {
        let words = [&["policy", "explain", "roll_out", "{}", "--config", "toolgate.toml"], step].concat();
        let explained = host.cli(None, &words);
        explained.out.lines().last().unwrap_or_else(|| panic!("{explained:?}")).to_owned()
    };
    assert_eq!(explain(&[]), "roll_out by agent: it goes on without a person: no rule decides; the tool declares auto");
    assert_eq!(
        explain(&["--step", "approve"]),
        "the step approve of roll_out by agent: it is denied: freeze decides, because not in December"
    );
    let no_rule = "no rule decides; the tool declares auto";
    assert_eq!(explain(&["--step", "ask"]), format!("the step ask of roll_out by agent: it asks a person: {no_rule}"));
    for (step, effective) in [("approve", "deny"), ("ask", "ask"), ("await-external", "run")] {
        let call = json!({"tool": "roll_out", "arguments": {}, "step": step});
        let explained = host.admin.post("/v1/policy/explain", &call).ok(200);
        assert_eq!(explained["effective"], effective, "{explained:#}");
    }
    let unknown = json!({"tool": "roll_out", "arguments": {}, "step": "sleep"});
    host.admin.post("/v1/policy/explain", &unknown).problem(422, "invalid");
}

#[test]
fn rule_says_who_approves_a_step() {
    let host = ruled("rule = \"allow\"\nneeds = [{ who = [\"principal:bob\"] }]");
    let bob = host.token("bob", &["approver"], None);
    let (turn, asked) = rollout(&host, "r");
    let proposed = to_live(&host, &turn, &asked);
    let id = proposed["suspension"].as_str().unwrap();
    let deny = || json!({"decision": "deny", "comment": "no"});
    host.approver.resolve(id, deny()).problem(403, "not-allowed");
    assert_eq!(bob.resolve(id, deny()).ok(200)["ok"], true);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}
