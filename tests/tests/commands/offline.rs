//! Commands that need no running host.

use expect_test::expect;
use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, plugin};
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};
use toolgate_tests::terminal::Session;

use crate::{check, file};

#[test]
fn check_says_what_to_change() {
    let host = Setup::default().prepare();
    let tools =
        json!([{"name": "pay", "executor": "human", "approval": "requires-approval", "options": {"tiemout_ms": 1}}]);
    std::fs::write(host.folder().join("pay.wasm"), fixture(&tools)).unwrap();
    std::fs::write(host.folder().join("lab.wasm"), plugin("lab")).unwrap();
    std::fs::write(host.folder().join("store.wasm"), plugin("ledger")).unwrap();
    check(
        &host.cli(None, &["check", "pay.wasm"]),
        1,
        &expect![[r#"
            refused pay.wasm: 2 findings
              [gated-human] tool pay: a human tool cannot be requires-approval: approving a question is circular
                  declare its approval `auto`, and let people decline with one of its `responses`
              [option-unknown] tool pay: there is no option "tiemout_ms"
                  remove it, or write `timeout_ms` if that is what you mean
              built against toolgate:plugin@0.1.2
        "#]],
    );
    check(
        &host.cli(None, &["check", "store.wasm"]),
        1,
        &expect![[r#"
            refused store.wasm: 1 finding
              [import-not-granted] the component imports `wasi:keyvalue/store@0.2.0-draft2`, `wasi:keyvalue/atomics@0.2.0-draft2` (needs the grant `keyvalue`)
                  grant it in toolgate.toml, under `[plugin.store]`: `component = "sha256:DIGEST"`, `grants.keyvalue = true`; or do without it
              built against toolgate:plugin@0.1.2
        "#]],
    );
    check(
        &host.cli(None, &["check", "store.wasm", "--grant", "keyvalue"]),
        0,
        &expect![[r#"
            fine store.wasm: ledger_open (server, auto), ledger_transfer (server, requires-approval), ledger_balance (server, auto), ledger_audit (server, auto)
              built against toolgate:plugin@0.1.2
              may use
                keyvalue: up to 16777216 bytes in 100000 keys
        "#]],
    );
}

#[test]
fn call_runs_one_call_in_process() {
    let host = Setup::with(&["lab", "textkit"]).prepare();
    let config = ["--config", "toolgate.toml"];
    let call = |words: &[&str]| host.cli(None, &[&["call"], words, &config].concat());
    check(
        &call(&["plugins/textkit.wasm", "text_stats", r#"{"text":"to be"}"#]),
        0,
        &expect![[r#"
        {"words":2,"unique_words":2,"sentences":1,"lines":1,"characters":5,"words_per_sentence":2.0,"reading_minutes":0.01,"top_words":[{"word":"be","count":1},{"word":"to","count":1}]}
    "#]],
    );
    check(
        &call(&["count", r#"{"to":2}"#]),
        0,
        &expect![[r#"
        2
         50 % counted to 1
        100 % counted to 2
    "#]],
    );
    check(
        &call(&["fail", r#"{"message":"no luck"}"#]),
        1,
        &expect![[r#"
        error: tool_failed: no luck
    "#]],
    );
    check(
        &call(&["gated_echo", r#"{"value":1}"#]),
        1,
        &expect![[r#"
        error: gated_echo requires approval
        hint: approve the call with --approve
    "#]],
    );
    check(
        &call(&["gated_echo", r#"{"value":1}"#, "--approve"]),
        0,
        &expect![[r#"
        1
    "#]],
    );
    check(
        &call(&["text_stats", r#"{"text":1}"#]),
        1,
        &expect![[r#"
        error: invalid_arguments: the arguments do not fit the tool's schema: at /text: 1 is not of type "string"
    "#]],
    );
    check(
        &call(&["stdout", r#"{"bytes":20}"#]),
        0,
        &expect![[r#"
        20
        info: xxxxxxxxxxxxxxxxxxxx
    "#]],
    );
}

#[test]
fn config_prints_the_effective_configuration() {
    let host = Setup::default().tables("[[policy]]\ntools = \"pay_*\"\nrule = \"ask\"").prepare();
    check(
        &host.cli(None, &["config", "--config", "toolgate.toml"]),
        0,
        &expect![[r#"
            listen   127.0.0.1:7420
            plugins  plugins
            data     data
            plugin   ledger, granted to any component of this name
                       keyvalue: up to 16777216 bytes in 100000 keys
            policy   policy[0]: ask pay_*
        "#]],
    );
    file(&host, "wrong.toml", "[limits]\ntime = 5\n");
    check(
        &host.cli(None, &["config", "--config", "wrong.toml"]),
        2,
        &expect![[r#"
            error: wrong.toml:2:1: there is no key `time` here; the keys are `time_ms`, `replay_ms`, `linger_ms`, `stop_grace_ms`, `memory_bytes`, `table_elements`, `instances`, `hostcall_bytes`, `handles`, `arguments_bytes`, `result_bytes`, `progress_updates`, `progress_bytes`, `log_bytes`, `concurrency`, `queue`, `host_bytes`, `host_calls`, `host_call_ms`, `files_written_bytes`, `keyvalue_written_bytes`, `keyvalue_bytes_per_second`, `http_requests`, `http_concurrent`, `http_ms`, `http_sent_bytes`, `http_received_bytes`
            hint: did you mean `time_ms`?
            hint: `toolgate config --schema` prints every key of the file
        "#]],
    );
}

#[test]
fn tokens_are_listed_without_being_shown() {
    let host = Setup::default().prepare();
    let said = host.cli(None, &["token", "list", "--config", "toolgate.toml"]);
    assert!(!said.out.contains(host.admin.token()));
    check(
        &said,
        0,
        &expect![[r#"
        root  admin  since TIME
        admin  admin  since TIME
        agent  caller  since TIME
        alice  approver  since TIME
        page  client  since TIME
    "#]],
    );
    check(
        &host.cli(None, &["token", "create", "--name", "agent", "--role", "caller"]),
        1,
        &expect![[r#"
        error: another token has the name agent; revoke it first, or choose another name
    "#]],
    );
}

#[test]
fn export_needs_a_stopped_host() {
    let mut host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": "exported"}));
    let export = ["store", "export", "--config", "toolgate.toml"];
    assert_ne!(host.cli(None, &export).code, 0);
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    host.kill();
    let said = host.cli(None, &export);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("exported"));
    assert!(said.out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn a_second_host_on_the_same_data_is_refused() {
    let host = Setup::default().start();
    let said = host.cli(None, &["serve", "--listen", "127.0.0.1:0", "--config", "toolgate.toml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("another host runs on the data folder"), "{}", said.err);
}

#[test]
fn call_answers_the_questions_of_a_durable_tool() {
    let host = Setup::with(&["rollout"]).prepare();
    let call = |answers: &[&str]| {
        let words = ["call", "plugins/rollout.wasm", "roll_out", r#"{"version":"1.4.2","settles_s":1}"#];
        let answers = answers.iter().flat_map(|answer| ["--answer", answer]);
        host.cli(None, &words.into_iter().chain(answers).collect::<Vec<_>>())
    };
    let place = r#"{"environment":"live"}"#;
    let said = call(&[place, r#"{"version":"1.4.2","environment":"live","instances":2}"#, "healthy"]);
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&result["state"], &result["plan"]["instances"]), (&json!("done"), &json!(2)), "{said:?}");
    assert!(said.err.contains("  | To which environment does 1.4.2 go?"), "{said:?}");

    let report = ["call", "plugins/rollout.wasm", "roll_out", r#"{"version":"1.4.2","settles_s":1,"signal":"health"}"#];
    let answers = ["--answer", place, "--answer", "approve", "--answer", r#"{"healthy":true}"#];
    let said = host.cli(None, &[&report[..], &answers].concat());
    assert!(said.code == 0 && said.out.contains(r#""state":"done""#), "{said:?}");

    let said = call(&[place, "deny not on a Friday"]);
    assert_eq!(said.out.trim(), r#"{"state":"rejected","comment":"not on a Friday"}"#, "{said:?}");
    let said = call(&[place, "deny", "healthy"]);
    assert!(said.code == 0 && said.err.contains("warning: the call asked for 2 of 3 answers\n"), "{said:?}");
    for (answers, message) in [
        (&[][..], "because: it asks: To which environment does 1.4.2 go?"),
        (&["{}"], "because: "),
        (&[place, "perhaps"], "or with the changed value, not with \"perhaps\""),
        (&[place, "approve", "unwell"], "\"unwell\" is not allowed here; choose one of: healthy, broken"),
    ] {
        let said = call(answers);
        assert!(said.code != 0 && said.err.contains(message), "{message}: {said:?}");
    }
}

#[test]
fn call_asks_the_user_of_a_terminal() {
    let host = Setup::with(&["rollout"]).prepare();
    let words = ["call", "plugins/rollout.wasm", "roll_out", r#"{"version":"1.4.2","settles_s":1}"#];
    let mut terminal = Session::start(&host.command(None, &words));
    terminal.type_in("{\"environment\":\"live\"}\napprove\nhealthy\n");
    let (code, shown) = terminal.end();
    assert_eq!((code, shown.matches("answer>").count()), (0, 3), "{shown}");
    assert!(shown.contains(r#"{"state":"done""#), "{shown}");
}
