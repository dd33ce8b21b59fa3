//! Rolls a version out. One call asks people, waits for a report and for time, and verifies what it deployed. Each wait may take
//! days, and the host may be stopped meanwhile.

use std::time::Duration;

use toolgate_sdk::config;
use toolgate_sdk::http::{Request, Response};
use toolgate_sdk::prelude::*;

/// The version to roll out.
#[derive(Deserialize, JsonSchema)]
struct Release {
    /// For example `1.4.2`.
    #[schemars(regex(pattern = r"^[0-9A-Za-z][0-9A-Za-z._+-]{0,63}$"))]
    version: String,
    /// The seconds before people decide, or it is verified.
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
    let settles = Duration::from_secs(release.settles_s);
    let fault = match release.signal {
        Some(signal) => match reported(&plan, &signal, call)? {
            None => {
                call.sleep(settles);
                if release.deploy { verified(&plan.version)? } else { None }
            }
            fault => fault,
        },
        None => {
            call.sleep(settles);
            asked(&plan, call)?
        }
    };
    Ok(match fault {
        None => json!({"state": "done", "plan": plan}),
        Some(reason) => json!({"state": "rolled back", "reason": reason, "plan": plan}),
    })
}

/// Deploys a version. The host runs this only if a person has approved exactly this plan, which no workflow can avoid.
fn deploy(plan: Plan, call: &Call) -> Result<Value, Failure> {
    call.log(Level::Info, &format!("deploys {} to {}", plan.version, plan.environment));
    request("deployments", &plan)?;
    Ok(json!({"instances": plan.instances}))
}

/// An address of the service that the operator configured.
fn url(path: &str) -> Result<String, Failure> {
    Ok(format!("{}/{path}", config::required("service")?.trim_end_matches('/')))
}

/// Sends a request to the service. The host adds an `Idempotency-Key`. A kill of the host can interrupt the request. The host
/// then sends it again with the same key, if the grant says `idempotent = true`.
fn request(path: &str, body: &impl Serialize) -> Result<(), Failure> {
    Request::post(url(path)?).json(body)?.send()?.successful()?;
    Ok(())
}

/// The fault, if people say that it is broken.
fn asked(plan: &Plan, call: &Call) -> Result<Option<String>, Failure> {
    let prompt = format!("Is {} healthy in {}?", plan.version, plan.environment);
    let decision = call.choose(Question::new(prompt), &["healthy", "broken"])?.decision;
    call.log(Level::Info, &format!("people say that it is {decision}"));
    Ok((decision != "healthy").then(|| format!("people say that it is {decision}")))
}

/// The fault, if a monitoring system reports one, or nothing in time.
fn reported(plan: &Plan, signal: &str, call: &Call) -> Result<Option<String>, Failure> {
    let about = External::new(format!("The health of {} in {}", plan.version, plan.environment));
    let metadata = json!({"version": plan.version, "environment": plan.environment});
    let health: Result<Health, _> = call.await_external(about.signal(signal).metadata(metadata));
    match health {
        Err(WaitError::Expired) => Ok(Some("nothing is reported in time".into())),
        Err(error) => Err(error.into()),
        Ok(health) => {
            call.log(Level::Info, &format!("it is reported: {}", health.detail.as_deref().unwrap_or("no detail")));
            Ok((!health.healthy).then(|| health.detail.unwrap_or_else(|| "it is reported as broken".into())))
        }
    }
}

