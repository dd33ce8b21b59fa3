//! Every wrong request gets a problem that names the error.

use axum::body::Body;
use axum::http::header;
use expect_test::expect;
use toolgate_server::ServerSettings;

use crate::world::{TestServer, request};

#[tokio::test]
async fn wrong_paths_methods_and_parameters() {
    let world = TestServer::new();
    let mut output = String::new();
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/v1/nothing"),
        ("PATCH", "/v1/tools"),
        ("GET", "/v1/conversations/c/turns"),
        ("GET", "/v1/conversations/c/calls/a/resolve"),
        ("GET", "/v1/conversations/a%20b/turns/turn_1"),
        ("GET", "/v1/conversations/c/turns/susp_00000000000000000000000000000001"),
        ("GET", "/v1/conversations/c/turns/turn_00000000000000000000000000000009?wait=1"),
        ("GET", "/v1/pending?limit=501"),
        ("GET", "/v1/pending?limit=0"),
        ("GET", "/v1/pending?limit=many"),
        ("GET", "/v1/pending?mine=perhaps"),
        ("GET", "/v1/pending?turn=t"),
        ("GET", "/v1/pending?state=ajar"),
        ("GET", "/v1/pending?kind=approval&kind=approval"),
        ("GET", "/v1/suspensions/susp_00000000000000000000000000000001"),
        ("GET", "/v1/tools?x=1"),
        ("GET", "/healthz?x=1"),
    ] {
        let reply = world.send(request(method, path, "alice", None)).await;
        output += &format!("{method} {path}\n  {} {}\n", reply.code(), reply.at("/detail"));
    }
    expect![[r#"
        GET /
          404 not-found there is nothing at /
        GET /v1/nothing
          404 not-found there is nothing at /v1/nothing
        PATCH /v1/tools
          405 method-not-allowed this path does not have this method; see /openapi.json
        GET /v1/conversations/c/turns
          404 not-found there is no such conversation, or you may not see it
        GET /v1/conversations/c/calls/a/resolve
          405 method-not-allowed this path does not have this method; see /openapi.json
        GET /v1/conversations/a%20b/turns/turn_1
          400 bad-request "a b" is not a conversation id: expected 1 to 128 of the characters A-Z a-z 0-9 _ . : -
        GET /v1/conversations/c/turns/susp_00000000000000000000000000000001
          400 bad-request "susp_00000000000000000000000000000001" is not a turn id: expected `turn_` and 32 lower-case hexadecimal digits
        GET /v1/conversations/c/turns/turn_00000000000000000000000000000009?wait=1
          400 bad-request there is no parameter `wait`; the parameters are `wait_ms`, `until`, `format`, `log`
        GET /v1/pending?limit=501
          400 bad-request the parameter `limit` is 501, and it must be from 1 to 500
        GET /v1/pending?limit=0
          400 bad-request the parameter `limit` is 0, and it must be from 1 to 500
        GET /v1/pending?limit=many
          400 bad-request the parameter `limit` is "many", and it must be a whole number from 0
        GET /v1/pending?mine=perhaps
          400 bad-request the parameter `mine` is "perhaps", and it must be true or false
        GET /v1/pending?turn=t
          400 bad-request the parameter `turn`: "t" is not a turn id: expected `turn_` and 32 lower-case hexadecimal digits
        GET /v1/pending?state=ajar
          400 bad-request the parameter `state` is "ajar", and it must be one of `open`, `closed`, `all`
        GET /v1/pending?kind=approval&kind=approval
          400 bad-request the parameter `kind` is given twice
        GET /v1/suspensions/susp_00000000000000000000000000000001
          404 not-found there is no such suspension, or you may not see it
        GET /v1/tools?x=1
          400 bad-request there is no parameter `x`; the parameters are `format`, `partial`
        GET /healthz?x=1
          400 bad-request there is no parameter `x`: this request has none
    "#]].assert_eq(&output);
    let reply = world.send(request("PATCH", "/v1/tools", "alice", None)).await;
    assert_eq!(reply.headers[header::ALLOW], "GET,HEAD");
}

#[tokio::test]
async fn bodies_are_bounded_and_must_be_json() {
    let world = TestServer::with(ServerSettings { turn_bytes: 64, component_bytes: 8, ..ServerSettings::default() });
    let long = format!(r#"{{"calls":[{{"id":"{}"}}]}}"#, "x".repeat(64));
    assert_eq!(world.submit("", &long).await.code(), "413 too-large");
    // A body without a declared length is limited too.
    let chunks = futures::stream::iter([0, 1].map(|_| Ok::<_, std::io::Error>("x".repeat(60))));
    let mut hidden = request("POST", "/v1/conversations/c/turns", "alice", Some(""));
    *hidden.body_mut() = Body::from_stream(chunks);
    assert_eq!(world.send(hidden).await.code(), "413 too-large");
    assert_eq!(world.send(request("PUT", "/v1/plugins/p", "root", Some("123456789"))).await.code(), "413 too-large");
    let log_in = format!(r#"{{"token":"{}"}}"#, "x".repeat(5_000));
    assert_eq!(world.post("", "/v1/session", &log_in).await.code(), "413 too-large");
    let mut hidden = request("POST", "/v1/session", "", Some(""));
    *hidden.body_mut() = Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(log_in)]));
    assert_eq!(world.send(hidden).await.code(), "413 too-large");
    // A principal that may not load plugins is refused before its body is read.
    assert_eq!(world.send(request("PUT", "/v1/plugins/p", "alice", Some("123456789"))).await.code(), "403 not-allowed");

    let mut form = request("POST", "/v1/conversations/c/turns", "alice", Some("{}"));
    form.headers_mut().insert(header::CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap());
    assert_eq!(world.send(form).await.code(), "415 unsupported-media-type");
    let mut bare = request("POST", "/v1/conversations/c/turns", "alice", Some("{}"));
    bare.headers_mut().remove(header::CONTENT_TYPE);
    assert_eq!(world.send(bare).await.code(), "422 invalid");
    let world = TestServer::new();
    let deep = format!(r#"{{"calls":[{{"id":"1","tool":"echo","arguments":{}}}]}}"#, "[".repeat(100_000));
    assert_eq!(world.submit("", &deep).await.code(), "400 bad-json");
}

#[tokio::test]
async fn problems_repeat_only_the_beginning_of_a_body() {
    let world = TestServer::new();
    for text in ["\u{7f}", "é", "\u{10ffff}"].map(|c| c.repeat((1 << 20) / c.len())) {
        let call =
            |id: &str, more: &str| format!(r#"{{"calls":[{{"id":"{id}","tool":"echo","arguments":{{}}{more}}}]}}"#);
        for body in [
            format!(r#"{{"calls":[],"{text}":1}}"#),
            call("1", &format!(r#","{text}":1"#)),
            call(&text, ""),
            format!(r#"{{"calls":"{text}"}}"#),
        ] {
            let reply = world.submit("", &body).await;
            assert_eq!(reply.code(), "422 invalid");
            assert!(reply.text.len() < 32 << 10 && reply.at("/detail").contains(" bytes more"), "{}", reply.text.len());
            assert!(reply.at("/errors/0/pointer").len() <= 256);
        }
    }
}

#[tokio::test]
async fn problems_have_at_most_64_kib() {
    let world = TestServer::new();
    for text in ["\\u0001", "\\\"", "\u{7f}", "é", "語", "\u{10ffff}"].map(|c| c.repeat((8 << 10) / c.len())) {
        let written: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        let known = "susp_00000000000000000000000000000001";
        for (suspension, decision) in [(&*text, "deny"), (known, &*text), (known, "deny")] {
            let answer = format!(r#"{{"suspension":"{suspension}","decision":"{decision}"}}"#);
            let body = format!(r#"{{"answers":[{}]}}"#, vec![answer; 100].join(","));
            let reply = world.post("alice", "/v1/pending/resolve", &body).await;
            assert!(reply.text.len() <= 64 << 10, "{}", reply.text.len());
            for answer in reply.json()["answers"].as_array().unwrap() {
                let repeated = answer["suspension"].as_str().unwrap();
                assert!(repeated == known || written.starts_with(repeated), "{answer}");
                assert!(answer["problem"]["detail"].is_string() && answer["problem"].get("errors").is_none());
            }
        }
        // Each call has an error of its own.
        let calls: Vec<_> = (0..64).map(|n| format!(r#"{{"id":"{n}","tool":"echo","{text}{n}":1}}"#)).collect();
        let reply = world.submit("", &format!(r#"{{"calls":[{}]}}"#, calls.join(","))).await;
        assert_eq!(reply.code(), "422 invalid");
        assert!(reply.text.len() <= 64 << 10, "{}", reply.text.len());
    }
}

#[tokio::test]
async fn refused_plugin_lists_findings_and_faults_stay_private() {
    let world = TestServer::new();
    let put = async |bytes: &str| world.send(request("PUT", "/v1/plugins/p", "root", Some(bytes))).await;
    assert_eq!(put("good").await.at("/state"), "live");
    let refused = put("bad").await;
    assert_eq!(refused.code(), "422 plugin-refused");
    assert_eq!(
        (refused.at("/findings/0/rule"), refused.at("/findings/1/rule")),
        ("gated-human".into(), "no-server".into())
    );
    for fault in ["disk", "panic"] {
        let reply = put(fault).await;
        assert_eq!(reply.code(), "500 fault");
        assert!(reply.at("/fault").starts_with("fault_"));
        assert!(!reply.text.contains("secret") && !reply.text.contains("luck"), "{}", reply.text);
    }
    assert_eq!(world.send(request("DELETE", "/v1/plugins/shelf", "root", None)).await.at("/removed"), "shelf");
    assert_eq!(world.send(request("DELETE", "/v1/plugins/none", "root", None)).await.code(), "404 not-found");
    assert_eq!(world.get("root", "/v1/plugins").await.at("/plugins/0/name"), "shelf");
}
