//! Messages about approvals whose arguments an approver has edited.

use serde_json::json;

use super::*;

/// A host whose webhook gets arguments.
fn with_arguments() -> WebhookHost {
    let mut world = WebhookHost::new(&[]);
    world.kill();
    world.webhooks = vec![Webhook { arguments: true, ..hook("pager") }];
    world.start();
    world
}

async fn approve(world: &WebhookHost, suspension: SuspensionId, edit: Option<&str>) {
    let arguments = edit.map(domain::Json::unchecked);
    let answer = dispatch::Answer { arguments, ..answer(suspension, "approve") };
    let handle = world.running.as_ref().unwrap().0.handle();
    handle.resolve(&principal("bob", Role::Approver), answer).await.unwrap();
}

#[tokio::test]
async fn message_about_an_edited_approval_says_so() {
    let world = WebhookHost::new(&["pager"]);
    for (call, arguments, edited) in [("a", None, None), ("b", Some(r#"{"to":"bob"}"#), Some(true))] {
        let suspension = world.ask(call, "tool_0").await;
        approve(&world, suspension, arguments).await;
        world.rows(suspension, &["pager opened delivered 1", "pager closed delivered 1"]).await;
        let got = world.got(if call == "a" { 2 } else { 4 }).await;
        let closed = &got.last().unwrap().2["suspension"]["closed"];
        assert_eq!(closed.get("edited"), edited.map(Value::from).as_ref(), "{closed:#}");
    }
}

#[tokio::test]
async fn late_message_has_the_approved_arguments() {
    for (edit, submitted) in [(None, None), (Some(r#"{"to":"bob"}"#), Some(json!({"to": "eve\u{202e}"})))] {
        let world = with_arguments();
        world.script("pager", &[Does::Answers(503)]);
        let suspension = world.ask("a", "tool_0").await;
        world.rows(suspension, &["pager opened pending 1"]).await;
        approve(&world, suspension, edit).await;
        world.lasting.clock.advance(Span::from_secs(30));
        world.rows(suspension, &["pager opened delivered 2", "pager closed delivered 1"]).await;

        let got = world.got(3).await;
        let [first, late, closed] = [0, 1, 2].map(|n| &got[n].2["suspension"]);
        assert_eq!((&first["arguments"], first.get("submitted")), (&json!({"to": "eve\u{202e}"}), None));
        let approved = edit.map_or_else(|| first["arguments"].clone(), |edit| serde_json::from_str(edit).unwrap());
        assert_eq!((&late["state"], &late["arguments"]), (&json!("approve"), &approved));
        assert_eq!(late.get("submitted"), submitted.as_ref());
        assert_eq!((closed.get("arguments"), closed.get("submitted")), (None, None));
    }
}

#[tokio::test]
async fn message_about_a_client_call_has_both_forms_of_its_arguments() {
    let world = with_arguments();
    let approval = world.ask("a", "tool_4").await;
    approve(&world, approval, Some(r#"{"to":"bob"}"#)).await;
    world.rows(approval, &["pager opened delivered 1", "pager closed delivered 1"]).await;
    let got = world.got(3).await;
    let is_of_client = |body: &Value| body["suspension"]["kind"] == "client_exec";
    let of_client = got.iter().map(|got| &got.2).find(|body| is_of_client(body)).unwrap();
    assert_eq!(of_client["type"], "suspension.opened");
    let said = &of_client["suspension"];
    assert_eq!((&said["arguments"], &said["submitted"]), (&json!({"to": "bob"}), &json!({"to": "eve\u{202e}"})));
}

#[tokio::test]
async fn late_message_has_the_defaults_of_the_approved_arguments() {
    let world = with_arguments();
    world.script("pager", &[Does::Answers(503)]);
    let suspension = world.ask("a", "tool_5").await;
    world.rows(suspension, &["pager opened pending 1"]).await;
    approve(&world, suspension, Some("{}")).await;
    world.lasting.clock.advance(Span::from_secs(30));
    world.rows(suspension, &["pager opened delivered 2", "pager closed delivered 1"]).await;
    let got = world.got(3).await;
    let [first, late, closed] = [0, 1, 2].map(|n| got[n].2["suspension"].get("defaults"));
    assert_eq!((first, late, closed), (None, Some(&json!({"/to": "all"})), None));
}
