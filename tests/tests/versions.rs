//! Versions of the interface. A component of an older version keeps running beside new ones, a component for a newer
//! host is refused with the reason, and the interface only grows.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "versions/backups.rs"]
mod backups;
#[path = "versions/channels.rs"]
mod channels;
#[path = "versions/doubts.rs"]
mod doubts;
#[path = "versions/folders.rs"]
mod folders;
#[path = "versions/kinds.rs"]
mod kinds;
#[path = "versions/limits.rs"]
mod limits;
#[path = "versions/nested.rs"]
mod nested;
#[path = "versions/people.rs"]
mod people;
#[path = "versions/removed.rs"]
mod removed;
#[path = "versions/requests.rs"]
mod requests;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::http::{outcomes, path};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The committed component of version 0.1.0.
fn old() -> Vec<u8> {
    fs::read(root().join("tests/fixtures/wit-0.1.0.wasm")).unwrap()
}

/// The component with a text in its bytes replaced by one of the same length.
fn replaced(mut component: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<_> =
        (0..component.len() - from.len()).filter(|at| component[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "the component does not say {from}");
    for at in places {
        component[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    component
}

const GRANTED: &str = "[plugin.worker]\ncomponent = \"any\"\ngrants.keyvalue = true";

#[test]
fn old_components_are_unchanged() {
    let digest = |file: &str| -> String {
        let bytes = fs::read(root().join("tests/fixtures").join(file)).unwrap();
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let interfaces = fs::read_to_string(root().join("wit/README.md")).unwrap();
    for version in ["0.1.0", "0.1.1"] {
        let readme = fs::read_to_string(root().join(format!("tests/fixtures/wit-{version}/README.md"))).unwrap();
        let component = digest(&format!("wit-{version}.wasm"));
        assert!(readme.contains(&component), "this component must never be rebuilt, but it has the digest {component}");
        let text = digest(&format!("wit-{version}/plugin.wit"));
        let row = format!("| {version} | `{text}` |");
        assert!(interfaces.contains(&row), "{version} is released, and this text has the digest {text}");
    }
}

#[test]
fn one_turn_runs_components_of_two_versions() {
    let host = Setup::default().tables(GRANTED).component("old", old()).component("worker", illegal("worker")).start();
    let plugins = host.admin.get("/v1/plugins").ok(200);
    let built: Vec<_> = plugins["plugins"].as_array().unwrap().iter().map(|plugin| &plugin["built_against"]).collect();
    assert_eq!(built, ["toolgate:plugin@0.1.0", "toolgate:plugin@0.1.2"]);

    let mut stream = host.agent.events("/v1/conversations/c/events");
    let call = |id: &str, tool: &str, value: Value| json!({"id": id, "tool": tool, "arguments": {"value": value}});
    let calls = json!([
        call("counts", "old_count", json!(3)),
        call("gated", "old_gated", json!("yes")),
        call("asks", "old_ask", json!("this")),
        {"id": "knows", "tool": "old_identity", "arguments": {}},
        call("wrong", "old_refuse", json!("arguments")),
        call("later", "old_refuse", json!("later")),
        call("fails", "old_refuse", json!("")),
        {"id": "new", "tool": "released", "arguments": {}},
    ]);
    let turn = host.agent.submit("c", calls);
    for waits in turn["pending"].as_array().unwrap() {
        let answer = match waits["kind"].as_str() {
            Some("approval") => json!({"decision": "approve", "arguments": {"value": "edited"}}),
            _ => json!({"decision": "answer", "data": 42}),
        };
        let _ = host.approver.resolve(waits["suspension"].as_str().unwrap(), answer).ok(200);
    }
    let turn = host.agent.settled(&turn);
    let ends =
        ["ok", "ok", "ok", "ok", "failed(invalid_arguments)", "failed(tool_unavailable)", "failed(tool_failed)", "ok"];
    assert_eq!(outcomes(&turn), ends, "{turn:#}");
    let results: Vec<_> = [0, 1, 2, 7].map(|n| turn["calls"][n]["content"]["result"].clone()).into();
    assert_eq!(results, [json!(3), json!("edited"), json!(42), json!(0)]);
    let identity = &turn["calls"][3]["content"]["result"];
    assert_eq!((&identity[0], &identity[2]), (&json!("knows"), &json!(1)), "{identity}");
    // Its progress reaches the followers.
    let events = stream.until(|event| event.name == "turn.settled");
    let of = |name: &str| events.iter().filter(|event| event.name == name && event.data["call"] == "counts").count();
    assert_eq!((of("call.progress"), of("call.log")), (3, 1));
}

#[test]
fn old_component_is_stopped_as_before() {
    // It cannot check for cancellation, so it gets no grace.
    let tables = "[plugin.old.limits]\nconcurrency = 1\nstop_grace_ms = 3600000\ntime_ms = 3600000";
    let host = Setup::default().settings("queue_ms = 20000").tables(tables).component("old", old()).start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let arguments = json!({"value": u64::MAX});
    let body = json!({"calls": [{"id": "endless", "tool": "old_count", "arguments": arguments}]});
    let turn = host.agent.post("/v1/conversations/c/turns", &body).ok(201);
    stream.named("call.progress");
    let turn = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(outcomes(&turn), ["cancelled"]);
    assert_eq!(outcomes(&host.agent.settled(&host.agent.call("c", "old_count", json!({"value": 1})))), ["ok"]);
}

fn checked(host: &Host, component: Vec<u8>) -> Said {
    fs::write(host.folder().join("worker.wasm"), component).unwrap();
    host.cli(None, &["check", "worker.wasm", "--grant", "keyvalue"])
}

#[test]
fn check_names_the_version_and_what_a_newer_host_offers() {
    let host = Setup::default().prepare();
    let worker = |version: &str| replaced(illegal("worker"), "@0.1.2", &format!("@{version}"));
    for version in ["0.1.2", "0.1.9"] {
        let said = checked(&host, worker(version));
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        assert!(said.out.contains(&format!("built against toolgate:plugin@{version}")), "{}", said.out);
    }
    for (component, why) in [
        (
            replaced(worker("0.1.9"), "stop-requested", "stop-sometimes"),
            "[unknown-interface] it needs `stop-sometimes` of the interface `host`, which this host does not have: it was built \
             against version 0.1.9 of toolgate:plugin, and this host has 0.1.2: use a newer host, or build it against 0.1.2",
        ),
        (
            worker("0.2.0"),
            "[unknown-interface] built against version 0.2.0 of toolgate:plugin; this host supports 0.1, up to 0.1.2: build it \
             against 0.1.2, or use a host that supports 0.2.0",
        ),
        (
            worker("1.0.0"),
            "[unknown-interface] built against version 1.0.0 of toolgate:plugin; this host supports 0.1, up to 0.1.2: build it \
             against 0.1.2, or use a host that supports 1.0.0",
        ),
        (
            replaced(worker("0.1.2"), "toolgate:plugin/", "othergate:plugi/"),
            "[unknown-interface] not a plugin: it does not export `toolgate:plugin/catalog@0.1.x`",
        ),
    ] {
        let said = checked(&host, component);
        assert_eq!(said.code, 1, "{}{}", said.out, said.err);
        assert!(said.out.contains(why), "{}", said.out);
    }
}

/// The lines of an interface without comments and version.
fn lines(file: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with("package ")).map(str::to_owned).collect()
}

/// An interface without the items that are marked with `@since`.
fn without_additions(lines: Vec<String>) -> Vec<String> {
    let (mut rest, mut lines) = (Vec::new(), lines.into_iter());
    while let Some(line) = lines.next() {
        if !line.starts_with("@since(") {
            rest.push(line);
            continue;
        }
        let mut open = 0_usize;
        for line in lines.by_ref().skip_while(|line| line.starts_with('@')) {
            open = open + line.matches('{').count() - line.matches('}').count();
            if open == 0 {
                break;
            }
        }
    }
    rest
}

#[test]
fn interface_additions_are_marked() {
    let old = lines("tests/fixtures/wit-0.1.0/plugin.wit");
    let new = lines("wit/v0.1/plugin.wit");
    for version in ["0.1.1", "0.1.2"] {
        assert!(new.contains(&format!("@since(version = {version})")));
    }
    assert_eq!(without_additions(new), old, "the items of 0.1.0 are unchanged, and all others are marked");
    let addition = "interface a {\n@since(version = 0.1.1)\n@deprecated(version = 0.1.2)\nf: func();\ng: func();\n\
                    @since(version = 0.1.1)\nrecord r {\nx: u8,\n}\n}";
    let rest = without_additions(addition.lines().map(str::to_owned).collect());
    assert_eq!(rest, ["interface a {", "g: func();", "}"]);
}
