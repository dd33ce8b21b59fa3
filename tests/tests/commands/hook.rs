//! `hook`: a coding agent asks whether it may use a tool of its own.

use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};

/// How often a test looks for a suspension. Each look takes a moment.
const LOOKS: usize = 10_000;

/// Starts the hook for a use of the shell, whose id is the command.
fn start(host: &Host, command: &str, wait: &str) -> Child {
    let mut hook = host.command(None, &["hook", "claude-code", "--wait", wait, "--config", "toolgate.toml"]);
    let hook = hook.env_remove("TOOLGATE_TOKEN").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut hook = hook.spawn().unwrap();
    let asked = json!({
        "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/work", "tool_use_id": command,
        "tool_input": { "command": command },
    });
    hook.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    hook
}

/// The decision that it prints.
fn decision(hook: Child) -> Value {
    let output = hook.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut said: Value = serde_json::from_slice(&output.stdout).unwrap();
    said["hookSpecificOutput"].take()
}

/// The id of the only open suspension.
fn open(host: &Host) -> String {
    let look = || host.cli(None, &["pending", "--json", "--config", "toolgate.toml"]);
    let first = |out: &str| serde_json::from_str::<Value>(out.lines().next()?).ok();
    let found = (0..LOOKS).find_map(|_| first(&look().out)?["suspension"].as_str().map(str::to_owned));
    found.unwrap()
}

fn answer(host: &Host, words: &[&str]) {
    let id = open(host);
    let words: Vec<&str> = [words[0], &id].into_iter().chain(words[1..].iter().copied()).collect();
    let said = host.cli(Some(&host.approver), &[&words[..], &["--config", "toolgate.toml"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn person_decides_about_a_tool_of_an_agent() {
    let host = Setup::with(&["agent"]).start();
    let allowed = start(&host, "git push", "600");
    answer(&host, &["approve"]);
    let said = decision(allowed);
    assert_eq!((&said["permissionDecision"], &said["updatedInput"]), (&json!("allow"), &Value::Null), "{said}");

    let denied = start(&host, "rm -r /", "600");
    answer(&host, &["deny", "--comment", "not here"]);
    let said = decision(denied);
    assert_eq!(said["permissionDecision"], "deny");
    assert!(said["permissionDecisionReason"].as_str().unwrap().contains("not here"), "{said}");

    // Nobody answers in time: that denies nothing, and the same use joins the call.
    let said = decision(start(&host, "make", "0"));
    assert_eq!(said["permissionDecision"], "ask", "{said}");
    let edited = r#"{"tool":"Bash","input":{"command":"make -n"},"folder":"/work"}"#;
    answer(&host, &["approve", "--arguments", edited]);
    let said = decision(start(&host, "make", "600"));
    assert_eq!(
        (&said["permissionDecision"], &said["updatedInput"]),
        (&json!("allow"), &json!({ "command": "make -n" }))
    );
}

#[test]
fn other_plugin_with_a_tool_of_this_name_decides_nothing() {
    let tools = json!([{ "name": "agent_tool", "approval": "auto", "parameters": r#"{"type":"object"}"# }]);
    let host = Setup::default().component("impostor", fixture(&tools)).start();
    let said = decision(start(&host, "make", "600"));
    assert_eq!(said["permissionDecision"], "ask", "{said}");
    assert!(said["permissionDecisionReason"].as_str().unwrap().contains("not of the plugin agent"), "{said}");
}

#[test]
fn agent_asks_its_user_if_the_host_cannot_be_asked() {
    let host = Setup::with(&["agent"]).prepare();
    let said = decision(start(&host, "make", "600"));
    assert_eq!(said["permissionDecision"], "ask", "{said}");
    assert!(said["permissionDecisionReason"].as_str().unwrap().starts_with("toolgate: no host runs on "), "{said}");
}
