//! Races with the policy recheck before a timeout approval.

use domain::ToolName;

use super::*;

#[tokio::test]
async fn turn_that_changes_during_a_recheck_is_handled_on_time() {
    let settings = TurnSettings { grace: Span::from_secs(5), ..TurnSettings::default() };
    let world = BlockableHost::new(&["server!:expiry=approve", "client!"], settings, |_| Verdict::default());
    let turn = world.submit(&[("a", "tool_0"), ("b", "tool_1")], "{}").await;
    let page = principal("page", Role::Client);
    let tools = vec![ToolName::new("tool_1").unwrap()];
    let attached = world.handle.attach(&page, &talk(), tools).await.unwrap();
    // One call waits for its client for longer than the other call's timeout.
    world.clock.advance(Span::from_secs(1800));
    let approval = turn.pending().nth(1).unwrap().2.id;
    assert_eq!(world.begin("ann", approve(approval)).await.await.unwrap().unwrap().state.as_str(), "approve");
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

#[tokio::test]
async fn many_expiries_of_one_caller_do_not_delay_others() {
    let world = BlockableHost::new(&["server!:expiry=approve"], TurnSettings::default(), |_| Verdict::default());
    for n in 0..100 {
        world.asks(&format!("a{n}"), "tool_0").await;
    }
    let bob = principal("bob", Role::Caller);
    let other = conversation("other");
    let request = TurnRequest { conversation: other.clone(), ..BlockableHost::request(&[("b", "tool_0")], "{}") };
    let turn = world.handle.submit(&bob, request).await.unwrap().turn.id;
    world.asks("last", "tool_0").await;
    let asked = || world.policy.asked.lock().unwrap().len();
    let before = asked();
    let _held = world.policy.hold_all_of(&agent());
    world.clock.advance(PATIENCE);
    settle().await;
    assert!(world.handle.turn(&bob, &other, turn).await.unwrap().is_ended());
    assert_eq!(
        asked() - before,
        16 + 2,
        "the concurrent rechecks of one caller, and two of the other, whose call is checked again before it runs"
    );
}

#[tokio::test]
async fn backlog_of_rechecks_is_not_read_repeatedly() {
    let tools = ["server!:expiry=approve", "server!"];
    let world = BlockableHost::new(&tools, TurnSettings::default(), |_| Verdict::default());
    let (mut unanswered, mut others) = (Vec::new(), Vec::new());
    for n in 0..600 {
        unanswered.push(world.asks(&format!("a{n}"), "tool_0").await.0);
    }
    for n in 0..20 {
        world.clock.advance(Span::from_secs(1));
        others.push(world.asks(&format!("b{n}"), "tool_1").await.0);
    }
    let held = world.policy.hold_all_of(&agent());
    world.clock.advance(Span::from_secs(3580));
    settle().await;
    assert!(world.store.read_of_due() >= 600);
    for turn in others {
        assert!(!world.turn(turn).await.is_ended());
        world.clock.advance(Span::from_secs(1));
        settle().await;
        assert_eq!(world.turn(turn).await.calls[0].outcome(), Some(&Outcome::Expired));
    }
    let read = world.store.read_of_due();
    assert!(read < 200, "{read} rows");
    // All of them are handled, including those whose first recheck failed.
    world.policy.says({
        let fails = AtomicU64::new(5);
        move |_| {
            let failed = fails.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            assert!(failed.is_err(), "the policy fails for some time");
            Verdict::default()
        }
    });
    held.add_permits(1);
    for _ in 0..5 {
        settle().await;
        world.clock.advance(Span::from_secs(1));
    }
    for turn in unanswered {
        assert!(world.turn(turn).await.calls[0].outcome().is_some());
    }
}
