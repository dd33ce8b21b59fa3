//! The limits of nested turns: their depth, the calls below a call of a caller, its quotas, and the space on the disk.

use super::*;

#[tokio::test]
async fn turns_are_nested_to_a_limit() {
    let mut host = NestingHost::new(&["tool_0"]);
    host.settings.nesting_depth = 3;
    host.start();
    let id = host.submit().await;
    let depths: Vec<u32> = host.nested().await.iter().map(Turn::depth).collect();
    assert_eq!(depths, [3, 2, 1], "newest first, all in one conversation");
    let result = host.result(id).await;
    assert_eq!(result.matches("limit_exceeded").count(), 1, "{result}");
}

/// The number of nested calls of a host whose tool calls itself twice, and itself again, and so on.
async fn forked(host: &NestingHost) -> usize {
    host.nested().await.iter().map(|turn| turn.calls.len()).sum()
}

#[tokio::test]
async fn calls_below_a_call_are_limited() {
    let mut host = NestingHost::new(&["tool_0", "tool_0"]);
    (host.settings.nesting_depth, host.settings.nested_calls) = (5, 7);
    host.start();
    let id = host.submit().await;
    assert!(host.result(id).await.contains("at most 7 calls of other tools are allowed below one call of a caller"));
    assert_eq!(forked(&host).await, 6, "two at the first depth, and two below each of them");
    let other = call("b", "tool_0", "{}");
    host.handle().submit(&principal(AGENT, Role::Caller), turn("c", [other])).await.unwrap();
    settle().await;
    assert_eq!(forked(&host).await, 12, "the limit is for each call of a caller");
}

#[tokio::test]
async fn calls_below_a_call_are_counted_after_a_kill() {
    for commits in 0..12 {
        let mut host = NestingHost::new(&["tool_0", "tool_0"]);
        (host.settings.nesting_depth, host.settings.nested_calls) = (5, 7);
        host.start();
        host.dies_while_it_submits(commits, Death::After).await;
        let id = host.submit().await;
        assert!(host.turn(id).await.is_ended());
        assert_eq!(forked(&host).await, 6, "killed after commit {commits}");
    }
}

#[tokio::test]
async fn nested_turns_count_for_their_caller() {
    let mut host = NestingHost::new(BOTH);
    host.quotas.each = Quota { open_turns: 1, ..Quota::default() };
    host.start();
    let id = host.submit().await;
    let result = host.result(id).await;
    assert_eq!(result.matches(r#""code":"busy""#).count(), 2, "{result}");
    assert!(host.nested().await.is_empty());
}

#[tokio::test]
async fn nested_turn_waits_for_space_on_the_disk() {
    let host = NestingHost::started(&["tool_1"]);
    let (disk, first, second) = (host.world.disk.clone(), host.store.hold(), host.store.hold());
    first.add_permits(1);
    let request = turn("c", [call("a", "tool_0", "{}")]);
    let submitted = host.handle().submit(&principal(AGENT, Role::Caller), request).await.unwrap();
    settle().await;
    disk.leave(0);
    second.add_permits(1);
    settle().await;
    assert!(matches!(host.turn(submitted.turn.id).await.state, TurnState::Open));
    disk.leave(1 << 40);
    host.pass(Span::from_secs(60)).await;
    assert!(host.result(submitted.turn.id).await.contains(r#""ok":true"#));
}
