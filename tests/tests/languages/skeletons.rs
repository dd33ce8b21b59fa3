//! The plugin from `toolgate new` loads and passes its examples. `developing.rs` builds the languages other than Rust.

use std::fs;

use toolgate_tests::dev::change;
use toolgate_tests::host::{Host, Setup};

use super::{done, left_out, reaching, root, toolgate};

/// The path of the built plugin.
const BUILT: &str = "hello/build/hello.wasm";

/// Checks a component that was built from `toolgate new`, in a host's folder.
#[track_caller]
pub(crate) fn check(host: &Host) {
    let said = done(host, &["check", BUILT]);
    assert!(said.starts_with("fine hello/build/hello.wasm: hello_count (server, auto)"), "{said}");
    let said = done(host, &["call", BUILT, "hello_count", r#"{"text":"to be or not"}"#]);
    assert_eq!(said.trim(), "4");
    wrong_arguments_are_refused(host);
    for folder in ["hello", "hello/toolgate/sdk/python/toolgate"] {
        assert!(
            !host.folder().join(folder).join("__pycache__").exists(),
            "{folder}: what is not ours is not written to"
        );
    }
}

/// Arguments that break the schema never reach the plugin. The message is the same in every language.
#[track_caller]
fn wrong_arguments_are_refused(host: &Host) {
    let refused = toolgate(host, &["call", BUILT, "hello_count", r#"{"text":4}"#]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("invalid_arguments"), "{said}");
}

/// Checks that a build writes only inside the plugin's folder.
#[track_caller]
pub(crate) fn only_its_own_folder_is_written(host: &Host, of_the_test: &[&str]) {
    let entries = host.folder().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| !of_the_test.contains(&name.as_str())).collect();
    names.sort();
    assert_eq!(names, ["data", "hello", "plugins", "toolgate.toml"]);
}

#[test]
fn rust() {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", "rust"]);
    // With the versions of the example plugins, cargo needs no registry.
    fs::copy(root().join("plugins/Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    let said = done(&host, &["build", "hello"]);
    assert!(said.starts_with("built hello/build/hello.wasm: ") && said.contains("rustc 1."), "{said}");
    check(&host);
    only_its_own_folder_is_written(&host, &[]);
    let source = host.folder().join("hello/src/lib.rs");
    change(&source, ("    text: String", "    #[schemars(extend(\"format\" = \"email\"))]\n    text: String"));
    change(&source, (".count())", ".count() + 1)"));
    done(&host, &["build", "hello"]);
    let component = fs::read(host.folder().join(BUILT)).unwrap();
    reaching::no_format_is_checked(&Setup::default().component("hello", component).start());
}

/// The output of a successful build to standard error.
#[track_caller]
fn errors(host: &Host) -> String {
    let output = toolgate(host, &["build", "hello"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// A build without warnings prints only its own steps.
#[track_caller]
fn warning_is_shown(language: &str, source: &str, code: &str, warning: &str) {
    if left_out() {
        return;
    }
    let host = Setup::default().prepare();
    done(&host, &["new", "hello", "--lang", language]);
    if language == "rust" {
        // With the versions of the example plugins, cargo needs no registry.
        fs::copy(root().join("plugins/Cargo.lock"), host.folder().join("hello/Cargo.lock")).unwrap();
    }
    let said = errors(&host);
    let steps = ["compiling hello with ", "checking the component as a host would"];
    assert!(said.lines().all(|line| steps.iter().any(|step| line.starts_with(step))), "{said}");
    let source = host.folder().join("hello").join(source);
    fs::write(&source, fs::read_to_string(&source).unwrap() + code).unwrap();
    let said = errors(&host);
    let (before, after) = said.split_once(warning).unwrap_or_else(|| panic!("{warning}: {said}"));
    assert!(before.contains(steps[0]) && after.contains(steps[1]), "it is at its place: {said}");
    assert!(!said.contains("{\"reason\"") && !said.contains("Finished"), "{said}");
}

#[test]
fn warnings_of_rust_are_shown() {
    let warning = "warning: function `unused` is never used\n  --> src/lib.rs:";
    warning_is_shown("rust", "src/lib.rs", "\nfn unused() {}\n", warning);
}

#[test]
fn warnings_of_c_are_shown() {
    let warning = "warning: unused function 'unused' [-Wunused-function]\n";
    warning_is_shown("c", "plugin.c", "\nstatic void unused(void) {}\n", warning);
}

#[test]
fn offline_says_what_is_missing() {
    let host = Setup::default().prepare();
    for (language, toolchain) in [("python", "python-"), ("js", "quickjs-"), ("ts", "starlingmonkey-"), ("c", "c-")] {
        assert_eq!(host.cli(None, &["new", language, "--lang", language]).code, 0);
        let said = host.cli(None, &["build", language, "--offline", "--cache", "none"]);
        assert_eq!(said.code, 5, "a tool is missing: {said:?}");
        assert!(said.err.contains(&format!("error: the toolchain {toolchain}")), "{said:?}");
        assert!(said.err.contains("hint: run it once without --offline"), "{said:?}");
    }
}
