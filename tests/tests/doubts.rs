//! The question whether to run a call again that a kill of the host left in doubt.

use std::sync::Arc;

use dispatch::Dispatcher;
use domain::{Json, principal::Role};
use toolgate_tests::requests::{call, conversation, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

#[tokio::test]
async fn question_about_a_call_without_a_gate_shows_the_defaults() {
    let world = World::default();
    let words = r#"server:recovery=ask,parameters={"properties":{"b":{"default":2}}}"#;
    let start = || {
        let tools = WordTools::new(&[words], |_| std::future::pending());
        Dispatcher::start(world.parts(Arc::new(tools)))
    };
    let host = start();
    let agent = principal("agent", Role::Caller);
    let submitted = host.handle().submit(&agent, turn("c", [call("a", "tool_0", r#"{"a":1}"#)])).await.unwrap();
    settle().await;
    drop(host);
    let host = start();
    settle().await;
    let turn = host.handle().turn(&agent, &conversation("c"), submitted.turn.id).await.unwrap();
    let (.., open) = turn.pending().next().unwrap();
    assert_eq!(open.in_doubt(), Some(1));
    assert_eq!(open.asked().unwrap().defaults.as_ref().map(Json::as_str), Some(r#"{"/b":2}"#));
}
