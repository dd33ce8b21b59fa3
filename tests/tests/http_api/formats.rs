//! A model's answer is submitted unchanged, and its results have the format of the same provider.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path, suspension_of};

const TURNS: &str = "/v1/conversations/c/turns";

fn host() -> Host {
    Setup::with(&["lab", "textkit", "websearch"]).start()
}

/// The JSON in a content text.
fn content(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

#[test]
fn chat_completion_returns_tool_messages() {
    let host = host();
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls = json!([
        call("call_1", "echo", "{\"value\":{\"a\":1.5}}"),
        call("call_2", "echo", "{\"value\":"),
        call("call_3", "gated_echo", "{\"value\":3}"),
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls, "refusal": null});
    let completion = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5.1",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let turn = host.agent.post(&format!("{TURNS}?wait_ms=60000"), &completion).ok(201);
    assert_eq!(outcomes(&turn), ["ok", "failed(invalid_arguments)", "awaiting"]);
    // The message without the completion is the same turn.
    assert_eq!(host.agent.post(TURNS, &message).ok(200)["turn"], turn["turn"]);

    let read = format!("{}?format=openai", path(&turn));
    host.agent.get(&read).problem(409, "not-settled");
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "deny"})).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    let messages = host.agent.get(&read).ok(200);
    for (n, id) in ["call_1", "call_2", "call_3"].into_iter().enumerate() {
        assert_eq!((&messages[n]["role"], &messages[n]["tool_call_id"]), (&json!("tool"), &json!(id)));
        assert_eq!(content(&messages[n]["content"]), turn["calls"][n]["content"]);
    }
}

#[test]
fn response_returns_outputs() {
    let host = host();
    let response = json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.1",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "echo", "arguments": "{\"value\":1}", "status": "completed"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]},
        ],
    });
    let turn = host.agent.post(&format!("{TURNS}?wait_ms=60000&format=openai-responses"), &response);
    assert_eq!(turn.headers["toolgate-turn-state"], "settled");
    let outputs = turn.ok(201);
    assert_eq!((&outputs[0]["type"], &outputs[0]["call_id"]), (&json!("function_call_output"), &json!("call_1")));
    assert_eq!(content(&outputs[0]["output"]), json!({"ok": true, "result": 1}));
}

#[test]
fn message_returns_results_without_provider_calls() {
    let host = host();
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": "I look it up."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "https://example.org"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "text_stats", "input": {"text": "high and low"}},
            {"type": "tool_use", "id": "toolu_2", "name": "fail", "input": {"message": "no"}},
        ],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let turn = host.agent.post(&format!("{TURNS}?wait_ms=60000"), &message).ok(201);
    assert_eq!(outcomes(&turn), ["ok", "ok", "failed(tool_failed)"]);
    assert_eq!((&turn["calls"][0]["executor"], &turn["calls"][0]["trusted"]), (&json!("provider"), &json!(false)));
    let user = host.agent.get(&format!("{}?format=anthropic", path(&turn))).ok(200);
    assert_eq!(user["role"], "user");
    let blocks = user["content"].as_array().unwrap();
    let ids: Vec<_> =
        blocks.iter().map(|block| (block["tool_use_id"].as_str().unwrap(), block["is_error"] == true)).collect();
    assert_eq!(ids, [("toolu_1", false), ("toolu_2", true)]);
    assert_eq!(content(&blocks[0]["content"])["result"]["words"], 3);
}

#[test]
fn query_carries_members_that_provider_formats_lack() {
    let host = host();
    let call = json!({"id": "a", "type": "function", "function": {"name": "gated_echo", "arguments": "{\"value\":1}"}});
    let other =
        json!({"id": "b", "type": "function", "function": {"name": "gated_echo", "arguments": "{\"value\":2}"}});
    let message = json!({"role": "assistant", "tool_calls": [call, other]});
    let turn = host.agent.post(&format!("{TURNS}?rejection=abort_turn&context=%7B%22who%22%3A1%7D"), &message).ok(201);
    assert_eq!((&turn["rejection"], &turn["context"]), (&json!("abort_turn"), &json!({"who": 1})));
    let first = turn["pending"][0]["suspension"].as_str().unwrap();
    assert_eq!(host.approver.resolve(first, json!({"decision": "deny"})).ok(200)["ok"], true);
    let read = host.agent.get(&format!("{}?format=openai", path(&turn)));
    assert_eq!(read.headers["toolgate-turn-state"], "aborted");
    let own = json!({"calls": [{"id": "c", "tool": "echo", "arguments": {"value": 1}}]});
    host.agent.post(&format!("{TURNS}?rejection=abort_turn"), &own).problem(400, "bad-request");
}

#[test]
fn tools_are_listed_in_every_format_with_verbatim_schemas() {
    let host = host();
    let own = host.agent.get("/v1/tools").ok(200);
    let tool = |name: &str| own["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
    let schema = &tool("text_stats")["parameters"];
    assert_eq!(tool("web_search")["executor"], "provider");
    for (format, list, schema_at) in [
        ("openai", "", "/function/parameters"),
        ("openai-responses", "", "/parameters"),
        ("anthropic", "", "/input_schema"),
        ("mcp", "/tools", "/inputSchema"),
    ] {
        let answer = host.agent.get(&format!("/v1/tools?format={format}"));
        assert_eq!(answer.headers["toolgate-left-out"], "web_search", "{format}");
        assert!(!answer.text.contains("web_search"), "{format}");
        let listed = answer.ok(200);
        let name_at = schema_at.rsplit_once('/').unwrap().0.to_owned() + "/name";
        let found = listed.pointer(list).unwrap().as_array().unwrap().iter();
        let found = found.clone().find(|tool| tool.pointer(&name_at).unwrap() == "text_stats").unwrap();
        assert_eq!(found.pointer(schema_at), Some(schema), "{format}");
    }
}
