//! Calls of other tools by a durable call.

use std::sync::Arc;

use capabilities::Grants;
use domain::nested::NestedCall;
use domain::step::{StepEnd, StepWait};
use domain::{Json, Outcome, outcome::FailureCode};
use toolgate_sandbox::{Job, RunEnd};

use super::{component, continued, run, step, waits};
use crate::world::{failed, job, load, value};

/// Passes the arguments on as the request.
const CALL: &str =
    "(call $call_tools (local.get $args) (local.get $args_len) (i32.const 200)) (call $answered (i32.const 200))";

const REQUEST: &str =
    r#"{"calls":[{"tool":"ledger_post","arguments":{"z":1.50,"a":2}},{"tool":"ledger_read","arguments":[]}]}"#;

/// A job that may call these tools.
fn granted(job: Job, pattern: &str) -> Job {
    let calls = vec![pattern.to_owned().try_into().expect("a pattern")];
    Job { grants: Arc::new(Grants { calls, ..Grants::default() }), ..job }
}

#[test]
fn results_of_other_tools_reach_the_guest() {
    let plugin = load(&component(CALL));
    let request = waits(run(&plugin, &granted(continued(REQUEST, &[]), "ledger_*")).0);
    let call = |tool: &str, arguments: &str| NestedCall { tool: tool.into(), arguments: Json::unchecked(arguments) };
    let expected = [call("ledger_post", r#"{"z":1.50,"a":2}"#), call("ledger_read", "[]")];
    assert_eq!(request.wait, StepWait::Calls(expected.into()));
    // A step that has ended needs no grant.
    let end = |end| run(&plugin, &continued(REQUEST, &[step(&request, end)])).0;
    assert_eq!(value(end(StepEnd::Returned(Json::unchecked("[1.50]")))), "[1.50]");
    assert_eq!(value(end(StepEnd::Expired)), "1");
    let received = StepEnd::Received(Json::unchecked("1"));
    assert_eq!(end(received), RunEnd::Outcome(Outcome::InDoubt), "the result of an external system is another step");
}

#[test]
fn tool_that_is_not_granted_is_not_called() {
    let plugin = load(&component(CALL));
    for job in [continued(REQUEST, &[]), granted(continued(REQUEST, &[]), "ledger_post")] {
        let (ended, log) = run(&plugin, &job);
        assert_eq!(value(ended), "3");
        assert!(log[0].contains("grants.calls"), "{log:?}");
    }
    let not_durable = Job { durable: None, ..granted(job("test", REQUEST), "*") };
    let (ended, log) = run(&plugin, &not_durable);
    assert_eq!(value(ended), "3");
    assert!(log[0].contains("only a durable tool"), "{log:?}");
}

#[test]
fn malformed_request_fails_the_call() {
    let plugin = load(&component(CALL));
    let call = r#"{"tool":"t","arguments":{}}"#;
    let many = format!(r#"{{"calls":[{}]}}"#, vec![call; 101].join(","));
    let long = format!(r#"{{"calls":[{{"tool":"{}","arguments":{{}}}}]}}"#, "x".repeat(65));
    for (request, says) in [
        ("[]", "`call-tools` is refused: it is not a JSON object"),
        ("{}", "it has no `calls`"),
        (r#"{"calls":[]}"#, "`calls` must be an array of 1 to 100 objects"),
        (r#"{"calls":[7]}"#, "`calls` must be"),
        (r#"{"calls":[{"tool":"t"}]}"#, "`calls` must be"),
        (r#"{"calls":[{"tool":7,"arguments":{}}]}"#, "`calls` must be"),
        (r#"{"calls":[{"tool":"","arguments":{}}]}"#, "`calls` must be"),
        (r#"{"calls":[{"tool":"t","arguments":{},"id":"x"}]}"#, "`calls` must be"),
        (r#"{"calls":[{"tool":"t","arguments":{}}],"prompt":"x"}"#, "`call-tools` has no key `prompt`"),
        (&many, "`calls` must be"),
        (&long, "`calls` must be"),
    ] {
        let message = failed(run(&plugin, &granted(continued(request, &[]), "*")).0, FailureCode::ToolFailed);
        assert!(message.contains(says), "{message}");
    }
}
