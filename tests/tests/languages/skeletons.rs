//! What `toolgate new` writes, in every language: it builds, is fine to load, and does what its examples say.

use std::fs;

use toolgate_tests::host::{Host, Setup};

use super::{done, left_out, root, toolgate};

/// A language, and what its build has to say about its tools.
#[track_caller]
fn check(language: &str, tool: &str) {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", language]);
    if language == "rust" {
        // With the versions that the example plugins use, cargo has nothing to ask a registry for.
        fs::copy(root().join("plugins/Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    }
    let said = done(&host, &["build", "hello"]);
    assert!(said.starts_with("built hello/build/hello.wasm: ") && said.contains(tool), "{said}");
    let built = "hello/build/hello.wasm";
    let said = done(&host, &["check", built]);
    assert!(said.starts_with("fine hello/build/hello.wasm: hello_count (server, auto)"), "{said}");
    let said = done(&host, &["call", built, "hello_count", r#"{"text":"to be or not"}"#]);
    assert_eq!(said.trim(), "4");
    wrong_arguments_are_refused(&host, built);
    assert!(
        !host.folder().join("hello/toolgate/sdk/python/toolgate/__pycache__").exists(),
        "the SDK is not written to"
    );
    only_its_own_folder_is_written(&host);
}

/// What the schema refuses never reaches the plugin; the answer is the same in every language.
#[track_caller]
fn wrong_arguments_are_refused(host: &Host, built: &str) {
    let refused = toolgate(host, &["call", built, "hello_count", r#"{"text":4}"#]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("invalid_arguments"), "{said}");
}

/// A build leaves nothing beside the plugin's folder.
#[track_caller]
fn only_its_own_folder_is_written(host: &Host) {
    let entries = host.folder().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    assert_eq!(names, ["data", "hello", "plugins", "toolgate.toml"]);
}

#[test]
fn rust() {
    check("rust", "rustc 1.");
}

#[test]
fn python() {
    check("python", "componentize-py 0.");
}

#[test]
fn javascript() {
    check("js", "componentize-qjs");
}

#[test]
fn typescript() {
    check("ts", "componentize-js");
}

#[test]
fn go() {
    check("go", "go1.");
}

#[test]
fn c() {
    check("c", "zig 0.");
}

#[test]
fn offline_says_what_is_missing() {
    let host = Setup::default().prepare();
    for (language, toolchain) in [("python", "python-"), ("js", "quickjs-"), ("ts", "starlingmonkey-"), ("c", "c-")] {
        assert_eq!(host.cli(None, &["new", language, "--lang", language]).code, 0);
        let said = host.cli(None, &["build", language, "--offline", "--cache", "none"]);
        assert_eq!(said.code, 4, "the machine's fault: {said:?}");
        assert!(said.err.contains(&format!("error: the toolchain {toolchain}")), "{said:?}");
        assert!(said.err.contains("hint: run it once without --offline"), "{said:?}");
    }
}
