//! The workflow of the example plugins in three languages. Kills of the host while it waits, and while it deploys, change nothing.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::guests::{plugin, rollout_grants};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::{answer, nested, waiting};

use super::{built, done, left_out, root};

/// The tools of `rollout`, `rollout-py` and `rollout-ts`.
const TOOLS: [&str; 3] = ["roll_out", "roll_out_py", "roll_out_ts"];

/// A host with the three plugins, which build and deploy with this service.
fn start(service: &Server) -> Host {
    let author = Setup::default().prepare();
    let setup = Setup::default().component("rollout-rs", plugin("rollout"));
    let setup = ["rollout-py", "rollout-ts"]
        .into_iter()
        .fold(setup, |setup, name| setup.component(name, requesting(&author, name, service)));
    let grants = TOOLS.map(|tool| {
        let plugin = if tool == TOOLS[0] { "rollout-rs".to_owned() } else { tool.replace("roll_out_", "rollout-") };
        rollout_grants(&plugin, &service.url("/"), &[&format!("{tool}_deploy")])
    });
    setup.tables(&grants.concat()).start()
}

/// A component that requests the address of this service instead of the one in its manifest.
fn requesting(author: &Host, name: &str, service: &Server) -> Vec<u8> {
    let manifest = fs::read_to_string(root().join("plugins").join(name).join("toolgate-plugin.toml")).unwrap();
    let [component, wants] = ["it.wasm", "wants.toml"].map(|file| author.folder().join(file));
    fs::write(&wants, manifest.replace("http://127.0.0.1:8080/", &service.url("/"))).unwrap();
    fs::write(&component, built(name)).unwrap();
    done(author, &["pack", "it.wasm", "--manifest", "wants.toml"]);
    fs::read(component).unwrap()
}

/// A turn of its own conversation for each tool.
fn submitted(host: &Host, arguments: &Value) -> Vec<Value> {
    let submit = |tool: &str| {
        let call = json!({"id": "r", "tool": tool, "arguments": arguments});
        host.agent.post(&format!("/v1/conversations/{tool}/turns"), &json!({"calls": [call]})).ok(201)
    };
    TOOLS.map(submit).to_vec()
}

fn plan(instances: u32) -> Value {
    json!({"version": "1.4.2", "environment": "live", "instances": instances})
}

/// Approves the plan of each turn with two instances, and returns the approvals of the nested calls that deploy it.
fn deploying(host: &Host, turns: &[Value], proposed: &[Value]) -> Vec<Value> {
    for step in proposed {
        assert_eq!((&step["kind"], &step["arguments"]), (&json!("approval"), &plan(3)), "{step:#}");
        let approve = json!({"decision": "approve", "arguments": plan(2)});
        answer(host, step, &approve, &json!({"decision": "deny"}));
    }
    turns.iter().map(|turn| nested(host, turn)).collect()
}

/// Answers the first question of each turn, and returns the decisions that they wait for then.
fn proposed(host: &Host, turns: &[Value]) -> Vec<Value> {
    let place = |name: &str| json!({"decision": "answer", "data": {"environment": name}});
    for turn in turns {
        answer(host, &waiting(host, turn, 1), &place("live"), &place("test"));
    }
    turns.iter().map(|turn| waiting(host, turn, 2)).collect()
}

