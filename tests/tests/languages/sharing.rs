//! `toolgate build`, then a copy into the folder of a running host, as in the README. The host runs the code that the build
//! compiled: its own compiler cannot start.

use std::fs;

use domain::Digest;
use serde_json::json;
use toolgate_tests::dev::change;
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;

use super::{done, left_out, root};

/// `change` makes the tool add a number to its result. It differs in each run, so no earlier run has compiled the component.
#[track_caller]
fn check(language: &str, source: &str, before: &str, after: impl Fn(u32) -> String) {
    if left_out() {
        return;
    }
    let host = Setup::default().without_compiler().start();
    let mut events = host.admin.events("/v1/events?after=now");
    done(&host, &["new", "hello", "--lang", language]);
    if language == "rust" {
        // With the versions of the example plugins, cargo needs no registry.
        fs::copy(root().join("plugins/Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    }
    let random = Digest::of(host.folder().as_os_str().as_encoded_bytes()).to_string();
    let number = u32::from_str_radix(&random[random.len() - 6..], 16).unwrap();
    change(&host.folder().join("hello").join(source), (before, &after(number)));
    done(&host, &["build", "hello"]);
    fs::copy(host.folder().join("hello/build/hello.wasm"), host.plugin_file("hello")).unwrap();
    let event = events.until(|event| event.data["plugin"] == "hello").pop().unwrap();
    assert_eq!(event.name, "plugin.loaded", "{:#}", event.data);
    let called = host.agent.call("c", "hello_count", json!({"text": "a b c"}));
    assert_eq!(called["calls"][0]["content"]["result"], json!(number + 3), "{called:#}");
    // The proof that this host cannot compile.
    let other = fixture(&json!([{"name": format!("never_compiled_{number}")}]));
    host.admin.put("/v1/plugins/other", &other).problem(500, "fault");
}

#[test]
fn host_runs_what_a_rust_build_compiled() {
    check("rust", "src/lib.rs", ".count())", |number| format!(".count() + {number})"));
}

#[test]
fn host_runs_what_a_c_build_compiled() {
    check("c", "plugin.c", "uint64_t words = 0;", |number| format!("uint64_t words = {number};"));
}

#[test]
fn host_runs_what_a_python_build_compiled() {
    check("python", "plugin.py", "len(text.split())", |number| format!("len(text.split()) + {number}"));
}
