//! The bodies that a principal is sending have a limit together.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::{FutureExt as _, StreamExt as _, stream};
use toolgate_server::ServerSettings;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

/// A request whose body stops after this many bytes and never ends.
fn unfinished(who: &str, method: &str, path: &str, bytes: usize) -> Request<Body> {
    let sent = stream::iter([Ok::<_, Infallible>(Bytes::from(vec![b' '; bytes]))]).chain(stream::pending());
    request(method, path, who, Some("")).map(|_| Body::from_stream(sent))
}

#[tokio::test]
async fn bodies_of_a_principal_have_a_limit_together() {
    let world = TestServer::with(ServerSettings { bodies_bytes: 1_000, ..ServerSettings::default() });
    let gated = format!(r#"{{"calls":[{{"id":"1","tool":"pay","arguments":{{"t":"{}"}}}}]}}"#, "x".repeat(2_000));
    let asks = world.submit("", &gated).await;
    assert_eq!(asks.status, 201, "one body of an allowed size fits: {}", asks.text);
    let suspension = format!("/v1/suspensions/{}", asks.at("/pending/0/suspension"));
    for (who, method, path) in [
        ("alice", "POST", "/v1/conversations/c/turns".to_owned()),
        ("carol", "POST", "/v1/conversations/c/calls/1/resolve".to_owned()),
        ("carol", "POST", format!("{suspension}/progress")),
        ("bob", "POST", format!("{suspension}/resolve")),
        ("bob", "POST", format!("{suspension}/delegate")),
        ("bob", "POST", "/v1/pending/resolve".to_owned()),
        ("root", "POST", format!("{suspension}/links")),
        ("root", "POST", "/v1/policy/explain".to_owned()),
        ("root", "PUT", "/v1/plugins/shelf".to_owned()),
    ] {
        let send = |who, bytes| Box::pin(world.router.clone().oneshot(unfinished(who, method, &path, bytes)));
        let mut held = send(who, 600);
        assert!((&mut held).now_or_never().is_none(), "{path}: the host waits for the rest");
        let refused = world.send(unfinished(who, method, &path, 600)).now_or_never().expect("refused at once");
        assert_eq!(refused.code(), "429 busy", "{path}");
        assert!(refused.at("/detail").contains("`bodies_bytes`"), "{}", refused.text);
        assert!(send(who, 400).now_or_never().is_none(), "{path}: it fits beside the other");
        assert!(send("eve", 600).now_or_never().is_none_or(|reply| reply.unwrap().status() == 403), "a neighbour");
        drop(held);
        assert!(send(who, 600).now_or_never().is_none(), "{path}: the other is not sent any more");
    }
    let metrics = world.get("root", "/metrics").await.text;
    assert!(metrics.contains(r#"toolgate_refused_busy_total{bound="bodies_bytes"} 9"#), "{metrics}");
}
