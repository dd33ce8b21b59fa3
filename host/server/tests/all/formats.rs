//! The formats of models' providers in both directions, with JSON from their documentation.

use expect_test::expect;

use crate::tools::PARAMETERS;
use crate::world::TestServer;

const COMPLETION: &str = r#"{
  "id": "chatcmpl-abc123", "object": "chat.completion", "created": 1699896916, "model": "gpt-4o-mini",
  "choices": [{
    "index": 0,
    "message": {
      "role": "assistant", "content": null, "refusal": null, "annotations": [],
      "tool_calls": [
        {"id": "call_abc123", "type": "function", "function": {"name": "echo", "arguments": "{\n\"city\": \"Boston, MA\"\n}"}},
        {"id": "call_bad", "type": "function", "function": {"name": "echo", "arguments": "{\"city\": \"Bost"}},
        {"id": "call_none", "type": "function", "function": {"name": "echo", "arguments": ""}}
      ]
    },
    "logprobs": null, "finish_reason": "tool_calls"
  }],
  "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99}
}"#;

const RESPONSE: &str = r#"{
  "id": "resp_67ca09c5efe0819096d0511c92b8c890096610f474011cc0", "object": "response", "created_at": 1741294021,
  "status": "completed", "error": null, "model": "gpt-4.1-2025-04-14",
  "output": [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "web_search_call", "id": "ws_67c9", "status": "completed", "action": {"type": "search", "query": "boston"}},
    {"type": "function_call", "id": "fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0",
     "call_id": "call_unLAR8MvFNptuiZK6K6HCy5k", "name": "echo", "arguments": "{\"city\":\"Boston, MA\"}", "status": "completed"}
  ],
  "parallel_tool_calls": true, "tool_choice": "auto", "usage": {"input_tokens": 291, "output_tokens": 23, "total_tokens": 314}
}"#;

