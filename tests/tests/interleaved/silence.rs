//! What comes of silence, while it is judged.

use domain::ToolName;

use super::*;

#[tokio::test]
async fn what_moves_a_turn_while_silence_is_judged_is_seen_to_when_it_is_due() {
    let rules = Rules { grace: Span::from_secs(5), ..Rules::default() };
    let world = World::new(&["server!:expiry=approve", "client!"], rules, |_| Verdict::default());
    let turn = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await;
    let page = person("page", Role::Client);
    let tools = vec![ToolName::new("tool_1").unwrap()];
    let attached = world.handle.attach(&page, &conversation(), tools).await.unwrap();
    // One waits for its client until some time after silence would approve the other.
    world.clock.advance(Span::from_secs(1800));
    let approval = turn.pending().nth(1).unwrap().2.id;
    assert_eq!(world.begin("ann", approve(approval)).await.await.unwrap().unwrap().state, "approve");
    let gate = world.policy.hold();
    world.clock.advance(Span::from_secs(1800));
    settle().await;
    drop(attached);
    settle().await;
    world.clock.advance(Span::from_secs(5));
    settle().await;
    let after = world.turn(turn.id).await;
    let ends: Vec<_> = after.calls.iter().map(|call| call.outcome().cloned()).collect();
    assert_eq!(ends, [None, Some(Outcome::Unavailable)]);
    gate.add_permits(1);
    settle().await;
    assert!(world.turn(turn.id).await.is_ended());
}
