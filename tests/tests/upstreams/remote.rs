//! Servers at a URL: the same acceptance, gates and outcomes as for a program.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::suspension_of;
use toolgate_tests::remote::Remote;

use super::{accept, called, cli, error, review, submit};

const TOKEN: &str = "sesame-4242-open";

/// A host that is not started yet, whose server `fake` is this one.
pub(super) fn prepared(server: &Remote, keys: &str) -> Host {
    let table = format!("[upstream.fake]\nurl = \"{}\"\ntoken_file = \"token\"\n{keys}", server.url());
    let host = Setup::default().tables(&table).prepare();
    std::fs::write(host.folder().join("token"), format!("{TOKEN}\n")).unwrap();
    host
}

/// A running host whose operator has accepted the tools of the server, and allows calls without approvals.
pub(super) fn started(server: &Remote, keys: &str) -> Host {
    let mut host = prepared(server, &format!("approval = \"auto\"\n{keys}"));
    accept(&host);
    host.start();
    host
}

fn log(host: &Host) -> String {
    std::fs::read_to_string(host.folder().join("host.log")).unwrap()
}

#[test]
fn gated_call_of_a_url_says_where_it_runs() {
    let server = Remote::start();
    let mut host = prepared(&server, "");
    let origin = server.url().trim_end_matches("/mcp").to_owned();
    let said = cli(&host, &["upstream", "review", "fake"]).out;
    assert!(said.starts_with(&format!("The MCP server fake runs outside the sandbox, at {origin}. 0 of")), "{said}");
    assert!(said.contains(&format!("  url\n  + {}\n", server.url())) && said.contains("the file token"), "{said}");
    accept(&host);
    let said = cli(&host, &["upstream", "list"]).out;
    assert!(
        said.starts_with(&format!("fake  MCP server at {origin}, outside the sandbox, 18 accepted tools")),
        "{said}"
    );
    host.start();
    let asked = host.agent.call("c", "fake__echo", json!({"text": "hello"}));
    let waiting = host.approver.get("/v1/pending").ok(200)["suspensions"][0].clone();
    assert_eq!((&waiting["plugin"], &waiting["sandboxed"]), (&json!("mcp:fake"), &json!(false)));
    assert_eq!(waiting["prompt"], format!("echo (MCP server fake at {origin}, outside the sandbox)?"));
    assert_eq!(server.count("tools/call"), 0);
    let _ = host.approver.resolve(&suspension_of(&asked), json!({"decision": "approve"})).ok(200);
    let turn = host.agent.settled(&asked);
    assert_eq!(turn["calls"][0]["content"]["result"], r#"echo {"text":"hello"}"#, "{turn}");
    assert!(log(&host).contains(&format!("outside the sandbox, elsewhere upstream=mcp:fake origin={origin}")));
    let plugins = host.admin.get("/v1/plugins").ok(200);
    let shown =
        plugins["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "mcp:fake").unwrap().clone();
    assert_eq!((&shown["origin"], &shown["sandboxed"]), (&json!(origin), &json!(false)));
}

#[test]
fn token_and_session_are_sent_and_never_shown() {
    let server = Remote::start();
    let host = started(&server, "");
    let result = called(&host, "fake__headers", json!({})).to_string();
    assert!(result.contains("authorization") && !result.contains("sesame"), "{result}");
    let request = server.requests().pop().unwrap();
    let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
    assert_eq!(header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(header("mcp-protocol-version"), "2025-11-25");
    assert!(header("mcp-session-id").starts_with("session-"));
    assert_eq!(header("accept"), "application/json, text/event-stream");
    let methods: Vec<_> = server.requests().iter().rev().take(4).map(|it| it.of()).collect();
    assert_eq!(methods, ["tools/call", "tools/list", "notifications/initialized", "initialize"]);
    let seen = [host.admin.get("/v1/audit").json().to_string(), log(&host)];
    assert!(seen.iter().all(|seen| !seen.contains("sesame")));
    assert!(!std::fs::read_to_string(host.folder().join("toolgate.upstreams.json")).unwrap().contains("sesame"));
}

#[test]
fn earlier_revision_is_spoken_and_a_later_one_refused() {
    let server = Remote::start();
    server.become_("old");
    let host = started(&server, "");
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
    assert_eq!(server.requests().pop().unwrap().headers["mcp-protocol-version"], "2025-06-18");
    server.become_("future");
    let said = cli(&host, &["upstream", "review", "fake"]);
    assert!(said.code == 1 && said.err.contains("speaks the revision \"2099-01-01\""), "{said:?}");
}

#[test]
fn answers_arrive_as_json_and_as_events() {
    let server = Remote::start();
    let host = started(&server, "");
    for (tool, result) in
        [("fake__echo", "echo {}"), ("fake__events", "late"), ("fake__sample", "asked"), ("fake__resumed", "continued")]
    {
        assert_eq!(called(&host, tool, json!({}))["result"], result, "{tool}");
    }
    let requests = server.requests();
    assert!(
        requests.iter().any(|request| request.body.contains(r#""id":"s","error":{"code":-32601"#)),
        "{requests:#?}"
    );
    let resumed = requests.iter().find(|request| request.method == "GET").unwrap();
    assert!(resumed.headers["last-event-id"].starts_with("of-") && resumed.headers.contains_key("mcp-session-id"));
}

#[test]
fn changed_tool_of_a_url_is_not_called_after_approval() {
    let server = Remote::start();
    let mut host = prepared(&server, "");
    accept(&host);
    host.start();
    let changes = host.agent.call("a", "fake__changes", json!({}));
    let asked = host.agent.call("b", "fake__echo", json!({}));
    let _ = host.approver.resolve(&suspension_of(&changes), json!({"decision": "approve"})).ok(200);
    assert_eq!(host.agent.settled(&changes)["calls"][0]["content"]["result"], "sent");
    server.become_("changed");
    let _ = host.approver.resolve(&suspension_of(&asked), json!({"decision": "approve"})).ok(200);
    let turn = host.agent.settled(&asked);
    assert_eq!(turn["calls"][0]["content"]["error"]["code"], "tool_unavailable", "{turn}");
    assert_eq!(server.count("tools/call"), 1);
    assert_eq!(review(&host)["changes"]["echo"]["change"], "changed");
}

#[test]
fn ended_session_is_begun_again_once() {
    let server = Remote::start();
    let host = started(&server, "");
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
    let before = server.count("initialize");
    server.forget();
    assert_eq!(called(&host, "fake__echo", json!({"text": "again"}))["result"], r#"echo {"text":"again"}"#);
    assert_eq!(server.count("initialize"), before + 1);
    server.become_("forgetful");
    let calls = server.count("tools/call");
    let (code, message) = error(&host, "fake__echo");
    assert!(
        code == "tool_unavailable" && message.contains("ends each new session; nothing was carried out"),
        "{message}"
    );
    assert_eq!(
        (server.count("initialize"), server.count("tools/call")),
        (before + 2, calls + 2),
        "one new session is tried"
    );
}

#[test]
fn session_that_ended_before_a_list_is_begun_again() {
    let server = Remote::start();
    let host = started(&server, "");
    assert_eq!(called(&host, "fake__changes", json!({}))["result"], "sent");
    let before = (server.count("initialize"), server.count("tools/list"));
    server.forget();
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
    assert_eq!(server.count("initialize"), before.0 + 1);
    assert_eq!(server.count("tools/list"), before.1 + 2, "the first finds that the session has ended");
}

#[test]
fn refused_list_ends_no_session() {
    let server = Remote::start();
    let host = started(&server, "");
    assert_eq!(called(&host, "fake__changes", json!({}))["result"], "sent");
    let (before, listed) = (server.count("initialize"), server.count("tools/list"));
    server.become_("405");
    let (code, message) = error(&host, "fake__echo");
    assert!(code == "tool_unavailable" && message.contains("HTTP 405"), "{message}");
    server.become_("");
    assert_eq!(called(&host, "fake__echo", json!({"text": "again"}))["ok"], true);
    assert_eq!(server.count("initialize"), before, "the same session goes on");
    assert_eq!(server.count("tools/list"), listed + 2, "the change is not forgotten");
}

#[test]
fn server_of_a_cancelled_call_is_notified() {
    let server = Remote::start();
    let host = started(&server, "timeout_ms = 500\n");
    let (code, message) = error(&host, "fake__hang");
    assert!(code == "out_of_time" && message.contains("may or may not have taken effect"), "{message}");
    server.wait_for("notifications/cancelled");
    let requests = server.requests();
    let call: Value =
        requests.iter().find(|it| it.of() == "tools/call").map(|it| serde_json::from_str(&it.body).unwrap()).unwrap();
    let notice = requests.iter().find(|it| it.of() == "notifications/cancelled").unwrap();
    let notice: Value = serde_json::from_str(&notice.body).unwrap();
    assert_eq!(notice["params"]["requestId"], call["id"]);
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true, "the connection goes on");
}

#[test]
fn killed_host_leaves_a_call_of_a_url_in_doubt() {
    let server = Remote::start();
    let mut host = started(&server, "idempotent = true\n");
    let turn = submit(&host, "hang");
    server.wait_for(r#""name":"hang""#);
    host.restart();
    let turn = host.agent.settled(&turn);
    assert_eq!(turn["calls"][0]["outcome"], "in_doubt", "{turn}");
    assert_eq!(server.count("tools/call"), 1);
}

#[test]
fn changed_url_needs_a_new_review() {
    let (server, other) = (Remote::start(), Remote::start());
    let mut host = started(&server, "");
    let file = host.folder().join("toolgate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace(&server.url(), &other.url())).unwrap();
    host.restart();
    let (code, message) = error(&host, "fake__echo");
    assert!(
        code == "tool_unavailable" && message.contains("has changed since the operator accepted it: url"),
        "{message}"
    );
    assert_eq!(other.count("tools/call"), 0);
}