/// Approves the nested calls, and kills the host when the service has carried each out and has answered none.
fn killed_while_deploying(host: &mut Host, service: &Server, gates: &[Value]) {
    service.fall_silent();
    for gate in gates {
        assert_eq!(gate["arguments"], plan(2), "the host asks about exactly what is deployed: {gate:#}");
        answer(host, gate, &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    }
    // A build and a deployment for each tool.
    let all = 2 * TOOLS.len();
    host.agent.until("/v1/tools", |_| (service.requests().len() == all).then_some(()));
    host.kill();
    service.answer_again();
    host.start();
}

/// The service carried out one build and one deployment for each tool, and each tool verified it. The deployments came twice,
/// because of a kill.
fn each_was_carried_out_once(service: &Server) {
    let requests = service.requests();
    let (verified, requests): (Vec<_>, Vec<_>) = requests.iter().partition(|request| request.method == "GET");
    assert_eq!(verified.iter().map(|request| &*request.path).collect::<Vec<_>>(), ["/deployments/1.4.2"; TOOLS.len()]);
    let keys: BTreeSet<&str> = requests.iter().map(|request| &*request.key).collect();
    assert_eq!((keys.len(), service.carried_out().len()), (2 * TOOLS.len(), 2 * TOOLS.len()), "{requests:#?}");
    for key in keys {
        let came: Vec<Value> =
            requests.iter().filter(|request| request.key == key).map(|request| request.body.parse().unwrap()).collect();
        assert!(came == [json!({"version": "1.4.2"})] || came == [plan(2), plan(2)], "{requests:#?}");
    }
}

#[test]
fn workflow_survives_kills_in_three_languages() {
    if left_out() {
        return;
    }
    let service = Server::start();
    let mut host = start(&service);
    let turns = submitted(&host, &json!({"version": "1.4.2", "settles_s": 1, "signal": "health", "deploy": true}));
    // A kill while a run goes on would begin another attempt.
    for turn in &turns {
        let _ = waiting(&host, turn, 1);
    }
    host.restart();

    let proposed = proposed(&host, &turns);
    host.restart();
    let gates = deploying(&host, &turns, &proposed);
    host.restart();
    killed_while_deploying(&mut host, &service, &gates);

    let awaited: Vec<Value> = turns.iter().map(|turn| waiting(&host, turn, 4)).collect();
    host.restart();
    for wait in &awaited {
        let metadata = json!({"version": "1.4.2", "environment": "live"});
        let found = (&wait["kind"], &wait["signal"], &wait["metadata"]);
        assert_eq!(found, (&json!("external"), &json!("health"), &metadata), "{wait:#}");
        let id = wait["suspension"].as_str().unwrap();
        let wrong = json!({"decision": "result", "data": {"healthy": "yes"}});
        assert_eq!(host.agent.resolve(id, wrong).problem(422, "invalid")["errors"][0]["pointer"], "/data/healthy");
        let healthy = json!({"decision": "result", "data": {"healthy": true}});
        assert_eq!(host.agent.resolve(id, healthy).ok(200)["state"], "result");
    }

    for (turn, tool) in turns.iter().zip(TOOLS) {
        let settled = host.agent.settled(turn);
        assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
        let call = &settled["calls"][0];
        assert_eq!(call["content"]["result"], json!({"state": "done", "plan": plan(2)}), "{call:#}");
        assert_eq!((&call["attempt"], &call["trusted"]), (&json!(1), &json!(false)), "{call:#}");
        let log = host.agent.get(&format!("/v1/conversations/{tool}/calls/r/log")).ok(200);
        let runs = log["runs"].as_array().unwrap();
        let lines: Vec<&Value> = runs.iter().flat_map(|run| run["lines"].as_array().unwrap()).collect();
        let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        let deploys = &call["nested"][0];
        let deployed = host.agent.get(&path(deploys)).ok(200)["calls"][0].clone();
        assert_eq!((&deployed["attempt"], &deployed["content"]["result"]), (&json!(2), &json!({"instances": 2})));
        assert_eq!(deploys["tools"], json!([format!("{tool}_deploy")]), "one nested turn: {call:#}");
        assert_eq!(messages, ["it goes to live", "it is reported: no detail"], "no run repeats a line: {log:#}");
    }
    each_was_carried_out_once(&service);
}

#[test]
fn denied_workflow_ends_alike_in_three_languages() {
    if left_out() {
        return;
    }
    let host = start(&Server::start());
    let turns = submitted(&host, &json!({"version": "1.4.2"}));
    for step in proposed(&host, &turns) {
        let denied = json!({"decision": "deny", "comment": "not on a Friday"});
        answer(&host, &step, &denied, &json!({"decision": "approve"}));
    }
    for turn in &turns {
        let settled = host.agent.settled(turn);
        let result = &settled["calls"][0]["content"]["result"];
        assert_eq!(*result, json!({"state": "rejected", "comment": "not on a Friday"}), "{settled:#}");
    }
}

#[test]
fn denied_deploy_ends_the_workflow_in_three_languages() {
    if left_out() {
        return;
    }
    let host = start(&Server::start());
    let turns = submitted(&host, &json!({"version": "1.4.2", "deploy": true}));
    let proposed = proposed(&host, &turns);
    for gate in deploying(&host, &turns, &proposed) {
        answer(&host, &gate, &json!({"decision": "deny"}), &json!({"decision": "approve"}));
    }
    for turn in &turns {
        let settled = host.agent.settled(turn);
        let result = &settled["calls"][0]["content"]["result"];
        assert_eq!((&result["state"], &result["plan"]), (&json!("not deployed"), &plan(2)), "{settled:#}");
    }
}
