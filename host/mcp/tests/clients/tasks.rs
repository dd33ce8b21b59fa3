//! Clients that know tasks get one for a call that does not end soon.

use std::collections::BTreeSet;

use dispatch::Quota;
use domain::suspension::Decision;
use serde_json::{Value, json};
use toolgate_tests::world::settle;

use crate::world::{Client, TestHost, about, text};

/// Params of a client that knows tasks.
pub(crate) fn knowing(mut params: Value) -> Value {
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    params
}

/// The task of a call that does not end.
pub(crate) async fn task(host: &TestHost, client: &mut Client, tool: &str) -> Value {
    client.send("tools/call", knowing(json!({ "name": tool, "arguments": {} }))).await;
    settle().await;
    host.advance(2);
    let task = client.result().await;
    assert_eq!(task["resultType"], "task", "{task}");
    task
}

async fn ask(client: &mut Client, method: &str, id: &Value) -> Value {
    client.ask(method, knowing(json!({ "taskId": id }))).await
}

async fn get(client: &mut Client, id: &Value) -> Value {
    ask(client, "tasks/get", id).await["result"].take()
}

#[tokio::test]
async fn task_outlives_its_host() {
    let host = TestHost::new();
    let created = task(&host, &mut host.client("alice"), "pay").await;
    let id = created["taskId"].clone();
    assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &Value::Null));
    let host = host.restart();
    let mut client = host.client("alice");
    let working = get(&mut client, &id).await;
    assert_eq!((&working["status"], &working["resultType"]), (&json!("working"), &json!("complete")));
    let message = working["statusMessage"].as_str().unwrap();
    assert!(message.contains("until a person approves") && message.contains("/suspensions/susp_"), "{message}");
    host.decide(Decision::Approve).await;
    settle().await;
    let done = get(&mut client, &id).await;
    assert_eq!((&done["status"], &done["createdAt"]), (&json!("completed"), &created["createdAt"]));
    assert_eq!((&done["result"]["isError"], &about(&done["result"])["turn"]), (&json!(false), &id));
    assert_eq!(get(&mut client, &id).await, done, "it can be read again");
}

#[tokio::test]
async fn call_that_ends_at_once_is_no_task() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let done = client.ask("tools/call", knowing(json!({ "name": "echo", "arguments": { "a": 1 } }))).await;
    assert_eq!(done["result"]["structuredContent"], json!({ "a": 1 }));
    assert_eq!(done["result"]["resultType"], "complete");
}

#[tokio::test]
async fn same_request_is_the_same_task() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let (one, other) = (task(&host, &mut client, "pay").await, task(&host, &mut client, "pay").await);
    assert_eq!(one["taskId"], other["taskId"]);
    assert_eq!(host.open().await.len(), 1);
}

#[tokio::test]
async fn denied_task_is_completed_with_an_error() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let id = task(&host, &mut client, "pay").await["taskId"].take();
    host.decide(Decision::Deny).await;
    settle().await;
    let done = get(&mut client, &id).await;
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert!(text(&done["result"]).contains("was denied"));
}

#[tokio::test]
async fn cancelled_task_ends_its_call() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let id = task(&host, &mut client, "pay").await["taskId"].take();
    for _ in 0..2 {
        assert_eq!(ask(&mut client, "tasks/cancel", &id).await["result"], json!({ "resultType": "complete" }));
        assert_eq!(get(&mut client, &id).await["status"], "cancelled");
    }
    assert_eq!(host.open().await.len(), 0);
}

#[tokio::test]
async fn tasks_are_for_their_caller_and_clients_that_know_them() {
    let host = TestHost::new();
    let (mut alice, mut eve) = (host.client("alice"), host.client("eve"));
    let id = task(&host, &mut alice, "pay").await["taskId"].take();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = |id: &Value| json!({ "taskId": id, "inputResponses": {} });
        let foreign = eve.ask(method, knowing(params(&id))).await;
        let made_up = eve.ask(method, knowing(params(&json!("turn_0")))).await;
        assert_eq!(foreign["error"]["code"], -32602, "{method}");
        assert_eq!(foreign["error"], made_up["error"], "{method}");
        let unknowing = alice.ask(method, params(&id)).await;
        assert_eq!(unknowing["error"]["code"], -32021, "{method}: {unknowing}");
    }
    assert_eq!(host.open().await.len(), 1);
    let update = alice.ask("tasks/update", knowing(json!({ "taskId": id, "inputResponses": { "x": {} } }))).await;
    assert_eq!(update["result"], json!({ "resultType": "complete" }));
    assert_eq!(host.open().await.len(), 1, "it answers nothing");
}

