//! The operator's rules with the real binary. Arguments decide whether to ask, edits are checked again, a rule can lift
//! a gate, and `policy explain` shows the reasons.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::http::{outcomes, suspension_of};

const RULES: &str = r#"
[policies]
files = ["rules/large.toml"]

[[policy]]
name = "never"
tools = "*echo"
rule = "deny"
reason = "nothing over a million"
arguments = [{ pointer = "/value", min = 1000001 }]

[[policy]]
name = "trusted"
tools = "gated_echo"
plugin = "lab"
rule = "allow"
ungate = true
arguments = [{ pointer = "/value", max = 10 }]
"#;

const LARGE: &str = r#"
[[policy]]
name = "large"
tools = "echo"
plugin = "lab"
caller = "agent*"
rule = "ask"
reason = "values over 1000 need a person"
risk = "high"
arguments = [{ pointer = "/value", min = 1000 }]
match = [
    { tool = "echo", caller = "agent-7", arguments = { value = 1000 } },
    { arguments = '{"value": 1e3}' },
]
not_match = [{ arguments = { value = 999.99 } }, { tool = "gated_echo", arguments = { value = 1000 } }]
"#;

#[test]
fn audit_of_denials_has_those_by_rule() {
    let host = host();
    let turn = host.agent.call("c", "echo", json!({"value": 2_000_000}));
    assert_eq!(outcomes(&turn), ["denied"]);
    let asked = host.agent.call("d", "gated_echo", json!({"value": 11}));
    let _ = host.approver.resolve(&suspension_of(&asked), json!({"decision": "deny"})).ok(200);
    let _ = host.agent.settled(&asked);
    let page = host.admin.get("/v1/audit?action=deny").ok(200);
    let entries: Vec<_> =
        page["entries"].as_array().unwrap().iter().map(|e| (&e["by"], &e["rule"], &e["subject"])).collect();
    let (by_rule, by_person) =
        ((&json!("system"), &json!("never"), &json!("echo")), (&json!("alice"), &json!(null), &json!("gated_echo")));
    assert_eq!(entries, [by_rule, by_person]);
}

fn host() -> Host {
    let mut host = Setup::with(&["lab"]).prepare();
    let config = host.folder().join("toolgate.toml");
    let written = fs::read_to_string(&config).unwrap();
    fs::write(config, format!("{written}{RULES}")).unwrap();
    fs::create_dir(host.folder().join("rules")).unwrap();
    fs::write(host.folder().join("rules/large.toml"), LARGE).unwrap();
    host.start();
    host
}

#[test]
fn rules_on_arguments_decide_whether_to_ask() {
    let host = host();
    let call = |tool: &str, value: Value| host.agent.call("c", tool, json!({"value": value}));
    assert_eq!(outcomes(&call("echo", json!(999))), ["ok"]);
    assert_eq!(outcomes(&call("echo", json!("text"))), ["denied"], "if the type is unknown, a denying rule matches");
    assert_eq!(outcomes(&call("gated_echo", json!(5))), ["ok"], "the operator lifted the gate");
    assert_eq!(outcomes(&call("gated_echo", json!(11))), ["awaiting"], "only for small values");

    let turn = call("echo", json!(5000));
    assert_eq!(outcomes(&turn), ["awaiting"]);
    let asked = host.approver.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
    assert_eq!(asked["asked_by"], "large");
    assert_eq!((&asked["reason"], &asked["risk"]), (&json!("values over 1000 need a person"), &json!("high")));
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);

    let denied = call("echo", json!(2_000_000));
    assert_eq!(outcomes(&denied), ["denied"]);
    assert!(denied.to_string().contains("nothing over a million"), "{denied:#}");
    let other = host.token("other", &["caller"], None);
    assert_eq!(outcomes(&other.call("d", "echo", json!({"value": 5000}))), ["ok"], "the rule is about agents");
}

#[test]
fn edit_is_checked_by_the_rules_again() {
    let host = host();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 11}));
    let edited = |value: u64| json!({"decision": "approve", "arguments": {"value": value}});
    host.approver.resolve(&suspension_of(&turn), edited(2_000_000)).problem(403, "not-allowed");
    assert_eq!(host.approver.resolve(&suspension_of(&turn), edited(12)).ok(200)["ok"], true);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

