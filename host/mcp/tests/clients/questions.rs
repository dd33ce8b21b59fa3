//! Clients that can ask their user get what a call waits for as a form or as a page.

use domain::suspension::Decision;
use serde_json::{Value, json};
use toolgate_tests::world::settle;

use crate::world::{Client, TestHost, about, text};

/// Params of a client that can ask its user in these ways.
fn asking(ways: Value, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": ways } });
    params
}

fn call(tool: &str) -> Value {
    asking(json!({}), json!({ "name": tool, "arguments": {} }))
}

/// The call of a tool that asks, and the one request in its result.
async fn asked(client: &mut Client, params: Value) -> (String, String, Value) {
    client.send("tools/call", params).await;
    settle().await;
    one(&client.result().await)
}

/// The key of the only request of a result, the state, and the params of the request.
fn one(result: &Value) -> (String, String, Value) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{result}");
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    (key.clone(), result["requestState"].as_str().unwrap().to_owned(), request["params"].clone())
}

/// The request again, with the answer.
fn again(mut params: Value, (key, state): (&str, &str), response: Value) -> Value {
    params["inputResponses"] = json!({ key: response });
    params["requestState"] = state.into();
    params
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn user_of_the_client_answers_a_question() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let (key, state, form) = asked(&mut client, call("ask")).await;
    assert_eq!(form["mode"], "form");
    assert_eq!(form["requestedSchema"]["properties"], json!({ "answer": { "type": "string" } }));
    assert_eq!(form["requestedSchema"]["required"], json!(["answer"]));
    let retry = again(call("ask"), (&key, &state), accept(json!({ "answer": "blue" })));
    let done = client.ask("tools/call", retry.clone()).await;
    assert_eq!((text(&done["result"]), &done["result"]["isError"]), ("blue", &json!(false)), "{done}");
    assert_eq!(about(&done["result"])["trusted"], false, "a program with the caller's token can fill in a form");
    // The state is used up: the same again is the same outcome, and nothing else is asked or made.
    let repeated = client.ask("tools/call", retry).await;
    assert_eq!(about(&repeated["result"]), about(&done["result"]));
    let other = again(call("ask"), (&key, &state), accept(json!({ "answer": "red" })));
    assert_eq!(text(&client.ask("tools/call", other).await["result"]), "blue");
    assert_eq!(host.open().await.len(), 0);
}

#[tokio::test]
async fn question_is_asked_again_after_a_kill() {
    let host = TestHost::new();
    let (key, state, _) = asked(&mut host.client("alice"), call("ask")).await;
    let host = host.restart();
    let mut client = host.client("alice");
    let (same, ..) = asked(&mut client, call("ask")).await;
    assert_eq!(same, key);
    let retry = again(call("ask"), (&key, &state), accept(json!({ "answer": "blue" })));
    assert_eq!(text(&client.ask("tools/call", retry).await["result"]), "blue", "a state outlives the host");
}

#[tokio::test]
async fn choices_and_data_are_fields_of_one_form() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let (key, state, form) = asked(&mut client, call("choose")).await;
    assert_eq!(
        form["message"],
        "The tool choose of the plugin words asks:\n> Which one?\n> The host: \\u{202e}your token"
    );
    assert_eq!(
        form["requestedSchema"]["properties"],
        json!({ "decision": { "type": "string", "enum": ["keep", "drop"] }, "note": { "type": "string", "maxLength": 4, "title": "N\\u{202e}" } })
    );
    assert_eq!(form["requestedSchema"]["required"], json!(["decision"]), "the note can be left out");
    let wrong = accept(json!({ "decision": "drop", "note": "too long" }));
    client.send("tools/call", again(call("choose"), (&key, &state), wrong)).await;
    settle().await;
    let (same, state, form) = one(&client.result().await);
    assert_eq!(same, key);
    let message = form["message"].as_str().unwrap();
    assert!(message.starts_with("The answer was not accepted: /data/note "), "{message}");
    let unknown = accept(json!({ "decision": "sell", "note": "no" }));
    client.send("tools/call", again(call("choose"), (&key, &state), unknown)).await;
    settle().await;
    let (_, state, form) = one(&client.result().await);
    assert!(form["message"].as_str().unwrap().contains("/decision"), "{form}");
    let right = accept(json!({ "decision": "drop", "note": "no" }));
    let done = client.ask("tools/call", again(call("choose"), (&key, &state), right)).await;
    assert_eq!(done["result"]["structuredContent"], json!({ "decision": "drop", "data": { "note": "no" } }));
}

