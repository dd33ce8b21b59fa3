//! Answers of the providers' APIs as a caller submits them, and the results that go back to each API. `tests/published` wrote the
//! answers with the types of the official libraries.

use serde_json::{Value, json};
use toolgate_tests::dev::root;
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};

/// Submits an answer of `host/server/tests/answers` and returns what the command prints for the provider.
#[track_caller]
fn submitted(host: &Host, answer: &str, format: &str) -> String {
    let file = root().join("host/server/tests/answers").join(answer).display().to_string();
    let said = host.cli(Some(&host.agent), &["submit", &file, "--conversation", answer, "--format", format]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out
}

/// The id of each result and its content.
#[track_caller]
fn results(printed: &str, pointer: &str, id: &str, content: &str) -> Vec<(String, Value)> {
    let printed: Value = serde_json::from_str(printed).unwrap();
    let results = printed.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{printed:#}"));
    let text = |result: &Value, name: &str| result[name].as_str().unwrap().to_owned();
    results.iter().map(|result| (text(result, id), serde_json::from_str(&text(result, content)).unwrap())).collect()
}

#[test]
fn answers_of_each_api_give_results_for_it() {
    let echo = fixture(
        &json!([{"name": "echo", "description": "Gives back its arguments.", "parameters": "{\"type\":\"object\"}"}]),
    );
    let host = Setup::default().component("echo", echo).start();
    let boston = json!({"ok": true, "result": {"city": "Boston"}});
    let chat = submitted(&host, "chat-complete.json", "openai");
    let of_chat = results(&chat, "", "tool_call_id", "content");
    assert_eq!(of_chat[0], ("call_1".to_owned(), boston.clone()));
    assert_eq!((of_chat.len(), &of_chat[1].1["error"]["code"]), (2, &json!("invalid_arguments")), "{chat}");
    let response = submitted(&host, "responses-complete.json", "openai-responses");
    let of_response = results(&response, "", "call_id", "output");
    assert_eq!(of_response[2], ("call_3".to_owned(), boston.clone()));
    assert_eq!(of_response.len(), 4, "{response}");
    let message = submitted(&host, "messages-complete.json", "anthropic");
    let of_message = results(&message, "/content", "tool_use_id", "content");
    assert_eq!(of_message, ["toolu_1", "toolu_2"].map(|id| (id.to_owned(), boston.clone())), "{message}");
}

#[test]
fn answer_without_calls_for_us_gives_nothing_to_append() {
    let host = Setup::default().start();
    assert_eq!(submitted(&host, "responses-hosted.json", "openai-responses"), "[]\n");
    assert_eq!(submitted(&host, "messages-hosted.json", "anthropic"), "null\n");
}
