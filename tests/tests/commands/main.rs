//! The command line of the real binary with a running host: each command once with its output and exit code, and
//! deceptive texts.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod audit;
mod callers;
mod defaults;
mod developing;
mod formats;
mod hook;
mod hostile;
mod logs;
mod making;
mod mcp;
mod offline;
mod pending;
mod serving;
mod wrong;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::http::{Client, outcomes, path, suspension_of};

/// Checks the exit code and the output of a command. Varying parts of the output are replaced.
fn check(said: &Said, code: i32, out: &Expect) {
    assert_eq!(said.code, code, "{said:?}");
    out.assert_eq(&stable(&format!("{}{}", said.out, said.err)));
}

/// The text with ids, digests and times replaced by placeholders.
fn stable(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
    let mut output = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        if length == 0 {
            output.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let length = rest[..length].trim_end_matches([':', '.']).len().max(1);
        let (word, after) = rest.split_at(length);
        output.push_str(placeholder(word));
        rest = after;
    }
    output.split_inclusive('\n').map(untimed).collect()
}

/// A receipt without the time that the call took.
fn untimed(line: &str) -> String {
    match line.split_once(", ").filter(|(_, spent)| spent.contains(" host calls, ")) {
        Some((time, spent)) => format!("{}SPENT, {spent}", &time[..time.len() - time.trim_start().len()]),
        None => line.to_owned(),
    }
}

fn placeholder(word: &str) -> &str {
    let id = |prefix: &str| word.strip_prefix(prefix).is_some_and(|id| id.len() > 20);
    match word {
        _ if id("turn_") => "turn_ID",
        _ if id("susp_") => "susp_ID",
        _ if word.starts_with("sha256:") && word.len() > 60 => "sha256:DIGEST",
        _ if word.starts_with("20") && word.len() == 24 && word.ends_with('Z') => "TIME",
        _ => word,
    }
}

