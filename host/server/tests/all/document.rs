//! The OpenAPI document matches the routes.

use std::collections::BTreeSet;

use expect_test::expect;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

async fn document(world: &TestServer) -> Value {
    world.get("", "/openapi.json").await.json()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(|(method, operation)| (method.to_uppercase(), path.clone(), operation))
    });
    operations.collect()
}

/// The typed client of `sdk/web` is generated from the committed document.
#[tokio::test]
async fn committed_document_matches_the_served_one() {
    let served = document(&TestServer::new()).await;
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/web/openapi.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert!(served == kept, "start a host and run `npm run generate -w sdk/web -- http://127.0.0.1:7420`");
}

#[tokio::test]
async fn responses_share_the_bytes_of_the_document() {
    let world = TestServer::new();
    let ask = async || {
        let response = world.router.clone().oneshot(request("GET", "/openapi.json", "", None)).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    let (first, second) = (ask().await, ask().await);
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[tokio::test]
async fn document_lists_every_route_with_its_problems() {
    let world = TestServer::new();
    let document = document(&world).await;
    let mut output = String::new();
    for (method, path, operation) in operations(&document) {
        let statuses: Vec<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        output += &format!("{method} {path} {}\n", statuses.join(" "));
        assert!(operation["summary"].is_string(), "{method} {path}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path} {status}");
            let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(problem == "#/components/schemas/Problem", status.as_str() >= "400", "{method} {path} {status}");
        }
    }
    expect![[r#"
        GET /healthz 200 400 421 500 503 507
        GET /metrics 200 400 401 403 421 429 500 503 507
        GET /openapi.json 200 400 421 500 503 507
        GET /readyz 200 400 421 500 503 507
        GET /v1/audit 200 400 401 403 421 429 500 503 507
        GET /v1/audit/chain 200 400 401 403 421 429 500 503 507
        GET /v1/audit/checkpoint 200 400 401 403 404 421 429 500 503 507
        GET /v1/backup 200 400 401 403 404 421 429 500 503 507
        GET /v1/conversations 200 400 401 403 421 429 500 503 507
        GET /v1/conversations/{conversation}/calls/{call}/journal 200 400 401 403 404 410 421 429 500 503 507
        GET /v1/conversations/{conversation}/calls/{call}/log 200 400 401 403 404 410 421 429 500 503 507
        POST /v1/conversations/{conversation}/calls/{call}/resolve 200 400 401 403 404 408 409 410 413 415 421 422 429 500 503 507
        GET /v1/conversations/{conversation}/events 200 400 401 403 404 421 429 500 503 507
        POST /v1/conversations/{conversation}/signals/{name} 200 400 401 403 404 408 409 413 415 421 422 429 500 503 507
        GET /v1/conversations/{conversation}/turns 200 400 401 403 404 421 429 500 503 507
        POST /v1/conversations/{conversation}/turns 200 201 202 400 401 403 404 408 409 410 413 415 421 422 429 500 503 507
        GET /v1/conversations/{conversation}/turns/{turn} 200 400 401 403 404 409 410 421 429 500 503 507
        POST /v1/conversations/{conversation}/turns/{turn}/cancel 200 400 401 403 404 410 421 429 500 503 507
        POST /v1/drain 200 400 401 403 421 429 500 503 507
        GET /v1/events 200 400 401 403 421 429 500 503 507
        GET /v1/hosts 200 400 401 403 421 429 500 503 507
        POST /v1/links/{link} 200 400 401 403 408 409 413 415 421 422 429 500 503 507
        GET /v1/pending 200 400 401 403 421 422 429 500 503 507
        GET /v1/pending/counts 200 400 401 403 421 429 500 503 507
        GET /v1/pending/events 200 400 401 403 421 429 500 503 507
        POST /v1/pending/resolve 200 400 401 403 408 413 415 421 422 429 500 503 507
        GET /v1/plugins 200 400 401 403 421 429 500 503 507
        PUT /v1/plugins/{name} 200 400 401 403 408 409 413 421 422 429 500 503 507
        DELETE /v1/plugins/{name} 200 400 401 403 404 409 421 429 500 503 507
        POST /v1/policy/explain 200 400 401 403 404 408 413 415 421 422 429 500 503 507
        GET /v1/session 200 400 401 403 421 429 500 503 507
        POST /v1/session 200 400 401 403 408 413 415 421 422 429 500 503 507
        DELETE /v1/session 200 400 401 403 421 429 500 503 507
        POST /v1/session/link 200 400 401 403 408 409 413 415 421 422 429 500 503 507
        GET /v1/standing-approvals 200 400 401 403 421 429 500 503 507
        DELETE /v1/standing-approvals/{standing} 200 400 401 403 404 421 429 500 503 507
        GET /v1/status 200 400 401 403 421 429 500 503 507
        GET /v1/suspensions/{suspension} 200 400 401 403 404 421 429 500 503 507
        POST /v1/suspensions/{suspension}/defaults 200 400 401 403 404 408 413 415 421 422 429 500 503 507
        POST /v1/suspensions/{suspension}/delegate 200 400 401 403 408 409 413 415 421 422 429 500 503 507
        POST /v1/suspensions/{suspension}/links 200 400 401 403 404 408 409 413 415 421 422 429 500 503 507
        POST /v1/suspensions/{suspension}/progress 200 400 401 403 408 409 413 415 421 422 429 500 503 507
        POST /v1/suspensions/{suspension}/resolve 200 400 401 403 408 409 413 415 421 422 429 500 503 507
        GET /v1/tools 200 400 401 403 421 429 500 503 507
    "#]]
    .assert_eq(&output);
}

#[tokio::test]
async fn document_lists_exactly_the_existing_methods() {
    let world = TestServer::new();
    let document = document(&world).await;
    let listed: BTreeSet<(String, String)> = operations(&document).into_iter().map(|(m, p, _)| (m, p)).collect();
    for path in document["paths"].as_object().unwrap().keys() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let asked = path
                .replace("{conversation}", "c")
                .replace("{turn}", "turn_00000000000000000000000000000001")
                .replace("{suspension}", "susp_00000000000000000000000000000001")
                .replace("{link}", "l")
                .replace("{name}", "p");
            // The request has no token, so an existing route answers 401, unless it is public.
            let reply = world.send(request(method, &asked, "", None)).await;
            let is_listed = listed.contains(&(method.to_owned(), path.clone()));
            assert_eq!(reply.status != 405, is_listed, "{method} {path}: {}", reply.status);
            assert_ne!(reply.status, 404, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn references_in_the_document_resolve() {
    let world = TestServer::new();
    let document = document(&world).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document, serde_json::to_value(toolgate_server::document()).unwrap());
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].to_string()), "{method} {path} has an id of its own");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{method} {path}");
    }
    let mut left = vec![&document];
    while let Some(value) = left.pop() {
        if let Some(pointer) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(pointer.trim_start_matches('#')).is_some(), "{pointer}");
        }
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn enums_of_the_document_match_the_responses() {
    let world = TestServer::new();
    let document = document(&world).await;
    for (name, words) in [
        ("Executor", &["server", "human", "client", "provider"] as &[&str]),
        ("Approval", &["auto", "requires-approval"]),
        ("Kind", &["approval", "elicitation", "client_exec", "timer", "external", "rate_limit", "children"]),
        ("Status", &["running", "awaiting", "resolved", "errored"]),
        ("TurnState", &["open", "settled", "aborted", "cancelled"]),
        ("Rejection", &["continue_siblings", "cancel_siblings", "abort_turn"]),
    ] {
        assert_eq!(document["components"]["schemas"][name]["enum"], serde_json::json!(words), "{name}");
    }
}
