//! A test scripts the answers to a durable tool, and sees what it asked.

use std::time::Duration;

use toolgate_sdk::Tools;
use toolgate_sdk::durable::{NotCarriedOut, Returned, Wait};
use toolgate_sdk::prelude::*;
use toolgate_sdk::testing::{Attempt, Run};

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The environment to deploy to.
    environment: String,
}

fn deploy(_: NoArguments, call: &Call) -> Result<Value, Failure> {
    let target: Target = call.ask(Question::new("Where to?").expires(Duration::from_secs(60)).who(&["group:ops"]))?;
    let plan = json!({"environment": target.environment, "instances": 3});
    let plan = match call.approve(Question::new("Deploy?").risk(Risk::High).editable(&["instances"]), &plan) {
        Err(WaitError::Expired) => return Ok(json!("nobody was there")),
        plan => plan?,
    };
    call.sleep(Duration::from_secs(5));
    let choice = call.choose(Question::new("Healthy?").quorum(2), &["yes", "no"])?;
    Ok(json!([plan, choice.decision, choice.data]))
}

fn tools() -> Tools {
    Tools::new().with(Tool::server("deploy", "Deploys.", deploy).durable())
}

fn run(attempt: Attempt) -> Run {
    attempt.run(&tools())
}

fn attempt() -> Attempt {
    Attempt::at("deploy", json!({})).answered(json!({"environment": "live"}))
}

#[test]
fn answers_reach_the_tool_in_order() {
    let ran = run(attempt().approved().answered(json!({"decision": "yes", "data": 7})));
    assert_eq!(ran.result, Ok(json!([{"environment": "live", "instances": 3}, "yes", 7])));
    let [Wait::Ask(target), Wait::Approve(plan), Wait::Sleep(time), Wait::Ask(health)] = &*ran.waits else {
        panic!("{:?}", ran.waits)
    };
    let schema = json!({
        "type": "object",
        "properties": {"environment": {"type": "string", "description": "The environment to deploy to."}},
        "required": ["environment"],
    });
    assert_eq!(*target, json!({"prompt": "Where to?", "expires_ms": 60000, "who": ["group:ops"], "response": schema}));
    let subject = json!({"environment": "live", "instances": 3});
    assert_eq!(*plan, json!({"prompt": "Deploy?", "risk": "high", "editable": ["instances"], "subject": subject}));
    assert_eq!(*time, Duration::from_secs(5));
    assert_eq!(*health, json!({"prompt": "Healthy?", "quorum": 2, "responses": ["yes", "no"]}));
}

#[test]
fn denial_expiry_and_edit_differ() {
    let failed = |why: &str| Err(Failure::failed(why));
    assert_eq!(run(attempt().denied("not today")).result, failed("a person denied it: not today"));
    assert_eq!(run(attempt().expired()).result, Ok(json!("nobody was there")));
    let edited = attempt().approved_as(json!({"instances": 1})).answered(json!({"decision": "no"}));
    assert_eq!(run(edited).result, Ok(json!([{"instances": 1}, "no", null])));
    let malformed = Attempt::at("deploy", json!({})).answered(json!({"environment": 1}));
    let Err(Failure::Failed(why)) = run(malformed).result else { panic!("it read a number") };
    assert!(why.starts_with("the answer cannot be read: invalid type"), "{why}");
}

#[derive(Deserialize, JsonSchema)]
struct Health {
    healthy: bool,
}

fn awaits() -> Tools {
    let run = |_: NoArguments, call: &Call| {
        let about = External::new("The deployment is healthy").signal("health").metadata(json!({"job": 7}));
        let health: Health = call.await_external(about.expires(Duration::from_secs(60)))?;
        Ok(health.healthy)
    };
    Tools::new().with(Tool::server("check", "Waits for a report.", run).durable())
}

#[test]
fn external_result_reaches_the_tool() {
    let check = |attempt: fn(Attempt) -> Attempt| attempt(Attempt::at("check", json!({}))).run(&awaits());
    let ran = check(|attempt| attempt.received(json!({"healthy": true})));
    assert_eq!(ran.result, Ok(json!(true)));
    let [Wait::External(external)] = &*ran.waits else { panic!("{:?}", ran.waits) };
    let schema = json!({"type": "object", "properties": {"healthy": {"type": "boolean"}}, "required": ["healthy"]});
    let expected = json!({
        "prompt": "The deployment is healthy", "name": "health", "metadata": {"job": 7}, "expires_ms": 60000,
        "schema": schema,
    });
    assert_eq!(*external, expected);
    assert_eq!(check(|attempt| attempt.expired()).result, Err(Failure::failed("nobody answered in time")));
    let other = check(|attempt| attempt.answered(json!({"healthy": true})));
    assert!(matches!(other.result, Err(Failure::Failed(_))), "an answer of a person is no external result");
}

#[test]
fn unscripted_wait_fails_the_call() {
    let Err(Failure::Failed(why)) = run(attempt()).result else { panic!("nobody approved") };
    assert!(why.starts_with("the test does not answer this question: {"), "{why}");
    assert!(matches!(run(attempt().answered(json!(1))).result, Err(Failure::Failed(_))), "an answer is no approval");
}

#[test]
fn tool_that_is_not_durable_cannot_wait() {
    let tools = Tools::new().with(Tool::server("deploy", "Deploys.", deploy)).with(Tool::server(
        "doze",
        "Sleeps.",
        |_: NoArguments, call: &Call| {
            call.sleep(Duration::from_secs(1));
            Ok(())
        },
    ));
    let says = "only a durable tool can wait in the middle of a call: declare it with `.durable()`";
    for attempt in [attempt(), Attempt::at("doze", json!({}))] {
        assert_eq!(attempt.run(&tools).result, Err(Failure::failed(says)));
    }
}

fn post(_: NoArguments, call: &Call) -> Result<Value, Failure> {
    let calls = ToolCalls::new().call("ledger_post", json!({"amount": 5})).call("ledger_read", json!({}));
    let ends = call.call_tools(calls)?.into_iter();
    Ok(json!(ends.map(|end| (end.result.map_err(|error| error.code), end.trusted)).collect::<Vec<_>>()))
}

#[test]
fn results_of_other_tools_are_scripted() {
    let tools = || Tools::new().with(Tool::server("post", "Posts.", post).durable());
    let denied = NotCarriedOut { code: "denied".into(), message: "no".into() };
    let attempt = Attempt::at("post", json!({}));
    let ran = attempt.clone().returned(vec![Ok(json!(7)), Err(denied)]).run(&tools());
    assert_eq!(ran.result, Ok(json!([[{"Ok": 7}, true], [{"Err": "denied"}, true]])));
    let request = json!({"calls": [
        {"tool": "ledger_post", "arguments": {"amount": 5}},
        {"tool": "ledger_read", "arguments": {}},
    ]});
    assert_eq!(ran.waits, [Wait::Calls(request)]);
    let untrusted = |result| Returned { result, trusted: false };
    let failed = NotCarriedOut { code: "tool_failed".into(), message: "no".into() };
    let ends = vec![untrusted(Ok(json!(7))), untrusted(Err(failed))];
    let ran = attempt.clone().returned(ends).run(&tools());
    assert_eq!(ran.result, Ok(json!([[{"Ok": 7}, false], [{"Err": "tool_failed"}, false]])));
    assert!(attempt.run(&tools()).result.is_err(), "a test says what the tools return");
}
