//! Access tokens of an authorization server, with a port of the test: challenges, metadata, and the end of a token.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::{Request, Response, header};
use domain::{Principal, PrincipalId, Span, Timestamp, principal::Role};
use futures::StreamExt as _;
use serde_json::json;
use toolgate_server::{
    AccessToken, AccessTokens, McpBody, McpClients, McpUnread, ProtectedResource, ServerSettings, TokenRefusal,
};
use toolgate_tests::world::settle;
use tower::ServiceExt as _;

use crate::world::{Reply, TestServer, request};

/// How long tokens are valid here.
const VALID: Span = Span::from_secs(20);

/// The begin of the simulated time: the year 2026.
const BEGIN: u64 = 1_767_225_600_000;

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Accepts `a.ROLE.c`. The key for `a.unchecked.c` is never known.
struct Issuer(ProtectedResource);

#[async_trait]
impl AccessTokens for Issuer {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<AccessToken, TokenRefusal> {
        let expires = Timestamp::from_millis(BEGIN) + VALID;
        let word = token.split('.').nth(1).unwrap_or_default();
        let roles: &[Role] = match word {
            "caller" => &[Role::Caller],
            "none" => &[],
            "unchecked" => return Err(TokenRefusal::Unchecked("no keys".into())),
            _ => return Err(TokenRefusal::Invalid("it is wrong".into())),
        };
        if now >= expires {
            return Err(TokenRefusal::Invalid("it has expired".into()));
        }
        let name = PrincipalId::new(&format!("oauth:issuer:{word}")).unwrap();
        Ok(AccessToken { principal: Principal::new(name, roles.iter().copied()), expires })
    }

    fn resource(&self) -> &ProtectedResource {
        &self.0
    }

    fn scope_with(&self, role: Role) -> Option<String> {
        match role {
            Role::Caller => Some("tools:call".into()),
            Role::Approver => Some("decide".into()),
            Role::Client | Role::Admin => None,
        }
    }
}

/// Names the principal at once. A message `wait` is never answered.
struct Clients;

#[async_trait]
impl McpClients for Clients {
    async fn answer(&self, by: Principal, request: Request<Bytes>, _: Arc<dyn McpUnread>) -> Response<McpBody> {
        if request.body() == "\"wait\"" {
            std::future::pending::<()>().await;
        }
        let named = json!({"by": by.id.to_string()}).to_string();
        Response::builder().header(header::CONTENT_TYPE, "application/json").body(McpBody::new(named)).unwrap()
    }
}

fn server() -> TestServer {
    // Streams notice soon that their tokens have expired.
    let mut server = TestServer::with(ServerSettings { recheck: Span::from_millis(1), ..ServerSettings::default() });
    server.answer_mcp_clients(Arc::new(Clients));
    server.accept_access_tokens(Arc::new(Issuer(ProtectedResource {
        resource: "https://host.example/mcp".into(),
        authorization_servers: vec!["https://login.example".into()],
        scopes_supported: vec!["tools:call".into()],
        bearer_methods_supported: ["header"],
        url: format!("https://host.example{METADATA}/mcp"),
    })));
    server
}

/// The status and the challenge.
fn challenge(reply: &Reply) -> (u16, String) {
    let challenge = reply.headers.get(header::WWW_AUTHENTICATE).map(|value| value.to_str().unwrap().to_owned());
    (reply.status.as_u16(), challenge.unwrap_or_default())
}

