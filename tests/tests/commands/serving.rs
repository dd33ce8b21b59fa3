//! `serve`: its messages, its signals, and the token of the folder's owner.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};

#[cfg(unix)]
#[test]
fn hang_up_signal_is_ignored_and_logged() {
    let host = Setup::with(&["lab"]).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let sent = std::process::Command::new("kill").args(["-HUP", &host.process().to_string()]).status().unwrap();
    assert!(sent.success());
    let log = || std::fs::read_to_string(host.folder().join("host.log")).unwrap();
    // Each question to the host takes a moment, and fails if the signal ended it.
    let is_logged =
        (0..10_000).any(|_| host.agent.get("/v1/tools").status == 200 && log().contains("SIGHUP is ignored"));
    assert!(is_logged, "{}", log());
    let _ = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

#[cfg(unix)]
#[test]
fn host_prints_its_state_as_json_events() {
    let host = Setup::with(&["lab"]).component("broken", b"no component".to_vec()).prepare();
    let words = ["serve", "--listen", "127.0.0.1:0", "--json", "--config", "toolgate.toml"];
    let mut served = host.command(None, &words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(served.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let listening = next();
    assert_eq!((&listening["event"], &listening["is_first_start"]), (&json!("listening"), &json!(false)));
    assert_eq!(listening.get("is_exposed"), None, "{listening}");
    let url = listening["url"].as_str().unwrap().to_owned();
    let said = host.cli(None, &["tools", "--json", "--url", &url, "--config", "toolgate.toml"]);
    assert!(said.code == 0 && said.out.contains("\"echo\""), "{said:?}");
    let ready = std::iter::repeat_with(&mut next).find(|event| event["event"] != "loading").unwrap();
    assert_eq!((&ready["event"], &ready["refused"]), (&json!("ready"), &json!(["broken"])), "{ready}");
    assert!(ready["tools"].as_u64().unwrap() > 5 && ready["misnamed"] == json!([]), "{ready}");
    let sent = std::process::Command::new("kill").args(["-TERM", &served.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(next(), json!({"event": "stopped"}));
    assert!(served.wait().unwrap().success());
}

/// The harness makes tokens before the first start, one of them for an admin.
#[test]
fn tokens_before_the_first_start_leave_an_admin_token() {
    let host = Setup::default().start();
    let said =
        host.command(None, &["pending", "--config", "toolgate.toml"]).env_remove("TOOLGATE_TOKEN").output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let token = std::fs::read_to_string(host.data().join("admin-token")).unwrap();
    assert_ne!(token.trim(), host.admin.token());
}

#[cfg(target_os = "linux")]
#[test]
fn host_that_cannot_write_its_log_goes_on() {
    // Every write to this device fails as on a full disk.
    let full = ["bash", "-c", "exec \"$@\" 2>/dev/full", "bash"];
    let host = Setup::with(&["lab"]).around(&full).start();
    for arguments in [json!({"value": 1}), json!({"valeu": 1})] {
        let turn = host.agent.call("c", "echo", arguments.clone());
        let expected = if arguments.get("value").is_some() { "ok" } else { "failed(invalid_arguments)" };
        assert_eq!(outcomes(&turn), [expected]);
    }
}
