//! Servers that misbehave. Each ends its own calls, and the host goes on.

use serde_json::json;
use toolgate_tests::host::Setup;

use super::{accept, called, cli, error, prepared, started};

/// The server is started again, and answers.
fn answers_again(host: &toolgate_tests::host::Host) {
    for _ in 0..10_000 {
        let result = called(host, "fake__echo", json!({}));
        if result["ok"] == true {
            return;
        }
        assert!(result.to_string().contains("after a pause"), "{result}");
    }
    panic!("it is not started again");
}

#[test]
fn server_that_breaks_the_protocol_is_started_again() {
    for (tool, why) in [
        ("fake__die", "has ended while this call ran"),
        ("fake__endless", "sent a message of more than"),
        ("fake__garbage", "sent a malformed message"),
        ("fake__flood", "sent more than 10000 messages that nobody asked for within a minute"),
        ("fake__bulk", "bytes that nobody asked for within a minute"),
        ("fake__deep", "sent a malformed message"),
    ] {
        let host = started("");
        let (code, message) = error(&host, tool);
        assert_eq!(code, "tool_failed", "{tool}: {message}");
        assert!(message.contains(why) && message.contains("may or may not have taken effect"), "{tool}: {message}");
        answers_again(&host);
        assert_eq!(super::note(&host, "started").lines().count(), 4, "{tool}: two reviews, the start, and once more");
    }
}

#[test]
fn server_that_never_answers_ends_only_its_call() {
    let host = started("timeout_ms = 1500\n");
    let (code, message) = error(&host, "fake__hang");
    assert_eq!(code, "out_of_time", "{message}");
    assert!(message.contains("may or may not have taken effect"), "{message}");
    assert!(called(&host, "fake__echo", json!({}))["ok"] == false, "it answers no ping, so it is stopped");
}

#[test]
fn broken_rule_ends_the_other_calls_at_once() {
    let host = started("");
    let turn = super::submit(&host, "forget");
    while !super::note(&host, "called").contains("forget") {
        std::thread::yield_now();
    }
    std::fs::write(host.folder().join("fake/broken"), "").unwrap();
    assert_eq!(called(&host, "fake__tell", json!({}))["result"], "sent");
    let (code, message) = error(&host, "fake__params");
    assert!(code == "tool_unavailable" && message.contains("declares two tools with the name"), "{message}");
    let settled = host.agent.settled(&turn);
    let ended = settled["calls"][0]["content"]["error"].to_string();
    assert!(ended.contains("declares two tools") && ended.contains("may or may not have taken effect"), "{ended}");
}

#[test]
fn result_beyond_the_limit_is_refused() {
    let host = started("");
    let (code, message) = error(&host, "fake__large");
    assert_eq!(code, "limit_exceeded", "{message}");
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
}

#[test]
fn sampling_is_refused() {
    let host = started("");
    let result = called(&host, "fake__sample", json!({}));
    assert!(result["result"].as_str().unwrap().contains("-32601"), "{result}");
}

#[test]
fn flood_of_log_lines_is_limited_and_escaped() {
    let host = started("");
    assert_eq!(called(&host, "fake__noise", json!({}))["result"], "done");
    let log = std::fs::read_to_string(host.folder().join("host.log")).unwrap();
    let lines = log.lines().filter(|line| line.contains("]2Kline") || line.contains("2Kline")).count();
    assert!(lines > 0 && lines < 2_000, "{lines} of 20000 lines were logged");
    assert!(!log.contains("\u{1b}[2K"), "escapes are shown and not sent to a terminal");
}

#[test]
fn server_that_does_not_start_is_reported() {
    for (mode, why) in [
        ("exits", "has ended"),
        ("endless", "sent a message of more than"),
        ("garbage", "sent a malformed message"),
        ("future", "speaks the revision"),
        ("many", "declares more than"),
    ] {
        let mut host = prepared(Setup::default(), mode, "");
        let said = cli(&host, &["upstream", "review", "fake"]);
        assert!(said.code == 1 && said.err.contains(why), "{mode}: {said:?}");
        host.start();
        host.admin.until("/v1/plugins", |answer| answer.json().to_string().contains(why).then_some(()));
    }
}

#[test]
fn calls_beyond_the_concurrency_wait_in_a_bounded_queue() {
    for (settings, limits, why) in [
        ("", "[limits]\nqueue = 0", "and 0 more wait (`queue`)"),
        ("queue_ms = 1", "", "none of them ended within 1 ms (`queue_ms`)"),
    ] {
        let keys = format!("approval = \"auto\"\ntimeout_ms = 5000\nconcurrency = 1\n{limits}");
        let mut host = prepared(Setup::default().settings(settings), "", &keys);
        accept(&host);
        host.start();
        let call = |id: &str| json!({"id": id, "tool": "fake__hang", "arguments": {}});
        let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call("1"), call("2")]})).ok(201);
        let settled = host.agent.settled(&turn);
        let error = |n: usize, key: &str| settled["calls"][n]["content"]["error"][key].as_str().unwrap().to_owned();
        let mut ends = [0, 1].map(|n| (error(n, "code"), error(n, "message")));
        ends.sort();
        let [(busy, message), (late, _)] = ends;
        assert_eq!((busy.as_str(), late.as_str()), ("busy", "out_of_time"), "{settled:#}");
        assert!(message.contains("already runs 1 calls (`concurrency`)") && message.contains(why), "{message}");
    }
}
