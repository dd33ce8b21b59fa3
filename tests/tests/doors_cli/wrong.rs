//! Wrong arguments are refused with the mistake, the expected argument and the remedy.

use std::fs;

use serde_json::json;
use toolgate_tests::host::Setup;

use crate::{completion, file, function};

/// The remedy.
const BUILD: &str = " and not a WebAssembly component; run `toolgate build` to make one from the plugin's folder";

#[test]
fn every_command_recognises_a_file_that_is_no_component() {
    let host = Setup::default().prepare();
    let rows: [(&[u8], &str, &str); 5] = [
        (b"hello\n", "this is a text", BUILD),
        (b"", "this is an empty file", BUILD),
        (b"\x7fELF\x02\x01\x01", "this is a program or library for Linux", BUILD),
        (b"(component)", "this is the text of a WebAssembly component", BUILD),
        (b"\0asm\x01\0\0\0", "a core module and not a component: ", "build it with `toolgate build`"),
    ];
    let commands: [(&[&str], &[&str]); 4] =
        [(&["check"], &[]), (&["conform"], &[]), (&["call"], &["tool", "{}"]), (&["pack"], &["--out", "out.wasm"])];
    for (bytes, is, expected) in rows {
        fs::write(host.folder().join("wrong.wasm"), bytes).unwrap();
        for (before, behind) in commands {
            let said = host.cli(None, &[before, &["wrong.wasm"], behind].concat());
            let text = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 1, "{before:?} {is}: {said:?}");
            assert!(text.contains(&format!("{is}{expected}")), "{before:?}: {said:?}");
            assert!(text.contains("build/NAME.wasm") || is.starts_with("a core"), "{before:?} {is}: {said:?}");
        }
    }
    fs::create_dir(host.folder().join("folder.wasm")).unwrap();
    for (before, behind) in commands {
        let said = host.cli(None, &[before, &["folder.wasm"], behind].concat());
        assert_eq!(said.code, 2, "{before:?}: {said:?}");
        assert!(said.err.contains("error: folder.wasm is a folder and not a component"), "{before:?}: {said:?}");
        assert!(said.err.contains("hint: `toolgate build` makes a component from a plugin's folder"), "{said:?}");
    }
    assert!(!host.folder().join("out.wasm").exists());
    // Its interface and imports are unknown.
    fs::write(host.folder().join("wrong.wasm"), "hello").unwrap();
    let said = host.cli(None, &["conform", "wrong.wasm"]);
    assert!(!said.out.contains("  pass  "), "{said:?}");
}

#[test]
fn submission_to_a_foreign_conversation_suggests_another_name() {
    let host = Setup::with(&["textkit"]).start();
    file(&host, "answer.json", &completion(json!([function("call_1", "text_stats", &json!({"text": "a"}))])));
    assert_eq!(host.cli(Some(&host.agent), &["submit", "answer.json"]).code, 0);
    file(&host, "notes.json", "{'a': 1}");
    let said = host.cli(Some(&host.agent), &["submit", "notes.json"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("error: notes.json is not JSON\n  because: key must be a string"), "{said:?}");
    let other = host.token("other", &["caller"], None);
    let said = host.cli(Some(&other), &["submit", "answer.json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("hint: a conversation belongs to its first submitter"), "{said:?}");
    assert!(said.err.contains("--conversation"), "{said:?}");
    assert_eq!(host.cli(Some(&other), &["submit", "answer.json", "--conversation", "others"]).code, 0);
}
