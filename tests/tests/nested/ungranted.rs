//! Nested calls whose grant the operator withdraws before they begin: no run of them starts.

use super::*;

/// Restarts the host without the grant.
async fn withdraw(host: &mut NestingHost) {
    host.grants = false;
    host.restart();
    settle().await;
}

#[tokio::test]
async fn approved_nested_call_does_not_start_without_its_grant() {
    let mut host = NestingHost::started(BOTH);
    let id = host.submit().await;
    let nested = host.nested().await[0].id;
    withdraw(&mut host).await;
    host.decide("approve").await;
    let nested = host.turn(nested).await;
    let outcome = nested.calls[1].outcome();
    let names_the_grant = |reason: &String| reason.contains("`grants.calls`");
    assert!(matches!(outcome, Some(Outcome::Denied(Some(reason))) if names_the_grant(reason)), "{outcome:?}");
    assert_eq!(host.runs_of("tool_2"), 0);
    let result = host.result(id).await;
    assert!(result.contains(r#""code":"denied""#) && result.contains("grants.calls"), "{result}");
}

#[tokio::test]
async fn no_client_gets_a_nested_call_without_its_grant() {
    let mut host = NestingHost::started(&["tool_3"]);
    let _ = host.submit().await;
    withdraw(&mut host).await;
    let open = host.nested().await[0].pending().next().unwrap().2.id;
    let refused = host.handle().resolve(&principal("ann", Role::Approver), answer(open, "approve")).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotAllowed(NotAllowed::PolicyDenies)))), "{refused:?}");
    assert_eq!(host.nested().await[0].pending().next().unwrap().2.id, open, "it still waits for an approval");
}

#[tokio::test]
async fn nested_call_does_not_start_after_a_restart_without_its_grant() {
    for death in [Death::Before, Death::After] {
        for commits in 0..6 {
            let mut host = NestingHost::new(&["tool_1"]);
            host.start();
            host.store.die_after(commits, death);
            let (handle, by) = (host.handle(), principal(AGENT, Role::Caller));
            let submitting = tokio::spawn(async move {
                let request = turn("c", [call("a", "tool_0", "{}")]);
                handle.submit(&by, request).await.map(drop)
            });
            settle().await;
            submitting.abort();
            let before = host.runs_of("tool_1");
            withdraw(&mut host).await;
            let id = host.submit().await;
            let when = format!("{death:?} commit {commits}, {before} runs before");
            assert_eq!(host.runs_of("tool_1"), before, "{when}");
            let result = host.result(id).await;
            let is_denied = result.contains(r#""code":"denied""#) && result.contains("grants.calls");
            assert!(is_denied || (before == 1 && result.contains(r#""done":1"#)), "{when}: {result}");
        }
    }
}