#[tokio::test]
async fn states_are_of_one_request_of_one_caller() {
    let host = TestHost::new();
    let (mut alice, mut eve) = (host.client("alice"), host.client("eve"));
    let (key, state, _) = asked(&mut alice, call("ask")).await;
    let answer = || accept(json!({ "answer": "blue" }));
    let foreign = eve.ask("tools/call", again(call("ask"), (&key, &state), answer())).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let mut other = call("ask");
    other["arguments"] = json!({ "other": 1 });
    for (params, state) in
        [(other, state.as_str()), (call("choose"), &state), (call("ask"), "rs1.e30.AAAA"), (call("ask"), "")]
    {
        let forged = alice.ask("tools/call", again(params.clone(), (&key, state), answer())).await;
        assert_eq!(forged["error"]["code"], -32602, "{params} {state}: {forged}");
        assert_eq!(forged["error"], foreign["error"]);
    }
    assert_eq!(host.open().await.len(), 1, "nothing was answered or made");
}

#[tokio::test]
async fn missing_answers_are_asked_again_and_others_ignored() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let (key, state, _) = asked(&mut client, call("ask")).await;
    let mut without = call("ask");
    without["requestState"] = state.as_str().into();
    client.send("tools/call", without).await;
    settle().await;
    assert_eq!(one(&client.result().await).0, key);
    client.send("tools/call", again(call("ask"), ("susp_0", &state), accept(json!({ "answer": "x" })))).await;
    settle().await;
    assert_eq!(one(&client.result().await).0, key);
    let malformed = client.ask("tools/call", again(call("ask"), (&key, &state), json!({ "action": "maybe" }))).await;
    assert_eq!(malformed["error"]["code"], -32602);
    assert_eq!(host.open().await.len(), 1);
}

#[tokio::test]
async fn declined_question_stays_open_for_others() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let (key, state, _) = asked(&mut client, call("ask")).await;
    for action in ["decline", "cancel"] {
        let result = client.ask("tools/call", again(call("ask"), (&key, &state), json!({ "action": action }))).await;
        assert_eq!(about(&result["result"])["state"], "waiting", "{result}");
    }
    assert_eq!(host.open().await.len(), 1);
}

#[tokio::test]
async fn approval_is_a_page_and_never_a_form() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send("tools/call", call("pay")).await;
    host.end_holds().await;
    assert_eq!(about(&client.result().await)["state"], "waiting", "a client with forms only gets the reason");
    let both = || asking(json!({ "form": {}, "url": {} }), json!({ "name": "pay", "arguments": {} }));
    let (key, state, page) = asked(&mut client, both()).await;
    assert_eq!(
        (&page["mode"], page["url"].as_str().unwrap()),
        (&json!("url"), format!("http://127.0.0.1:7420/suspensions/{key}").as_str())
    );
    // A form that nobody sent approves nothing.
    client
        .send(
            "tools/call",
            again(both(), (&key, &state), accept(json!({ "decision": "approve", "answer": "approve" }))),
        )
        .await;
    settle().await;
    assert_eq!(host.open().await.len(), 1);
    host.decide(Decision::Approve).await;
    settle().await;
    assert_eq!(client.result().await["isError"], false, "the opened page is waited for");
}

#[tokio::test]
async fn task_asks_its_question_and_takes_the_answer() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let knowing = |mut params: Value| {
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": {} });
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
        params
    };
    client.send("tools/call", knowing(json!({ "name": "ask", "arguments": {} }))).await;
    settle().await;
    host.advance(2);
    let id = client.result().await["taskId"].take();
    let task = client.ask("tasks/get", knowing(json!({ "taskId": id }))).await;
    assert_eq!(task["result"]["status"], "input_required", "{task}");
    let requests = task["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap().clone();
    let update = |key: &str, response: Value| knowing(json!({ "taskId": id, "inputResponses": { key: response } }));
    let ignored = client.ask("tasks/update", update("other", accept(json!({ "answer": "x" })))).await;
    assert_eq!(ignored["result"], json!({ "resultType": "complete" }));
    let taken = client.ask("tasks/update", update(&key, accept(json!({ "answer": "blue" })))).await;
    assert_eq!(taken["result"], json!({ "resultType": "complete" }));
    settle().await;
    let done = client.ask("tasks/get", knowing(json!({ "taskId": id }))).await;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert_eq!(text(&done["result"]["result"]), "blue");
}

#[tokio::test]
async fn question_for_others_is_not_a_form() {
    let host = TestHost::new().without_questions();
    let mut client = host.client("alice");
    client.send("tools/call", call("ask")).await;
    host.end_holds().await;
    assert_eq!(about(&client.result().await)["state"], "waiting");
}

/// A client of an older revision, which can ask its user in these ways.
async fn older(host: &TestHost, revision: &str, ways: Value) -> Client {
    let mut client = host.client("alice");
    let params = json!({
        "protocolVersion": revision, "capabilities": { "elicitation": ways },
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()).await;
    client.result().await;
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client
}

/// Makes a call as the client `older`.
async fn send(client: &mut Client, tool: &str) {
    let params = json!({ "name": tool, "arguments": {} });
    client
        .write(&json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params }).to_string())
        .await;
    settle().await;
}

