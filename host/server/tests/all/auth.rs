//! Authentication and roles.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use axum::http::header;
use expect_test::expect;

use crate::world::{TestServer, request};

/// Every route, with what exists in the test.
fn routes() -> Vec<(&'static str, String)> {
    let turns = "/v1/conversations/c/turns";
    let turn = format!("{turns}/turn_{:032x}", 2);
    vec![
        ("POST", turns.to_owned()),
        ("GET", turn.clone()),
        ("GET", "/v1/conversations/c/calls/p/log".to_owned()),
        ("GET", "/v1/conversations/c/calls/p/journal".to_owned()),
        ("POST", format!("{turn}/cancel")),
        ("GET", "/v1/pending".into()),
        ("GET", format!("/v1/suspensions/susp_{:032x}", 3)),
        ("POST", format!("/v1/suspensions/susp_{:032x}/resolve", 3)),
        ("POST", format!("/v1/suspensions/susp_{:032x}/links", 3)),
        ("POST", "/v1/session".into()),
        ("GET", "/v1/session".into()),
        ("DELETE", "/v1/session".into()),
        ("POST", "/v1/session/link".into()),
        ("GET", "/v1/tools".into()),
        ("GET", "/v1/plugins".into()),
        ("PUT", "/v1/plugins/x".into()),
        ("DELETE", "/v1/plugins/x".into()),
        ("GET", "/v1/audit".into()),
        ("GET", "/v1/audit/chain".into()),
        ("GET", "/v1/audit/checkpoint".into()),
        ("GET", "/v1/backup".into()),
        ("GET", "/v1/status".into()),
        ("GET", "/v1/hosts".into()),
        ("GET", "/metrics".into()),
        ("GET", "/healthz".into()),
        ("GET", "/readyz".into()),
        ("GET", "/openapi.json".into()),
        // Last, because the host takes no turns afterwards.
        ("POST", "/v1/drain".into()),
    ]
}

#[tokio::test]
async fn every_route_authenticates_and_checks_roles() {
    let world = TestServer::new();
    world.submit("", r#"{"calls":[{"id":"p","tool":"pay","arguments":{}}]}"#).await;
    let mut table = String::new();
    for (method, path) in routes() {
        let mut row = format!("{method} {}", path.replace(&format!("{:031x}", 0), ""));
        for who in ["", "nobody", "alice", "eve", "scoped", "bob", "carol", "root"] {
            let status = world.send(request(method, &path, who, None)).await.status.as_u16();
            row += &format!(" {status}");
        }
        table += &(row + "\n");
    }
    // An empty body is not JSON, so 400 means that authentication passed.
    expect![[r#"
        POST /v1/conversations/c/turns 401 401 400 400 400 400 400 400
        GET /v1/conversations/c/turns/turn_2 401 401 200 404 404 200 200 200
        GET /v1/conversations/c/calls/p/log 401 401 200 404 404 200 200 200
        GET /v1/conversations/c/calls/p/journal 401 401 200 404 404 200 200 200
        POST /v1/conversations/c/turns/turn_2/cancel 401 401 200 404 404 403 403 200
        GET /v1/pending 401 401 200 200 200 200 200 200
        GET /v1/suspensions/susp_3 401 401 200 404 404 200 200 200
        POST /v1/suspensions/susp_3/resolve 401 401 400 400 400 400 400 400
        POST /v1/suspensions/susp_3/links 401 401 400 400 400 400 400 400
        POST /v1/session 415 415 415 415 415 415 415 415
        GET /v1/session 401 401 200 200 200 200 200 200
        DELETE /v1/session 401 401 400 400 400 400 400 400
        POST /v1/session/link 415 415 415 415 415 415 415 415
        GET /v1/tools 401 401 200 200 200 200 200 200
        GET /v1/plugins 401 401 403 403 403 403 403 200
        PUT /v1/plugins/x 401 401 403 403 403 403 403 200
        DELETE /v1/plugins/x 401 401 403 403 403 403 403 404
        GET /v1/audit 401 401 403 403 403 403 403 200
        GET /v1/audit/chain 401 401 403 403 403 403 403 200
        GET /v1/audit/checkpoint 401 401 403 403 403 403 403 200
        GET /v1/backup 401 401 403 403 403 403 403 200
        GET /v1/status 401 401 200 200 200 200 200 200
        GET /v1/hosts 401 401 403 403 403 403 403 200
        GET /metrics 401 401 403 403 403 403 403 200
        GET /healthz 200 200 200 200 200 200 200 200
        GET /readyz 200 200 200 200 200 200 200 200
        GET /openapi.json 200 200 200 200 200 200 200 200
        POST /v1/drain 401 401 403 403 403 403 403 200
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn request_that_authenticates_nobody_waits_for_no_tokens() {
    let world = TestServer::new();
    world.hang_tokens();
    for path in ["/healthz", "/openapi.json"] {
        assert_eq!(world.get("", path).await.status, 200, "{path}");
    }
    assert_eq!(world.get("", "/link/x").await.code(), "404 not-found", "a page");
    for (path, why) in [("/v1/status", "a token may be revoked"), ("/readyz", "without tokens, it is not ready")] {
        let mut answer = pin!(world.get("root", path));
        let waits = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx).is_pending())).await;
        assert!(waits, "{why}");
    }
}

#[tokio::test]
async fn token_is_accepted_in_one_header_and_form() {
    let world = TestServer::new();
    let with = |values: &[&str]| {
        let mut asked = request("GET", "/v1/tools", "", None);
        for value in values {
            asked.headers_mut().append(header::AUTHORIZATION, value.parse().unwrap());
        }
        asked
    };
    for good in ["Bearer alice", "bearer alice", "BEARER  alice "] {
        assert_eq!(world.send(with(&[good])).await.status, 200, "{good}");
    }
    for bad in [&["alice"][..], &["Basic alice"], &["Bearer"], &["Bearer "], &["Bearer alice", "Bearer root"], &[]] {
        let reply = world.send(with(bad)).await;
        assert_eq!(reply.code(), "401 unauthorized", "{bad:?}");
        assert_eq!(reply.headers[header::WWW_AUTHENTICATE], "Bearer realm=\"toolgate\"");
    }
    // Never from the query, because logs would contain it, and never from the body.
    assert_eq!(world.get("", "/v1/tools?access_token=root").await.code(), "401 unauthorized");
}

#[tokio::test]
async fn dns_rebinding_page_is_refused() {
    let world = TestServer::new();
    let named = |host: &str| {
        let mut asked = request("GET", "/healthz", "", None);
        asked.headers_mut().insert(header::HOST, host.parse().unwrap());
        asked
    };
    for good in ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:7717"] {
        assert_eq!(world.send(named(good)).await.status, 200, "{good}");
    }
    for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "0.0.0.0", "[::2]", "", "a b"] {
        assert_eq!(world.send(named(bad)).await.code(), "421 unknown-host", "{bad}");
    }
    let mut none = request("GET", "/healthz", "", None);
    none.headers_mut().remove(header::HOST);
    assert_eq!(world.send(none).await.code(), "421 unknown-host");
    let mut absolute = named("localhost");
    *absolute.uri_mut() = "http://evil.example/healthz".parse().unwrap();
    assert_eq!(world.send(absolute).await.code(), "421 unknown-host");
}
