//! The JSON that commands print without a host.

use super::*;

/// Scripts read standard output. Each failed command prints one JSON object there and nothing else.
#[test]
fn failed_command_prints_one_json_object_if_json_is_asked_for() {
    let folder = folder();
    for (words, code, error) in [
        ("tools --json", 3, "no host runs on toolgate-data"),
        ("pending --json --url nonsense", 2, "\"nonsense\" is not the address of a host"),
        ("build --json none", 2, "there is no folder none"),
        ("build --json .", 2, ". is not a plugin in a language that toolgate builds"),
        (
            "verify-build --json none sha256:0000000000000000000000000000000000000000000000000000000000000000",
            2,
            "there is no folder none",
        ),
        ("submit --json missing.json --url http://127.0.0.1:9", 2, "cannot read missing.json"),
        ("pack --json missing.wasm", 2, "cannot read missing.wasm"),
        ("conform --json missing.wasm", 2, "cannot read missing.wasm"),
        ("grants --json missing.wasm", 2, "cannot read missing.wasm"),
        ("restore --json missing.backup new", 2, "cannot read missing.backup"),
        ("serve --json --plugins plugns", 2, "there is no plugin folder at plugns"),
        ("store export --json", 1, "there is no store in toolgate-data/store"),
        ("audit checkpoint --json", 3, "no host runs on toolgate-data"),
        ("audit verify --json", 1, "there is no store in toolgate-data/store"),
        ("token revoke nobody --json --data .", 1, "there is no token with the name nobody"),
        ("check --json missing.wasm", 2, "cannot read missing.wasm"),
        ("call missing.wasm --json", 2, "cannot read missing.wasm"),
        (
            "verify-build . nonsense --json",
            2,
            "invalid value 'nonsense' for '<DIGEST>': not a digest: expected `sha256:` and 64 lower-case hexadecimal digits",
        ),
        (
            "completions tcsh --json",
            2,
            "invalid value 'tcsh' for '<SHELL>'\n  [possible values: bash, elvish, fish, powershell, zsh]",
        ),
        ("status --jsn --json", 2, "unexpected argument '--jsn' found"),
    ] {
        let said = toolgate(folder.path(), &words.split(' ').collect::<Vec<_>>());
        let value: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        assert_eq!((&value["ok"], &value["error"]), (&false.into(), &error.into()), "{words}: {said:?}");
        assert!(value["causes"].is_array() && value["hints"].is_array(), "{words}: {said:?}");
        assert_eq!((said.status.code(), said.stderr.as_slice()), (Some(code), &b""[..]), "{words}");
    }
    let said = toolgate(folder.path(), &["status", "--", "--json"]);
    assert!(said.stdout.is_empty() && !said.stderr.is_empty(), "it is no option there: {said:?}");
}

#[test]
fn completions_as_json_have_the_script() {
    let folder = folder();
    let plain = toolgate(folder.path(), &["completions", "bash"]);
    let value: serde_json::Value =
        serde_json::from_slice(&toolgate(folder.path(), &["completions", "bash", "--json"]).stdout).expect("JSON");
    assert_eq!(value["shell"], "bash");
    assert_eq!(value["script"], String::from_utf8(plain.stdout).expect("text"));
}