/// The request of the host in the next message: its id and its params.
async fn requested(client: &mut Client) -> (Value, Value) {
    let mut message = client.receive().await;
    assert_eq!(message["method"], "elicitation/create", "{message}");
    (message["id"].take(), message["params"].take())
}

async fn respond(client: &mut Client, id: &Value, response: Value) {
    client.write(&json!({ "jsonrpc": "2.0", "id": id, "result": response }).to_string()).await;
    settle().await;
}

#[tokio::test]
async fn older_client_over_a_pipe_gets_the_question_as_a_request() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let host = TestHost::new();
        let mut client = older(&host, revision, json!({})).await;
        send(&mut client, "choose").await;
        let (id, form) = requested(&mut client).await;
        assert_eq!(form["requestedSchema"]["required"], json!(["decision"]));
        // The person takes a minute, and then writes too much.
        host.advance(60);
        respond(&mut client, &id, accept(json!({ "decision": "drop", "note": "too long" }))).await;
        let (id, form) = requested(&mut client).await;
        assert!(form["message"].as_str().unwrap().starts_with("The answer was not accepted: /data/note "), "{form}");
        respond(&mut client, &id, accept(json!({ "decision": "drop", "note": "no" }))).await;
        let result = client.result().await;
        assert_eq!(result["structuredContent"], json!({ "decision": "drop", "data": { "note": "no" } }));
        assert_eq!(about(&result)["trusted"], false);
    }
}

#[tokio::test]
async fn older_client_opens_the_page_of_an_approval() {
    let host = TestHost::new();
    let mut client = older(&host, "2025-11-25", json!({ "form": {}, "url": {} })).await;
    send(&mut client, "pay").await;
    let (id, page) = requested(&mut client).await;
    assert!(page["url"].as_str().unwrap().starts_with("http://127.0.0.1:7420/suspensions/"), "{page}");
    respond(&mut client, &id, json!({ "action": "accept" })).await;
    assert_eq!(
        (client.received().await, host.open().await.len()),
        (None, 1),
        "a page that was opened approves nothing"
    );
    host.decide(Decision::Approve).await;
    settle().await;
    assert_eq!(client.result().await["isError"], false);
    // The revision before has no pages.
    let mut client = older(&host, "2025-06-18", json!({ "form": {}, "url": {} })).await;
    send(&mut client, "pay").await;
    host.end_holds().await;
    assert_eq!(about(&client.result().await)["state"], "waiting");
}

#[tokio::test]
async fn request_to_a_client_ends_with_the_call() {
    let host = TestHost::new();
    let mut client = older(&host, "2025-11-25", json!({ "form": {} })).await;
    send(&mut client, "ask").await;
    let (id, _) = requested(&mut client).await;
    host.decide(Decision::Answer("answer".into())).await;
    settle().await;
    let cancelled = client.receive().await;
    assert_eq!((&cancelled["method"], &cancelled["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    assert_eq!(about(&client.result().await)["outcome"], "ok");
}

#[tokio::test]
async fn request_to_a_client_ends_with_its_question() {
    let host = TestHost::new();
    let mut client = older(&host, "2025-11-25", json!({ "url": {} })).await;
    let call = json!({ "name": "pay", "arguments": { "slow": true } });
    client.write(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string()).await;
    settle().await;
    let (id, _) = requested(&mut client).await;
    host.decide(Decision::Approve).await;
    settle().await;
    let cancelled = client.receive().await;
    assert_eq!((&cancelled["method"], &cancelled["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    assert_eq!(client.received().await, None, "the call runs");
    host.shelf.slow.add_permits(1);
    settle().await;
    assert_eq!(about(&client.result().await)["outcome"], "ok");
}

#[tokio::test]
async fn request_to_a_client_ends_with_the_request_of_its_call() {
    let host = TestHost::new();
    let mut client = older(&host, "2025-11-25", json!({ "form": {} })).await;
    send(&mut client, "ask").await;
    let (id, _) = requested(&mut client).await;
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}"#).await;
    let mut closed = Vec::new();
    while let Some(message) = client.received().await {
        closed.extend((message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].clone()));
    }
    assert_eq!(closed, [id]);
    assert_eq!(host.open().await.len(), 1, "the call stays open");
}

#[tokio::test]
async fn older_client_that_does_not_ask_learns_what_waits() {
    let host = TestHost::new();
    let mut client = older(&host, "2025-11-25", json!({ "form": {} })).await;
    send(&mut client, "ask").await;
    let (id, _) = requested(&mut client).await;
    respond(&mut client, &id, json!({ "action": "decline" })).await;
    assert_eq!(about(&client.result().await)["state"], "waiting");
    send(&mut client, "ask").await;
    let (id, _) = requested(&mut client).await;
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } });
    client.write(&error.to_string()).await;
    settle().await;
    assert_eq!(about(&client.result().await)["state"], "waiting");
    assert_eq!(host.open().await.len(), 1);
}
