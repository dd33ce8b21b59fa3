//! Loading of plugins by the real host: a component that breaks each rule, the watched folder, hot reloads with waiting
//! calls, and the cache of compiled code.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "loading/folder.rs"]
mod folder;
#[path = "loading/pinned.rs"]
mod pinned;
#[path = "loading/rows.rs"]
mod rows;

use std::collections::BTreeSet;
use std::fs;

use registry::LoadRule;
use rows::{Row, declared, rows};
use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, plugin};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::outcomes;

/// Rules about files and settings, which no component alone can break. Other tests cover them: below, in `folder`, in
/// `compiling.rs` or in `tests/grants.rs`.
const NOT_OF_COMPONENTS: [LoadRule; 6] = [
    LoadRule::PluginName,
    LoadRule::ComponentFile,
    LoadRule::CompileCost,
    LoadRule::Settings,
    LoadRule::NeedsReview,
    LoadRule::DeclarationMissing,
];

/// The operator's rules that the rows need.
const POLICY: &str = "[[policy]]\ntools = \"strict_*\"\nrule = \"ask\"";

fn rules(findings: &Value) -> Vec<String> {
    let findings = findings.as_array().unwrap_or_else(|| panic!("no findings: {findings:#}"));
    findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

fn tools(host: &Host) -> BTreeSet<String> {
    let listed = host.agent.get("/v1/tools").ok(200);
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn all_broken_rules_are_reported_and_no_tool_goes_live() {
    let host = Setup::with(&["lab"]).tables(POLICY).start();
    let before = tools(&host);
    let mut rows = rows();
    rows.push(Row {
        what: "all at once",
        component: all_at_once(),
        expected: declared().into_iter().flat_map(|row| row.1).collect(),
    });
    let mut found = Vec::new();
    for (n, Row { what, component, expected }) in rows.iter().enumerate() {
        fs::write(host.folder().join(format!("row-{n}.wasm")), component).unwrap();
        let refused = host.admin.put(&format!("/v1/plugins/row-{n}"), component).problem(422, "plugin-refused");
        assert_eq!(rules(&refused["findings"]), *expected, "{what}: {:#}", refused["findings"]);
        for finding in refused["findings"].as_array().unwrap() {
            let says = |member: &str| finding[member].as_str().is_some_and(|text| !text.is_empty());
            assert!(says("message") && says("remedy"), "{what}: {finding:#}");
        }
        found.push(refused["findings"].clone());
    }
    assert_eq!(tools(&host), before);

    let broken: BTreeSet<String> = found.iter().flat_map(rules).collect();
    let missing =
        LoadRule::ALL.iter().filter(|rule| !NOT_OF_COMPONENTS.contains(rule) && !broken.contains(rule.as_str()));
    let missing: Vec<_> = missing.map(|rule| rule.as_str()).collect();
    assert!(missing.is_empty(), "no row breaks {missing:?}");
    check_finds_the_same(&host, &rows, &found);
}

/// All tools of [`declared`] in one component. Tools whose name is not the error get unique names.
fn all_at_once() -> Vec<u8> {
    let named = |(n, (mut tool, _)): (usize, (Value, _))| {
        let object = tool.as_object_mut().unwrap();
        object.entry("name").or_insert_with(|| format!("tool_{n}").into());
        tool
    };
    fixture(&declared().into_iter().enumerate().map(named).collect())
}

/// Checks that `toolgate check` reports the same without a host, and with its exit code.
fn check_finds_the_same(host: &Host, rows: &[Row], found: &[Value]) {
    let files: Vec<String> = (0..rows.len()).map(|n| format!("row-{n}.wasm")).collect();
    let words: Vec<&str> =
        ["check", "--json", "--config", "toolgate.toml"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let said = host.cli(None, &words);
    assert_eq!((said.code, said.out.lines().count()), (1, rows.len()), "{}", said.err);
    // Only findings about other plugins differ: the host compares with the live ones, `check` with those that it checks
    // together. And a rule is named with the path from the command line.
    let folder = format!("{}/", host.folder().display());
    let alone = |findings: &Value| {
        let findings: Value = serde_json::from_str(&findings.to_string().replace(&folder, "")).unwrap();
        let findings = findings.as_array().unwrap().iter().filter(|finding| finding["rule"] != "tool-name-taken");
        findings.cloned().map(without_nulls).collect::<Vec<_>>()
    };
    for (n, line) in said.out.lines().enumerate() {
        let checked: Value = serde_json::from_str(line).unwrap();
        assert_eq!(checked["ok"], false);
        assert_eq!(alone(&checked["findings"]), alone(&found[n]), "{}", rows[n].what);
    }
}

fn without_nulls(mut value: Value) -> Value {
    value.as_object_mut().unwrap().retain(|_, member| !member.is_null());
    value
}

#[test]
fn broken_replacement_keeps_the_live_plugin() {
    let host = Setup::default().start();
    let put = |tools: &Value| host.admin.put("/v1/plugins/p", &fixture(tools));
    let loaded = put(&json!([{"name": "one"}])).ok(200);
    assert_eq!((&loaded["state"], &loaded["tools"]), (&json!("live"), &json!(["one"])));
    put(&json!([{"name": "two"}, {"name": "a b"}])).problem(422, "plugin-refused");
    assert_eq!(tools(&host), BTreeSet::from(["one".to_owned()]));
    assert_eq!(outcomes(&host.agent.call("c", "one", json!({}))), ["ok"]);
    let listed = host.admin.get("/v1/plugins").ok(200);
    let listed = &listed["plugins"][0];
    assert_eq!((&listed["state"], &listed["digest"]), (&json!("live"), &loaded["digest"]));
    assert_eq!(put(&json!([{"name": "two"}])).ok(200)["findings"], json!([]));
    assert_eq!(tools(&host), BTreeSet::from(["two".to_owned()]));
    assert_eq!(host.admin.delete("/v1/plugins/p").ok(200)["removed"], "p");
    assert!(tools(&host).is_empty());
    host.admin.put("/v1/plugins/a%20b", b"").problem(400, "bad-request");
}

#[test]
fn contradictory_configuration_prevents_the_start() {
    let settings = "approve_on_expiry = [\"pay\"]";
    let host = Setup::default().settings(settings).tables("[[policy]]\ntools = \"pay\"\nrule = \"deny\"").prepare();
    for words in [["config", "--config", "toolgate.toml"], ["serve", "--config", "toolgate.toml"]] {
        let said = host.cli(None, &words);
        assert_ne!(said.code, 0, "{words:?}");
        assert!(
            said.err.contains("`approve_on_expiry` names pay, but a rule denies all its calls"),
            "{words:?}: {}",
            said.err
        );
    }
}

#[test]
fn rule_that_gates_a_question_rejects_the_plugin() {
    let host = Setup::with(&["ask", "lab"]).tables("[[policy]]\ntools = \"*\"\nrule = \"ask\"").start();
    let listed = host.admin.get("/v1/plugins").ok(200);
    let ask = listed["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "ask").unwrap().clone();
    assert_eq!((&ask["state"], rules(&ask["findings"])), (&json!("rejected"), vec!["policy-human".to_owned()]));
    assert!(!tools(&host).contains("ask_user") && tools(&host).contains("echo"));
}

#[test]
fn changed_compiled_code_is_compiled_again() {
    let mut host = Setup::default().component("lab", plugin("lab")).start();
    assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": 1}))), ["ok"]);
    host.kill();
    let compiled = || -> Vec<_> {
        let files = fs::read_dir(host.data().join("compiled")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.file_name().is_some_and(|name| name != "key")).collect()
    };
    let (changed, longer) = (compiled(), compiled());
    assert_eq!(changed.len(), 1, "{changed:?}");
    let good = fs::read(&changed[0]).unwrap();
    for damage in [&[0_u8; 64][..], b"", &good[..good.len() / 2], &[&good[..], b"x"].concat()] {
        fs::write(&changed[0], damage).unwrap();
        host.start();
        assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": 1}))), ["ok"]);
        host.kill();
        assert_eq!(fs::read(&longer[0]).unwrap().len(), good.len(), "the code was compiled again");
    }
    let mut flipped = good;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&changed[0], &flipped).unwrap();
    host.start();
    assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": 1}))), ["ok"]);
    assert_ne!(fs::read(&changed[0]).unwrap(), flipped);
}
