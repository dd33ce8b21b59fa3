//! Messages that are wrong, and revisions.

use serde_json::json;

use crate::world::{MAX_MESSAGE, TestHost, meta, text};

#[tokio::test]
async fn wrong_lines_are_refused_and_the_next_one_is_read() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.ask("server/discover", json!({})).await;
    let twice = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"pay","arguments":{{"to":"a","to":"b"}},"_meta":{}}}}}"#,
        meta()
    );
    for (line, code, id) in [
        ("{", -32700, None),
        ("[]", -32600, None),
        (twice.as_str(), -32700, Some("x")),
        (&format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_MESSAGE)), -32600, None),
    ] {
        client.write(line).await;
        let answer = client.receive().await;
        assert_eq!((&answer["error"]["code"], answer["id"].as_str()), (&json!(code), id), "{line:.40}");
    }
    client.write("").await;
    assert_eq!(text(&client.call("echo", json!({})).await), "{}");
    assert_eq!(host.open().await.len(), 0, "none of them made a call");
}

#[tokio::test]
async fn unreadable_params_and_unknown_methods_differ() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    for (method, params, code) in [
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 1 }), -32602),
        ("tools/call", json!({ "name": "echo", "arguments": [] }), -32602),
        ("tools/made_up", json!({}), -32601),
        ("prompts/list", json!({}), -32601),
    ] {
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
}

#[tokio::test]
async fn discovery_names_the_revisions() {
    let host = TestHost::new();
    let found = host.client("alice").ask("server/discover", json!({})).await["result"].take();
    assert_eq!(found["supportedVersions"], json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    assert_eq!(
        found["capabilities"],
        json!({ "extensions": extensions, "resources": {}, "tools": { "listChanged": true } })
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
}

#[tokio::test]
async fn handshake_agrees_on_a_revision() {
    for (asked, agreed) in [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25")] {
        let host = TestHost::new();
        let mut client = host.client("alice");
        let params = json!({
            "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        client.write(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()).await;
        let answer = client.receive().await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{answer}");
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        let call = json!({ "name": "echo", "arguments": { "a": 1 } });
        client.write(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }).to_string()).await;
        let result = client.result().await;
        assert_eq!(result["structuredContent"], json!({ "a": 1 }));
        assert_eq!(result.get("resultType"), None, "this revision does not have it");
    }
}
