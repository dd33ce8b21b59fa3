//! Calls of unknown components. For every kind of wait, the host recalls the component if possible. Otherwise it
//! refuses with the reason.

use domain::{Refusal, outcome::FailureCode};

use super::*;

const GONE: &str = "the component that this call is pinned to was removed";

/// The refusal of an answer if the policy cannot check the call.
fn unchecked(cause: &str) -> String {
    format!("the policy check failed, so this call can only be denied: {cause}")
}

#[tokio::test]
async fn client_call_of_a_removed_component_cannot_be_approved() {
    let world =
        BlockableHost::new(&["client!", "client!:expiry=approve"], TurnSettings::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let (unanswered, _) = world.asks("b", "tool_1").await;
    world.tools.lose();
    let refused = world.begin("ann", approve(suspension)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, unchecked(GONE));
    let same = world.begin("ann", edit(suspension, r#"{"v":0}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(same, unchecked(GONE), "unchanged arguments");
    let deny = Answer { decision: "deny".into(), ..approve(suspension) };
    assert_eq!(world.begin("ann", deny).await.await.unwrap().unwrap().state.as_str(), "deny");
    assert!(world.turn(turn).await.is_ended());
    world.clock.advance(PATIENCE);
    settle().await;
    let gone = Outcome::Denied(Some(GONE.into()));
    assert_eq!(world.turn(unanswered).await.calls[0].outcome(), Some(&gone));
}

#[tokio::test]
async fn edit_for_a_removed_component_is_refused() {
    let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| needs(&["ann"], 1));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    world.tools.lose();
    let refused = world.begin("ann", edit(suspension, r#"{"v":5}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, unchecked(GONE));
    assert!(!world.turn(turn).await.is_ended());
}

#[tokio::test]
async fn approved_call_with_a_lost_record_is_checked_before_it_runs() {
    let ends = async |lose: fn(&WordTools)| {
        let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| Verdict::default());
        let (turn, suspension) = world.asks("a", "tool_0").await;
        world.policy.says(|_| Verdict { reason: Some("not any more".into()), ..verdict(RuleEffect::Deny) });
        lose(&world.tools);
        assert_eq!(world.begin("ann", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
        settle().await;
        world.turn(turn).await.calls[0].outcome().cloned()
    };
    assert_eq!(ends(WordTools::lose_record).await, Some(Outcome::Denied(Some("not any more".into()))));
    assert_eq!(ends(WordTools::lose).await, Some(Outcome::Invalidated));
}

#[tokio::test]
async fn call_with_a_lost_record_is_checked_before_approval() {
    let denied = || Verdict { reason: Some("not any more".into()), ..verdict(RuleEffect::Deny) };
    let tools = ["client!", "client!:expiry=approve"];
    for (says, clients, unanswered) in [
        (Verdict::default(), Ok("approve".to_owned()), None),
        (
            denied(),
            Err("the policy denies the call with these arguments".to_owned()),
            Some(Outcome::Denied(Some("not any more".into()))),
        ),
    ] {
        for answer in [approve, |suspension| edit(suspension, r#"{"v":0}"#)] {
            let world = BlockableHost::new(&tools, TurnSettings::default(), |_| Verdict::default());
            let (_, suspension) = world.asks("a", "tool_0").await;
            let (quiet, _) = world.asks("b", "tool_1").await;
            let says = says.clone();
            world.policy.says(move |_| says.clone());
            world.tools.lose_record();
            let answered = world.begin("ann", answer(suspension)).await.await.unwrap();
            assert_eq!(
                answered.map(|answered| answered.state.to_string()).map_err(|refused| refused.to_string()),
                clients
            );
            world.tools.lose_record();
            world.clock.advance(PATIENCE);
            settle().await;
            assert_eq!(world.turn(quiet).await.calls[0].outcome(), unanswered.as_ref());
        }
    }
}

#[tokio::test]
async fn client_result_is_checked_despite_a_lost_tool_record() {
    let world = BlockableHost::new(&["client:result={}"], TurnSettings::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let page = principal("page", Role::Client);
    let result =
        |data: &str| Answer { decision: "result".into(), data: Some(Json::unchecked(data)), ..approve(suspension) };
    world.tools.lose_record();
    let refused = world.handle.resolve(&page, result("1")).await.unwrap_err();
    let Error::Refused(Refusal::Invalid(violations)) = refused else { panic!("{refused}") };
    assert_eq!(violations[0].message, "an object is expected");
    world.tools.lose_record();
    world.handle.resolve(&page, result("{}")).await.unwrap();
    let ok = Outcome::Ok { value: Json::unchecked("{}"), trusted: false };
    assert_eq!(world.turn(turn).await.calls[0].outcome(), Some(&ok));
}

#[tokio::test]
async fn panic_before_a_run_ends_the_call_like_one_during_it() {
    let failed = "the host failed while it ran this call";
    for broken in [
        |world: &BlockableHost| world.tools.break_recall(),
        |world: &BlockableHost| world.policy.says(|_| panic!("the policy is broken")),
        |world: &BlockableHost| world.tools.break_run(),
    ] {
        let world = BlockableHost::new(&["server!"], TurnSettings::default(), |_| Verdict::default());
        let (turn, suspension) = world.asks("a", "tool_0").await;
        broken(&world);
        assert_eq!(world.begin("ann", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
        settle().await;
        let turn = world.turn(turn).await;
        let Some(Outcome::Failed(failure)) = turn.calls[0].outcome() else { panic!("{:?}", turn.calls[0].state) };
        assert_eq!((failure.code, failure.message.as_str()), (FailureCode::HostFault, failed));
    }
}
