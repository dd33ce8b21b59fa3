//! Commands for callers and approvers: lists, cancellations, delegations, standing approvals, several answers at once, and
//! arguments and tokens from files.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use expect_test::expect;
use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, path, suspension_of};

use crate::{check, file};

/// The lines of a command's output as JSON.
fn lines(host: &Host, by: &Client, words: &[&str]) -> Vec<Value> {
    let said = host.cli(Some(by), words);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The exit code and output of a command that reads this from standard input.
fn fed(host: &Host, by: &Client, words: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = host.command(Some(by), words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

#[test]
fn turns_and_conversations_are_listed_and_cancelled() {
    let host = Setup::with(&["lab"]).start();
    check(
        &host.cli(Some(&host.agent), &["conversations"]),
        0,
        &expect![[r#"
            there are no conversations
        "#]],
    );
    let first = host.agent.submit("c", json!([{"id": "a", "tool": "echo", "arguments": {"value": 1}}]));
    let turn = host.agent.submit("c", json!([{"id": "b", "tool": "gated_echo", "arguments": {"value": 2}}]));
    check(
        &host.cli(Some(&host.agent), &["conversations"]),
        0,
        &expect![[r#"
            c  of agent
        "#]],
    );
    check(
        &host.cli(Some(&host.agent), &["turns", "c"]),
        0,
        &expect![[r#"
            turn_ID  open  TIME  by agent
                b  gated_echo  awaiting  susp_ID
            turn_ID  settled  TIME  by agent
                a  echo  ok
        "#]],
    );
    let listed = lines(&host, &host.agent, &["turns", "c", "--json", "--limit", "1"]);
    assert_eq!((listed.len(), &listed[0]["turn"]), (1, &turn["turn"]));
    let listed = lines(&host, &host.agent, &["turns", "c", "--state", "settled", "--json"]);
    assert_eq!((listed.len(), &listed[0]["turn"]), (1, &first["turn"]));
    let named = lines(&host, &host.agent, &["turns", "--conversation", "c", "--json", "--state", "settled"]);
    assert_eq!(named, listed);
    let said = host.cli(Some(&host.agent), &["turns", "none"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("hint: `toolgate conversations` lists those that you may see"), "{said:?}");
    let id = turn["turn"].as_str().unwrap();
    for command in ["show", "cancel"] {
        let said = host.cli(Some(&host.agent), &[command, id]);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
        assert!(said.err.contains("error: there is no such turn, or you may not see it"), "{said:?}");
        assert!(said.err.contains("hint: pass its conversation with --conversation"), "{said:?}");
        assert!(said.err.contains("`toolgate conversations`"), "{said:?}");
    }
    check(
        &host.cli(Some(&host.agent), &["cancel", id, "--conversation", "c"]),
        0,
        &expect![[r#"
            turn_ID  cancelled  in c
              b  gated_echo  cancelled
                  {"value":2}
               => {"ok":false,"error":{"code":"cancelled","message":"The turn was cancelled. This call had not started, so it has no effect."}}
        "#]],
    );
    let again = lines(&host, &host.agent, &["cancel", id, "--conversation", "c", "--json"]);
    assert_eq!(again[0]["state"], "cancelled");
    check(
        &host.cli(Some(&host.agent), &["turns", "c", "--state", "open"]),
        0,
        &expect![[r#"
            c has no such turns
        "#]],
    );
}

#[test]
fn several_calls_are_approved_or_denied_at_once() {
    let host = Setup::with(&["lab"]).start();
    let turns: Vec<Value> = (1..=5).map(|n| host.agent.call("c", "gated_echo", json!({"value": n}))).collect();
    let ids: Vec<String> = turns.iter().map(suspension_of).collect();
    let said = host.cli(Some(&host.approver), &["approve", &ids[0], &ids[1], "--comment", "both"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("\nanswered susp_").count(), 2, "{said:?}");
    assert!(said.out.contains("Echo 1?") && said.out.contains("Echo 2?"), "{said:?}");
    let denied = lines(&host, &host.approver, &["deny", &ids[2], &ids[3], "--json"]);
    assert_eq!((&denied[0]["ok"]["state"], &denied[1]["status"]), (&json!("deny"), &json!(200)));
    for (turn, outcome) in turns.iter().zip(["ok", "ok", "denied", "denied"]) {
        assert_eq!(outcomes(&host.agent.settled(turn)), [outcome]);
    }
    // One refused answer does not keep the others from it.
    let said = host.cli(Some(&host.approver), &["deny", &ids[0], &ids[4]]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.starts_with(&format!("answered {}: deny", ids[4])), "{said:?}");
    assert!(said.err.starts_with(&format!("{}: error: this approval is no longer open", ids[0])), "{said:?}");
    assert_eq!(outcomes(&host.agent.settled(&turns[4])), ["denied"]);
    // An unknown one is named, and keeps the others from nothing.
    let more: Vec<Value> = (6..=7).map(|n| host.agent.call("c", "gated_echo", json!({"value": n}))).collect();
    let unknown = "susp_01935a7c000070008000000000000001";
    let said =
        host.cli(Some(&host.approver), &["approve", &suspension_of(&more[0]), unknown, &suspension_of(&more[1])]);
    assert_eq!((said.code, said.out.matches("\nanswered susp_").count()), (1, 2), "{said:?}");
    assert!(said.err.starts_with(&format!("{unknown}: error: there is no such suspension")), "{said:?}");
    for turn in &more {
        assert_eq!(outcomes(&host.agent.settled(turn)), ["ok"]);
    }
    let said = host.cli(Some(&host.approver), &["approve", unknown, "--json"]);
    assert_eq!((said.code, said.out.contains(unknown), said.out.contains("\"error\":")), (1, true, true), "{said:?}");

    let said = host.cli(Some(&host.approver), &["approve", &ids[0], &ids[1], "--arguments", "{}"]);
    assert_eq!((said.code, said.err.contains("for a single call")), (2, true), "{said:?}");

    let by = ["pending", "--decision", "approve", "--by", "alice", "--json"];
    let approved: Vec<Value> =
        lines(&host, &host.approver, &by).into_iter().map(|item| item["suspension"].clone()).collect();
    assert_eq!(approved[..2], [json!(ids[0]), json!(ids[1])]);
}

#[test]
fn pending_watch_prints_each_opening_and_its_end() {
    let host = Setup::with(&["lab"]).start();
    let first = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let watched = |words: &[&str]| {
        let words = [&["pending", "--watch", "--config", "toolgate.toml"], words].concat();
        let mut child = host.command(Some(&host.approver), &words).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        (child, lines)
    };
    let (mut for_people, mut text) = watched(&[]);
    let (mut for_programs, mut json) = watched(&["--json", "--tool", "gated_echo"]);
    let mut next = || {
        let item: Value = serde_json::from_str(&json.next().unwrap()).unwrap();
        (item["suspension"].clone(), item["state"].clone())
    };
    // Both have printed the list, and follow the stream.
    assert_eq!(next(), (json!(suspension_of(&first)), json!("open")));
    assert!(text.next().unwrap().starts_with(&suspension_of(&first)));
    for (n, state) in [(2, "approve"), (3, "withdrawn")] {
        let turn = host.agent.call("c", "gated_echo", json!({"value": n}));
        let id = suspension_of(&turn);
        if state == "approve" {
            let _ = host.approver.resolve(&id, json!({"decision": "approve"})).ok(200);
        } else {
            let _ = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
        }
        assert_eq!(next(), (json!(id), json!("open")));
        assert_eq!(next(), (json!(id), json!(state)));
        let ended = format!("{id} ended: {state} by ");
        assert!(text.any(|line| line.starts_with(&ended)));
    }
    for child in [&mut for_people, &mut for_programs] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn answers_and_arguments_come_from_files_and_standard_input() {
    let host = Setup::with(&["lab", "ask"]).start();
    let asked = || suspension_of(&host.agent.call("c", "ask_user", json!({"question": "Tea?"})));
    file(&host, "answer.json", "{\"answer\": \"yes\"}\n");
    let id = asked();
    let said = host.cli(Some(&host.approver), &["answer", &id, "@answer.json", "--json"]);
    assert_eq!((said.code, said.out.contains("\"state\":\"answer\"")), (0, true), "{said:?}");
    let said = host.cli(Some(&host.approver), &["show", &id]);
    assert!(said.code == 0 && said.out.ends_with("\n  answer      {\"answer\": \"yes\"}\n"), "{said:?}");
    let (code, said) = fed(&host, &host.approver, &["answer", &asked(), "-"], "{\"answer\":\"no\"}");
    assert_eq!((code, said.starts_with("answered susp_")), (Some(0), true), "{said}");

    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    file(&host, "edited.json", r#"{"value": 12345678901234567890}"#);
    let said = host.cli(Some(&host.approver), &["approve", &suspension_of(&turn), "--arguments", "@edited.json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let settled = host.agent.settled(&turn);
    assert_eq!(settled["calls"][0]["content"]["result"], json!(12_345_678_901_234_567_890_u64));

    file(&host, "wrong.json", "{'answer': 1}");
    for (word, expected) in [
        ("@wrong.json", "the file is not valid JSON: a key must be in double quotes"),
        ("@absent.json", "cannot read absent.json: No such file or directory"),
        ("@plugins", "cannot read plugins: Is a directory"),
        ("yes", "a JSON string needs its own quotes"),
        ("-", "standard input is not valid JSON"),
    ] {
        let said = host.cli(Some(&host.approver), &["answer", &suspension_of(&turn), word]);
        assert_eq!((said.code, said.err.contains(expected)), (2, true), "{word}: {said:?}");
    }

    let config = ["--config", "toolgate.toml"];
    let echo = |words: &[&str], input: &str| fed(&host, &host.agent, &[&["call"], words, &config].concat(), input);
    file(&host, "arguments.json", "{\"value\": 7}");
    assert_eq!(echo(&["echo", "@arguments.json"], ""), (Some(0), "7\n".to_owned()));
    assert_eq!(
        echo(&["plugins/lab.wasm", "echo", "-", "--json"], "{\"value\":8}"),
        (Some(0), "{\"ok\":true,\"result\":8}\n".to_owned())
    );
    let (code, said) = fed(&host, &host.agent, &["submit", "-"], "{'a': 1}");
    assert_eq!((code, said.starts_with("error: standard input is not JSON\n")), (Some(2), true), "{said}");
    let (code, said) = echo(&["fail", "{\"message\":\"no\"}", "--json"], "");
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "{\"ok\":false,\"error\":{\"code\":\"tool_failed\",\"message\":\"no\"}}\n")
    );
}

#[test]
fn token_comes_from_a_file() {
    let host = Setup::with(&["lab"]).start();
    file(&host, "alice.token", &format!("{}\n", host.approver.token()));
    file(&host, "nobody.token", "tg_of nobody\n");
    let audit = |words: &[&str]| host.cli(Some(&host.admin), &[&["audit"], words].concat());
    assert_eq!(audit(&[]).code, 0);
    let said = host.cli(None, &["audit", "--token", "tg_nobody", "--config", "toolgate.toml"]);
    assert_eq!((said.code, said.err.matches("the bearer token is not known here").count()), (1, 1), "{said:?}");
    assert!(said.err.contains("hint: `toolgate token list` shows the holders of tokens"), "{said:?}");
    let said = audit(&["--token-file", "alice.token"]);
    assert_eq!(said.code, 1, "the file takes precedence over TOOLGATE_TOKEN: {said:?}");
    assert!(said.err.contains("only a principal with the role admin"), "{said:?}");
    assert!(said.err.contains("hint: use a token with the role admin"), "{said:?}");
    assert!(said.err.contains("`toolgate token create --name NAME --role admin`"), "{said:?}");
    for (name, expected) in [
        ("nobody.token", "error: nobody.token must contain exactly one token"),
        ("absent.token", "error: cannot read the token in absent.token"),
        ("plugins", "error: plugins is a folder and not a file"),
    ] {
        let said = audit(&["--token-file", name]);
        assert!(said.code != 0 && said.err.contains(expected), "{name}: {said:?}");
        assert!(!said.err.contains("tg_of"), "{said:?}");
    }
}

#[test]
fn standing_approvals_are_listed_and_revoked() {
    let host = Setup::with(&["lab"]).start();
    check(
        &host.cli(Some(&host.approver), &["standing", "list"]),
        0,
        &expect![[r#"
            there are no standing approvals
        "#]],
    );
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let standing = json!({"ttl_ms": 600_000, "uses": 2, "pin": ["/value"]});
    let _ = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve", "standing": standing})).ok(200);
    let listed = lines(&host, &host.agent, &["standing", "list", "--active", "--json"]);
    assert_eq!((listed.len(), &listed[0]["state"]), (1, &json!("active")));
    let id = listed[0]["id"].as_str().unwrap();
    let said = host.cli(Some(&host.approver), &["standing", "list"]);
    assert!(
        said.out.starts_with(&format!("{id}  active  gated_echo (lab)\n    by alice for agent, 0 of 2 uses, until ")),
        "{said:?}"
    );
    assert!(said.out.ends_with("\n    arguments {\"value\":1}, of which [\"/value\"] must be equal\n"), "{said:?}");
    assert_eq!(host.cli(Some(&host.agent), &["standing", "revoke", id]).code, 1, "another principal gave it");
    let said = host.cli(Some(&host.approver), &["standing", "revoke", id]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("revoked by alice at "), "{said:?}");
    assert_eq!(lines(&host, &host.approver, &["standing", "list", "--active", "--json"]), [Value::Null; 0]);
}

#[test]
fn authority_is_delegated() {
    let rule =
        "[[policy]]\nname = \"ann\"\ntools = \"echo\"\nrule = \"ask\"\nneeds = [{ who = [\"principal:alice\"] }]";
    let host = Setup::with(&["lab"]).tables(rule).start();
    let bob = host.token("bob", &["approver"], None);
    let turn = host.agent.call("c", "echo", json!({"value": 1}));
    let id = suspension_of(&turn);
    assert_eq!(host.cli(Some(&bob), &["approve", &id]).code, 1);
    check(
        &host.cli(Some(&host.approver), &["delegate", &id, "--to", "bob", "--comment", "I am away"]),
        0,
        &expect![[r#"
            delegated susp_ID to bob
        "#]],
    );
    assert_eq!(host.cli(Some(&bob), &["approve", &id]).code, 0);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

#[test]
fn client_reports_progress() {
    let tools = json!([{"name": "copy", "executor": "client", "streaming": true}]);
    let setup = Setup::default().component("desk", fixture(&tools)).settings("client_grace_ms = 600000");
    let host = setup.tables("[plugin.desk.limits]\nprogress_updates = 1").start();
    let turn = host.agent.call("c", "copy", json!({}));
    let id = suspension_of(&turn);
    let mut stream = host.agent.events("/v1/conversations/c/events?after=now");
    let half = ["progress", &id, "half", "{\"page\":1}", "--fraction", "0.5"];
    check(
        &host.cli(Some(&host.page), &half),
        0,
        &expect![[r#"
            reported
        "#]],
    );
    let event = stream.named("call.progress").data;
    assert_eq!(
        [&event["message"], &event["fraction"], &event["data"]["page"]],
        [&json!("half"), &json!(0.5), &json!(1)]
    );
    check(
        &host.cli(Some(&host.page), &half),
        0,
        &expect![[r#"
            dropped: earlier reports used up `limits.progress_updates` or `limits.progress_bytes`
        "#]],
    );
    assert_eq!(
        lines(&host, &host.page, &[half.as_slice(), &["--json"]].concat()),
        [json!({"ok": true, "dropped": true})]
    );
    assert_eq!(host.cli(Some(&host.agent), &half).code, 1, "a caller is no client");
    let said = host.cli(Some(&host.page), &["progress", "susp_01935a7c000070008000000000000001", "half"]);
    let expected = "error: there is no such suspension, or you may not see it\n\
                    hint: `toolgate pending` lists the pending suspensions\n";
    assert_eq!((said.code, said.err.as_str()), (1, expected));
}

#[test]
fn ends_of_all_own_turns_are_printed() {
    let host = Setup::with(&["lab"]).start();
    let other = host.token("other", &["caller"], None);
    for (client, conversation) in [(&host.agent, "c"), (&other, "d"), (&host.agent, "e")] {
        let _ = client.call(conversation, "echo", json!({"value": 1}));
    }
    let mut command = host.command(Some(&host.agent), &["events", "--host", "--json", "--config", "toolgate.toml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen = lines.take(2).map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let seen: Vec<_> = seen.map(|event| (event["event"].clone(), event["conversation"].clone())).collect();
    assert_eq!(seen, ["c", "e"].map(|conversation| (json!("turn.settled"), json!(conversation))));
    child.kill().unwrap();
    child.wait().unwrap();
    for words in [&["events"][..], &["events", "c", "--host"], &["events", "--host", "--client", "x"]] {
        assert_eq!(host.cli(None, words).code, 2, "{words:?}");
    }
}

#[test]
fn approval_by_two_counts_them_and_names_both() {
    let rule = "[[policy]]\ntools = \"echo\"\nrule = \"ask\"\nneeds = [{ quorum = 2 }]\n";
    let host = Setup::with(&["lab"]).tables(rule).start();
    let bob = host.token("bob", &["approver"], None);
    let turn = host.agent.submit("c", json!([{"id": "one", "tool": "echo", "arguments": {"value": 1}}]));
    let suspension = suspension_of(&turn);
    check(
        &host.cli(Some(&host.approver), &["approve", &suspension]),
        0,
        &expect![[r#"
        susp_ID  approval  echo (lab)
          | echo?
          arguments   {"value":1}
          has         0 of 2 approvals
          asked by    agent, call one
          turn        turn_ID of c
          digest      sha256:DIGEST
          expires     TIME, then error
          answer with toolgate approve susp_ID
          answer with toolgate deny susp_ID --comment 'why not'
        answered susp_ID: approve, 1 of 2 approvals: the call still waits
    "#]],
    );
    check(
        &host.cli(Some(&bob), &["approve", &suspension]),
        0,
        &expect![[r#"
            susp_ID  approval  echo (lab)
              | echo?
              arguments   {"value":1}
              vote        alice via api approved the arguments as submitted
              has         1 of 2 approvals
              asked by    agent, call one
              turn        turn_ID of c
              digest      sha256:DIGEST
              expires     TIME, then error
              answer with toolgate approve susp_ID
              answer with toolgate deny susp_ID --comment 'why not'
            answered susp_ID: approve
        "#]],
    );
    both_are_named(&host, &bob, &turn);
}

/// Edited arguments are approved only when all have approved them.
#[test]
fn edited_vote_is_not_shown_as_approved() {
    let rule = "[[policy]]\ntools = \"gated_echo\"\nrule = \"ask\"\nneeds = [{ quorum = 2 }]\n";
    let host = Setup::with(&["lab"]).tables(rule).start();
    let bob = host.token("bob", &["approver"], None);
    let turn = host.agent.submit("c", json!([{"id": "one", "tool": "gated_echo", "arguments": {"value": 1}}]));
    let suspension = suspension_of(&turn);
    let answered = |by: &Client| {
        let said = host.cli(Some(by), &["approve", &suspension, "--arguments", r#"{"value":2}"#]);
        assert_eq!(said.code, 0, "{said:?}");
        said.out.split_once(&format!("answered {suspension}: ")).unwrap().1.to_owned()
    };
    let rows = "  submitted   {\"value\":1}\n  changed     value: 1 -> 2\n";
    let first = format!("approve, 1 of 2 approvals: the call still waits\n  vote        {{\"value\":2}}\n{rows}");
    assert_eq!(answered(&host.approver), first);
    assert_eq!(answered(&bob), format!("approve\n  approved    {{\"value\":2}}\n{rows}"));
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"], json!(2));
}

fn both_are_named(host: &Host, bob: &Client, turn: &Value) {
    let (_, suspension) = (host.agent.settled(turn), suspension_of(turn));
    check(
        &host.cli(Some(bob), &["show", &suspension]),
        0,
        &expect![[r#"
            susp_ID  approval  echo (lab)
              | echo?
              approved    {"value":1}
              submitted   the same
              vote        alice via api approved the arguments as submitted
              has         2 of 2 approvals
              asked by    agent, call one
              turn        turn_ID of c
              digest      sha256:DIGEST
              ended       approve by alice and bob via api at TIME
        "#]],
    );
    let id = turn["turn"].as_str().unwrap();
    check(
        &host.cli(Some(&host.agent), &["show", id, "--conversation", "c"]),
        0,
        &expect![[r#"
            turn_ID  settled  in c
              one  echo  ok, approved by alice and bob
                  {"value":1}
               => {"ok":true,"result":1}
                  SPENT, 128 KiB, 0 host calls, 11 B in, 1 B out
        "#]],
    );
    check(
        &host.cli(Some(bob), &["pending", "--by", "alice"]),
        0,
        &expect![[r#"
            susp_ID  approval  echo (lab)
              | echo?
              approved    {"value":1}
              submitted   the same
              vote        alice via api approved the arguments as submitted
              has         2 of 2 approvals
              asked by    agent, call one
              turn        turn_ID of c
              digest      sha256:DIGEST
              ended       approve by alice and bob via api at TIME

        "#]],
    );
}
