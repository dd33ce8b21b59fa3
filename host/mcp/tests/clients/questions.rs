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
        json!({ "decision": { "type": "string", "enum": ["keep", "drop"] }, "note": { "type": "string", "maxLength": 4 } })
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
