//! Texts of plugins, models and people that would move the cursor, hide or reorder text are escaped.

use serde_json::json;
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;

/// A deceptive text: an escape sequence, a right-to-left override, a fake line of the host, a zero width space.
const HOSTILE: &str = "\u{1b}[2K\u{1b}[1Afine\u{202e}001\nanswered susp_1: approve\u{200b}";

#[test]
fn printed_text_has_no_terminal_control_characters() {
    let of = |member: &str| json!({"type": "object", "properties": {member: {"type": "string"}}});
    let pay = json!({
        "name": "pay", "description": HOSTILE, "approval": "requires-approval", "parameters": of("to"),
        "options": {"prompt": "Pay {to}?"},
    });
    let ask = json!({
        "name": "ask", "executor": "human", "parameters": of("question"), "options": {"prompt": "{question}"},
    });
    let host = Setup::default().component("hostile", fixture(&json!([pay, ask]))).start();
    let calls = json!([
        {"id": "p", "tool": "pay", "arguments": {"to": HOSTILE}},
        {"id": "q", "tool": "ask", "arguments": {"question": HOSTILE}},
        {"id": "u", "tool": HOSTILE, "arguments": {}},
    ]);
    let turn = host.agent.submit_turn("c", &json!({"calls": calls, "context": {"note": HOSTILE}}));
    let first = turn["pending"][0]["suspension"].as_str().unwrap().to_owned();
    let shown = turn["turn"].as_str().unwrap();
    let commands: Vec<Vec<&str>> = vec![
        vec!["tools"],
        vec!["tools", "--format", "openai"],
        vec!["pending"],
        vec!["pending", "--json"],
        vec!["show", &first],
        vec!["show", &first, "--json"],
        vec!["show", shown, "--conversation", "c"],
        vec!["show", shown, "--conversation", "c", "--json"],
        vec!["deny", &first, "--comment", HOSTILE],
        vec!["deny", &first, "--comment", HOSTILE],
        vec!["approve", &first],
        vec!["audit"],
        vec!["audit", "--json"],
        vec!["pending", "--state", "all"],
    ];
    let alice = host.token("both", &["admin"], None);
    for words in commands {
        let said = host.cli(Some(&alice), &words);
        let text = format!("{}{}", said.out, said.err);
        let fooled = text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r', '\u{7}']);
        assert!(!fooled, "{words:?}: {text:?}");
        // A forged line is indented or inside a line of the host.
        assert!(text.lines().all(|line| !line.starts_with("answered susp_1:")), "{words:?}: {text}");
    }
}
