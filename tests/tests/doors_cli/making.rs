//! `toolgate new` makes a plugin that passes its test, builds, loads and can be called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolgate_tests::host::{Host, Said, Setup};

/// The workspace of the example plugins, which has the same dependencies in its lock file.
pub(crate) fn plugins() -> PathBuf {
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
    assert!(said.out.contains("\n  toolgate build\n"), "{}", said.out);
    // With the versions of the example plugins, cargo needs no registry.
    std::fs::copy(plugins().join("Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    cargo(&host, &["test", "--quiet"]);
    let said = build(&host, &["hello"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("built hello/build/hello.wasm: hello_count"), "{said:?}");
    let built = "hello/build/hello.wasm";
    let said = host.cli(None, &["check", built]);
    assert_eq!((said.code, said.out.contains("hello_count (server, auto)")), (0, true), "{said:?}");
    let said = host.cli(None, &["call", built, r#"{"text":"to be or not"}"#]);
    assert_eq!((said.code, said.out.trim()), (0, "4"), "{said:?}");
    assert_eq!(host.cli(None, &["new", "hello"]).code, 1, "existing files are not overwritten");
    a_build_that_fails_leaves_what_was_built(&host);
}

fn a_build_that_fails_leaves_what_was_built(host: &Host) {
    let (source, built) = (host.folder().join("hello/src/lib.rs"), host.folder().join("hello/build/hello.wasm"));
    let (text, before) = (std::fs::read_to_string(&source).unwrap(), std::fs::read(&built).unwrap());
    std::fs::write(&source, format!("{text}\nfn broken() -> u8 {{ \"a\" }}\n")).unwrap();
    let said = build(host, &["hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("error: compiling the plugin failed"), "{said:?}");
    assert!(said.err.contains("mismatched types") && !said.err.contains("{\"reason\""), "{said:?}");
    // It compiles, but no host would load it, because models do not accept the tool's name.
    std::fs::write(&source, text.replace("\"hello_count\"", "\"hello count\"")).unwrap();
    let said = build(host, &["hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("a host would refuse hello") && said.err.contains("hello count"), "{said:?}");
    assert_eq!(std::fs::read(&built).unwrap(), before);
}

/// `toolgate build` with a target folder that stays between runs.
fn build(host: &Host, words: &[&str]) -> Said {
    let mut command = host.command(None, &[&["build", "--offline"], words].concat());
    command.env("CARGO_TARGET_DIR", plugins().join("target/new")).env("TOOLGATE_CACHE", host.folder().join("cache"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
