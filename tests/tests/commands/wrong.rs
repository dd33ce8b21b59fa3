//! Wrong arguments are refused with the mistake, the expected argument and the remedy.

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal, plugin};
use toolgate_tests::host::Setup;
use toolgate_tests::http::suspension_of;

use crate::{completion, file, function};

/// The remedy.
const BUILD: &str = " and not a WebAssembly component; run `toolgate build` to make one from the plugin's folder";

#[test]
fn every_command_recognises_a_file_that_is_no_component() {
    let host = Setup::default().prepare();
    let rows: [(&[u8], &str, &str); 5] = [
        (b"hello\n", "this is a text", BUILD),
        (b"", "this is an empty file", BUILD),
        (b"\x7fELF\x02\x01\x01", "this is a program or library for Linux", BUILD),
        (b"(component)", "this is the text of a WebAssembly component", BUILD),
        (b"\0asm\x01\0\0\0", "a core module and not a component: ", "build it with `toolgate build`"),
    ];
    let commands: [(&[&str], &[&str]); 4] =
        [(&["check"], &[]), (&["conform"], &[]), (&["call"], &["tool", "{}"]), (&["pack"], &["--out", "out.wasm"])];
    for (bytes, is, expected) in rows {
        fs::write(host.folder().join("wrong.wasm"), bytes).unwrap();
        for (before, behind) in commands {
            let said = host.cli(None, &[before, &["wrong.wasm"], behind].concat());
            let text = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 1, "{before:?} {is}: {said:?}");
            assert!(text.contains(&format!("{is}{expected}")), "{before:?}: {said:?}");
            assert!(text.contains("build/NAME.wasm") || is.starts_with("a core"), "{before:?} {is}: {said:?}");
        }
    }
    fs::create_dir(host.folder().join("folder.wasm")).unwrap();
    for (before, behind) in commands {
        let said = host.cli(None, &[before, &["folder.wasm"], behind].concat());
        assert_eq!(said.code, 2, "{before:?}: {said:?}");
        assert!(said.err.contains("error: folder.wasm is a folder and not a component"), "{before:?}: {said:?}");
        assert!(said.err.contains("hint: `toolgate build` makes a component from a plugin's folder"), "{said:?}");
    }
    assert!(!host.folder().join("out.wasm").exists());
    // Its interface and imports are unknown.
    fs::write(host.folder().join("wrong.wasm"), "hello").unwrap();
    let said = host.cli(None, &["conform", "wrong.wasm"]);
    assert!(!said.out.contains("  pass  "), "{said:?}");
}

