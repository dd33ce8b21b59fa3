//! Messages about settled turns.

use dispatch::TurnRequest;
use domain::event::Rejection;
use serde_json::json;
use toolgate_tests::requests::conversation;

use super::*;

fn settled(name: &str) -> Webhook {
    Webhook { events: [WebhookEvent::TurnSettled].into(), ..hook(name) }
}

/// A host with these webhooks.
fn with(webhooks: Vec<Webhook>) -> WebhookHost {
    let mut world = WebhookHost::new(&[]);
    world.kill();
    world.webhooks = webhooks;
    world.start();
    world
}

/// Submits a turn. Returns its id and its open suspensions.
async fn submit(world: &WebhookHost, request: TurnRequest) -> (TurnId, Vec<SuspensionId>) {
    let handle = world.running.as_ref().unwrap().0.handle();
    let turn = handle.submit(&principal("agent", Role::Caller), request).await.unwrap().turn;
    (turn.id, turn.pending().map(|(.., open)| open.id).collect())
}

#[tokio::test]
async fn turn_is_reported_once_after_its_last_outcome() {
    let world = with(vec![settled("agent"), settled("other")]);
    let calls = [call("a", "tool_0", r#"{"to": "eve"}"#), call("b", "tool_0", "{}")];
    let (turn, open) = submit(&world, turn("c", calls)).await;
    world.deny(open[0]).await;
    settle().await;
    world.rows(turn, &[]).await;
    world.answer(open[1], "approve").await;
    let rows = world.rows(turn, &["agent settled delivered 1", "other settled delivered 1"]).await;
    for suspension in open {
        world.rows(suspension, &[]).await;
    }

    let got = world.got(2).await;
    assert_eq!(got.len(), 2, "one message for each webhook");
    let message = json!({
        "type": "turn.settled", "id": format!("{turn}-settled"), "at": "1970-01-01T00:16:40.000Z",
        "turn": {
            "turn": turn.to_string(), "conversation": "c", "caller": "agent", "state": "settled",
            "calls": [
                {"call": "a", "tool": "tool_0", "outcome": "denied"}, {"call": "b", "tool": "tool_0", "outcome": "ok"},
            ],
        },
    });
    assert_eq!((&got[0].1, &got[0].2), (&format!("{turn}-settled"), &message));
    let handle = world.running.as_ref().unwrap().0.handle();
    assert_eq!(handle.turn_deliveries(&principal("bob", Role::Approver), turn).await.unwrap(), rows);
    assert_eq!(handle.turn_deliveries(&principal("agent", Role::Caller), turn).await.unwrap(), []);
}

#[tokio::test]
async fn end_of_a_turn_is_sent_after_a_kill() {
    let mut world = with(vec![settled("agent")]);
    // No delivery worker runs, as if the kill came between the commit and the first scan.
    world.running.as_ref().unwrap().1.iter().for_each(JoinHandle::abort);
    let (turn, open) = submit(&world, turn("c", [call("a", "tool_0", "{}")])).await;
    world.deny(open[0]).await;
    world.rows(turn, &["agent settled pending 0"]).await;
    world.kill();
    world.script("agent", &[Does::Hangs]);
    world.start();
    world.got(1).await;
    world.kill();
    world.start();
    world.rows(turn, &["agent settled delivered 1"]).await;
    let got = world.got(2).await;
    assert_eq!((got.len(), &got[0].1), (2, &got[1].1), "the same id");
}

#[tokio::test]
async fn cancelled_aborted_and_expired_turns_are_reported() {
    let world = with(vec![settled("agent")]);
    let two = |a: &str, b: &str| [call(a, "tool_0", "{}"), call(b, "tool_0", r#"{"n": 1}"#)];
    let (cancelled, _) = submit(&world, turn("c", two("a", "b"))).await;
    let aborting = TurnRequest { rejection: Rejection::AbortTurn, ..turn("c", two("d", "e")) };
    let (aborted, open) = submit(&world, aborting).await;
    let (expired, _) = submit(&world, turn("c", two("f", "g"))).await;
    let handle = world.running.as_ref().unwrap().0.handle();
    handle.cancel(&principal("agent", Role::Caller), &conversation("c"), cancelled).await.unwrap();
    world.rows(cancelled, &["agent settled delivered 1"]).await;
    world.deny(open[0]).await;
    world.rows(aborted, &["agent settled delivered 1"]).await;
    world.lasting.clock.advance(Span::from_secs(365 * 24 * 3_600));
    world.rows(expired, &["agent settled delivered 1"]).await;

    let got = world.got(3).await;
    let said = |body: &Value| {
        let outcome = |call: &Value| call["outcome"].as_str().unwrap().to_owned();
        let calls = body["turn"]["calls"].as_array().unwrap();
        (body["turn"]["state"].as_str().unwrap().to_owned(), calls.iter().map(outcome).collect::<Vec<_>>())
    };
    let said: Vec<_> = got.iter().map(|(_, _, body)| said(body)).collect();
    let wanted = [
        ("cancelled", ["cancelled", "cancelled"]),
        ("aborted", ["denied", "cancelled_by_sibling"]),
        ("settled", ["expired", "expired"]),
    ];
    assert_eq!(said, wanted.map(|(state, calls)| (state.to_owned(), calls.map(str::to_owned).into())));
}

#[tokio::test]
async fn webhook_gets_only_the_turns_it_asked_for() {
    let other = Webhook { reports_turn: Arc::new(|turn| turn.conversation.as_str() == "d"), ..settled("other") };
    let world = with(vec![hook("suspensions"), other, settled("turns")]);
    let (turn, open) = submit(&world, turn("c", [call("a", "tool_0", "{}")])).await;
    world.deny(open[0]).await;
    world.rows(turn, &["turns settled delivered 1"]).await;
    world.rows(open[0], &["suspensions opened delivered 1", "suspensions closed delivered 1"]).await;
    assert_eq!(world.got(3).await.len(), 3);
}

#[tokio::test]
async fn ephemeral_turn_is_reported_only_if_it_waited() {
    let world = with(vec![settled("agent")]);
    let ephemeral = |id: &str, tool: &str| TurnRequest { ephemeral: true, ..turn("c", [call(id, tool, "{}")]) };
    let (ended, open) = submit(&world, ephemeral("a", "no such tool")).await;
    assert!(open.is_empty(), "its caller has the results");
    let (waited, open) = submit(&world, ephemeral("b", "tool_0")).await;
    world.deny(open[0]).await;
    world.rows(waited, &["agent settled delivered 1"]).await;
    world.rows(ended, &[]).await;
    assert_eq!(world.got(1).await.len(), 1);
}