#[tokio::test]
async fn metadata_names_the_authorization_server() {
    let server = server();
    // It is public: also while tokens cannot be read.
    server.hang_tokens();
    for path in [METADATA.to_owned(), format!("{METADATA}/mcp")] {
        let expected = json!({
            "resource": "https://host.example/mcp",
            "authorization_servers": ["https://login.example"],
            "scopes_supported": ["tools:call"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(server.get("", &path).await.json(), expected);
        assert_eq!(TestServer::new().get("", &path).await.code(), "404 not-found");
    }
}

#[tokio::test]
async fn refusals_say_how_to_get_a_token() {
    let server = server();
    let resource = format!("Bearer resource_metadata=\"https://host.example{METADATA}/mcp\"");
    let to_mcp = async |token: &str| challenge(&server.post(token, "/mcp", "\"x\"").await);
    assert_eq!(to_mcp("").await, (401, format!("{resource}, scope=\"tools:call\"")));
    for wrong in ["a.wrong.c", "unknown"] {
        let invalid = format!("{resource}, error=\"invalid_token\", scope=\"tools:call\"");
        assert_eq!(to_mcp(wrong).await, (401, invalid), "{wrong}");
    }
    let insufficient = format!("{resource}, error=\"insufficient_scope\", scope=\"tools:call\"");
    assert_eq!(to_mcp("a.none.c").await, (403, insufficient));
    assert_eq!(to_mcp("a.caller.c").await, (200, String::new()));
    assert_eq!(to_mcp("alice").await, (200, String::new()), "a token of the host");

    // Other paths are not the resource.
    let to_api = async |token: &str, path: &str| challenge(&server.get(token, path).await);
    assert_eq!(to_api("", "/v1/session").await, (401, "Bearer realm=\"toolgate\"".into()));
    let invalid = "Bearer realm=\"toolgate\", error=\"invalid_token\"";
    assert_eq!(to_api("a.wrong.c", "/v1/session").await, (401, invalid.into()));
    assert_eq!(to_api("a.caller.c", "/v1/session").await, (200, String::new()));
    // No scope gives the role `admin`, and a token of the host has no scopes.
    assert_eq!(to_api("a.caller.c", "/v1/plugins").await, (403, String::new()));
    let turn = "/v1/conversations/n/turns";
    let body = r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#;
    let insufficient = "Bearer realm=\"toolgate\", error=\"insufficient_scope\", scope=\"tools:call\"";
    assert_eq!(challenge(&server.post("a.none.c", turn, body).await), (403, insufficient.into()));
    assert_eq!(challenge(&server.post("bob", turn, body).await), (403, String::new()));
}

#[tokio::test]
async fn token_that_cannot_be_checked_is_no_wrong_token() {
    let reply = server().post("a.unchecked.c", "/mcp", "\"x\"").await;
    assert_eq!((reply.code().as_str(), challenge(&reply).1.as_str()), ("503 issuer-unavailable", ""));
    assert_eq!(reply.headers[header::RETRY_AFTER], "5");
}

#[tokio::test]
async fn access_token_opens_no_session() {
    let reply = server().post("", "/v1/session", r#"{"token":"a.caller.c"}"#).await;
    assert_eq!(reply.code(), "401 unauthorized");
}

#[tokio::test]
async fn request_ends_when_its_access_token_expires() {
    let server = server();
    let sent = server.router.clone().oneshot(request("POST", "/mcp", "a.caller.c", Some("\"wait\"")));
    let waiting = tokio::spawn(sent);
    settle().await;
    server.advance(19);
    settle().await;
    assert!(!waiting.is_finished());
    server.advance(1);
    let response = waiting.await.unwrap().unwrap();
    let challenge = response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap();
    assert_eq!(response.status(), 401);
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    // A token of the host waits on.
    let waiting = tokio::spawn(server.router.clone().oneshot(request("POST", "/mcp", "alice", Some("\"wait\""))));
    settle().await;
    server.advance(100);
    settle().await;
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn stream_ends_when_its_access_token_expires() {
    let server = server();
    let path = "/v1/conversations/n/events";
    let body = r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#;
    assert_eq!(server.post("a.caller.c", "/v1/conversations/n/turns", body).await.status, 201);
    let response = server.router.clone().oneshot(request("GET", path, "a.caller.c", None)).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut parts = response.into_body().into_data_stream();
    server.advance(20);
    while parts.next().await.is_some() {}
}