#[test]
fn numbers_are_compared_by_value_in_any_form() {
    let host = host();
    for (n, (value, outcome)) in
        [("1e3", "awaiting"), ("999.9999999999999999999", "ok"), ("1000001.0", "denied"), ("10e5", "awaiting")]
            .into_iter()
            .enumerate()
    {
        let body = format!(r#"{{"calls":[{{"id":"n{n}","tool":"echo","arguments":{{"value":{value}}}}}]}}"#);
        let turn = host.agent.post_text("/v1/conversations/n/turns?wait_ms=60000", &body).ok(201);
        assert_eq!(outcomes(&turn), [outcome], "{value}");
    }
}

#[test]
fn host_explains_a_decision() {
    let host = host();
    let explain = |tool: &str, value: Value| {
        let body = json!({"tool": tool, "arguments": {"value": value}, "caller": "agent"});
        host.admin.post("/v1/policy/explain", &body).ok(200)
    };
    let large = explain("echo", json!(5000));
    let said = |explained: &Value| ["rule", "by", "effective", "declared"].map(|name| explained[name].clone());
    assert_eq!(said(&large), ["ask", "large", "ask", "auto"].map(Value::from));
    let steps = large["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| (step["name"].as_str().unwrap(), step["matched"] == true)).collect();
    assert_eq!(names, [("never", false), ("trusted", false), ("large", true)]);
    let lifted = explain("gated_echo", json!(5));
    assert_eq!(said(&lifted), ["allow", "trusted", "run", "requires-approval"].map(Value::from));
    host.agent.post("/v1/policy/explain", &json!({"tool": "echo", "arguments": {}})).problem(403, "not-allowed");
}

fn check(said: &Said, code: i32, expect: &Expect) {
    assert_eq!(said.code, code, "{said:?}");
    expect.assert_eq(&format!("{}{}", said.out, said.err));
}

#[test]
fn command_line_explains_with_and_without_a_host() {
    let host = host();
    let words = ["policy", "explain", "echo", r#"{"value":5000}"#];
    let offline = host.cli(None, &[&words[..], &["--config", "toolgate.toml"]].concat());
    check(
        &offline,
        0,
        &expect![[r#"
              deny   never    at /value: 5000 is not at least 1000001
              allow  trusted  the tool echo is not `gated_echo`
        fits  ask    large    at /value: 5000 is at least 1000
        echo by agent: it asks a person, at risk high: large decides, because values over 1000 need a person
    "#]],
    );
    let url = host.admin.url();
    let online = host.cli(None, &[&words[..], &["--caller", "agent", "--url", &url]].concat());
    assert_eq!((online.code, &online.out), (0, &offline.out), "{}", online.err);
    let gated = ["policy", "explain", "gated_echo", r#"{"value":"ü\u202e"}"#, "--config", "toolgate.toml"];
    check(
        &host.cli(None, &gated),
        0,
        &expect![[r#"
        fits  deny   never    at /value: "ü\u{202e}" is a text, so the host cannot tell whether it is at least 1000001; in doubt, a rule that denies fits
              allow  trusted  at /value: "ü\u{202e}" is a text, so the host cannot tell whether it is at most 10; in doubt, a rule that allows does not fit
              ask    large    the tool gated_echo is not `echo`
        gated_echo by agent: it is denied: never decides, because nothing over a million
    "#]],
    );
    let unknown = host.cli(None, &["policy", "explain", "nothing", "--config", "toolgate.toml"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.err.contains("has a tool nothing") && unknown.err.contains("gated_echo"), "{}", unknown.err);
}

#[test]
fn rules_are_tried_with_their_own_examples() {
    let host = host();
    let test = || host.cli(None, &["policy", "test", "--config", "toolgate.toml"]);
    check(
        &test(),
        0,
        &expect![[r#"
            never    no examples
            trusted  no examples
            large    2 match, 2 not_match
            3 rules, 4 examples: all as they say
        "#]],
    );
    let file = host.folder().join("rules/large.toml");
    fs::write(&file, LARGE.replace("min = 1000 }", "min = 1001 }")).unwrap();
    check(
        &test(),
        2,
        &expect![[r#"
        error: rules/large.toml:12:5: the rule large does not match this call and should: at /value: 1000 is not at least 1001
        hint: correct the rule or the example; `toolgate policy explain` explains the rules for a call
        hint: `toolgate config --schema` prints every key of the file
    "#]],
    );
    fs::write(&file, LARGE.split("match = [").next().unwrap()).unwrap();
    check(
        &test(),
        2,
        &expect![[r#"
        error: rules/large.toml:2:1: the rule large has no example of a call that it matches
        hint: add an example: `match = [{ tool = "NAME", arguments = { … } }]`
        hint: `toolgate config --schema` prints every key of the file
    "#]],
    );
    fs::remove_file(&file).unwrap();
    assert_eq!(test().code, 2);
}

#[test]
fn a_rule_with_arguments_cannot_gate_a_question() {
    let table = "[[policy]]\nrule = \"ask\"\ncaller = \"nobody\"\narguments = [{ pointer = \"/x\", equals = 1 }]";
    let host = Setup::with(&["ask"]).tables(table).start();
    let listed = host.admin.get("/v1/plugins").ok(200);
    assert_eq!(listed["plugins"][0]["state"], "rejected");
    assert_eq!(listed["plugins"][0]["findings"][0]["rule"], "policy-human");
}
