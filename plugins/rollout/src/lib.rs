//! Rolls a version out. One call asks people twice in the middle of its code and waits in between, as long as it takes. The
//! host may be stopped meanwhile.

use std::time::Duration;

use toolgate_sdk::prelude::*;

/// The version to roll out.
#[derive(Deserialize, JsonSchema)]
struct Release {
    /// For example `1.4.2`.
    #[schemars(length(min = 1, max = 64))]
    version: String,
    /// The time that it gets before people decide about it, in seconds.
    #[serde(default = "settling")]
    #[schemars(range(min = 1, max = 86_400))]
    settles_s: u64,
    /// Whether it is deployed. A person must approve that again. Without it, people only decide about the plan.
    #[serde(default)]
    deploy: bool,
    /// The signal that reports its health. Without it, people say whether it is healthy.
    #[schemars(length(min = 1, max = 64))]
    signal: Option<String>,
}

/// The report of a monitoring system.
#[derive(Deserialize, JsonSchema)]
struct Health {
    healthy: bool,
    /// The findings of the system.
    #[schemars(length(max = 1000))]
    detail: Option<String>,
}

fn settling() -> u64 {
    5
}

/// The place to roll out to.
#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The name of the environment.
    #[schemars(length(min = 1, max = 64))]
    environment: String,
}

/// The exact plan that a person approves.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Plan {
    /// For example `1.4.2`.
    version: String,
    /// The name of the environment.
    environment: String,
    /// The number of instances.
    instances: u32,
}

/// The states of a rollout, in their order.
fn roll_out(release: Release, call: &Call) -> Result<Value, Failure> {
    let prompt = format!("To which environment does {} go?", release.version);
    let target: Target = call.ask(Question::new(prompt))?;
    call.log(Level::Info, &format!("it goes to {}", target.environment));
    let plan = Plan { version: release.version, environment: target.environment, instances: 3 };
    let prompt = format!("Roll {} out to {}?", plan.version, plan.environment);
    let plan = match call.approve(Question::new(prompt).risk(Risk::High).editable(&["instances"]), &plan) {
        Err(WaitError::Denied(comment)) => return Ok(json!({"state": "rejected", "comment": comment})),
        plan => plan?,
    };
    if release.deploy {
        let calls = ToolCalls::new().call("roll_out_deploy", json!(plan));
        let failed = call.call_tools(calls)?.into_iter().find_map(|end| end.result.err());
        if let Some(error) = failed {
            return Ok(json!({"state": "not deployed", "reason": error.message, "plan": plan}));
        }
    }
    call.sleep(Duration::from_secs(release.settles_s));
    let state = match release.signal {
        Some(signal) => reported(&plan, &signal, call)?,
        None => asked(&plan, call)?,
    };
    Ok(json!({"state": state, "plan": plan}))
}

/// Deploys a version. The host runs this only if a person has approved exactly this plan, which no workflow can avoid. The
/// example deploys nothing. A real tool sends the plan to a service, with the idempotency key of the call.
fn deploy(plan: Plan, call: &Call) -> Result<Value, Failure> {
    call.log(Level::Info, &format!("deploys {} to {}", plan.version, plan.environment));
    Ok(json!({"instances": plan.instances}))
}

/// The state that people say it is in.
fn asked(plan: &Plan, call: &Call) -> Result<&'static str, Failure> {
    let prompt = format!("Is {} healthy in {}?", plan.version, plan.environment);
    let healthy = call.choose(Question::new(prompt), &["healthy", "broken"])?;
    call.log(Level::Info, &format!("people say that it is {}", healthy.decision));
    Ok(if healthy.decision == "healthy" { "done" } else { "rolled back" })
}

/// The state that a monitoring system reports. Without a report in time, it is rolled back.
fn reported(plan: &Plan, signal: &str, call: &Call) -> Result<&'static str, Failure> {
    let about = External::new(format!("The health of {} in {}", plan.version, plan.environment));
    let metadata = json!({"version": plan.version, "environment": plan.environment});
    let health: Result<Health, _> = call.await_external(about.signal(signal).metadata(metadata));
    match health {
        Err(WaitError::Expired) => Ok("rolled back"),
        Err(error) => Err(error.into()),
        Ok(health) => {
            call.log(Level::Info, &format!("it is reported: {}", health.detail.as_deref().unwrap_or("no detail")));
            Ok(if health.healthy { "done" } else { "rolled back" })
        }
    }
}

toolgate_sdk::plugin! {
    Tool::server("roll_out", "Rolls a version out, with the people who decide about it.", roll_out)
        .title("Roll out a version")
        .durable(),
    Tool::server("roll_out_deploy", "Deploys a version to an environment.", deploy)
        .title("Deploy a version")
        .requires_approval()
        .prompt("Deploy {version} to {environment}, with {instances} instances?")
        .risk(Risk::High),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::durable::{NotCarriedOut, Wait};
    use toolgate_sdk::testing::{Attempt, check};

    fn attempt() -> Attempt {
        Attempt::at("roll_out", json!({"version": "1.4.2"})).answered(json!({"environment": "live"}))
    }

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn approved_plan_is_rolled_out_and_checked() {
        let plan = json!({"version": "1.4.2", "environment": "live", "instances": 2});
        let run = attempt().approved_as(plan.clone()).answered(json!({"decision": "healthy"})).run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "done", "plan": plan})));
        assert!(matches!(&run.waits[..], [Wait::Ask(_), Wait::Approve(_), Wait::Sleep(_), Wait::Ask(_)]));
        assert_eq!(run.waits[2], Wait::Sleep(Duration::from_secs(5)));
    }

    #[test]
    fn approved_plan_is_deployed_by_a_tool_that_requires_approval() {
        let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
        let attempt = || {
            let arguments = json!({"version": "1.4.2", "deploy": true});
            Attempt::at("roll_out", arguments).answered(json!({"environment": "live"})).approved()
        };
        let deployed = attempt().returned(vec![Ok(json!({"instances": 3}))]).answered(json!({"decision": "healthy"}));
        let run = deployed.run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "done", "plan": plan})));
        assert_eq!(run.waits[2], Wait::Calls(json!({"calls": [{"tool": "roll_out_deploy", "arguments": plan}]})));
        let denied = NotCarriedOut { code: "denied".into(), message: "a person denied it".into() };
        let run = attempt().returned(vec![Err(denied)]).run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "not deployed", "reason": "a person denied it", "plan": plan})));
        assert_eq!(Attempt::at("roll_out_deploy", plan).run(&tools()).result, Ok(json!({"instances": 3})));
    }

    #[test]
    fn reported_health_decides_the_state() {
        let attempt = || {
            let arguments = json!({"version": "1.4.2", "signal": "health"});
            Attempt::at("roll_out", arguments).answered(json!({"environment": "live"})).approved()
        };
        for (attempt, state) in [
            (attempt().received(json!({"healthy": true})), "done"),
            (attempt().received(json!({"healthy": false, "detail": "no answer"})), "rolled back"),
            (attempt().expired(), "rolled back"),
        ] {
            let run = attempt.run(&tools());
            assert_eq!(run.result.unwrap()["state"], state);
            let Some(Wait::External(external)) = run.waits.last() else { panic!("{:?}", run.waits) };
            let metadata = json!({"version": "1.4.2", "environment": "live"});
            assert_eq!((&external["name"], &external["metadata"]), (&json!("health"), &metadata));
        }
    }

    #[test]
    fn denied_plan_is_a_result() {
        let run = attempt().denied("not on a Friday").run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "rejected", "comment": "not on a Friday"})));
    }
}