/// The fault, unless the service confirms that the deployed version is healthy.
fn verified(version: &str) -> Result<Option<String>, Failure> {
    let answer = Request::get(url(&format!("deployments/{version}"))?).send().map_err(Failure::from);
    Ok(match answer.and_then(Response::successful).and_then(|answer| answer.json::<Value>()) {
        Ok(health) if health["healthy"] == true => None,
        Ok(_) => Some("the service does not say that it is healthy".into()),
        Err(Failure::InvalidArguments(why) | Failure::Failed(why) | Failure::Unavailable(why)) => Some(why),
    })
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
    use toolgate_sdk::http::Error;
    use toolgate_sdk::testing::{Attempt, check};

    fn attempt() -> Attempt {
        Attempt::at("roll_out", json!({"version": "1.4.2"})).answered(json!({"environment": "live"}))
    }

    /// The URL and the body of each request. A GET has none.
    type Sent = Rc<RefCell<Vec<(String, Value)>>>;

    /// A status and a body.
    type Answer = Result<(u16, &'static str), Error>;

    /// With a service that answers like this. Returns the requests that it gets.
    fn with_service(attempt: Attempt, answer: impl Fn(&Request) -> Answer + 'static) -> (Attempt, Sent) {
        let sent = Sent::default();
        let attempt = attempt.config("service", "https://deploy.example/api/").answers({
            let sent = sent.clone();
            move |request: &Request| {
                let body = request.body.clone().map(|body| String::from_utf8(body).unwrap().parse().unwrap());
                let body = body.unwrap_or(Value::Null);
                sent.borrow_mut().push((request.url.clone(), body));
                answer(request).map(|(status, body)| Response { status, headers: Vec::new(), body: body.into() })
            }
        });
        (attempt, sent)
    }

    /// A rollout that waits for the signal `health`, up to the decision about its plan. A service answers its GET requests
    /// like this.
    fn with_signal(deploy: bool, answer: Answer) -> (Attempt, Sent) {
        let arguments = json!({"version": "1.4.2", "signal": "health", "deploy": deploy});
        let attempt = Attempt::at("roll_out", arguments).answered(json!({"environment": "live"})).approved();
        let attempt = if deploy { attempt.returned(vec![Ok(json!({"instances": 3}))]) } else { attempt };
        with_service(attempt, move |request| if request.method == "GET" { answer.clone() } else { Ok((201, "")) })
    }

    /// The result of a rollout. Without a reason, it is done.
    fn ended(reason: Option<&str>) -> Result<Value, Failure> {
        let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
        Ok(reason.map_or_else(
            || json!({"state": "done", "plan": plan}),
            |reason| json!({"state": "rolled back", "reason": reason, "plan": plan}),
        ))
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
        let broken = attempt().approved().answered(json!({"decision": "broken"})).run(&tools());
        assert_eq!(broken.result, ended(Some("people say that it is broken")));
    }

    #[test]
    fn approved_plan_is_deployed_by_a_tool_that_requires_approval() {
        let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
        let build = [("https://deploy.example/api/builds".to_owned(), json!({"version": "1.4.2"}))];
        let deployment = [("https://deploy.example/api/deployments".to_owned(), plan.clone())];
        let attempt = || {
            let (attempt, built) =
                with_service(Attempt::at("roll_out", json!({"version": "1.4.2", "deploy": true})), |_| Ok((201, "")));
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
        let (attempt, sent) = with_service(Attempt::at("roll_out_deploy", plan.clone()), |_| Ok((201, "")));
        assert_eq!(attempt.run(&tools()).result, Ok(json!({"instances": 3})));
        assert_eq!(*sent.borrow(), deployment);
        let (attempt, _) = with_service(Attempt::at("roll_out_deploy", plan), |_| Ok((503, "")));
        assert!(matches!(attempt.run(&tools()).result, Err(Failure::Unavailable(_))));
    }

    #[test]
    fn reported_health_decides_the_state() {
        let attempt = || with_signal(false, Ok((503, ""))).0;
        for (attempt, reason) in [
            (attempt().received(json!({"healthy": true, "detail": "all checks pass"})), None),
            (attempt().received(json!({"healthy": false})), Some("it is reported as broken")),
            (attempt().received(json!({"healthy": false, "detail": "no answer"})), Some("no answer")),
            (attempt().expired(), Some("nothing is reported in time")),
        ] {
            let run = attempt.run(&tools());
            assert_eq!(run.result, ended(reason));
            let Wait::External(external) = &run.waits[2] else { panic!("{:?}", run.waits) };
            let metadata = json!({"version": "1.4.2", "environment": "live"});
            assert_eq!((&external["name"], &external["metadata"]), (&json!("health"), &metadata));
            let settles = [Wait::Sleep(Duration::from_secs(5))];
            assert_eq!(run.waits[3..], settles[..if reason.is_none() { 1 } else { 0 }]);
        }
    }

    #[test]
    fn deployed_version_is_verified_after_it_has_settled() {
        let unclear = Some("the service does not say that it is healthy");
        for (answer, reason) in [
            (Ok((200, r#"{"version":"1.4.2","healthy":true}"#)), None),
            (Ok((200, r#"{"healthy":false}"#)), unclear),
            (Ok((200, "[true]")), unclear),
            (Ok((503, r#"{"healthy":true}"#)), Some("the server answered with status 503")),
            (Err(Error::Unreachable("it is away".into())), Some("the request got no response: it is away")),
        ] {
            let (attempt, sent) = with_signal(true, answer);
            let run = attempt.received(json!({"healthy": true})).run(&tools());
            assert_eq!(run.result, ended(reason));
            assert!(matches!(&run.waits[2..], [Wait::Calls(_), Wait::External(_), Wait::Sleep(_)]));
            let verified = ("https://deploy.example/api/deployments/1.4.2".to_owned(), Value::Null);
            assert_eq!(sent.borrow()[1..], [verified]);
        }
    }

    #[test]
    fn version_that_is_reported_as_broken_is_not_verified() {
        let (attempt, sent) = with_signal(true, Ok((200, r#"{"healthy":true}"#)));
        let run = attempt.received(json!({"healthy": false, "detail": "no answer"})).run(&tools());
        assert_eq!(run.result, ended(Some("no answer")));
        assert!(matches!(&run.waits[2..], [Wait::Calls(_), Wait::External(_)]));
        let urls: Vec<_> = sent.borrow().iter().map(|(url, _)| url.clone()).collect();
        assert_eq!(urls, ["https://deploy.example/api/builds"]);
    }

    #[test]
    fn denied_plan_is_a_result() {
        let run = attempt().denied("not on a Friday").run(&tools());
        assert_eq!(run.result, Ok(json!({"state": "rejected", "comment": "not on a Friday"})));
    }
}
