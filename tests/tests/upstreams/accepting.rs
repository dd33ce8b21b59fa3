//! The operator accepts declarations; everything else is not offered.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};

use super::{accept, called, cli, error, prepared, review, started};

fn names(host: &Host) -> Vec<String> {
    let tools = host.agent.get("/v1/tools").ok(200);
    tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn plugin(host: &Host) -> Value {
    let list = host.admin.get("/v1/plugins").ok(200);
    list["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "mcp:fake").unwrap().clone()
}

/// Waits until the host has asked the server for its tools.
fn asked(host: &Host) -> Value {
    host.admin.until("/v1/plugins", |answer| {
        let plugins = answer.json();
        let plugin = plugins["plugins"].as_array()?.iter().find(|plugin| plugin["name"] == "mcp:fake")?.clone();
        plugin["needs_review"].as_bool()?.then_some(plugin)
    })
}

/// Waits until the host, which reads the file of acceptances again, offers this tool.
fn offered(host: &Host, name: &str) {
    host.agent.until("/v1/tools", |answer| {
        let tools = answer.json();
        tools["tools"].as_array()?.iter().find(|tool| tool["name"] == name).map(|_| ())
    });
}

#[test]
fn nothing_is_offered_before_it_is_accepted() {
    let mut host = prepared(Setup::default(), "", "");
    host.start();
    let seen = asked(&host);
    assert_eq!((&seen["state"], &seen["sandboxed"], &seen["tools"]), (&json!("rejected"), &json!(false), &json!([])));
    assert!(!names(&host).iter().any(|name| name.starts_with("fake__")));
    let (code, message) = error(&host, "fake__echo");
    assert_eq!(code, "tool_unavailable");
    assert!(message.contains("has not accepted it") && message.contains("toolgate upstream review fake"), "{message}");
    accept(&host);
    offered(&host, "fake__echo");
    assert_eq!(plugin(&host)["state"], "live");
}

#[test]
fn changed_new_and_missing_tools_are_not_offered() {
    let mut host = started("");
    std::fs::write(host.folder().join("fake/changed"), "").unwrap();
    host.restart();
    let seen = asked(&host);
    let findings: Vec<_> = seen["findings"].as_array().unwrap().iter().map(|f| f["tool"].as_str().unwrap()).collect();
    assert_eq!(findings, ["fake__echo", "fake__new", "fake__noise"]);
    for (tool, why) in [("fake__echo", "changed"), ("fake__new", "not accepted"), ("fake__noise", "no longer")] {
        assert!(!names(&host).contains(&tool.to_owned()), "{tool}");
        let (code, message) = error(&host, tool);
        assert_eq!(code, "tool_unavailable", "{message}");
        assert!(message.contains(why) && message.contains("toolgate upstream review fake"), "{message}");
    }
    assert_eq!(super::note(&host, "called"), "");
    assert_eq!(called(&host, "fake__params", json!({}))["ok"], true, "the other tools are still offered");
    accept(&host);
    offered(&host, "fake__new");
    assert_eq!(called(&host, "fake__echo", json!({"text": "x"}))["ok"], true);
}

#[test]
fn upgraded_tools_are_offered_after_their_acceptance() {
    let host = started("");
    assert_eq!(called(&host, "fake__params", json!({}))["ok"], true);
    std::fs::write(host.folder().join("fake/changed"), "").unwrap();
    // The host still runs the earlier version of the program.
    accept(&host);
    offered(&host, "fake__new");
    assert_eq!(called(&host, "fake__new", json!({}))["ok"], true);
}

#[test]
fn approved_call_of_a_changed_tool_does_not_run() {
    let mut host = prepared(Setup::default(), "", "");
    accept(&host);
    host.start();
    let asked = host.agent.call("c", "fake__echo", json!({}));
    std::fs::write(host.folder().join("fake/changed"), "").unwrap();
    host.restart();
    accept(&host);
    let suspension = toolgate_tests::http::suspension_of(&asked);
    let _ = host.approver.resolve(&suspension, json!({"decision": "approve"})).ok(200);
    let turn = host.agent.settled(&asked);
    assert_eq!(turn["calls"][0]["outcome"], "failed", "{turn}");
    assert_eq!(turn["calls"][0]["content"]["error"]["code"], "tool_unavailable", "{turn}");
    assert_eq!(super::note(&host, "called"), "");
}

#[test]
fn review_shows_escaped_changes_and_an_acceptance_names_them() {
    let host = started("");
    assert_eq!(review(&host)["changes"], json!({}));
    std::fs::write(host.folder().join("fake/changed"), "").unwrap();
    let said = cli(&host, &["upstream", "review", "fake"]);
    assert!(said.out.contains("echo: changed\n  description\n  - A test.\n  + Ignore all"), "{}", said.out);
    assert!(!said.out.contains('\u{202e}') && !said.out.contains('\u{1b}'), "{}", said.out);
    assert!(
        said.out.contains("new: new") && said.out.contains("noise: the server no longer declares it"),
        "{}",
        said.out
    );
    let digest = review(&host)["digest"].as_str().unwrap().to_owned();
    std::fs::remove_file(host.folder().join("fake/changed")).unwrap();
    let said = cli(&host, &["upstream", "accept", "fake", "--digest", &digest]);
    assert_eq!(said.code, 1, "the server declares something else than was reviewed: {said:?}");
    assert!(
        cli(&host, &["upstream", "list"]).out.starts_with("fake  MCP server, outside the sandbox, 20 accepted tools")
    );
}

#[test]
fn review_shows_the_gate_of_each_tool() {
    let keys = "tools.echo.approval = \"auto\"\ntools.params.idempotent = true\ntools.renamed.approval = \"auto\"\n";
    let host = prepared(Setup::default(), "odd", keys);
    let said = cli(&host, &["upstream", "review", "fake"]).out;
    for line in [
        "  fake__echo  runs without approval\n",
        "  fake__params  requires approval, is repeated after a kill\n",
        "  fake__error  requires approval\n",
        "  fake__remote  cannot be offered: ",
        "[upstream.fake.tools.renamed], and the server has no tool of this name",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let review = review(&host);
    assert_eq!(review["tools"]["echo"]["approval"], "auto");
    assert_eq!(
        (&review["tools"]["error"]["approval"], &review["unknown"]),
        (&json!("requires-approval"), &json!(["renamed"]))
    );
}

#[test]
fn acceptance_covers_the_command_and_plain_values() {
    let mut host = prepared(Setup::default(), "", "approval = \"auto\"\nenv.LANG = { value = \"C\" }\n");
    accept(&host);
    host.start();
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
    let file = host.folder().join("toolgate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    for (from, to, part) in [
        ("value = \"C\"", "value = \"D\"", "environment"),
        (", \"\"]", ", \"odd\"]", "command"),
        ("folder = \"fake\"", "folder = \"other\"", "folder"),
        ("env.LANG", "env.LC_ALL = { file = \"token\" }\nenv.LANG", "secrets"),
    ] {
        let _ = std::fs::create_dir(host.folder().join("other"));
        std::fs::write(host.folder().join("token"), "sesame-4242-open").unwrap();
        assert!(config.contains(from), "{config}");
        std::fs::write(&file, config.replace(from, to)).unwrap();
        host.restart();
        let (code, message) = error(&host, "fake__echo");
        let why =
            format!("the configuration of the server has changed since the operator accepted it: {part}. Nothing");
        assert!(code == "tool_unavailable" && message.contains(&why), "{message}");
        assert_eq!(asked(&host)["tools"], json!([]), "{part}");
        let said = cli(&host, &["upstream", "review", "fake"]).out;
        assert!(said.contains(&format!("the server itself: changed\n  {part}\n")), "{said}");
        assert!(!said.contains("sesame") && said.contains("toolgate upstream accept fake --digest"), "{said}");
    }
    accept(&host);
    offered(&host, "fake__echo");
}

#[test]
fn file_of_the_version_before_is_still_read() {
    let mut host = prepared(Setup::default(), "odd", "approval = \"auto\"\n");
    let file = host.folder().join("toolgate.upstreams.json");
    std::fs::write(&file, include_str!("pins-1.json")).unwrap();
    let said = cli(&host, &["upstream", "list"]).out;
    assert!(said.contains("16 accepted tools") && said.contains("does not cover the command"), "{said}");
    host.start();
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
    let said = cli(&host, &["upstream", "review", "fake"]).out;
    assert!(said.contains("the server itself: not accepted yet\n  command\n  + "), "{said}");
    accept(&host);
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"format\": 2"));
    assert!(!cli(&host, &["upstream", "list"]).out.contains("does not cover"));
    assert_eq!(called(&host, "fake__echo", json!({}))["ok"], true);
}

#[test]
fn pinned_file_that_was_changed_refuses_the_start() {
    let host = prepared(Setup::default(), "", "");
    accept(&host);
    let file = host.folder().join("toolgate.upstreams.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("A test.", "A trap.", 1)).unwrap();
    let said = cli(&host, &["upstream", "list"]);
    assert!(said.code != 0 && said.err.contains("does not have its digest"), "{said:?}");
}

#[test]
fn upstream_cannot_take_the_name_of_a_plugins_tool() {
    let component = toolgate_tests::guests::plugin("lab");
    let lab = toolgate_tests::binary::replaced(component, "gated_echo", "fake__echo");
    let mut host = prepared(Setup::default().component("lab", lab), "", "approval = \"auto\"\n");
    accept(&host);
    host.start();
    let plugins = host.admin.get("/v1/plugins").ok(200).to_string();
    assert!(plugins.contains("tool-name-taken"), "the component is refused: {plugins}");
    assert_eq!(called(&host, "fake__echo", json!({}))["result"], "echo {}");
    assert_eq!(
        host.admin.put("/v1/plugins/mcp:fake", &toolgate_tests::guests::plugin("lab")).json()["code"],
        "plugin-refused"
    );
}

#[test]
fn odd_declarations_are_not_offered_and_say_why() {
    let mut host = prepared(Setup::default(), "odd", "");
    accept(&host);
    host.start();
    let findings = plugin(&host)["findings"].to_string();
    for why in ["fake__a.b", "must be 1 to 64 of the characters", "fake__remote", "outside of itself"] {
        assert!(findings.contains(why), "{why}: {findings}");
    }
    assert!(!names(&host).iter().any(|name| name.contains("remote") || name.contains("a.b")));
    assert!(names(&host).contains(&"fake__echo".to_owned()));
}
