//! CORS: only pages of origins that the operator names may use the API, with tokens of their own.

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use toolgate_server::ServerSettings;
use tower::ServiceExt as _;

use crate::browsers::{Browser, with};
use crate::world::{TestServer, request};

const APP: &str = "https://app.example.com";

fn world() -> TestServer {
    TestServer::with(ServerSettings {
        origins: vec![APP.to_owned(), "http://localhost:5173".to_owned()],
        ..ServerSettings::default()
    })
}

async fn headers(world: &TestServer, request: Request<Body>) -> (u16, HeaderMap) {
    let response = world.router.clone().oneshot(request).await.unwrap();
    (response.status().as_u16(), response.headers().clone())
}

fn preflight(origin: &str, method: &str, asks: &str) -> Request<Body> {
    let asked = with(request("OPTIONS", "/v1/conversations/c/turns", "", None), "origin", origin);
    with(with(asked, "access-control-request-method", method), "access-control-request-headers", asks)
}

#[tokio::test]
async fn named_origin_may_send_a_token_but_not_a_session() {
    let world = world();
    let (status, answered) = headers(&world, preflight(APP, "POST", "authorization,content-type")).await;
    assert_eq!((status, &answered[header::ACCESS_CONTROL_ALLOW_ORIGIN]), (200, &APP.parse().unwrap()));
    let allowed = answered[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
    assert_eq!(allowed, "authorization,content-type,last-event-id,mcp-protocol-version,mcp-method,mcp-name");
    assert!(!answered.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    assert!(answered[header::VARY].to_str().unwrap().contains("origin"), "no cache reuses it for another origin");

    let asked = with(request("GET", "/v1/tools", "alice", None), "origin", APP);
    let (status, answered) = headers(&world, asked).await;
    assert_eq!((status, &answered[header::ACCESS_CONTROL_ALLOW_ORIGIN]), (200, &APP.parse().unwrap()));
    assert!(!answered.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    // The page can read problems too.
    let (status, answered) = headers(&world, with(request("GET", "/v1/tools", "nobody", None), "origin", APP)).await;
    assert_eq!((status, answered.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)), (401, true));

    let browser = Browser::log_in(&world, "root").await;
    let asked = with(with(browser.bare("GET", "/v1/tools", None), "origin", APP), "sec-fetch-site", "cross-site");
    assert_eq!(headers(&world, asked).await.0, 403);
}

#[tokio::test]
async fn other_origin_gets_no_cors_headers() {
    let world = world();
    for origin in [
        "https://evil.example.com",
        "https://app.example.com.evil.example",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://APP.example.com",
        "null",
        "*",
    ] {
        let (_, answered) = headers(&world, preflight(origin, "POST", "authorization")).await;
        assert!(!answered.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{origin}");
        let (_, answered) = headers(&world, with(request("GET", "/healthz", "", None), "origin", origin)).await;
        assert!(!answered.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{origin}");
    }
    let mut renamed = preflight(APP, "POST", "authorization");
    renamed.headers_mut().insert(header::HOST, "evil.example".parse().unwrap());
    assert_eq!(headers(&world, renamed).await.0, 421, "no page is served under another host name");
}

#[tokio::test]
async fn without_named_origins_there_are_no_cors_headers() {
    let world = TestServer::new();
    let (status, answered) = headers(&world, preflight(APP, "POST", "authorization")).await;
    assert_eq!((status, answered.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)), (405, false));
    assert!(!answered.contains_key(header::ACCESS_CONTROL_ALLOW_HEADERS));
}