const MESSAGE: &str = r#"{
  "id": "msg_01Aq9w938a90dw8q", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
  "content": [
    {"type": "text", "text": "I'll search for it."},
    {"type": "server_tool_use", "id": "srvtoolu_01WYG3ziw53XMcoyKL4XcZmE", "name": "web_search", "input": {"query": "claude shannon birth date"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01WYG3ziw53XMcoyKL4XcZmE", "content": [
      {"type": "web_search_result", "url": "https://example.org/shannon", "title": "Claude Shannon", "encrypted_content": "EqgfCioIARgB", "page_age": "April 30, 2025"}
    ]},
    {"type": "server_tool_use", "id": "srvtoolu_02", "name": "web_search", "input": {"query": "again"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_02", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
    {"type": "server_tool_use", "id": "srvtoolu_03", "name": "code_execution", "input": {"code": "1"}},
    {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_03", "content": {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}},
    {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "echo", "input": {"city": "San Francisco, CA"}},
    {"type": "tool_use", "id": "toolu_02", "name": "ecko", "input": {}}
  ],
  "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 400, "output_tokens": 80}
}"#;

async fn back(world: &TestServer, turn: &str, format: &str) -> String {
    let reply = world.get("alice", &format!("/v1/conversations/c/turns/{turn}?wait_ms=60000&format={format}")).await;
    assert_eq!(reply.headers["toolgate-turn"], *turn);
    assert_eq!(reply.headers["toolgate-turn-state"], "settled");
    serde_json::to_string_pretty(&reply.json()).unwrap()
}

#[tokio::test]
async fn chat_completion_returns_tool_messages() {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", COMPLETION).await;
    assert_eq!(turn.status, 201);
    assert_eq!(turn.at("/calls/1/content/error/code"), "invalid_arguments");
    assert_eq!(turn.at("/calls/1/arguments"), "{\"city\": \"Bost");
    expect![[r#"
        [
          {
            "role": "tool",
            "tool_call_id": "call_abc123",
            "content": "{\"ok\":true,\"result\":{\n\"city\": \"Boston, MA\"\n}}"
          },
          {
            "role": "tool",
            "tool_call_id": "call_bad",
            "content": "{\"ok\":false,\"error\":{\"code\":\"invalid_arguments\",\"message\":\"the arguments are cut off: the text ends inside a string at line 1 column 14; send the whole call again. They are the text \\\"{\\\\\\\"city\\\\\\\": \\\\\\\"Bost\\\"\"}}"
          },
          {
            "role": "tool",
            "tool_call_id": "call_none",
            "content": "{\"ok\":true,\"result\":{}}"
          }
        ]"#]].assert_eq(&back(&world, &turn.at("/turn"), "openai").await);
    // The assistant message without the completion is the same turn.
    let whole: serde_json::Value = serde_json::from_str(COMPLETION).unwrap();
    let again = world.submit("", &whole["choices"][0]["message"].to_string()).await;
    assert_eq!((again.status.as_u16(), again.at("/turn")), (200, turn.at("/turn")));
}

#[tokio::test]
async fn response_returns_outputs() {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", RESPONSE).await;
    assert_eq!((turn.status.as_u16(), turn.json()["calls"].as_array().unwrap().len()), (201, 2));
    assert_eq!((turn.at("/calls/0/tool"), turn.at("/calls/0/outcome")), ("web_search".into(), "ok".into()));
    expect![[r#"
        [
          {
            "type": "function_call_output",
            "call_id": "call_unLAR8MvFNptuiZK6K6HCy5k",
            "output": "{\"ok\":true,\"result\":{\"city\":\"Boston, MA\"}}"
          }
        ]"#]]
    .assert_eq(&back(&world, &turn.at("/turn"), "openai-responses").await);
}

#[tokio::test]
async fn message_with_provider_calls_returns_results_without_them() {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", MESSAGE).await;
    assert_eq!(turn.status, 201);
    let outcomes: Vec<String> = (0..5)
        .map(|n| format!("{} {}", turn.at(&format!("/calls/{n}/id")), turn.at(&format!("/calls/{n}/outcome"))))
        .collect();
    expect![[r#"
        srvtoolu_01WYG3ziw53XMcoyKL4XcZmE ok
        srvtoolu_02 failed
        srvtoolu_03 ok
        toolu_01A09q90qw90lq917835lq9 ok
        toolu_02 failed"#]]
    .assert_eq(&outcomes.join("\n"));
    assert_eq!(turn.at("/calls/0/content/result/0/page_age"), "April 30, 2025");
    assert_eq!(turn.json()["calls"][0]["trusted"], false);
    assert_eq!(turn.at("/calls/1/content/error/message"), "max_uses_exceeded");
    expect![[r#"
        {
          "role": "user",
          "content": [
            {
              "type": "tool_result",
              "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
              "content": "{\"ok\":true,\"result\":{\"city\": \"San Francisco, CA\"}}",
              "is_error": false
            },
            {
              "type": "tool_result",
              "tool_use_id": "toolu_02",
              "content": "{\"ok\":false,\"error\":{\"code\":\"unknown_tool\",\"message\":\"there is no tool \\\"ecko\\\"; did you mean echo?\"}}",
              "is_error": true
            }
          ]
        }"#]].assert_eq(&back(&world, &turn.at("/turn"), "anthropic").await);
}

#[tokio::test]
async fn query_carries_members_that_provider_formats_lack() {
    let world = TestServer::new();
    let message = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}]}"#;
    let query = "?context=%7B%22who%22%3A%22me%22%7D&rejection=abort_turn&format=anthropic";
    let reply = world.submit(query, message).await;
    // It was submitted, but has no results yet.
    assert_eq!(reply.status, 202);
    assert_eq!((reply.at("/context/who"), reply.at("/rejection")), ("me".into(), "abort_turn".into()));
    let turn = format!("/v1/conversations/c/turns/{}?format=anthropic", reply.at("/turn"));
    assert_eq!(world.get("alice", &turn).await.code(), "409 not-settled");
    world.resolve("bob", &reply.at("/pending/0/suspension"), r#"{"decision":"deny"}"#).await;
    let ended = world.get("alice", &turn).await;
    assert_eq!(
        (ended.headers["toolgate-turn-state"].to_str().unwrap(), ended.json()["content"][0]["is_error"].clone()),
        ("aborted", true.into())
    );

    let ephemeral = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"echo","arguments":"{}"}}]}"#;
    let reply = world.submit("?ephemeral=true&format=openai", ephemeral).await;
    assert_eq!((reply.status.as_u16(), reply.at("/0/tool_call_id")), (201, "c1".into()));
    let own = world.submit("?ephemeral=true", r#"{"calls":[]}"#).await;
    assert_eq!(own.code(), "400 bad-request");
    let context = world.submit("?context=7", ephemeral).await;
    assert_eq!((context.code(), context.at("/errors/0/pointer")), ("422 invalid".into(), "/context".into()));
}

#[tokio::test]
async fn duplicate_keys_in_arguments_fail_only_their_call() {
    let world = TestServer::new();
    for body in [
        r#"{"calls":[{"id":"a1","tool":"echo","arguments":{"x":1,"x":2}},{"id":"a2","tool":"echo","arguments":{}}]}"#,
        r#"{"content":[{"type":"tool_use","id":"b1","name":"echo","input":{"y":{"x":1,"x":2}}},{"type":"tool_use","id":"b2","name":"echo","input":{}}]}"#,
        r#"{"tool_calls":[{"id":"c1","function":{"name":"echo","arguments":"{\"x\":1,\"x\":2}"}},{"id":"c2","function":{"name":"echo"}}]}"#,
    ] {
        let turn = world.submit("?wait_ms=60000", body).await;
        assert_eq!(turn.status, 201, "{}", turn.text);
        let failed = (turn.at("/calls/0/content/error/code"), turn.at("/calls/0/content/error/message"));
        assert_eq!(failed.0, "invalid_arguments", "{}", turn.text);
        assert!(failed.1.contains("can be read in two ways: duplicate key \"x\""), "{}", turn.text);
        assert_eq!(turn.at("/calls/1/outcome"), "ok", "{}", turn.text);
    }
}

#[tokio::test]
async fn function_call_without_an_id_is_refused() {
    let world = TestServer::new();
    for (body, place) in [
        (r#"{"role":"assistant","content":null,"function_call":{"name":"echo","arguments":"{}"}}"#, "/function_call"),
        (
            r#"{"choices":[{"finish_reason":"function_call","message":{"content":null,"function_call":{"name":"echo"}}}]}"#,
            "/choices/0/message/function_call",
        ),
    ] {
        let refused = world.submit("", body).await;
        assert_eq!((refused.code().as_str(), refused.at("/errors/0/pointer").as_str()), ("422 invalid", place));
        assert!(refused.at("/detail").contains("offer the model `tools`"), "{}", refused.text);
    }
    // The official library has the member, without a value, in each message.
    let message = r#"{"role":"assistant","content":null,"function_call":null,"tool_calls":[{"id":"a","function":{"name":"echo"}}]}"#;
    assert_eq!(world.submit("", message).await.status, 201);
}

#[tokio::test]
async fn invalid_turn_bodies_are_refused_with_the_place() {
    let (world, mut listing) = (TestServer::new(), String::new());
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"role":"assistant","content":"Hello."}"#,
        r#"{"calls":[]}"#,
        r#"{"calls":[{"id":"a b","tool":"echo","arguments":{}}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo"}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{},"args":1}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{},"tool":"echo"}]}"#,
        r#"{"calls":[{"id":"a","tool":"web_search","arguments":{},"result":{"x":1,"x":2}}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{}},{"id":"a","tool":"echo","arguments":{}}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{},"result":1}]}"#,
        r#"{"calls":[{"id":"a","tool":"web_search","arguments":{}}]}"#,
        r#"{"calls":[{"id":"a","tool":"web_search","arguments":{},"result":1,"error":"x"}]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{}}],"context":[]}"#,
        r#"{"calls":[{"id":"a","tool":"echo","arguments":{}}],"rejection":"panic"}"#,
        r#"{"choices":[]}"#,
        r#"{"tool_calls":[{"id":"x","type":"function"}]}"#,
        r#"{"output":[{"type":"function_call","name":"echo"}]}"#,
        r#"{"content":[{"type":"tool_use","id":"x"}]}"#,
    ] {
        let reply = world.submit("", body).await;
        listing += &format!("{body}\n  {} {}\n", reply.code(), reply.at("/detail"));
    }
    expect![[r#"

          400 bad-json a value is missing at line 1 column 0
        {
          400 bad-json the text ends inside an object at line 1 column 1
        []
          422 invalid the body must be a JSON object
        {}
          422 invalid a turn is `{"calls":[…]}`, an OpenAI chat completion or its message, an OpenAI response, or an Anthropic message
        {"role":"assistant","content":"Hello."}
          422 invalid /calls: this answer has no calls; give it to the user
        {"calls":[]}
          422 invalid /calls: this answer has no calls; give it to the user
        {"calls":[{"id":"a b","tool":"echo","arguments":{}}]}
          422 invalid /calls/0/id: "a b" is not a call id: expected 1 to 128 of the characters A-Z a-z 0-9 _ . : -
        {"calls":[{"id":"a","tool":"echo"}]}
          422 invalid /calls/0: missing field `arguments`
        {"calls":[{"id":"a","tool":"echo","arguments":{},"args":1}]}
          422 invalid /calls/0/args: unknown field `args`, expected one of `id`, `tool`, `arguments`, `result`, `error`
        {"calls":[{"id":"a","tool":"echo","arguments":{},"tool":"echo"}]}
          400 bad-json duplicate key "tool" at line 1 column 55
        {"calls":[{"id":"a","tool":"web_search","arguments":{},"result":{"x":1,"x":2}}]}
          400 bad-json duplicate key "x" at line 1 column 74
        {"calls":[{"id":"a","tool":"echo","arguments":{}},{"id":"a","tool":"echo","arguments":{}}]}
          422 invalid /calls: two calls of the turn have the id a; every call needs its own
        {"calls":[{"id":"a","tool":"echo","arguments":{},"result":1}]}
          422 invalid /calls: call a is not of a provider tool, so its result cannot be submitted
        {"calls":[{"id":"a","tool":"web_search","arguments":{}}]}
          422 invalid /calls: call a is of a provider tool and has no result: submit it with the result from the provider's stream
        {"calls":[{"id":"a","tool":"web_search","arguments":{},"result":1,"error":"x"}]}
          422 invalid /calls/0: this call has both `result` and `error`; send only one
        {"calls":[{"id":"a","tool":"echo","arguments":{}}],"context":[]}
          422 invalid /context: the context must be a JSON object
        {"calls":[{"id":"a","tool":"echo","arguments":{}}],"rejection":"panic"}
          422 invalid /rejection: unknown variant `panic`, expected one of `continue_siblings`, `cancel_siblings`, `abort_turn`
        {"choices":[]}
          422 invalid /choices: a turn is one answer: submit the message of the choice that was taken
        {"tool_calls":[{"id":"x","type":"function"}]}
          422 invalid /tool_calls/0: a tool call must have a `function`
        {"output":[{"type":"function_call","name":"echo"}]}
          422 invalid /output/0: a function call must have a `call_id` and a `name`
        {"content":[{"type":"tool_use","id":"x"}]}
          422 invalid /content/0: a call must have an `id` and a `name`
    "#]].assert_eq(&listing);
}

#[tokio::test]
async fn tools_are_listed_in_each_format_with_verbatim_schemas() {
    let world = TestServer::new();
    let mut listing = String::new();
    for format in ["toolgate", "openai", "openai-responses", "anthropic", "mcp"] {
        let reply = world.get("alice", &format!("/v1/tools?format={format}")).await;
        assert!(reply.text.contains(PARAMETERS), "{format}");
        let left_out = reply.headers.get("toolgate-left-out").map(|names| names.to_str().unwrap());
        assert_eq!(left_out.is_some(), format != "toolgate");
        let json = reply.json();
        let tools = json.get("tools").unwrap_or(&json);
        listing += &format!("{format}: {} tools, left out: {left_out:?}\n", tools.as_array().unwrap().len());
        listing += &format!("  {}\n", tools[1]);
    }
    expect![[r#"
        toolgate: 6 tools, left out: None
          {"name":"echo","description":"The tool echo.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"x":1.0},"result":{"type":"object"},"executor":"server","approval":"auto","rule":"allow","streaming":false,"editable":"none","on_expiry":"error","hints":{"read_only":true},"plugin":"shelf","sandboxed":true,"component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","declaration":"sha256:092c79e8f80e559e404bcf660c48f3522b67aba9ff1484b0367e1a4ddef7431d"}
        openai: 5 tools, left out: Some("web_search")
          {"type":"function","function":{"name":"echo","description":"The tool echo.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"x":1.0}}}
        openai-responses: 5 tools, left out: Some("web_search")
          {"type":"function","name":"echo","description":"The tool echo.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"x":1.0},"strict":false}
        anthropic: 5 tools, left out: Some("web_search")
          {"name":"echo","description":"The tool echo.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"x":1.0}}
        mcp: 5 tools, left out: Some("web_search")
          {"name":"echo","description":"The tool echo.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"x":1.0},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}
    "#]].assert_eq(&listing);
    assert_eq!(world.get("alice", "/v1/tools?format=xml").await.code(), "400 bad-request");
}