fn completion(calls: Value) -> String {
    json!({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": calls}}]}).to_string()
}

fn function(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}

/// Writes a file into the folder in which commands run.
fn file(host: &Host, name: &str, text: &str) {
    fs::write(host.folder().join(name), text).unwrap();
}

fn submitted(host: &Host, by: &Client, file: &str) -> Value {
    let said = host.cli(Some(by), &["submit", file, "--conversation", "c", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn tools_lists_what_can_be_called() {
    let host = Setup::with(&["textkit", "ask", "browser"]).start();
    check(
        &host.cli(Some(&host.agent), &["tools"]),
        0,
        &expect![[r#"
        ask_user  human  (ask)
            Asks the user a question and waits for the answer. Use it when only the user can know or decide.
        get_location  client  (browser)
            Finds out where the user's device is: latitude, longitude and accuracy in metres.
        pick_file  client, requires approval  (browser)
            Lets the user pick one file on their device and reads it.
        text_search  server  (textkit)
            Ranks documents by how well they match a query (Okapi BM25) and shows where they do.
        text_stats  server  (textkit)
            Counts the words, sentences, lines and characters of a text, and lists its most frequent words.
    "#]],
    );
    let said = host.cli(Some(&host.agent), &["tools", "--format", "anthropic"]);
    let tools: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(tools[0]["name"], "ask_user");
    let empty = Setup::default().start();
    check(
        &empty.cli(None, &["tools"]),
        0,
        &expect![[r#"
        no tools are live
    "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "most lines are expected output")]
fn models_answer_is_submitted_approved_and_returned() {
    let host = Setup::with(&["lab", "textkit"]).start();
    let calls = json!([
        function("call_1", "text_stats", &json!({"text": "to be or not"})),
        function("call_2", "gated_echo", &json!({"value": "hi"})),
    ]);
    file(&host, "answer.json", &completion(calls));
    let submit = ["submit", "answer.json", "--conversation", "c"];
    check(
        &host.cli(Some(&host.agent), &submit),
        0,
        &expect![[r#"
            turn_ID  open  in c
              call_1  text_stats  ok
                  {"text":"to be or not"}
               => {"ok":true,"result":{"words":4,"unique_words":4,"sentences":1,"lines":1,"characters":12,"words_per_sentence":4.0,"reading_minutes":0.02,"top_words":[{"word":"be","count":1},{"word":"not","count":1},{"word":"or","count":1},{"word":"to","count":1}]}}
                  SPENT, 128 KiB, 0 host calls, 23 B in, 227 B out
              call_2  gated_echo  awaiting
                  {"value":"hi"}

            Waiting:
            susp_ID  approval  gated_echo (lab)
              | Echo hi?
              arguments   {"value":"hi"}
              editable    "all"
              asked by    agent, call call_2
              turn        turn_ID of c
              digest      sha256:DIGEST
              expires     TIME, then error
              answered by a principal with the role approver: toolgate approve susp_ID
              answered by a principal with the role approver: toolgate deny susp_ID --comment 'why not'
        "#]],
    );
    check(
        &host.cli(Some(&host.approver), &["pending"]),
        0,
        &expect![[r#"
        susp_ID  approval  gated_echo (lab)
          | Echo hi?
          arguments   {"value":"hi"}
          editable    "all"
          asked by    agent, call call_2
          turn        turn_ID of c
          digest      sha256:DIGEST
          expires     TIME, then error
          answer with toolgate approve susp_ID
          answer with toolgate deny susp_ID --comment 'why not'

    "#]],
    );
    let turn = submitted(&host, &host.agent, "answer.json");
    assert_eq!((&turn["replayed"], outcomes(&turn)), (&json!(true), vec!["ok".to_owned(), "awaiting".to_owned()]));
    let suspension = suspension_of(&turn);

    // The agent may not approve its own call.
    check(
        &host.cli(Some(&host.agent), &["approve", &suspension]),
        1,
        &expect![[r#"
        susp_ID  approval  gated_echo (lab)
          | Echo hi?
          arguments   {"value":"hi"}
          editable    "all"
          asked by    agent, call call_2
          turn        turn_ID of c
          digest      sha256:DIGEST
          expires     TIME, then error
          not by you  only a principal with the role approver answers approvals and questions
          answered by a token with the role approver; the host's operator makes one: `toolgate token create --name NAME --role approver`
        error: only a principal with the role approver answers approvals and questions
        hint: use a token with the role approver; the host's operator makes one: `toolgate token create --name NAME --role approver`
    "#]],
    );
    let words = ["approve", &suspension, "--arguments", r#"{"value":"ho"}"#, "--comment", "friendlier"];
    check(
        &host.cli(Some(&host.approver), &words),
        0,
        &expect![[r#"
        susp_ID  approval  gated_echo (lab)
          | Echo hi?
          arguments   {"value":"hi"}
          editable    "all"
          asked by    agent, call call_2
          turn        turn_ID of c
          digest      sha256:DIGEST
          expires     TIME, then error
          answer with toolgate approve susp_ID
          answer with toolgate deny susp_ID --comment 'why not'
        answered susp_ID: approve
          approved    {"value":"ho"}
          submitted   {"value":"hi"}
          changed     value: "hi" -> "ho"
    "#]],
    );
    check(
        &host.cli(Some(&host.approver), &words),
        0,
        &expect![[r#"
            susp_ID  approval  gated_echo (lab)
              prompt      about the arguments as submitted:
              | Echo hi?
              approved    {"value":"ho"}
              submitted   {"value":"hi"}
              changed     value: "hi" -> "ho"
              asked by    agent, call call_2
              turn        turn_ID of c
              digest      sha256:DIGEST
              ended       approve by alice via api at TIME
              | friendlier
            answered susp_ID: approve (the same answer was recorded before)
        "#]],
    );
    check(
        &host.cli(Some(&host.approver), &["deny", &suspension]),
        1,
        &expect![[r#"
        error: this approval is no longer open: it was approved
          because: alice ended it at TIME
        hint: `toolgate pending` lists the pending suspensions
    "#]],
    );
    check(
        &host.cli(Some(&host.approver), &["show", &suspension]),
        0,
        &expect![[r#"
            susp_ID  approval  gated_echo (lab)
              prompt      about the arguments as submitted:
              | Echo hi?
              approved    {"value":"ho"}
              submitted   {"value":"hi"}
              changed     value: "hi" -> "ho"
              asked by    agent, call call_2
              turn        turn_ID of c
              digest      sha256:DIGEST
              ended       approve by alice via api at TIME
              | friendlier
        "#]],
    );
    let words = ["show", turn["turn"].as_str().unwrap(), "--conversation", "c"];
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok", "ok"]);
    check(
        &host.cli(Some(&host.agent), &words),
        0,
        &expect![[r#"
            turn_ID  settled  in c
              call_1  text_stats  ok
                  {"text":"to be or not"}
               => {"ok":true,"result":{"words":4,"unique_words":4,"sentences":1,"lines":1,"characters":12,"words_per_sentence":4.0,"reading_minutes":0.02,"top_words":[{"word":"be","count":1},{"word":"not","count":1},{"word":"or","count":1},{"word":"to","count":1}]}}
                  SPENT, 128 KiB, 0 host calls, 23 B in, 227 B out
              call_2  gated_echo  ok, approved by alice
                  approved  {"value":"ho"}
                  submitted {"value":"hi"}
               => {"ok":true,"result":"ho"}
                  SPENT, 128 KiB, 0 host calls, 14 B in, 4 B out
        "#]],
    );
    let words = ["submit", "answer.json", "--conversation", "c", "--format", "openai"];
    check(
        &host.cli(Some(&host.agent), &words),
        0,
        &expect![[r#"
        [{"role":"tool","tool_call_id":"call_1","content":"{\"ok\":true,\"result\":{\"words\":4,\"unique_words\":4,\"sentences\":1,\"lines\":1,\"characters\":12,\"words_per_sentence\":4.0,\"reading_minutes\":0.02,\"top_words\":[{\"word\":\"be\",\"count\":1},{\"word\":\"not\",\"count\":1},{\"word\":\"or\",\"count\":1},{\"word\":\"to\",\"count\":1}]}}"},{"role":"tool","tool_call_id":"call_2","content":"{\"ok\":true,\"result\":\"ho\"}"}]
    "#]],
    );
    check(
        &host.cli(Some(&host.approver), &["pending"]),
        0,
        &expect![[r#"
        nothing waits
    "#]],
    );
    let said = host.cli(Some(&host.approver), &["pending", "--state", "closed", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["state"], "approve");
}

#[test]
fn denial_has_a_reason_and_the_audit_its_principal() {
    let host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let words = ["deny", &suspension_of(&turn), "--comment", "ask first"];
    check(
        &host.cli(Some(&host.approver), &words),
        0,
        &expect![[r#"
        answered susp_ID: deny
    "#]],
    );
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied"]);
    check(
        &host.cli(Some(&host.approver), &["audit"]),
        1,
        &expect![[r#"
        error: only a principal with the role admin may do this
        hint: use a token with the role admin; the host's operator makes one: `toolgate token create --name NAME --role admin`
    "#]],
    );
    let said = host.cli(None, &["audit", "--json"]);
    let entries: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let denied = entries.iter().find(|entry| entry["suspension"] == suspension_of(&turn)).unwrap();
    assert_eq!((&denied["by"], &denied["comment"]), (&json!("alice"), &json!("ask first")));
}

#[test]
fn questions_and_clients_are_answered() {
    let host = Setup::with(&["ask", "browser"]).settings("client_grace_ms = 600000").start();
    let turn = host.agent.call("c", "ask_user", json!({"question": "Tea?"}));
    check(
        &host.cli(Some(&host.approver), &["answer", &suspension_of(&turn), r#"{"answer":5}"#]),
        1,
        &expect![[r#"
        error: /data/answer: 5 is not of type "string"
    "#]],
    );
    check(
        &host.cli(Some(&host.approver), &["answer", &suspension_of(&turn), r#"{"answer":"yes"}"#]),
        0,
        &expect![[r#"
        answered susp_ID: answer
    "#]],
    );
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"]["data"]["answer"], "yes");
    let turn = host.agent.call("c", "ask_user", json!({"question": "Tea?"}));
    check(
        &host.cli(Some(&host.approver), &["answer", &suspension_of(&turn), "--decision", "decline"]),
        0,
        &expect![[r#"
        answered susp_ID: decline
    "#]],
    );

    let turn = host.agent.call("c", "get_location", json!({}));
    let words = ["answer", &suspension_of(&turn), "--error", "switched off"];
    check(
        &host.cli(Some(&host.page), &words),
        0,
        &expect![[r#"
        answered susp_ID: error
    "#]],
    );
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["failed(tool_failed)"]);
    let turn = host.agent.call("c", "pick_file", json!({"purpose": "x"}));
    check(
        &host.cli(Some(&host.approver), &["answer", &suspension_of(&turn), "1"]),
        2,
        &expect![[r#"
        error: susp_ID needs an approval, not an answer
        hint: toolgate approve susp_ID
        hint: toolgate deny susp_ID
    "#]],
    );
}

/// `submit --format` prints the results for the model only when the turn has ended.
#[test]
fn submit_says_what_it_waits_for() {
    let host = Setup::with(&["lab"]).start();
    file(&host, "answer.json", &completion(json!([function("call_1", "gated_echo", &json!({"value": "hi"}))])));
    let words = ["submit", "answer.json", "--conversation", "c", "--format", "openai"];
    let mut command = host.command(Some(&host.agent), &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut said, mut errors) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
    while !said.contains("waiting until") {
        assert_ne!(errors.read_line(&mut said).unwrap(), 0, "{said}");
    }
    expect![[r#"
        turn_ID  open  in c
          call_1  gated_echo  awaiting
              {"value":"hi"}

        Waiting:
        susp_ID  approval  gated_echo (lab)
          | Echo hi?
          arguments   {"value":"hi"}
          editable    "all"
          asked by    agent, call call_1
          turn        turn_ID of c
          digest      sha256:DIGEST
          expires     TIME, then error
          answered by a principal with the role approver: toolgate approve susp_ID
          answered by a principal with the role approver: toolgate deny susp_ID --comment 'why not'
        waiting until all calls have ended; 1 of them needs an answer, from another terminal: `toolgate pending` lists them. Ctrl-C ends the waiting and not the calls
    "#]]
    .assert_eq(&stable(&said));
    let pending = host.approver.get("/v1/pending").ok(200);
    let suspension = pending["suspensions"][0]["suspension"].as_str().unwrap();
    assert_eq!(host.approver.resolve(suspension, json!({"decision": "approve"})).ok(200)["ok"], true);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        results,
        json!([{"role": "tool", "tool_call_id": "call_1", "content": "{\"ok\":true,\"result\":\"hi\"}"}])
    );
}

#[test]
fn events_are_followed_across_a_kill_of_the_host() {
    let mut host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let mut command = host.command(Some(&host.agent), &["events", "c", "--config", "toolgate.toml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let until = |lines: &mut dyn Iterator<Item = String>, name: &str| {
        let mut seen = Vec::new();
        for line in lines {
            seen.push(line.split_whitespace().nth(1).unwrap().to_owned());
            if seen.last().unwrap() == name {
                break;
            }
        }
        seen
    };
    assert_eq!(until(&mut lines, "call.suspended"), ["turn.started", "call.requested", "call.suspended"]);
    host.kill();
    host.start_at_the_same_address();
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    let rest = until(&mut lines, "turn.settled");
    assert_eq!(rest, ["call.resolved", "call.started", "call.settled", "turn.settled"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(outcomes(&host.agent.get(&path(&turn)).ok(200)), ["ok"]);
}
