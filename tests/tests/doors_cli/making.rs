//! `toolgate new` makes a plugin that passes its test, builds, and is fine to load and to call.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolgate_tests::host::{Host, Setup};

/// The workspace of the example plugins, whose versions of the same dependencies are at hand.
fn plugins() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins")).canonicalize().unwrap()
}

fn cargo(host: &Host, words: &[&str]) {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(host.folder().join("hello")).stdin(Stdio::null());
    // Kept between runs, so that dependencies are compiled once.
    command.env("CARGO_TARGET_DIR", plugins().join("target/new"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "cargo {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_new_plugin_is_tested_built_checked_and_called() {
    let host = Setup::default().prepare();
    let said = host.cli(None, &["new", "hello"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // With the versions that the example plugins use, cargo has nothing to ask a registry for.
    std::fs::copy(plugins().join("Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    cargo(&host, &["test", "--quiet"]);
    cargo(&host, &["build", "--quiet", "--release", "--target", "wasm32-wasip2"]);
    let built = plugins().join("target/new/wasm32-wasip2/release/hello.wasm");
    let built = built.to_str().unwrap();
    let said = host.cli(None, &["check", built]);
    assert_eq!((said.code, said.out.contains("hello_count (server, auto)")), (0, true), "{said:?}");
    let said = host.cli(None, &["call", built, r#"{"text":"to be or not"}"#]);
    assert_eq!((said.code, said.out.trim()), (0, "4"), "{said:?}");
    assert_eq!(host.cli(None, &["new", "hello"]).code, 1, "what is there is not overwritten");
}
