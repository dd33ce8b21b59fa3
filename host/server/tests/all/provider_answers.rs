//! Answers of the three provider APIs. They are for this host or for others, complete or cut off. `tests/answers` holds one file
//! for each, which `tests/published` writes with the types of the official libraries.

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::world::TestServer;

/// The calls that a submitted answer leads to, each with its outcome, and the results in the format of its provider.
async fn check(answer: &str, format: &str, expected: Expect) {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", answer).await;
    let mut listing = String::new();
    for call in turn.json()["calls"].as_array().unwrap() {
        let text = |name: &str| call[name].as_str().unwrap_or("-").to_owned();
        let runs = call["attempt"].as_u64().unwrap();
        listing += &format!("{} {}: {}, started {runs} times\n", text("id"), text("tool"), text("outcome"));
    }
    let path = format!("/v1/conversations/c/turns/{}?wait_ms=60000&format={format}", turn.at("/turn"));
    let results = world.get("alice", &path).await;
    assert_eq!(results.status, 200, "{}", results.text);
    let results = results.json();
    assert!(is_documented(&world, format, &results).await, "{results}");
    for result in results["content"].as_array().or(results.as_array()).into_iter().flatten() {
        listing += &format!("{result}\n");
    }
    if results.is_null() {
        listing += "nothing to append\n";
    }
    // A repeated submission is the same turn, and no call runs twice.
    let again = world.submit("", answer).await;
    assert_eq!((again.status.as_u16(), again.at("/turn")), (200, turn.at("/turn")));
    expected.assert_eq(&listing);
}

/// The alternatives of a schema, or the schema itself.
fn alternatives(schema: &Value) -> &[Value] {
    schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice)
}

/// Whether the OpenAPI document allows a value of this type in this format.
async fn is_documented(world: &TestServer, format: &str, results: &Value) -> bool {
    let document = world.get("", "/openapi.json").await.json();
    let formats = document["components"]["schemas"]["TurnInFormat"]["anyOf"].as_array().unwrap();
    let is_of =
        |schema: &&Value| schema["description"].as_str().is_some_and(|text| text.starts_with(&format!("`{format}`:")));
    let found = match results {
        Value::Null => "null",
        Value::Array(_) => "array",
        _ => "object",
    };
    formats.iter().flat_map(alternatives).filter(is_of).any(|schema| schema["type"] == found)
}

/// Checks that the whole answer is refused.
async fn check_refused(answer: &str, expected: Expect) {
    let world = TestServer::new();
    let reply = world.submit("?wait_ms=60000", answer).await;
    assert_eq!(reply.code(), "422 invalid", "{}", reply.text);
    expected.assert_eq(&reply.at("/detail"));
    assert_eq!(world.host.handle().counts().open_turns, 0);
    let listed = world.get("alice", "/v1/conversations").await;
    assert_eq!(listed.json()["conversations"], serde_json::json!([]), "nothing was recorded");
}