#[test]
fn check_reports_bad_names_and_goes_on() {
    let host = Setup::default().prepare();
    let write = |name: &str, bytes: &[u8]| fs::write(host.folder().join(name), bytes).unwrap();
    write("a b.wasm", &fixture(&json!([{"name": "one"}])));
    write("c d.wasm", b"hello");
    write("fine.wasm", &fixture(&json!([{"name": "two"}])));
    let said = host.cli(None, &["check", "--json", "a b.wasm", "none.wasm", "c d.wasm", "fine.wasm"]);
    assert_eq!(said.code, 2, "a file could not be read: {said:?}");
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rules = |n: usize| -> Vec<&str> {
        lines[n]["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
    };
    assert_eq!(lines.len(), 4, "{said:?}");
    assert_eq!((rules(0), &lines[0]["tools"]), (vec!["plugin-name"], &json!(["one"])), "{said:?}");
    assert_eq!(lines[0]["findings"][0]["remedy"], "rename the file, for example to a-b.wasm");
    assert!(lines[1]["error"].as_str().unwrap().contains("cannot read none.wasm"), "{said:?}");
    assert_eq!(rules(2), ["plugin-name", "invalid-component"], "{said:?}");
    assert_eq!((&lines[3]["ok"], &lines[3]["tools"]), (&json!(true), &json!(["two"])), "{said:?}");
    assert_eq!(said.err, "", "the errors are in the JSON");
    assert_eq!(host.cli(None, &["check", "a b.wasm"]).code, 1);
    // No host has a plugin of a bad name, so it takes no name of a tool.
    write("ask.wasm", &fixture(&json!([{"name": "one"}])));
    let said = host.cli(None, &["check", "a b.wasm", "ask.wasm"]);
    assert!(said.out.contains("\nfine ask.wasm: one"), "{said:?}");
}

#[test]
fn submission_to_a_foreign_conversation_suggests_another_name() {
    let host = Setup::with(&["textkit"]).start();
    file(&host, "answer.json", &completion(json!([function("call_1", "text_stats", &json!({"text": "a"}))])));
    assert_eq!(host.cli(Some(&host.agent), &["submit", "answer.json"]).code, 0);
    file(&host, "notes.json", "{'a': 1}");
    let said = host.cli(Some(&host.agent), &["submit", "notes.json"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("error: notes.json is not JSON\n  because: a key must be in double quotes"), "{said:?}");
    file(&host, "twice.json", r#"{"calls":[],"calls":[]}"#);
    let said = host.cli(Some(&host.agent), &["submit", "twice.json"]);
    assert_eq!((said.code, said.err.contains("error: twice.json has a duplicate key\n")), (2, true), "{said:?}");
    file(&host, "one.json", r#"{"calls":[{"id":"a","tool":"text_stats","arguments":{"text":"","text":""}}]}"#);
    let said = host.cli(Some(&host.agent), &["submit", "one.json", "--conversation", "twice"]);
    assert_eq!((said.code, said.out.contains("can be read in two ways")), (0, true), "{said:?}");
    let other = host.token("other", &["caller"], None);
    let said = host.cli(Some(&other), &["submit", "answer.json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("hint: a conversation belongs to its first submitter"), "{said:?}");
    assert!(said.err.contains("--conversation"), "{said:?}");
    let said = host.cli(Some(&other), &["turns", "nope"]);
    assert_eq!(said.err.matches("hint: ").count(), 1, "{said:?}");
    assert!(said.err.contains("hint: `toolgate conversations` lists those that you may see"), "{said:?}");
    assert_eq!(host.cli(Some(&other), &["submit", "answer.json", "--conversation", "others"]).code, 0);
}

#[test]
fn body_that_is_too_large_is_refused_with_its_limit() {
    let host = Setup::with(&["lab"]).tables("[server]\nanswer_bytes = 100\n").start();
    file(&host, "large.json", &json!({"calls": [], "context": {"text": "x".repeat(5 << 20)}}).to_string());
    let said = host.cli(Some(&host.agent), &["submit", "large.json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("error: the body is larger than 4194304 bytes (limit `server.turn_bytes`)"), "{said:?}");
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let said = host.cli(Some(&host.approver), &["deny", &suspension_of(&turn), "--comment", &"x".repeat(100)]);
    let expected = "error: the body is larger than 100 bytes (limit `server.answer_bytes`)";
    assert!(said.code == 1 && said.err.contains(expected), "{said:?}");
}

#[test]
fn mistakes_of_a_request_are_each_reported_once() {
    let host = Setup::default().start();
    file(
        &host,
        "calls.json",
        r#"{"calls": [{"id": "a b", "tool": "t", "arguments": {}}, {"id": "", "tool": "t", "arguments": {}}]}"#,
    );
    let said = host.cli(Some(&host.agent), &["submit", "calls.json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let lines: std::collections::BTreeSet<&str> = said.err.lines().collect();
    assert_eq!(lines.len(), said.err.lines().count(), "{said:?}");
    assert_eq!(said.err.matches("/calls/0/id").count(), 1, "{said:?}");
}

#[test]
fn second_file_of_a_command_may_be_missing_too() {
    let host = Setup::default().prepare();
    fs::write(host.folder().join("bank.wasm"), fixture(&json!([{"name": "pay"}]))).unwrap();
    let commands: [&[&str]; 2] = [
        &["conform", "bank.wasm", "--examples", "none.json"],
        &["audit", "verify", "--checkpoint", "none.json", "--config", "toolgate.toml"],
    ];
    for words in commands {
        let said = host.cli(None, words);
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
        assert!(said.err.contains("cannot read none.json"), "{words:?}: {said:?}");
    }
}

#[test]
fn a_folder_is_no_file_for_any_command() {
    let host = Setup::default().prepare();
    fs::create_dir(host.folder().join("folder.wasm")).unwrap();
    fs::create_dir(host.folder().join("folder.toml")).unwrap();
    let commands: [&[&str]; 5] = [
        &["submit", "folder.wasm", "--url", "http://127.0.0.1:1"],
        &["grants", "folder.wasm"],
        &["config", "--config", "folder.toml"],
        &["serve", "--config", "folder.toml"],
        &["policy", "test", "--config", "folder.toml"],
    ];
    for words in commands {
        let said = host.cli(None, words);
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
        assert!(said.err.contains("folder"), "{words:?}: {said:?}");
        assert!(said.err.contains("is a folder"), "{words:?}: {said:?}");
    }
}

#[test]
fn a_folder_is_no_plugin_and_no_backup() {
    let host = Setup::with(&["lab"]).prepare();
    fs::create_dir(host.folder().join("source")).unwrap();
    let build = "hint: `toolgate build` makes a component from a plugin's folder; name that file, build/NAME.wasm";
    for (words, expected, hint) in [
        (&["call", "source", "{}"][..], "source is a folder and not a component", build),
        (&["call", "source", "{}", "--plugins", "absent"], "source is a folder and not a component", build),
        (&["grants", "source"], "source is a folder and not a component", build),
        (&["grants", "./source/"], "./source/ is a folder and not a component", build),
        (
            &["check", "plugins"],
            "plugins is a folder and not a component",
            "name its components, such as plugins/*.wasm",
        ),
        (&["restore", "source", "new"], "source is a folder and not a backup", "`toolgate backup` wrote"),
        (
            &["build", "source"],
            "source is not a plugin in a language that toolgate builds",
            "one of the files Cargo.toml",
        ),
        (&["build", "absent"], "there is no folder absent", "`toolgate new`"),
    ] {
        let said = host.cli(None, words);
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
        assert!(said.err.starts_with(&format!("error: {expected}\n")), "{words:?}: {said:?}");
        assert!(said.err.contains(hint) && said.err.lines().count() == 2, "{words:?}: {said:?}");
    }
    // A tool goes before a folder of its name.
    fs::create_dir(host.folder().join("echo")).unwrap();
    let said = host.cli(None, &["call", "echo", "{\"value\":1}"]);
    assert_eq!((said.code, said.out.as_str()), (0, "1\n"), "{said:?}");
}

#[test]
fn a_file_is_no_folder_for_any_command() {
    let host = Setup::default().prepare();
    fs::write(host.folder().join("bank.wasm"), fixture(&json!([{"name": "pay"}]))).unwrap();
    fs::write(host.folder().join("in.toml"), "plugins = \"bank.wasm\"\n").unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let commands: [&[&str]; 24] = [
        &["serve", "--plugins", "bank.wasm"],
        &["serve", "--data", "bank.wasm"],
        &["serve", "--config", "in.toml"],
        &["call", "pay", "{}", "--plugins", "bank.wasm"],
        &["call", "pay", "{}", "--config", "in.toml"],
        &["grants", "bank", "--plugins", "bank.wasm"],
        &["policy", "explain", "pay", "{}", "--plugins", "bank.wasm"],
        &["status", "--data", "bank.wasm"],
        &["pending", "--data", "bank.wasm"],
        &["token", "list", "--data", "bank.wasm"],
        &["token", "create", "--name", "a", "--role", "caller", "--data", "bank.wasm"],
        &["token", "revoke", "a", "--data", "bank.wasm"],
        &["audit", "verify", "--data", "bank.wasm"],
        &["store", "export", "--data", "bank.wasm"],
        &["restore", "in.toml", "bank.wasm"],
        &["build", "bank.wasm"],
        &["build", ".", "--cache", "bank.wasm"],
        &["verify-build", "bank.wasm", &digest],
        &["dev", "bank.wasm"],
        &["man", "bank.wasm"],
        &["mcp", "--data", "data", "--plugins", "bank.wasm"],
        &["mcp", "install", "cursor", "--data", "bank.wasm"],
        &["mcp", "install", "cursor", "--plugins", "bank.wasm"],
        &["store", "salvage", "bank.wasm", "new"],
    ];
    for words in commands {
        let said = host.cli(None, words);
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
        assert!(said.err.starts_with("error: bank.wasm is a file, and not a folder\n"), "{words:?}: {said:?}");
    }
}

#[test]
fn options_of_the_host_may_be_in_front_of_the_command() {
    let host = Setup::default().prepare();
    let said = host.cli(None, &["--url", "http://127.0.0.1:1", "--token=x", "status"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.starts_with("error: cannot reach a host at http://127.0.0.1:1"), "{said:?}");
    let said = host.cli(None, &["--url", "http://127.0.0.1:1", "build"]);
    assert_eq!((said.code, said.err.contains("unexpected argument '--url'")), (2, true), "{said:?}");
}

#[test]
fn call_without_a_grant_names_the_option() {
    let host = Setup::default().component("store", plugin("ledger")).prepare();
    let said = host.cli(None, &["call", "plugins/store.wasm", "ledger_audit", "{}"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("hint: to grant what it lacks for this call only, add --grant keyvalue\n"), "{said:?}");
    assert_eq!(said.err.matches("grant it in toolgate.toml").count(), 1, "one remedy for two imports: {said:?}");
    let said = host.cli(None, &["call", "ledger_audit", "{}"]);
    let expected = "hint: the plugin store was refused because it lacks grants; to grant them for this call only, name its file \
                    store.wasm before the tool and add --grant keyvalue\n";
    assert!(said.err.contains(expected), "{said:?}");
    let said = host.cli(None, &["call", "ledger_audit", "{}", "--grant", "keyvalue"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("error: --grant is for a component's file"), "{said:?}");
    let said = host.cli(None, &["call", "plugins/store.wasm", "ledger_audit", "{}", "--grant", "keyvalue"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn call_with_an_import_beyond_all_grants_names_no_option() {
    let host = Setup::default().component("intruder", illegal("intruder")).prepare();
    for words in [["call", "plugins/intruder.wasm", "{}"], ["call", "open_door", "{}"]] {
        let said = host.cli(None, &words);
        assert!(said.code != 0 && said.err.contains("refused") && !said.err.contains("--grant"), "{said:?}");
    }
}

#[test]
fn refused_request_has_the_code_of_its_problem_in_json() {
    let host = Setup::default().start();
    let said = host.cli(Some(&host.agent), &["audit", "--json"]);
    let refused: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &refused["ok"], &refused["code"]), (1, &json!(false), &json!("not-allowed")), "{said:?}");
    assert!(refused["hints"][0].as_str().unwrap().contains("toolgate token create"), "{refused}");
    assert_eq!(said.err, "");
    let unknown = "susp_01935a7c000070008000000000000001";
    let said = host.cli(Some(&host.approver), &["approve", unknown, unknown, "--json"]);
    assert_eq!((said.code, said.out.lines().count(), said.err.as_str()), (1, 2, ""), "{said:?}");
    for line in said.out.lines() {
        let refused: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&refused["suspension"], &refused["ok"]), (&json!(unknown), &json!(false)), "{refused}");
    }
}
