//! Printing and verifying the audit.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::suspension_of;

use crate::check;

/// The heads that the host logged at its starts and ends, without colours, newest last.
fn logged(host: &Host) -> Vec<String> {
    let log = fs::read_to_string(host.folder().join("host.log")).unwrap();
    let heads = log.lines().filter(|line| line.contains("the audit ") && line.contains(":sha256:"));
    let head = |line: &str| {
        let hash = line.find(":sha256:").unwrap();
        let from = line[..hash].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
        line[from..hash + ":sha256:".len() + 64].to_owned()
    };
    heads.map(head).collect()
}

/// Waits until the audit has this many entries of this action. Events of plugins are stored a moment later.
fn written(host: &Host, action: &str, times: usize) {
    let says = || {
        let page = host.admin.get(&format!("/v1/audit?action={action}")).ok(200);
        page["entries"].as_array().unwrap().len() == times
    };
    assert!((0..10_000).any(|_| says()), "the audit does not have {action} {times} times");
}

fn stop(host: &mut Host) {
    let asked = std::process::Command::new("kill").args(["-TERM", &host.process().to_string()]).status().unwrap();
    assert!(asked.success());
    host.wait();
}

#[test]
#[expect(clippy::too_many_lines, reason = "most lines are expected output")]
fn audit_has_principals_actions_and_grants() {
    let host = Setup::with(&["lab"]).tables("[plugin.lab]\ncomponent = \"any\"\ngrants.keyvalue = true").start();
    written(&host, "plugin.loaded", 1);
    let calls = json!([
        {"id": "a", "tool": "gated_echo", "arguments": {"value": 1}},
        {"id": "d", "tool": "gated_echo", "arguments": {"value": 2}},
        {"id": "f", "tool": "fail", "arguments": {"message": "no"}},
        {"id": "u", "tool": "unheard_of", "arguments": {}},
    ]);
    let turn = host.agent.submit("c", calls);
    // The start and the failure are one commit, which is stored before the answer.
    let path = toolgate_tests::http::path(&turn);
    let _ = host.agent.get(&format!("{path}?wait_ms=10000&until=quiet")).ok(200);
    let waiting = |call: &str| {
        let pending = turn["pending"].as_array().unwrap();
        let found = pending.iter().find(|pending| pending["call"] == call).unwrap();
        found["suspension"].as_str().unwrap().to_owned()
    };
    let _ = host.approver.resolve(&waiting("d"), json!({"decision": "deny", "comment": "not two"})).ok(200);
    let _ = host.approver.resolve(&waiting("a"), json!({"decision": "approve"})).ok(200);
    let _ = host.agent.settled(&turn);
    let bytes = fixture(&json!([{"name": "ask", "executor": "human", "approval": "requires-approval"}]));
    assert_eq!(host.admin.put("/v1/plugins/bad", &bytes).status, 422);
    let _ = host.admin.delete("/v1/plugins/lab").ok(200);
    written(&host, "plugin.unloaded", 1);

    check(
        &host.cli(None, &["audit"]),
        0,
        &expect![[r#"
            1  TIME  system  host.started  toolgate 0.1.0
                granted: lab: keyvalue: up to 16777216 bytes in 100000 keys
                granted: lab: to any component
                granted: ledger: keyvalue: up to 16777216 bytes in 100000 keys
                granted: ledger: to any component
            1  TIME  system  grants.changed
                granted: lab: keyvalue: up to 16777216 bytes in 100000 keys
                granted: lab: to any component
                granted: ledger: keyvalue: up to 16777216 bytes in 100000 keys
                granted: ledger: to any component
            2  TIME  system  plugin.loaded  lab  component sha256:DIGEST
                tool: echo
                tool: gated_echo
                tool: count
                tool: gated_count
                tool: identity
                tool: clock
                tool: random
                tool: fail
                tool: unavailable
                tool: invalid
                tool: panic
                tool: bad_result
                tool: not_json
                tool: spin
                tool: sleep
                tool: key
                tool: gated_key
                tool: flood
                tool: grow
                tool: recurse
                tool: chatter
                tool: stdout
                tool: handles
                tool: entropy
                granted: keyvalue: up to 16777216 bytes in 100000 keys
            3  TIME  agent  turn.started  turn_ID  in c
            3  TIME  agent  call.requested  gated_echo  call a  component sha256:DIGEST
            3  TIME  agent  call.requested  gated_echo  call d  component sha256:DIGEST
            3  TIME  agent  call.requested  fail  call f  component sha256:DIGEST
            3  TIME  agent  call.requested  unheard_of  call u
            3  TIME  system  call.started  fail  call f  attempt 1  component sha256:DIGEST
            3  TIME  system  call.settled  unheard_of  call u  failed  unknown_tool
            4  TIME  system  call.settled  fail  call f  attempt 1  failed  tool_failed  component sha256:DIGEST
            5  TIME  alice  deny  gated_echo  call d  susp_ID  via api  component sha256:DIGEST  "not two"
            5  TIME  system  call.settled  gated_echo  call d  denied  component sha256:DIGEST
            6  TIME  alice  approve  gated_echo  call a  susp_ID  via api  component sha256:DIGEST
            6  TIME  system  call.started  gated_echo  call a  attempt 1  component sha256:DIGEST
            7  TIME  system  call.settled  gated_echo  call a  attempt 1  ok  component sha256:DIGEST
            7  TIME  system  turn.settled  turn_ID  in c  settled
            8  TIME  root  plugin.rejected  bad  component sha256:DIGEST
                finding: tool ask: a human tool cannot be requires-approval: approving a question is circular; declare its approval `auto`, and let people decline with one of its `responses`
            9  TIME  root  plugin.unloaded  lab  component sha256:DIGEST
        "#]],
    );
    let of_turn = turn["turn"].as_str().unwrap();
    check(
        &host.cli(None, &["audit", "--turn", of_turn, "--by", "alice"]),
        0,
        &expect![[r#"
            5  TIME  alice  deny  gated_echo  call d  susp_ID  via api  component sha256:DIGEST  "not two"
            6  TIME  alice  approve  gated_echo  call a  susp_ID  via api  component sha256:DIGEST
        "#]],
    );
    check(
        &host.cli(None, &["audit", "--plugin", "bad", "--action", "plugin.rejected"]),
        0,
        &expect![[r#"
        8  TIME  root  plugin.rejected  bad  component sha256:DIGEST
            finding: tool ask: a human tool cannot be requires-approval: approving a question is circular; declare its approval `auto`, and let people decline with one of its `responses`
    "#]],
    );
    check(
        &host.cli(None, &["audit", "--action", "plugin.approved"]),
        2,
        &expect![[r#"
            error: invalid value 'plugin.approved' for '--action <ACTION>': unknown audit action: expected one of turn.started, call.requested, approve, vote, delegate, authority.revoke, escalate, link.made, link.used, standing.use, standing.revoke, deny, answer, result, error, expired, call.started, call.resumed, call.settled, cancel, turn.settled, plugin.loaded, plugin.rejected, plugin.unloaded, host.started, grants.changed, turn.removed, record.unreadable, store.salvaged

            For more information, try '--help'.
        "#]],
    );

    let said = host.cli(None, &["audit", "--json", "--turn", of_turn, "--action", "call.started"]);
    let started: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = host.cli(None, &["audit", "--json", "--turn", of_turn, "--action", "approve"]);
    let approved: Value = serde_json::from_str(said.out.trim()).unwrap();
    let ran = started.iter().find(|started| started["call"] == "a").unwrap();
    assert_eq!(ran["digest"], approved["digest"], "the approved component ran");
    assert_eq!(approved["digest"], turn["pending"][0]["digest"]);
    assert!(ran["owner"].as_str().unwrap().starts_with("host_"), "{ran:#}");
}

#[test]
fn next_start_records_every_change_of_grants() {
    let mut host = Setup::with(&["lab"]).tables("[plugin.lab]\ncomponent = \"any\"\ngrants.keyvalue = true").start();
    written(&host, "plugin.loaded", 1);
    host.restart();
    written(&host, "plugin.loaded", 2);
    let config = host.folder().join("toolgate.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(
        &config,
        text.replace(
            "[plugin.lab]\ncomponent = \"any\"\ngrants.keyvalue = true",
            "[plugin.lab]\ncomponent = \"any\"\ngrants.config = { a = \"b\" }",
        ),
    )
    .unwrap();
    host.restart();
    check(
        &host.cli(None, &["audit", "--action", "grants.changed"]),
        0,
        &expect![[r#"
            1  TIME  system  grants.changed
                granted: lab: keyvalue: up to 16777216 bytes in 100000 keys
                granted: lab: to any component
                granted: ledger: keyvalue: up to 16777216 bytes in 100000 keys
                granted: ledger: to any component
            5  TIME  system  grants.changed
                granted: lab: config: a = sha256:DIGEST
                revoked: lab: keyvalue: up to 16777216 bytes in 100000 keys
        "#]],
    );
}

#[test]
fn the_audit_is_verified_while_the_host_runs_and_afterwards() {
    let mut host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let _ = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200);
    let _ = host.agent.settled(&turn);
    let started = logged(&host).pop().unwrap();
    assert!(started.starts_with("1:sha256:"), "{started}");
    let shown = host.admin.get("/v1/audit?limit=1").ok(200)["head"].clone();
    let shown = format!("{}:{}", shown["position"], shown["hash"].as_str().unwrap());
    let verified = |host: &Host, heads: &[&str]| {
        let heads: Vec<_> = heads.iter().flat_map(|head| ["--head", head]).collect();
        host.cli(None, &[&["audit", "verify"], heads.as_slice()].concat())
    };
    let said = verified(&host, &[&started, &shown]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.starts_with(&format!("verified {} commits; the head is {shown}", shown.split(':').next().unwrap())),
        "{said:?}"
    );

    stop(&mut host);
    let ended = logged(&host).pop().unwrap();
    let said = verified(&host, &[&started, &shown, &ended]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains(&format!("the head is {ended}")), "{said:?}");
    let said = host.cli(None, &["audit", "verify", "--json"]);
    let head: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(format!("{}:{}", head["position"], head["hash"].as_str().unwrap()), ended);

    let forged = format!("2:sha256:{}", "0".repeat(64));
    let ahead = format!("999:sha256:{}", "0".repeat(64));
    for (head, what) in [(&forged, "position 2: its hash is"), (&ahead, "the audit ends before position 999")] {
        let said = verified(&host, &[head]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("the audit log was changed") && said.err.contains(what), "{said:?}");
    }
    assert_eq!(verified(&host, &["17"]).code, 2);

    host.start();
    let said = verified(&host, &[&started, &ended]);
    assert_eq!(said.code, 0, "the chain continues at its head: {said:?}");
    assert_eq!(verified(&host, &[&forged]).code, 1);
}

#[test]
fn audit_can_hold_every_call() {
    let host = Setup::with(&["lab"]).settings("ephemeral = false").start();
    let turn = json!({"calls": [{"id": "e", "tool": "echo", "arguments": {"value": 1}}], "ephemeral": true});
    let turn = host.agent.submit_turn("c", &turn);
    assert_eq!(turn["ephemeral"], false);
    let said =
        host.cli(None, &["audit", "--turn", turn["turn"].as_str().unwrap(), "--action", "call.requested", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["subject"], "echo");
}
