//! The conformance kit with the real binary. A correct component passes, and each faulty one fails only in the row that
//! it is made for.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::{illegal, patched, plugin, with_section};
use toolgate_tests::host::{Host, Said, Setup};

fn host() -> Host {
    Setup::default().prepare()
}

/// A server tool of this name, in the form of `wayward`.
fn tool(name: &str) -> Value {
    let streams = ["progress", "streams", "stop"].contains(&name);
    // Some take half of their time in each call. A tool without arguments is called only a few times.
    let time = if ["determinism", "time"].contains(&name) { 2_000 } else { 5_000 };
    let required = if name == "determinism" { json!([]) } else { json!(["text", "n"]) };
    json!({
        "name": name,
        "description": "Gives the size of a text.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "n": {"type": "number"}},
            "required": required,
            "additionalProperties": false,
        },
        "executor": "server",
        "approval": "auto",
        "streaming": streams,
        "options": {
            "result": {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]},
            "timeout_ms": time,
            "hints": {"idempotent": name == "idempotency"},
        },
    })
}

fn wayward(tools: &[Value]) -> Vec<u8> {
    patched(&illegal("wayward"), &Value::from(tools.to_vec()))
}

/// Runs the kit over a component.
fn report_of(host: &Host, component: &[u8], examples: Option<&Value>) -> (Said, Value) {
    report_within(host, component, examples, "300")
}

/// Runs the kit for this many seconds.
fn report_within(host: &Host, component: &[u8], examples: Option<&Value>, seconds: &str) -> (Said, Value) {
    fs::write(host.folder().join("it.wasm"), component).unwrap();
    let examples = examples.cloned().unwrap_or_else(|| json!([]));
    fs::write(host.folder().join("examples.json"), examples.to_string()).unwrap();
    let said = host.cli(None, &["conform", "it.wasm", "--json", "--seconds", seconds]);
    let report = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    (said, report)
}

fn rows<'a>(report: &'a Value, verdict: &str) -> Vec<&'a str> {
    let rows = report["requirements"].as_array().unwrap().iter();
    rows.filter(|row| row["verdict"] == verdict).map(|row| row["requirement"].as_str().unwrap()).collect()
}

/// Why the kit did not test a requirement.
#[track_caller]
fn why_skipped<'a>(report: &'a Value, requirement: &str) -> &'a str {
    let row = report["requirements"].as_array().unwrap().iter().find(|row| row["requirement"] == requirement).unwrap();
    assert_eq!(row["verdict"], "skip", "{row:#}");
    row["note"].as_str().unwrap()
}

/// Each requirement with a component that breaks it, and the examples that come with it.
fn cases() -> Vec<(&'static str, Vec<u8>, Value)> {
    let named = |name: &'static str| (name, wayward(&[tool(name)]), json!([]));
    let mut cases: Vec<_> = [
        "answers",
        "results",
        "failures",
        "invalid-arguments",
        "unknown-tool",
        "progress",
        "stop",
        "unicode",
        "empty",
        "largest",
        "numbers",
        "idempotency",
        "start",
        "memory",
        "time",
        "constant",
    ]
    .into_iter()
    .map(named)
    .collect();
    let fine = wayward(&[tool("fine")]);
    let mut gated = tool("fine");
    gated["executor"] = json!("human");
    gated["approval"] = json!("requires-approval");
    gated["options"] = json!({});
    let mut schema = tool("fine");
    schema["parameters"]["properties"]["text"]["type"] = json!("words");
    let lie = json!({"toolgate": 1, "tools": []}).to_string();
    let mut large = fine.clone();
    large.extend(section("padding", &vec![0; 9 << 20]));
    let mut short = tool("largest");
    short["parameters"]["properties"]["text"]["maxLength"] = json!(40);
    // Variations of a call that fails before it reads its text would show nothing.
    let early = json!([
        {"tool": "unicode", "arguments": {"text": "a", "n": 13}, "failure": "unavailable"},
        {"tool": "unicode", "arguments": {"text": "a", "n": 1}},
    ]);
    // It returns its progress, which can be equal by chance in one pair of calls, but hardly in two.
    let twice = json!([{"tool": "determinism", "arguments": {}}, {"tool": "determinism", "arguments": {}}]);
    cases.extend([
        ("answers", unanswerable(), json!([])),
        ("determinism", wayward(&[tool("determinism")]), twice),
        ("largest", wayward(&[short]), json!([])),
        ("unicode", wayward(&[tool("unicode")]), early),
        ("loads", fine[..fine.len() / 2].to_vec(), json!([])),
        ("imports", illegal("intruder"), json!([])),
        ("declares", wayward(&[gated]), json!([])),
        ("schemas", wayward(&[schema]), json!([])),
        ("packed", with_section(&fine, &lie), json!([])),
        ("size", large, json!([])),
        ("interface", of_version(&fine, "9.1.1"), json!([])),
        ("examples", fine, json!([{"tool": "fine", "arguments": {"text": "four", "n": 1}, "result": {"size": 5}}])),
    ]);
    cases
}

