//! The example plugins in all languages at once: one host, one turn.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::plugin;
use toolgate_tests::host::Setup;
use toolgate_tests::http::outcomes;

use super::{built, left_out, root, toolgate};

/// The example plugins, at least one of each language, with the file that shows the language.
const PLUGINS: [(&str, &str); 5] = [
    ("stats", "pyproject.toml"),
    ("reshape", "package.json"),
    ("dates", "package.json"),
    ("differ", "go.mod"),
    ("hasher", "plugin.c"),
];

/// The first example of a plugin that has a result.
fn example(name: &str) -> (String, Value, Value) {
    let path = root().join("plugins").join(name).join("examples.json");
    let examples: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let with_result = examples.as_array().unwrap().iter().find(|example| example.get("result").is_some());
    let example = with_result.unwrap_or_else(|| panic!("{} has no example with a result", path.display()));
    (example["tool"].as_str().unwrap().to_owned(), example["arguments"].clone(), example["result"].clone())
}

#[test]
fn one_turn_uses_tools_of_all_languages() {
    if left_out() {
        return;
    }
    let (mut setup, mut calls, mut expected) = (Setup::with(&["textkit"]), Vec::new(), BTreeMap::new());
    for (name, marker) in PLUGINS {
        assert!(root().join("plugins").join(name).join(marker).is_file(), "plugins/{name} has no {marker}");
        setup = setup.component(name, built(name));
        let (tool, arguments, result) = example(name);
        calls.push(json!({"id": name, "tool": tool, "arguments": arguments}));
        expected.insert(name.to_owned(), result);
    }
    calls.push(json!({"id": "textkit", "tool": "text_stats", "arguments": {"text": "to be or not"}}));
    let host = setup.start();
    let turn = host.agent.submit("languages", Value::Array(calls));
    let settled = host.agent.settled(&turn);
    assert!(outcomes(&settled).iter().all(|outcome| outcome == "ok"), "{:?}: {settled:#}", outcomes(&settled));
    for call in settled["calls"].as_array().unwrap() {
        if let Some(result) = expected.get(call["id"].as_str().unwrap()) {
            assert_eq!(&call["content"]["result"], result, "{}", call["id"]);
        }
    }
}

/// The toolchain of each example, from the section that `toolgate build` writes.
const TOOLCHAINS: [(&str, &str); 7] = [
    ("stats", "Python (componentize-py)"),
    ("reshape", "JavaScript (StarlingMonkey)"),
    ("dates", "JavaScript (QuickJS)"),
    ("differ", "Go"),
    ("hasher", "C (zig)"),
    ("rollout-py", "Python (componentize-py)"),
    ("rollout-ts", "JavaScript (StarlingMonkey)"),
];

/// Runs the conformance kit on each of them with its examples.
#[test]
fn the_plugins_of_all_languages_conform() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    let rust = [("textkit", plugin("textkit"))];
    let toolchains = BTreeMap::from(TOOLCHAINS);
    for (name, component) in TOOLCHAINS.map(|(name, _)| (name, built(name))).into_iter().chain(rust) {
        let file = host.folder().join(format!("{name}.wasm"));
        fs::write(&file, component).unwrap();
        let examples = root().join("plugins").join(name).join("examples.json").display().to_string();
        let report = toolgate(&host, &["conform", &file.display().to_string(), "--json", "--examples", &examples]);
        let said = String::from_utf8_lossy(&report.stdout);
        assert!(report.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&report.stderr));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            said["toolchain"],
            *toolchains.get(name).unwrap_or(&"Rust"),
            "{name} is built again by `toolgate build`"
        );
    }
}
