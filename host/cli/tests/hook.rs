//! `hook` and `mcp` in the folder of a project whose author is not trusted.

#![cfg(feature = "mcp")]
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn toolgate(folder: &Path, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    for name in ["URL", "TOKEN", "DATA", "CONFIG", "LOG"] {
        command.env_remove(format!("TOOLGATE_{name}"));
    }
    let command = command.args(words).current_dir(folder).env("NO_COLOR", "1");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // It may end without reading.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

const ASKED: &str = r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make"}}"#;

#[test]
fn no_file_of_a_project_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for content in ["data = \"toolgate-data\"\n", "no configuration"] {
        fs::write(folder.path().join("toolgate.toml"), content).expect("a file");
        let hook = toolgate(folder.path(), &["hook", "claude-code"], ASKED);
        assert!(hook.status.success());
        let said = String::from_utf8_lossy(&hook.stdout);
        assert!(said.contains("\"ask\"") && said.contains("the data folder is missing"), "{said}");
        let hook = toolgate(folder.path(), &["hook", "claude-code", "--data", "mine"], ASKED);
        let said = String::from_utf8_lossy(&hook.stdout);
        assert!(said.contains("\"ask\"") && said.contains("no host runs on mine"), "{said}");
        for words in [&["mcp"][..], &["mcp", "--data", "mine"], &["mcp", "--url", "http://127.0.0.1:1"]] {
            let refused = toolgate(folder.path(), words, "");
            assert_eq!(refused.status.code(), Some(2), "{words:?}");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(said.contains(" is missing") && !said.contains("toolgate.toml:"), "{words:?}: {said}");
        }
    }
    assert!(!folder.path().join("toolgate-data").exists() && !folder.path().join("plugins").exists());
}

#[test]
fn request_that_cannot_be_read_is_no_denial() {
    let folder = tempfile::tempdir().expect("a folder");
    let large = ASKED.replace("make", &"x".repeat(16 << 20));
    for asked in ["", "{}", r#"{"hook_event_name":"Stop"}"#, &large] {
        let hook = toolgate(folder.path(), &["hook", "claude-code", "--data", "mine"], asked);
        assert_eq!((hook.status.code(), hook.stdout.len()), (Some(1), 0), "agents take 2 for a denial: {asked:.60}");
    }
}