#[tokio::test]
async fn chat_completion_with_function_and_custom_calls() {
    check(include_str!("../answers/chat-complete.json"), "openai", expect![[r#"
        call_1 echo: ok, started 1 times
        call_2 echo: failed, started 0 times
        {"role":"tool","tool_call_id":"call_1","content":"{\"ok\":true,\"result\":{\"city\":\"Boston\"}}"}
        {"role":"tool","tool_call_id":"call_2","content":"{\"ok\":false,\"error\":{\"code\":\"invalid_arguments\",\"message\":\"the arguments are not a JSON object but the text \\\"free text\\\"\"}}"}
    "#]]).await;
}

#[tokio::test]
async fn chat_completion_that_was_cut_off_is_refused() {
    check_refused(include_str!("../answers/chat-cut-off.json"), expect![[r#"/choices/0/finish_reason: the answer is incomplete ("length"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn chat_completion_that_a_filter_ended_is_refused() {
    check_refused(include_str!("../answers/chat-filtered.json"), expect![[r#"/choices/0/finish_reason: the answer is incomplete ("content_filter"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn response_outputs_repeat_namespace_and_caller() {
    check(include_str!("../answers/responses-complete.json"), "openai-responses", expect![[r#"
        prog_1 program: ok, started 0 times
        call_1 echo: ok, started 1 times
        call_2 echo: ok, started 1 times
        call_3 echo: ok, started 1 times
        call_4 echo: failed, started 0 times
        {"type":"function_call_output","call_id":"call_1","output":"{\"ok\":true,\"result\":{\"city\":\"Boston\"}}","caller":{"caller_id":"call_prog_1","type":"program"}}
        {"type":"function_call_output","call_id":"call_2","output":"{\"ok\":true,\"result\":{\"city\":\"Boston\"}}","caller":{"type":"direct"}}
        {"type":"function_call_output","call_id":"call_3","output":"{\"ok\":true,\"result\":{\"city\":\"Boston\"}}","namespace":"echo"}
        {"type":"custom_tool_call_output","call_id":"call_4","output":"{\"ok\":false,\"error\":{\"code\":\"invalid_arguments\",\"message\":\"the arguments are not a JSON object but the text \\\"free text\\\"\"}}","caller":{"caller_id":"call_prog_1","type":"program"}}
    "#]]).await;
}

#[tokio::test]
async fn response_calls_of_other_namespaces_never_run() {
    check(include_str!("../answers/responses-elsewhere.json"), "openai-responses", expect![[r#"
        call_1 echo: failed, started 0 times
        call_2 echo: failed, started 0 times
        {"type":"function_call_output","call_id":"call_1","output":"{\"ok\":false,\"error\":{\"code\":\"unknown_tool\",\"message\":\"this call is addressed to \\\"crm\\\", and this host runs its own tools only; nothing was run\"}}","namespace":"crm","caller":{"caller_id":"call_prog_1","type":"program"}}
        {"type":"custom_tool_call_output","call_id":"call_2","output":"{\"ok\":false,\"error\":{\"code\":\"unknown_tool\",\"message\":\"this call is addressed to \\\"crm\\\", and this host runs its own tools only; nothing was run\"}}"}
    "#]]).await;
}

#[tokio::test]
async fn response_that_was_cut_off_is_refused() {
    check_refused(include_str!("../answers/responses-cut-off.json"), expect![[r#"/status: the answer is incomplete ("incomplete"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
    check_refused(include_str!("../answers/responses-item-cut-off.json"), expect![[r#"/output/1/status: the answer is incomplete ("incomplete"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn response_that_failed_is_refused() {
    check_refused(include_str!("../answers/responses-failed.json"), expect![[r#"/status: the answer is incomplete ("failed"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn response_calls_that_openai_ran_are_recorded() {
    check(
        include_str!("../answers/responses-hosted.json"),
        "openai-responses",
        expect![[r#"
        ws_1 web_search: ok, started 0 times
        fs_1 file_search: ok, started 0 times
        mcp_1 mcp:crm:echo: ok, started 0 times
        ig_1 image_generation: failed, started 0 times
        tsc_1 tool_search: ok, started 0 times
        sh_1 shell: ok, started 0 times
    "#]],
    )
    .await;
}

#[tokio::test]
async fn message_whose_calls_come_from_a_program_runs_them() {
    check(include_str!("../answers/messages-complete.json"), "anthropic", expect![[r#"
        srvtoolu_3:unfinished code_execution: failed, started 0 times
        toolu_1 echo: ok, started 1 times
        toolu_2 echo: ok, started 1 times
        {"type":"tool_result","tool_use_id":"toolu_1","content":"{\"ok\":true,\"result\":{\n        \"city\": \"Boston\"\n      }}","is_error":false}
        {"type":"tool_result","tool_use_id":"toolu_2","content":"{\"ok\":true,\"result\":{\n        \"city\": \"Boston\"\n      }}","is_error":false}
    "#]]).await;
}

#[tokio::test]
async fn message_calls_of_toolsets_never_run() {
    check(include_str!("../answers/messages-elsewhere.json"), "anthropic", expect![[r#"
        toolu_1 echo: failed, started 0 times
        toolu_2 echo: ok, started 1 times
        toolu_3 close_tab: failed, started 0 times
        {"type":"tool_result","tool_use_id":"toolu_1","content":"{\"ok\":false,\"error\":{\"code\":\"unknown_tool\",\"message\":\"this call is addressed to \\\"crm\\\", and this host runs its own tools only; nothing was run\"}}","is_error":true,"toolset_name":"crm"}
        {"type":"tool_result","tool_use_id":"toolu_2","content":"{\"ok\":true,\"result\":{\n        \"city\": \"Boston\"\n      }}","is_error":false}
        {"type":"tool_result","tool_use_id":"toolu_3","content":"{\"ok\":false,\"error\":{\"code\":\"unknown_tool\",\"message\":\"this call is addressed to \\\"browser\\\", and this host runs its own tools only; nothing was run\"}}","is_error":true,"toolset_name":"browser"}
    "#]]).await;
}

#[tokio::test]
async fn message_that_was_cut_off_is_refused() {
    check_refused(include_str!("../answers/messages-cut-off.json"), expect![[r#"/stop_reason: the answer is incomplete ("max_tokens"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn message_that_filled_its_context_is_refused() {
    check_refused(include_str!("../answers/messages-full.json"), expect![[r#"/stop_reason: the answer is incomplete ("model_context_window_exceeded"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn message_with_a_refusal_is_refused() {
    check_refused(include_str!("../answers/messages-refused.json"), expect![[r#"/stop_reason: the answer is incomplete ("refusal"), so none of its calls is run; ask the model again, with room for a longer answer if it was cut off"#]]).await;
}

#[tokio::test]
async fn message_of_provider_calls_alone_gives_no_message() {
    check(
        include_str!("../answers/messages-hosted.json"),
        "anthropic",
        expect![[r#"
        srvtoolu_1 web_search: ok, started 0 times
        srvtoolu_2 code_execution: ok, started 0 times
        mcptoolu_1 mcp:crm:echo: ok, started 0 times
        nothing to append
    "#]],
    )
    .await;
}

#[tokio::test]
async fn message_that_paused_records_its_call_and_later_the_result() {
    check(
        include_str!("../answers/messages-paused.json"),
        "anthropic",
        expect![[r#"
        srvtoolu_1:unfinished web_search: failed, started 0 times
        nothing to append
    "#]],
    )
    .await;
    check(
        include_str!("../answers/messages-resumed.json"),
        "anthropic",
        expect![[r#"
        srvtoolu_1:result web_search: ok, started 0 times
        nothing to append
    "#]],
    )
    .await;
    // Both are in one conversation.
    let world = TestServer::new();
    let answers = [include_str!("../answers/messages-paused.json"), include_str!("../answers/messages-resumed.json")];
    for answer in answers {
        assert_eq!(world.submit("", answer).await.status, 201);
    }
    // The official library keeps them apart. A program may join them: its call is no longer unfinished.
    let [mut joined, resumed] = answers.map(|answer| serde_json::from_str::<serde_json::Value>(answer).unwrap());
    let call = serde_json::json!({"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {"city": "Boston"}});
    joined["content"].as_array_mut().unwrap().extend([resumed["content"][0].clone(), call]);
    let turn = world.submit("?wait_ms=60000", &joined.to_string()).await;
    assert_eq!(turn.status, 201, "{}", turn.text);
    let calls = turn.json()["calls"].as_array().unwrap().clone();
    let ended: Vec<_> = calls.iter().map(|call| (call["id"].as_str(), call["outcome"].as_str())).collect();
    assert_eq!(ended, [(Some("srvtoolu_1"), Some("ok")), (Some("toolu_1"), Some("ok"))]);
    // Without one of its calls it is another answer.
    joined["content"].as_array_mut().unwrap().pop();
    let refused = world.submit("", &joined.to_string()).await;
    assert_eq!(refused.code(), "409 call-id-taken");
    assert!(refused.at("/detail").contains("submit each answer of the model as it came"), "{}", refused.text);
}

#[tokio::test]
async fn output_of_a_call_that_openai_ran_is_its_result() {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", include_str!("../answers/responses-hosted.json")).await.json();
    let results: Vec<_> =
        turn["calls"].as_array().unwrap().iter().map(|call| call["content"]["result"]["type"].as_str()).collect();
    let expected = ["web_search_call", "file_search_call", "mcp_call", "", "tool_search_output", "shell_call_output"];
    assert_eq!(results, expected.map(|name| Some(name).filter(|name| !name.is_empty())), "{turn:#}");
}
