//! `mcp install` with the files of a user's home folder.

#![cfg(feature = "mcp")]
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn install(home: &Path, client: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    for name in ["DATA", "CONFIG", "LOG"] {
        command.env_remove(format!("TOOLGATE_{name}"));
    }
    command.args(["mcp", "install", client]).args(more).current_dir(home).env("HOME", home).env("NO_COLOR", "1");
    command.output().expect("the binary runs")
}

#[test]
fn change_is_shown_and_written_only_if_the_user_agrees() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).expect("a folder");
    let earlier = r#"{"mcpServers":{"other":{"command":"x"}}}"#;
    fs::write(&file, earlier).expect("a file");

    let shown = install(home.path(), "cursor", &[]);
    assert_eq!(shown.status.code(), Some(2), "nobody is there to agree");
    let text = String::from_utf8(shown.stdout).expect("UTF-8");
    assert!(text.contains("+     \"toolgate\": {") && text.contains("toolgate-data"), "{text}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), earlier);

    assert!(install(home.path(), "cursor", &["--yes"]).status.success());
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(written["mcpServers"]["other"]["command"], "x");
    let server = &written["mcpServers"]["toolgate"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_toolgate"));
    let folder = |name: &str| home.path().join(name).display().to_string();
    let args = ["mcp", "--data", &folder("toolgate-data"), "--plugins", &folder("plugins")];
    assert_eq!(server["args"], serde_json::json!(args));
    let kept = home.path().join(".cursor/mcp.json.before-toolgate");
    assert_eq!(fs::read_to_string(&kept).expect("the earlier file"), earlier);

    let json = install(home.path(), "codex", &["--json"]);
    let said: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&said["written"], &said["removed"]), (&false.into(), &serde_json::Value::Null), "{said}");
    assert!(!home.path().join(".codex").exists());

    fs::write(home.path().join("toolgate.toml"), "data = \"other\"\n").expect("a file");
    let json = install(home.path(), "codex", &["--json"]);
    let said: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let named = format!("\"--config\",\"{}\",\"--data\",\"{}\"", folder("toolgate.toml"), folder("other"));
    assert!(said["added"].as_str().expect("a text").contains(&named), "the command reads only what is named: {said}");
    fs::remove_file(home.path().join("toolgate.toml")).expect("it is there");

    let again = install(home.path(), "cursor", &["--yes"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("has it already"));
    fs::write(&file, "{ // mine\n}").expect("a file");
    let refused = install(home.path(), "cursor", &["--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("\"toolgate\": {"), "it says what to add");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "{ // mine\n}");
}
