//! Tools and components that break rules, with the rules.

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal, patched, plugin, with_section};

/// A refused component.
pub(crate) struct Row {
    /// The error, for messages.
    pub(crate) what: &'static str,
    pub(crate) component: Vec<u8>,
    /// The rules of the findings, in order.
    pub(crate) expected: Vec<&'static str>,
}

/// Tools with the rules that each breaks. One component declares all of them.
pub(crate) fn declared() -> Vec<(Value, Vec<&'static str>)> {
    // A text, because the reader of the slot limits the depth of JSON too.
    let nested = (0..90).fold("{}".to_owned(), |inner, _| format!("{{\"type\":\"object\",\"items\":{inner}}}"));
    let with = |schema: Value| json!({"parameters": {"type": "object", "properties": {"a": schema}}});
    let option = |options: Value| json!({"options": options});
    let gated = |options: Value| json!({"approval": "requires-approval", "options": options});
    vec![
        (json!({"executor": "human", "approval": "requires-approval"}), vec!["gated-human"]),
        (json!({"executor": "provider", "approval": "requires-approval"}), vec!["gated-provider"]),
        (json!({"name": "a b"}), vec!["tool-name"]),
        (json!({"name": ""}), vec!["tool-name"]),
        (json!({"name": "x".repeat(65)}), vec!["tool-name"]),
        (json!({"name": "\u{1b}[2Kpay\u{202e}"}), vec!["tool-name"]),
        (json!({"name": "echo"}), vec!["tool-name-taken"]),
        (json!({"description": ""}), vec!["description"]),
        (json!({"description_bytes": 100_000}), vec!["description"]),
        (json!({"executor": "human", "streaming": true}), vec!["streaming"]),
        (json!({"executor": "provider", "streaming": true}), vec!["streaming"]),
        (json!({"parameters": "{"}), vec!["schema-invalid"]),
        (json!({"parameters": {"type": "objekt"}}), vec!["schema-not-object", "schema-invalid"]),
        (json!({"parameters": {"type": "string"}}), vec!["schema-not-object"]),
        (with(json!({"$ref": "https://example.com/a.json"})), vec!["schema-remote"]),
        (with(json!({"$ref": "#/properties/a"})), vec!["schema-cycle"]),
        (json!({"parameters_bytes": 200_000}), vec!["schema-size"]),
        (json!({"parameters": nested}), vec!["schema-depth"]),
        (option(json!("[]")), vec!["options-form"]),
        (option(json!("{")), vec!["options-form"]),
        (option(json!("{\"title\":\"a\",\"title\":\"b\"}")), vec!["options-form"]),
        (option(json!({"tiemout_ms": 1})), vec!["option-unknown"]),
        (option(json!({"timeout_ms": -1})), vec!["option-form"]),
        (option(json!({"editable": "all"})), vec!["option-scope"]),
        (option(json!({"expires_ms": 1})), vec!["option-scope"]),
        (json!({"executor": "provider", "options": {"responses": ["answer"]}}), vec!["option-scope"]),
        (gated(json!({"on_expiry": {"answer": 1}})), vec!["option-contradiction"]),
        (option(json!({"hints": {"read_only": true, "destructive": true}})), vec!["option-contradiction"]),
        (option(json!({"retention": {"never_evict": true, "max_count": 1}})), vec!["option-contradiction"]),
        (gated(json!({"prompt": "{nobody}"})), vec!["prompt"]),
        (gated(json!({"on_expiry": "approve"})), vec!["approve-on-expiry"]),
        (json!({"name": "strict_question", "executor": "human"}), vec!["policy-human"]),
        (json!({"name": "strict_search", "executor": "provider"}), vec!["policy-provider"]),
        (
            json!({
                "name": "c d", "executor": "human", "approval": "requires-approval", "streaming": true,
                "parameters": "{", "description": "", "options": {"x": 1, "timeout_ms": 1},
            }),
            vec![
                "tool-name",
                "gated-human",
                "description",
                "streaming",
                "schema-invalid",
                "option-unknown",
                "option-scope",
            ],
        ),
    ]
}

/// A declaration of the fixture's tool with a gate. The fixture itself declares no gate.
const OTHER: &str = r#"{"form":1,"tools":[{"name":"tool","description":"A tool.","parameters":"{\"type\":\"object\"}",
    "executor":"server","approval":"requires-approval","streaming":false,"options":"{}"}]}"#;

/// Components that break a rule as a whole.
pub(crate) fn rows() -> Vec<Row> {
    let row =
        |what, component: Vec<u8>, expected: &[&'static str]| Row { what, component, expected: expected.to_vec() };
    let (newest, newer) = (b"toolgate:plugin/catalog@0.1.2", b"toolgate:plugin/catalog@0.9.9");
    let newer = replaced(&illegal("fixture"), newest, newer);
    vec![
        row("no component", b"no component".to_vec(), &["invalid-component"]),
        row("half a component", illegal("fixture")[..5000].to_vec(), &["invalid-component"]),
        row("a module", b"\0asm\x01\0\0\0".to_vec(), &["invalid-component"]),
        row(
            "a flood of custom sections",
            [illegal("fixture"), [0, 1, 0].repeat(3_000)].concat(),
            &["component-structure"],
        ),
        row("an interface of the future", newer, &["unknown-interface"]),
        row("a server tool without a function", patched(&illegal("declare"), &json!([{}])), &["no-server"]),
        row("an import that exists nowhere", illegal("intruder"), &["import-not-granted"]),
        row("a store that was not granted", plugin("ledger"), &["import-not-granted"]),
        row("a section that is no declaration", with_section(&fixture(&json!([{}])), "{}"), &["declaration-form"]),
        row(
            "a section that says other than tools()",
            with_section(&fixture(&json!([{}])), OTHER),
            &["declaration-differs"],
        ),
        row("tools() traps", fixture(&json!("trap")), &["catalog"]),
        row("tools() never returns", fixture(&json!("spin")), &["catalog"]),
        row("300 tools", fixture(&json!([{"repeat": 300}])), &["too-many-tools"]),
        row("10,000 tools", fixture(&json!([{"repeat": 10_000}])), &["catalog"]),
        row("one name twice", fixture(&json!([{}, {}])), &["tool-name-twice"]),
        row(
            "two tools, each with findings",
            fixture(&json!([{"name": "a", "description": ""}, {"name": "b", "parameters": {"type": "string"}}])),
            &["description", "schema-not-object"],
        ),
    ]
}

/// The bytes with every occurrence of a text replaced by another of the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut replaced = bytes.to_vec();
    let places: Vec<_> = (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| replaced[*at..*at + to.len()].copy_from_slice(to));
    replaced
}