#[tokio::test]
async fn ten_thousand_tasks_use_up_the_quota_of_one_caller_only() {
    const AT_ONCE: u64 = 250;
    let host = TestHost::new();
    let quota = Quota::default().open_turns as u64;
    let mut client = host.client("mallory");
    let call = |number: u64| knowing(json!({ "name": "pay", "arguments": { "number": number } }));
    let mut ids = BTreeSet::new();
    for batch in 0..quota / AT_ONCE {
        for number in 0..AT_ONCE {
            client.send("tools/call", call(batch * AT_ONCE + number)).await;
        }
        settle().await;
        host.advance(2);
        for _ in 0..AT_ONCE {
            let task = client.result().await;
            ids.insert(task["taskId"].as_str().unwrap_or_else(|| panic!("no task: {task}")).to_owned());
        }
    }
    assert_eq!(ids.len() as u64, quota, "each is a call of its own");
    let refused = client.ask("tools/call", call(quota)).await["result"].take();
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("open_turns"), "{refused}");
    for id in [ids.first(), ids.last()] {
        assert_eq!(get(&mut client, &json!(id)).await["status"], "working");
    }
    task(&host, &mut host.client("alice"), "pay").await;
    ask(&mut client, "tasks/cancel", &json!(ids.first())).await;
    settle().await;
    client.send("tools/call", call(quota)).await;
    settle().await;
    host.advance(2);
    assert_eq!(client.result().await["resultType"], "task", "there is room again");
}

/// The steps of a task after which the host is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The call is on disk, and the client has not got the task.
    Recorded,
    Created,
    /// The answer is on disk. The tool may run.
    Approved,
    Ended,
    Read,
}

#[tokio::test]
async fn killed_at_any_step_a_task_has_the_same_id_and_outcome() {
    for killed in [Step::Recorded, Step::Created, Step::Approved, Step::Ended, Step::Read] {
        let mut host = TestHost::new();
        let mut client = host.client("alice");
        let call = knowing(json!({ "name": "pay", "arguments": {} }));
        client.send("tools/call", call.clone()).await;
        settle().await;
        let recorded = host.open_turn().await;
        let mut id = Value::Null;
        for step in [Step::Recorded, Step::Created, Step::Approved, Step::Ended, Step::Read] {
            match step {
                Step::Recorded => {}
                Step::Created => {
                    if killed == Step::Recorded {
                        client.send("tools/call", call.clone()).await;
                        settle().await;
                    }
                    host.advance(2);
                    id = client.result().await["taskId"].take();
                    assert_eq!(id, json!(recorded.to_string()), "{killed:?}");
                }
                Step::Approved => host.decide(Decision::Approve).await,
                Step::Ended => settle().await,
                Step::Read => {
                    let done = get(&mut client, &id).await;
                    assert_eq!((&done["taskId"], &done["status"]), (&id, &json!("completed")), "{killed:?}");
                    assert_eq!(about(&done["result"])["outcome"], "ok", "{killed:?}");
                }
            }
            if step == killed {
                host = host.restart();
                client = host.client("alice");
            }
        }
        settle().await;
        assert_eq!(about(&get(&mut client, &id).await["result"])["outcome"], "ok", "{killed:?}");
    }
}

/// A task of the tool `ask`, for a client that can ask, and its question.
async fn asking_task(host: &TestHost, client: &mut Client) -> (Value, String) {
    client.send("tools/call", asking(json!({ "name": "ask", "arguments": {} }))).await;
    settle().await;
    host.advance(2);
    let id = client.result().await["taskId"].take();
    let key = question(client, &id).await;
    (id, key)
}

/// Params of a client that knows tasks and can ask its user.
fn asking(params: Value) -> Value {
    let mut params = knowing(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"] = json!({});
    params
}

async fn question(client: &mut Client, id: &Value) -> String {
    let task = client.ask("tasks/get", asking(json!({ "taskId": id }))).await["result"].take();
    assert_eq!(task["status"], "input_required", "{task}");
    task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone()
}

#[tokio::test]
async fn killed_before_or_after_its_answer_a_task_has_it() {
    for is_answered in [false, true] {
        let mut host = TestHost::new();
        let mut client = host.client("alice");
        let (id, key) = asking_task(&host, &mut client).await;
        let content = json!({ "action": "accept", "content": { "answer": "blue" } });
        let update = asking(json!({ "taskId": id, "inputResponses": { &key: content } }));
        if is_answered {
            client.ask("tasks/update", update.clone()).await;
        }
        host = host.restart();
        client = host.client("alice");
        if !is_answered {
            assert_eq!(question(&mut client, &id).await, key);
            client.ask("tasks/update", update).await;
        }
        settle().await;
        let done = get(&mut client, &id).await;
        assert_eq!((&done["status"], text(&done["result"])), (&json!("completed"), "blue"));
    }
}

#[tokio::test]
async fn killed_after_its_cancellation_a_task_stays_cancelled() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let id = task(&host, &mut client, "pay").await["taskId"].take();
    ask(&mut client, "tasks/cancel", &id).await;
    let host = host.restart();
    assert_eq!(get(&mut host.client("alice"), &id).await["status"], "cancelled");
}

#[tokio::test]
async fn killed_while_its_tool_runs_a_task_has_one_outcome() {
    let host = TestHost::new();
    let id = task(&host, &mut host.client("alice"), "slow").await["taskId"].take();
    let host = host.restart();
    let mut client = host.client("alice");
    settle().await;
    assert_eq!(get(&mut client, &id).await["status"], "working", "it runs again with the same key");
    host.shelf.slow.add_permits(1);
    settle().await;
    let done = get(&mut client, &id).await;
    assert_eq!((&done["status"], about(&done["result"])["outcome"].as_str()), (&json!("completed"), Some("ok")));
    let host = host.restart();
    assert_eq!(get(&mut host.client("alice"), &id).await, done);
}
