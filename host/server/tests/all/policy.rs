//! Explanations of decisions: for admins, about existing tools, with arguments that are an object.

use crate::world::TestServer;

const EXPLAIN: &str = "/v1/policy/explain";

#[tokio::test]
async fn admin_gets_an_explanation_of_a_call() {
    let world = TestServer::new();
    let body = r#"{"tool":"pay","arguments":{"city":7},"caller":"alice","context":{"why":"rent"}}"#;
    let reply = world.post("root", EXPLAIN, body).await;
    assert_eq!((reply.at("/rule"), reply.at("/effective")), ("ask".into(), "ask".into()));
    assert_eq!((reply.at("/by"), reply.at("/reason")), ("the rule about alice".into(), r#"{"why":"rent"}"#.into()));
    let own = world.post("root", EXPLAIN, r#"{"tool":"pay","arguments":{}}"#).await;
    assert_eq!(own.at("/by"), "the rule about root");
}

#[tokio::test]
async fn explanation_requires_admin_and_a_valid_call() {
    let world = TestServer::new();
    let good = r#"{"tool":"pay","arguments":{}}"#;
    for (who, body, status, place) in [
        ("alice", good, 403, ""),
        ("bob", good, 403, ""),
        ("", good, 401, ""),
        ("root", r#"{"tool":"nothing","arguments":{}}"#, 404, ""),
        ("root", r#"{"tool":"pay","arguments":[]}"#, 422, "/arguments"),
        ("root", r#"{"tool":"pay","arguments":{},"context":1}"#, 422, "/context"),
        ("root", r#"{"tool":"pay","arguments":{},"caller":"a b"}"#, 422, "/caller"),
        ("root", r#"{"tool":"pay","arguments":{},"conversation":""}"#, 422, "/conversation"),
        ("root", r#"{"tool":"pay","arguments":{},"principal":"x"}"#, 422, ""),
        ("root", r#"{"tool":"pay","arguments":{"a":1,"a":2}}"#, 400, ""),
    ] {
        let reply = world.post(who, EXPLAIN, body).await;
        assert_eq!(reply.status.as_u16(), status, "{who} {body}");
        if !place.is_empty() {
            assert_eq!(reply.at("/errors/0/pointer"), place, "{body}");
        }
    }
}
