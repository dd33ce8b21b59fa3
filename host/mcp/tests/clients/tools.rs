//! The list of tools.

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

use crate::world::{TestHost, caller};

#[tokio::test]
async fn list_has_annotations_digests_and_a_private_scope() {
    let host = TestHost::new();
    let list = host.client("alice").ask("tools/list", json!({})).await["result"].take();
    assert_eq!(list["cacheScope"], "private");
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["ask", "choose", "echo", "pay", "slow", "toolgate_wait", "work"],
        "the provider's tool is left out"
    );
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let echo = find("echo");
    assert_eq!((&echo["title"], &echo["description"]), (&json!("The echo"), &json!("What echo does.")));
    assert_eq!(echo["inputSchema"], json!({ "type": "object" }));
    assert_eq!(echo["outputSchema"], json!({ "type": "object" }));
    // Its access allows neither changes nor systems outside, although its hints do not say so.
    let annotations = json!({
        "title": "The echo", "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false,
    });
    assert_eq!(echo["annotations"], annotations);
    assert_eq!(find("pay")["annotations"], json!({ "title": "The pay", "readOnlyHint": false, "openWorldHint": true }));
    let about = &find("pay")["_meta"]["dev.toolgate/tool"];
    assert_eq!((&about["approval"], &about["executor"]), (&json!("requires-approval"), &json!("server")));
    for digest in ["component", "declaration"] {
        assert!(about[digest].as_str().unwrap().starts_with("sha256:"), "{about}");
    }
    let wait = find("toolgate_wait");
    assert_eq!(wait["annotations"]["readOnlyHint"], true);
    assert_eq!(wait["_meta"]["dev.toolgate/tool"], Value::Null, "it is the host's own and not the plugin's");
}

/// The client of the official SDK, with this lifecycle.
async fn sdk_lists_and_calls(lifecycle: ClientLifecycleMode) {
    let host = TestHost::new();
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    let endpoint = host.endpoint.clone();
    let serving = tokio::spawn(async move { endpoint.serve(caller("alice"), read, write).await });
    let client = ().serve_with_lifecycle(near, lifecycle).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 7);
    let arguments = json!({ "a": 1 }).as_object().cloned().unwrap();
    let result = client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({ "a": 1 })));
    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn sdk_client_of_2025_11_25_works() {
    sdk_lists_and_calls(ClientLifecycleMode::Initialize).await;
}

#[tokio::test]
async fn sdk_client_of_2026_07_28_works() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    sdk_lists_and_calls(ClientLifecycleMode::Discover { preferred_versions }).await;
}
