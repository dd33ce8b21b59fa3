//! Turns that are submitted while another turn takes the quota or the standing approval that they need.

use dispatch::Quota;

use super::*;

#[tokio::test]
async fn concurrent_equal_submissions_take_the_quota_of_one() {
    let each = Quota { running_calls: 1, waiting_calls: 0, ..Quota::default() };
    let quotas = Quotas { each, ..Quotas::default() };
    let world = BlockableHost::with(
        &["server"],
        TurnSettings::default(),
        quotas,
        |_| std::future::pending(),
        |_| Verdict::default(),
    );
    let request = || BlockableHost::request(&[("a", "tool_0")], "{}");
    let gate = world.policy.hold();
    let handle = world.handle.clone();
    let second = tokio::spawn(async move { handle.submit(&agent(), request()).await });
    settle().await;
    let first = world.handle.submit(&agent(), request()).await.unwrap();
    gate.add_permits(1);
    let second = second.await.unwrap().unwrap();
    assert_eq!((first.replayed, second.replayed), (false, true));
    assert_eq!(first.turn.id, second.turn.id);
    let other = world.handle.submit(&agent(), BlockableHost::request(&[("b", "tool_0")], "{}")).await;
    assert!(matches!(other, Err(Error::Busy(_))), "another one is refused as before");
}

#[tokio::test]
async fn turn_that_always_loses_its_standing_approval_asks_people() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| Verdict::default());
    let (_, suspension) = world.asks("a", "tool_0").await;
    world.handle.resolve(&approver("ann"), standing(suspension)).await.unwrap();
    world.store.spend();
    let turn = world.submit(&[("b", "tool_0")], r#"{"v":0}"#).await;
    assert_eq!(turn.pending().next().unwrap().2.kind(), SuspensionKind::Approval);
    assert_eq!(world.store.spent(), 100, "it was tried a hundred times");
}