/// A tool whose schema has a pattern, for which the kit finds no text.
fn unanswerable() -> Vec<u8> {
    let mut tool = tool("fine");
    tool["parameters"]["properties"]["text"]["pattern"] = json!("^[A-Z]{3}-[0-9]{4}$");
    wayward(&[tool])
}

/// A custom section of this name.
fn section(name: &str, content: &[u8]) -> Vec<u8> {
    let number = |mut value: usize| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    };
    let body = [&number(name.len()), name.as_bytes(), content].concat();
    [&[0], number(body.len()).as_slice(), &body].concat()
}

/// The component with another interface version of the same length.
fn of_version(component: &[u8], version: &str) -> Vec<u8> {
    let (old, new) = (b"toolgate:plugin/", version.as_bytes());
    let mut bytes = component.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(old.len()).position(|window| window == old) {
        at += found + old.len();
        if let Some(sign) = bytes[at..].iter().take(40).position(|byte| *byte == b'@') {
            bytes[at + sign + 1..at + sign + 1 + new.len()].copy_from_slice(new);
        }
    }
    bytes
}

#[test]
fn each_faulty_component_fails_only_in_its_row() {
    let host = host();
    let mut seen = BTreeSet::new();
    let mut all = BTreeSet::new();
    for (row, component, examples) in cases() {
        // Each call of a slow tool takes a second.
        let seconds = if row == "time" { "3" } else { "300" };
        let (said, report) = report_within(&host, &component, Some(&examples), seconds);
        assert_eq!((said.code, rows(&report, "fail")), (1, vec![row]), "{row}: {report:#}");
        check_agrees(&host, &report);
        let failed =
            report["requirements"].as_array().unwrap().iter().find(|found| found["requirement"] == row).unwrap();
        assert_ne!(failed["problems"][0]["remedy"].as_str().unwrap(), "", "{row}");
        if row == "time" {
            // The kit tests this after all calls of the tool.
            assert_eq!(why_skipped(&report, "unknown-tool"), "the kit ran out of time");
        }
        seen.insert(row.to_owned());
        all.extend(
            report["requirements"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["requirement"].as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(seen, all, "every requirement has a component that breaks it");
    let page = include_str!("../../docs/conformance.md");
    assert!(all.iter().all(|row| page.contains(&format!("| `{row}` |"))), "docs/conformance.md has a row for each");
}

/// `loads` passes exactly if `toolgate check` finds nothing, and both say the same.
fn check_agrees(host: &Host, report: &Value) {
    // The kit grants what a component requests, and these request nothing else.
    let said = host.cli(None, &["check", "it.wasm", "--json", "--grant", "keyvalue"]);
    let checked: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(checked["ok"], rows(report, "pass").contains(&"loads"), "{checked:#}\n{report:#}");
    let problems =
        report["requirements"].as_array().unwrap().iter().flat_map(|row| row["problems"].as_array().unwrap());
    let problems: Vec<_> = problems.map(|problem| &problem["what"]).collect();
    for finding in checked["findings"].as_array().unwrap() {
        assert!(problems.contains(&&finding["message"]), "{finding:#}\n{report:#}");
    }
}

#[test]
fn tool_without_arguments_fails_and_the_rest_is_skipped() {
    let host = host();
    let (said, report) = report_of(&host, &unanswerable(), None);
    assert_eq!((said.code, rows(&report, "fail")), (1, vec!["answers"]), "{report:#}");
    let row = |name: &str| report["requirements"].as_array().unwrap().iter().find(|row| row["requirement"] == name);
    assert_eq!(
        row("answers").unwrap()["problems"],
        json!([{"tool": "fine", "what": "the kit could not generate arguments for it",
            "remedy": "give an example of a call in examples.json"}])
    );
    for name in ["results", "failures", "invalid-arguments", "unicode", "numbers", "determinism"] {
        assert_eq!(why_skipped(&report, name), "no tool answered", "{name}");
    }
    let page = include_str!("../../docs/conformance.md");
    assert!(
        page.contains("If it finds no arguments for a tool (because of a pattern or a condition), `answers` fails")
    );
    // The remedy helps.
    let example = json!([{"tool": "fine", "arguments": {"text": "ABC-1234", "n": 1}}]);
    let (said, report) = report_of(&host, &unanswerable(), Some(&example));
    assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{report:#}");
    for (name, why) in [
        ("progress", "no tool streams"),
        ("stop", "no tool streams"),
        ("idempotency", "no tool with the hint `idempotent` gave a result"),
    ] {
        assert_eq!(why_skipped(&report, name), why, "{name}");
    }
}

/// A default need not fit its schema. The good one is needed, because the kit makes no text for a pattern.
#[test]
fn bad_defaults_do_not_end_the_search_for_arguments() {
    let mut tool = tool("fine");
    tool["parameters"]["properties"]["text"] =
        json!({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$", "default": "ABC-1234"});
    for name in ["n", "size", "page", "rest"] {
        tool["parameters"]["properties"][name] = json!({"type": "number", "default": "none", "examples": [null]});
    }
    tool["parameters"]["required"] = json!(["text", "n", "size", "page", "rest"]);
    let (said, report) = report_of(&host(), &wayward(&[tool]), None);
    assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{report:#}");
}

#[test]
fn bad_file_name_is_a_finding_of_its_own() {
    let host = host();
    // It imports nothing that needs a grant.
    let component = plugin("textkit");
    for name in ["a b.wasm", "a.b.wasm", "\u{e4}.wasm"] {
        fs::write(host.folder().join(name), &component).unwrap();
        let said = host.cli(None, &["conform", name, "--json"]);
        let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!((said.code, rows(&report, "fail")), (1, vec!["loads"]), "{report:#}");
        let problem = &report["requirements"][0]["problems"][0];
        assert!(
            problem["what"].as_str().unwrap().starts_with("the file's name is not a valid plugin name"),
            "{problem}"
        );
        assert!(rows(&report, "pass").contains(&"answers"), "the rest is tested: {report:#}");
        let said = host.cli(None, &["check", name, "--json"]);
        let checked: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(checked["findings"].as_array().map(Vec::len), Some(1), "{checked:#}");
        assert_eq!(checked["tools"], json!(["text_stats", "text_search"]), "{checked:#}");
    }
}

#[test]
fn kit_loads_with_the_limits_of_the_configuration() {
    let host = host();
    fs::write(host.folder().join("it.wasm"), wayward(&[tool("fine"), tool("streams")])).unwrap();
    fs::write(host.folder().join("limits.toml"), "catalog.tools = 1").unwrap();
    let said = host.cli(None, &["conform", "it.wasm", "--json", "--config", "limits.toml"]);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!((said.code, rows(&report, "fail")), (1, vec!["declares"]), "{report:#}");
    let loads = &report["requirements"][0];
    let note = "a host refuses it, and this says why: `declares`";
    assert_eq!(
        (&loads["requirement"], &loads["verdict"], &loads["note"]),
        (&json!("loads"), &json!("skip"), &json!(note))
    );
}

#[test]
fn correct_component_passes_every_row() {
    let host = host();
    let tools = [tool("fine"), tool("streams")];
    fs::write(host.folder().join("it.wasm"), wayward(&tools)).unwrap();
    let said = host.cli(None, &["pack", "it.wasm"]);
    assert_eq!(said.code, 0, "{said:?}");
    let packed = fs::read(host.folder().join("it.wasm")).unwrap();
    let examples = json!([
        {"tool": "fine", "arguments": {"text": "four", "n": 1}, "result": {"size": 4}},
        {"tool": "streams", "arguments": {"text": "", "n": 1}},
    ]);
    let (said, report) = report_of(&host, &packed, Some(&examples));
    assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{report:#}");
    assert_eq!(rows(&report, "skip"), ["idempotency"], "{report:#}");
    check_agrees(&host, &report);
}

#[test]
fn the_example_plugins_of_this_repository_conform() {
    let host = host();
    for name in ["ledger", "textkit", "crunch", "ask", "browser", "websearch", "forge", "rollout"] {
        let (said, report) = report_of(&host, &plugin(name), None);
        assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{name}: {report:#}");
    }
}

/// In the kit, nobody answers the questions of a durable tool.
#[test]
fn durable_tool_runs_to_its_end() {
    let example = json!({"tool": "roll_out", "arguments": {"version": "1"}, "result": "done"});
    let (said, report) = report_of(&host(), &plugin("rollout"), Some(&json!([example])));
    assert_eq!((said.code, rows(&report, "fail")), (1, vec!["examples"]), "{report:#}");
    assert!(said.out.contains("got tool_failed: nobody answered in time"), "{report:#}");
}

#[test]
fn invalid_examples_are_reported_with_their_place() {
    let host = host();
    fs::write(host.folder().join("it.wasm"), wayward(&[tool("fine")])).unwrap();
    fs::write(host.folder().join("examples.json"), r#"[{"tool": "fine", "outcome": 1}]"#).unwrap();
    let said = host.cli(None, &["conform", "it.wasm"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("examples.json") && said.err.contains("outcome"), "{said:?}");
}

#[test]
fn durable_tool_gets_the_answers_of_its_examples() {
    let host = host();
    let answers = |denied: &str| json!([{"environment": "live"}, denied]);
    let example = |answers: Value, state: &str| {
        let result = json!({"state": state, "comment": "no"});
        json!([{"tool": "roll_out", "arguments": {"version": "1"}, "answers": answers, "result": result}])
    };
    let (said, report) = report_of(&host, &plugin("rollout"), Some(&example(answers("deny no"), "rejected")));
    assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{report:#}");
    let (said, report) = report_of(&host, &plugin("rollout"), Some(&example(answers("approve"), "rejected")));
    assert_eq!((said.code, rows(&report, "fail")), (1, vec!["examples"]), "{report:#}");
    let examples = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/rollout/examples.json")).unwrap();
    let examples: Value = serde_json::from_slice(&examples).unwrap();
    let (said, report) = report_of(&host, &plugin("rollout"), Some(&examples));
    assert_eq!((said.code, rows(&report, "fail")), (0, vec![]), "{report:#}");
}

/// The faults of the examples, as the report has them.
fn faults(report: &Value) -> Vec<&str> {
    let rows = report["requirements"].as_array().unwrap().iter();
    let examples = rows.filter(|row| row["requirement"] == "examples");
    examples
        .flat_map(|row| row["problems"].as_array().unwrap())
        .map(|problem| problem["what"].as_str().unwrap())
        .collect()
}

#[test]
fn answers_that_no_host_accepts_are_faults_of_the_example() {
    let (host, place) = (host(), json!({"environment": "live"}));
    let edited = json!({"version": "2", "environment": "live", "instances": 3});
    for (answers, fault) in [
        (json!([{"environment": 1}]), "its answer 1 is refused: "),
        (json!([place, "aprove"]), "its answer 2 is refused: answer an approval with `approve`"),
        (json!([place, edited]), "its answer 2 is refused: only these may be edited: instances"),
        (json!([place, "approve", "unwell"]), "\"unwell\" is not allowed here; choose one of: healthy, broken"),
        (json!([place, "approve", "healthy it is"]), "its answer 3 is refused: \"it is\" is not JSON"),
        (json!([place, "deny", "healthy"]), "the call asked for 2 of 3 answers"),
    ] {
        let example = json!([{"tool": "roll_out", "arguments": {"version": "1"}, "answers": answers}]);
        let (said, report) = report_of(&host, &plugin("rollout"), Some(&example));
        assert_eq!((said.code, rows(&report, "fail")), (1, vec!["examples"]), "{report:#}");
        assert!(faults(&report)[0].contains(fault), "{fault}: {report:#}");
    }
    let example = json!([{"tool": "fine", "arguments": {"text": "four", "n": 1}, "answers": ["yes"]}]);
    let (_, report) = report_of(&host, &wayward(&[tool("fine")]), Some(&example));
    assert_eq!(faults(&report), ["fine: the call asked for 0 of 1 answers"], "{report:#}");
}

#[test]
fn later_run_of_a_durable_call_repeats_no_write() {
    let increment = json!({"do": "increment", "key": "n", "by": 1});
    let program = json!([increment, {"do": "ask", "prompt": "Go on?"}, increment]);
    let example =
        json!([{"tool": "run", "arguments": {"program": program}, "answers": ["yes"], "result": [1, "yes", 2]}]);
    let (_, report) = report_of(&host(), &illegal("program"), Some(&example));
    assert!(rows(&report, "pass").contains(&"examples"), "{report:#}");
}

#[test]
fn call_that_waits_too_often_is_ended() {
    let program = vec![json!({"do": "sleep", "ms": 2_000}); 101];
    let example = json!([{"tool": "run", "arguments": {"program": program}}]);
    let (_, report) = report_of(&host(), &illegal("program"), Some(&example));
    assert!(rows(&report, "fail").contains(&"answers"), "{report:#}");
    assert!(report.to_string().contains("it waited more than 100 times"), "{report:#}");
}
