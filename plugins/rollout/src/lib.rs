//! Rolls a version out. One call asks people twice in the middle of its code and waits in between, as long as it takes. The
//! host may be stopped meanwhile.

use std::time::Duration;

use toolgate_sdk::config;
use toolgate_sdk::http::Request;
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
    /// Whether it is built and deployed. A person must approve the deployment again. Without it, people only decide about the
    /// plan.
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
    if release.deploy {
        request("builds", &json!({"version": release.version}))?;
    }
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

/// Deploys a version. The host runs this only if a person has approved exactly this plan, which no workflow can avoid.
fn deploy(plan: Plan, call: &Call) -> Result<Value, Failure> {
    call.log(Level::Info, &format!("deploys {} to {}", plan.version, plan.environment));
    request("deployments", &plan)?;
    Ok(json!({"instances": plan.instances}))
}

/// Sends a request to the service that the operator configured. The host adds an `Idempotency-Key`. A kill of the host can
/// interrupt the request. The host then sends it again with the same key, if the grant says `idempotent = true`.
fn request(path: &str, body: &impl Serialize) -> Result<(), Failure> {
    let service = config::required("service")?;
    Request::post(format!("{}/{path}", service.trim_end_matches('/'))).json(body)?.send()?.successful()?;
    Ok(())
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
        .durable()
        .requires_approval()
        .prompt("Deploy {version} to {environment}, with {instances} instances?")
        .risk(Risk::High),
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use toolgate_sdk::durable::{NotCarriedOut, Wait};
    use toolgate_sdk::http::Response;
    use toolgate_sdk::testing::{Attempt, check};

    fn attempt() -> Attempt {
        Attempt::at("roll_out", json!({"version": "1.4.2"})).answered(json!({"environment": "live"}))
    }

    /// The URL and the body of each request.
    type Sent = Rc<RefCell<Vec<(String, Value)>>>;

    /// With a service. Returns the requests that it gets.
    fn with_service(attempt: Attempt, status: u16) -> (Attempt, Sent) {
        let sent = Sent::default();
        let attempt = attempt.config("service", "https://deploy.example/api/").answers({
            let sent = sent.clone();
            move |Request { url, body, .. }| {
                let body = String::from_utf8(body.clone().unwrap()).unwrap().parse().unwrap();
                sent.borrow_mut().push((url.clone(), body));
                Ok(Response { status, headers: Vec::new(), body: Vec::new() })
            }
        });
        (attempt, sent)
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
        let build = [("https://deploy.example/api/builds".to_owned(), json!({"version": "1.4.2"}))];
        let deployment = [("https://deploy.example/api/deployments".to_owned(), plan.clone())];
        let attempt = || {
            let (attempt, built) =
                with_service(Attempt::at("roll_out", json!({"version": "1.4.2", "deploy": true})), 201);
            (attempt.answered(json!({"environment": "live"})).approved(), built)
        };
        let (approved, built) = attempt();
        let deployed = approved.returned(vec![Ok(json!({"instances": 3}))]).answered(json!({"decision": "healthy"}));
        let run = deployed.run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "done", "plan": plan})));
        assert_eq!(*built.borrow(), build);
        assert_eq!(run.waits[2], Wait::Calls(json!({"calls": [{"tool": "roll_out_deploy", "arguments": plan}]})));
        let denied = NotCarriedOut { code: "denied".into(), message: "a person denied it".into() };
        let run = attempt().0.returned(vec![Err(denied)]).run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "not deployed", "reason": "a person denied it", "plan": plan})));
        let (attempt, sent) = with_service(Attempt::at("roll_out_deploy", plan.clone()), 201);
        assert_eq!(attempt.run(&tools()).result, Ok(json!({"instances": 3})));
        assert_eq!(*sent.borrow(), deployment);
        let (attempt, _) = with_service(Attempt::at("roll_out_deploy", plan), 503);
        assert!(matches!(attempt.run(&tools()).result, Err(Failure::Unavailable(_))));
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
