//! Calls of accepted tools.

use serde_json::json;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};

use super::{accept, called, error, prepared, started};

#[test]
fn gated_call_runs_after_its_approval() {
    let mut host = prepared(Setup::default(), "", "");
    accept(&host);
    host.start();
    let asked = host.agent.call("c", "fake__echo", json!({"text": "hello"}));
    let waiting = host.approver.get("/v1/pending").ok(200)["suspensions"][0].clone();
    assert_eq!((&waiting["plugin"], &waiting["sandboxed"]), (&json!("mcp:fake"), &json!(false)));
    assert_eq!(waiting["prompt"], "echo (MCP server fake, outside the sandbox)?");
    let card = host.cli(Some(&host.approver), &["pending"]).out;
    assert!(card.contains("fake__echo (mcp:fake, outside the sandbox)"), "{card}");
    assert_eq!(super::note(&host, "called"), "", "nothing runs before the approval");
    let _ = host.approver.resolve(&suspension_of(&asked), json!({"decision": "approve"})).ok(200);
    let turn = host.agent.settled(&asked);
    assert_eq!(turn["calls"][0]["content"]["result"], r#"echo {"text":"hello"}"#, "{turn}");
    assert_eq!(turn["calls"][0]["trusted"], json!(false), "{turn}");
}

#[test]
fn arguments_and_idempotency_key_arrive_verbatim() {
    let host = started("");
    let turn = host.agent.post_text(
        "/v1/conversations/c/turns?wait_ms=10000",
        r#"{"calls":[{"id":"k","tool":"fake__params","arguments":{"number":1.000000000000000000001,
"text":"\u00e9"}}]}"#,
    );
    let text = turn.json()["calls"][0]["content"]["result"].as_str().unwrap().to_owned();
    assert!(text.starts_with("{\"number\":1.000000000000000000001, \"text\":\"\\u00e9\"} {"), "{text}");
    assert!(text.contains("\"dev.toolgate/idempotencyKey\":\""), "{text}");
}

#[test]
fn arguments_that_break_the_schema_never_reach_the_server() {
    let host = started("");
    let result = called(&host, "fake__echo", json!({"number": "7"}));
    assert_eq!(result["error"]["code"], "invalid_arguments", "{result}");
    assert_eq!(super::note(&host, "called"), "");
}

#[test]
fn results_are_checked_and_errors_are_failures() {
    let host = started("");
    assert_eq!(called(&host, "fake__structured", json!({"text": "fits"}))["result"], json!({"n": 1}));
    let (code, message) = error(&host, "fake__structured");
    assert_eq!(code, "invalid_result", "{message}");
    assert_eq!(error(&host, "fake__error"), ("tool_failed".to_owned(), "no such \u{1b} thing".to_owned()));
}

#[test]
fn server_has_a_clean_environment_and_its_secrets_are_redacted() {
    let mut host = prepared(
        Setup::default(),
        "",
        "approval = \"auto\"\nenv = { TOKEN = { file = \"token\" }, LANG = { value = \"C\" } }\n",
    );
    std::fs::write(host.folder().join("token"), "sesame-4242-open\n").unwrap();
    accept(&host);
    host.start();
    let result = called(&host, "fake__environment", json!({})).to_string();
    assert!(result.contains(r#"[\"LANG\",\"PATH\",\"TOKEN\"]"#), "{result}");
    assert!(result.contains("TOKEN") && !result.contains("sesame-4242"), "{result}");
    let log = std::fs::read_to_string(host.folder().join("host.log")).unwrap();
    assert!(log.contains("the token is") && !log.contains("sesame-4242"), "{log}");
    let pages = [host.admin.get("/v1/audit").json(), host.admin.get("/v1/conversations").json()];
    assert!(!format!("{pages:?}").contains("sesame-4242"));
}

/// Without the capabilities to read other processes, which root has.
#[cfg(target_os = "linux")]
#[test]
fn server_cannot_read_the_environment_of_the_host() {
    let owner = std::fs::metadata("/proc/self").unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&owner) == 0;
    let lost: &[_] = if is_root { &["setpriv", "--bounding-set", "-sys_ptrace,-perfmon,-sys_admin"] } else { &[] };
    let mut host = prepared(Setup::default().around(lost), "", "approval = \"auto\"\n");
    accept(&host);
    host.start();
    let result = called(&host, "fake__host", json!({}));
    let read: serde_json::Value = serde_json::from_str(result["result"].as_str().unwrap()).unwrap();
    assert_eq!((&read["supervisor"], &read["host"]), (&json!(["PATH"]), &json!("permission denied")), "{read}");
}

#[test]
fn rules_match_upstream_tools_by_name_and_plugin() {
    let rules = r#"
[[policy]]
name = "no-echo"
tools = "fake__e*"
rule = "deny"

[[policy]]
name = "ask-for-servers"
tools = "fake__params"
plugin = "mcp:*"
rule = "ask"
"#;
    let host = started(rules);
    assert_eq!(called(&host, "fake__echo", json!({}))["error"]["code"], "denied");
    let asked = host.agent.call("c", "fake__params", json!({}));
    assert_eq!(asked["calls"][0]["status"], "awaiting", "{asked}");
    assert_eq!(super::note(&host, "called"), "");
}

#[test]
fn single_tool_can_be_allowed_and_hints_lower_no_gate() {
    let mut host = prepared(Setup::default(), "", "tools.echo.approval = \"auto\"\n");
    accept(&host);
    host.start();
    assert_eq!(outcomes(&host.agent.settled(&host.agent.call("c", "fake__echo", json!({})))), ["ok"]);
    let tools = host.agent.get("/v1/tools").ok(200);
    let of = |name: &str| tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
    let params = of("fake__params");
    assert_eq!((&params["hints"]["read_only"], &params["approval"]), (&json!(true), &json!("requires-approval")));
    assert_eq!((&params["plugin"], &params["sandboxed"]), (&json!("mcp:fake"), &json!(false)));
    assert_eq!(params["description"], "(MCP server fake, outside the sandbox) A test.");
    let said = super::cli(&host, &["tools"]);
    assert!(said.out.contains("fake__params  server, requires approval, outside the sandbox  (mcp:fake)"), "{said:?}");
}
