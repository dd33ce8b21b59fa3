//! Calls of components of which nothing is known any more: recalled where that is possible, for every kind of wait, and
//! otherwise refused for what is wrong.

use domain::{FailureCode, Refusal};

use super::*;

const GONE: &str = "the component that this call is pinned to is gone";

/// What an answer is refused with whose call nobody can judge.
fn unjudged(cause: &str) -> String {
    format!("the policy cannot be asked about this call, so deny it: {cause}")
}

#[tokio::test]
async fn a_clients_call_whose_component_is_gone_is_approved_by_nobody() {
    let world = World::new(&["client!", "client!:expiry=approve"], Rules::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let (silent, _) = world.asks("b", "tool_1").await;
    world.tools.lose();
    let refused = world.begin("ann", approve(suspension)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, unjudged(GONE));
    let same = world.begin("ann", edit(suspension, r#"{"v":0}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(same, unjudged(GONE), "the same arguments sent back");
    let deny = Answer { decision: "deny".into(), ..approve(suspension) };
    assert_eq!(world.begin("ann", deny).await.await.unwrap().unwrap().state.as_str(), "deny");
    assert!(world.turn(turn).await.is_ended());
    world.clock.advance(PATIENCE);
    settle().await;
    let gone = Outcome::Denied(Some(GONE.into()));
    assert_eq!(world.turn(silent).await.calls[0].outcome(), Some(&gone));
}

#[tokio::test]
async fn an_edit_of_a_component_that_is_gone_is_refused_for_that() {
    let world = World::new(&["server!"], Rules::default(), |_| needs(&["ann"], 1));
    let (turn, suspension) = world.asks("a", "tool_0").await;
    world.tools.lose();
    let refused = world.begin("ann", edit(suspension, r#"{"v":5}"#)).await.await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, unjudged(GONE));
    assert!(!world.turn(turn).await.is_ended());
}

#[tokio::test]
async fn an_approved_call_of_which_the_record_was_lost_is_judged_before_it_runs() {
    let ends = async |lose: fn(&WordTools)| {
        let world = World::new(&["server!"], Rules::default(), |_| Verdict::default());
        let (turn, suspension) = world.asks("a", "tool_0").await;
        world.policy.says(|_| Verdict { reason: Some("not any more".into()), ..verdict(Rule::Deny) });
        lose(&world.tools);
        assert_eq!(world.begin("ann", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
        settle().await;
        world.turn(turn).await.calls[0].outcome().cloned()
    };
    assert_eq!(ends(WordTools::lose_record).await, Some(Outcome::Denied(Some("not any more".into()))));
    assert_eq!(ends(WordTools::lose).await, Some(Outcome::Invalidated));
}

#[tokio::test]
async fn what_a_client_or_silence_is_to_approve_is_judged_though_its_record_was_lost() {
    let denied = || Verdict { reason: Some("not any more".into()), ..verdict(Rule::Deny) };
    let tools = ["client!", "client!:expiry=approve"];
    for (says, clients, silent) in [
        (Verdict::default(), Ok("approve".to_owned()), None),
        (
            denied(),
            Err("the policy denies the call with these arguments".to_owned()),
            Some(Outcome::Denied(Some("not any more".into()))),
        ),
    ] {
        for answer in [approve, |suspension| edit(suspension, r#"{"v":0}"#)] {
            let world = World::new(&tools, Rules::default(), |_| Verdict::default());
            let (_, suspension) = world.asks("a", "tool_0").await;
            let (quiet, _) = world.asks("b", "tool_1").await;
            let says = says.clone();
            world.policy.says(move |_| says.clone());
            world.tools.lose_record();
            let answered = world.begin("ann", answer(suspension)).await.await.unwrap();
            assert_eq!(answered.map(|stands| stands.state.to_string()).map_err(|refused| refused.to_string()), clients);
            world.tools.lose_record();
            world.clock.advance(PATIENCE);
            settle().await;
            assert_eq!(world.turn(quiet).await.calls[0].outcome(), silent.as_ref());
        }
    }
}

#[tokio::test]
async fn a_clients_result_is_checked_though_the_record_of_its_tool_was_lost() {
    let world = World::new(&["client:result={}"], Rules::default(), |_| Verdict::default());
    let (turn, suspension) = world.asks("a", "tool_0").await;
    let page = person("page", Role::Client);
    let result = |data: &str| Answer { decision: "result".into(), data: Some(Json::new(data)), ..approve(suspension) };
    world.tools.lose_record();
    let refused = world.handle.resolve(&page, result("1")).await.unwrap_err();
    let Error::Refused(Refusal::Invalid(violations)) = refused else { panic!("{refused}") };
    assert_eq!(violations[0].message, "an object is expected");
    world.tools.lose_record();
    world.handle.resolve(&page, result("{}")).await.unwrap();
    let ok = Outcome::Ok { value: Json::new("{}"), trusted: false };
    assert_eq!(world.turn(turn).await.calls[0].outcome(), Some(&ok));
}

#[tokio::test]
async fn a_panic_before_a_call_runs_ends_it_as_one_while_it_runs_does() {
    let failed = "the host failed while it ran this call";
    for broken in [
        |world: &World| world.tools.break_recall(),
        |world: &World| world.policy.says(|_| panic!("the policy is broken")),
        |world: &World| world.tools.break_run(),
    ] {
        let world = World::new(&["server!"], Rules::default(), |_| Verdict::default());
        let (turn, suspension) = world.asks("a", "tool_0").await;
        broken(&world);
        assert_eq!(world.begin("ann", approve(suspension)).await.await.unwrap().unwrap().state.as_str(), "approve");
        settle().await;
        let turn = world.turn(turn).await;
        let Some(Outcome::Failed(failure)) = turn.calls[0].outcome() else { panic!("{:?}", turn.calls[0].state) };
        assert_eq!((failure.code, failure.message.as_str()), (FailureCode::HostFault, failed));
    }
}
