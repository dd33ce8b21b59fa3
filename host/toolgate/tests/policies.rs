//! Dynamic policies in the configuration, and the messages about errors.

use std::path::Path;

use expect_test::{Expect, expect};
use toolgate::config::Config;

/// Checks the message about a policy with these lines, after a valid name, file and digest.
fn check(lines: &str, expect: &Expect) {
    check_all(&format!("{FINE}{lines}"), expect);
}

const FINE: &str = "[[policies.component]]\nname = \"a\"\nfile = \"a.wasm\"\ncomponent = \"any\"\n";

fn check_all(text: &str, expect: &Expect) {
    let said = match Config::parse(text, Path::new("toolgate.toml")) {
        Ok(_) => "fine".to_owned(),
        Err(error) => format!("{error}{}", error.hint().map_or_else(String::new, |hint| format!("\n{hint}"))),
    };
    expect.assert_eq(&said);
}

#[test]
fn every_policy_option_is_read() {
    check("", &expect!["fine"]);
    check(
        "tools = \"pay*\"\nplugin = \"bank\"\ncaller = \"agent-*\"\ntimeout_ms = 10000\nsettings = { limit = 1.5, of = [true, { a = \"b\" }] }\nneeds = [{ who = [\"group:finance\"], quorum = 2 }]",
        &expect!["fine"],
    );
}

#[test]
fn meaningless_policy_is_reported_with_its_place() {
    check_all(
        "[[policies.component]]\nname = \"a\"\nfile = \"a.wasm\"",
        &expect!["toolgate.toml:1:1: the key `component` is missing"],
    );
    check(
        "tool = \"pay\"",
        &expect![[r#"
        toolgate.toml:5:1: there is no key `tool` here; the keys are `name`, `file`, `component`, `tools`, `plugin`, `caller`, `timeout_ms`, `settings`, `needs`
        did you mean `tools`?"#]],
    );
    check(
        "tools = \"pay.*\"",
        &expect!["toolgate.toml:5:9: not a pattern of names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?"],
    );
    check(
        "timeout_ms = 10001",
        &expect![[r#"
            toolgate.toml:5:1: a policy has at most 10000 ms, because calls wait for its answer
            write a shorter timeout"#]],
    );
    check("timeout_ms = 0", &expect!["toolgate.toml:5:14: `timeout_ms` is 0, and it must be a whole number above 0"]);
    check(
        "settings = { since = 2026-01-01 }",
        &expect![[r#"
            toolgate.toml:5:1: JSON has no dates; write it as a string
            write it in another form"#]],
    );
    check(
        "settings = { limit = inf }",
        &expect![[r#"
            toolgate.toml:5:1: expected a finite number
            write it in another form"#]],
    );
    check(
        &format!("settings = {{ list = \"{}\" }}", "x".repeat(70_000)),
        &expect![[r#"
            toolgate.toml:5:1: the settings have 70011 bytes as JSON, and 65536 are allowed
            these settings are too long; move the values into the policy component"#]],
    );
    check(
        "needs = [{ who = [\"principal:alice\"], quorum = 2 }]",
        &expect![[r#"
            toolgate.toml:5:39: 2 principals must approve, and only 1 are named
            name more principals, or lower the quorum"#]],
    );
    check_all(
        &FINE.replace("\"a\"", "\"a b\""),
        &expect![[r#"
            toolgate.toml:2:1: "a b" is not a name for a rule: expected 1 to 64 of the characters a-z A-Z 0-9 _ - . / : [ ]
            choose another name"#]],
    );
    check_all(
        &format!("{FINE}\n{FINE}"),
        &expect![[r#"
            toolgate.toml:7:1: two policies have the name a
            rename one of them"#]],
    );
    check_all(
        &FINE.replace("\"any\"", "\"sha256:abc\""),
        &expect![[r#"toolgate.toml:4:13: "sha256:abc" is no component: expected "sha256:" and 64 digits, or "any""#]],
    );
}

#[test]
fn missing_component_is_reported_with_its_place() {
    let config = Config::parse(FINE, Path::new("nowhere/toolgate.toml")).expect("fine");
    let error = config.policy_components().map(|_| ()).expect_err("there is no such file");
    expect![[r#"
        nowhere/toolgate.toml:3:1: the policy a: cannot read nowhere/a.wasm: No such file or directory (os error 2)
        the host starts only if every policy is available"#]]
    .assert_eq(&format!("{error}\n{}", error.hint().unwrap_or_default()));
}
