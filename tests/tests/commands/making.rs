//! `toolgate new` makes a plugin that passes its test, builds, loads and can be called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
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
    let (_, took) = said.out.split_once(" in ").unwrap();
    let (took, _) = took.split_once(" s, with ").unwrap();
    let (whole, tenths) = took.split_once('.').unwrap();
    assert!(whole.parse::<u64>().is_ok() && tenths.len() == 1 && tenths.parse::<u8>().is_ok(), "{said:?}");
    for step in ["compiling hello with rustc", "checking the component as a host would"] {
        assert!(said.err.contains(step), "{said:?}");
    }
    let again = build(&host, &["hello", "--json"]);
    let made: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&made["ok"], &made["tools"]), (&json!(true), &json!(["hello_count"])), "{made}");
    assert!(said.out.contains(made["component"].as_str().unwrap()) && made["millis"].is_u64(), "{made}");
    let built = "hello/build/hello.wasm";
    let said = host.cli(None, &["check", built]);
    assert_eq!((said.code, said.out.contains("hello_count (server, auto)")), (0, true), "{said:?}");
    let said = host.cli(None, &["call", built, r#"{"text":"to be or not"}"#]);
    assert_eq!((said.code, said.out.trim()), (0, "4"), "{said:?}");
    assert_eq!(host.cli(None, &["new", "hello"]).code, 1, "existing files are not overwritten");
    let said = host.cli(None, &["new", "other", "--json"]);
    let wrote: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&wrote["folder"], &wrote["language"]), (&json!("other"), &json!("rust")), "{wrote}");
    assert!(wrote["files"].as_array().unwrap().contains(&json!("src/lib.rs")), "{wrote}");
    a_large_schema_gets_a_note(&host);
    a_folder_that_cannot_be_written_is_the_fault_of_the_machine(&host);
    a_build_that_fails_leaves_what_was_built(&host);
}

/// A file has the name of the folder.
fn a_folder_that_cannot_be_written_is_the_fault_of_the_machine(host: &Host) {
    std::fs::write(host.folder().join("file"), "").unwrap();
    assert_eq!(host.cli(None, &["new", "inc", "--lang", "c"]).code, 0);
    for words in [["hello", "--out", "file/hello.wasm"], ["inc", "--cache", "file/cache"]] {
        let said = build(host, &[&words[..], &["--json"]].concat());
        let failed: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((said.code, &failed["ok"], &failed["fault"]), (4, &json!(false), &json!("host")), "{failed}");
    }
}

/// The note says what a host with default limits does: it refuses the component.
fn a_large_schema_gets_a_note(host: &Host) {
    let source = host.folder().join("hello/src/lib.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    let (begin, field) = text.split_once("text: String").unwrap();
    let long = format!("{begin}#[doc = \"{}\"]\n    text: String{field}", "x".repeat(70_000));
    std::fs::write(&source, long).unwrap();
    let said = build(host, &["hello", "--out", "large.wasm"]);
    let note = "note: tool hello_count: a schema has 70";
    assert!(said.code == 0 && said.out.contains(note), "{said:?}");
    assert!(said.out.contains("a host accepts 65536, unless its `catalog.schema_bytes` is larger"), "{said:?}");
    let made: Value = serde_json::from_str(&build(host, &["hello", "--out", "large.wasm", "--json"]).out).unwrap();
    assert_eq!(made["notes"].as_array().map(Vec::len), Some(1), "{made}");
    let said = host.cli(None, &["check", "large.wasm"]);
    assert!(said.code == 1 && said.out.contains("`catalog.schema_bytes`"), "{said:?}");
    std::fs::write(&source, text).unwrap();
}

fn a_build_that_fails_leaves_what_was_built(host: &Host) {
    let (source, built) = (host.folder().join("hello/src/lib.rs"), host.folder().join("hello/build/hello.wasm"));
    let (text, before) = (std::fs::read_to_string(&source).unwrap(), std::fs::read(&built).unwrap());
    std::fs::write(&source, format!("{text}\nfn broken() -> u8 {{ \"a\" }}\n")).unwrap();
    let said = build(host, &["hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("error: compiling the plugin failed"), "{said:?}");
    assert!(said.err.contains("\nerror[E0308]: mismatched types\n") && !said.err.contains("{\"reason\""), "{said:?}");
    a_command_repeats_it(host, &said);
    let said = build(host, &["hello", "--json"]);
    let failed: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &failed["ok"], &failed["fault"]), (1, &json!(false), &json!("plugin")), "{failed}");
    assert!(failed["command"].as_str().unwrap().contains("cargo build"), "{failed}");
    assert!(failed["output"].as_str().unwrap().contains("mismatched types"), "{failed}");
    // It compiles, but no host would load it, because models do not accept the tool's name.
    std::fs::write(&source, text.replace("\"hello_count\"", "\"hello count\"")).unwrap();
    let said = build(host, &["hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("a host would refuse hello") && said.err.contains("hello count"), "{said:?}");
    assert_eq!(std::fs::read(&built).unwrap(), before);
}

/// The command has the typed options. A shell that runs it repeats the failure, also in a folder whose name has a space.
fn a_command_repeats_it(host: &Host, said: &Said) {
    let hint = |said: &str| said.lines().last().unwrap().strip_prefix("hint: to repeat it: ").unwrap().to_owned();
    let cache = host.folder().join("cache");
    assert_eq!(hint(&said.err), format!("toolgate build hello --cache {} --offline", cache.display()));
    let (folder, spaced) = (host.folder().join("hello"), host.folder().join("my plugins"));
    std::fs::create_dir(&spaced).unwrap();
    std::fs::rename(&folder, spaced.join("hello")).unwrap();
    // Without --lang, the language is unclear.
    std::fs::write(spaced.join("hello/plugin.c"), "").unwrap();
    let said = build(host, &["my plugins/hello", "--lang", "rust", "--out", "it's.wasm", "--cache", "my cache"]);
    let command = r"toolgate build 'my plugins/hello' --lang rust --out 'it'\''s.wasm' --cache 'my cache' --offline";
    assert_eq!((said.code, hint(&said.err).as_str()), (1, command), "{said:?}");
    let binary = host.command(None, &[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("toolgate() {{ \"$BINARY\" \"$@\"; }}; {command}")]).env("BINARY", binary);
    shell.current_dir(host.folder()).env("CARGO_TARGET_DIR", plugins().join("target/new")).stdin(Stdio::null());
    let again = shell.output().unwrap();
    let errors = String::from_utf8(again.stderr).unwrap();
    assert_eq!((again.status.code(), hint(&errors).as_str()), (Some(1), command), "{errors}");
    assert!(errors.contains("\nerror[E0308]: mismatched types\n"), "{errors}");
    std::fs::remove_file(spaced.join("hello/plugin.c")).unwrap();
    std::fs::rename(spaced.join("hello"), &folder).unwrap();
}

/// `toolgate build` with a target folder that stays between runs.
fn build(host: &Host, words: &[&str]) -> Said {
    let mut command = host.command(None, &[&["build", "--offline"], words].concat());
    command.env("CARGO_TARGET_DIR", plugins().join("target/new")).env("TOOLGATE_CACHE", host.folder().join("cache"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
