//! AgentKit, "Pattern 2: Non-Deterministic Agent Requests"; Jido, "Advisory vs Enforcement": the plugin for questions
//! of an agent.

use serde_json::json;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};

use crate::{answered, content, listed, settled_by};

/// A question of the model is stored while it waits, and the person's answer is the tool's result.
#[test]
fn agentkit_an_agent_asks_and_the_answer_is_the_result() {
    let mut host = Setup::with(&["ask"]).start();
    let question = json!({"question": "Which one?", "choices": ["red", "blue"], "context": "There are two left."});
    let turn = host.agent.call("c", "ask_user", question.clone());
    let asked = listed(&host.approver, "kind=elicitation").remove(0);
    assert_eq!((&asked["prompt"], &asked["prompt_by"]), (&json!("The agent asks: Which one?"), &json!("plugin")));
    assert_eq!((&asked["arguments"], &asked["allowed"]), (&question, &json!(["answer", "decline"])));
    host.restart();
    let turn = settled_by(&host, &turn, json!({"decision": "answer", "data": {"answer": "green, if you have it"}}));
    assert_eq!(content(&turn)["result"], json!({"decision": "answer", "data": {"answer": "green, if you have it"}}));
}

/// "System prompt": the description that the model reads says when to ask, in every provider's format.
#[test]
fn agentkit_the_description_tells_the_model_when_to_ask() {
    let host = Setup::with(&["ask"]).start();
    for format in ["openai", "openai-responses", "anthropic", "mcp"] {
        let text = host.agent.get(&format!("/v1/tools?format={format}")).text;
        assert!(text.contains("Use it when only the user can know or decide."), "{format}: {text}");
    }
}

/// The model decides whether to ask, but not about the gate. A question to the user does not replace an approval.
#[test]
fn jido_asking_is_advice_and_a_gate_is_enforced() {
    let host = Setup::with(&["ask", "lab"]).start();
    let turn = host.agent.call("c", "ask_user", json!({"question": "May I?"}));
    let turn = settled_by(&host, &turn, json!({"decision": "answer", "data": {"answer": "yes"}}));
    assert_eq!(outcomes(&turn), ["ok"]);
    assert_eq!(outcomes(&host.agent.call("c", "gated_echo", json!({"value": 1}))), ["awaiting"]);
    assert_eq!(outcomes(&host.agent.call("c", "echo", json!({"value": 1}))), ["ok"], "nothing forces a model to ask");
}

/// The model's text is exact for programs and escaped for people, after words of the plugin.
#[test]
fn agentkit_a_models_question_cannot_imitate_the_host() {
    let host = Setup::with(&["ask"]).start();
    let hostile = "fine?\u{202e}\u{1b}[2J <img src=x onerror=alert(1)> {question} {/choices}";
    let turn = host.agent.call("c", "ask_user", json!({"question": hostile}));
    let asked = listed(&host.approver, "").remove(0);
    assert_eq!(asked["prompt"], format!("The agent asks: {hostile}"), "exact, and a template inside is not expanded");
    let shown = asked["display"]["prompt"].as_str().unwrap();
    assert!(shown.starts_with("The agent asks: fine?") && shown.contains("<img src=x"), "{shown}");
    assert!(!shown.contains(['\u{202e}', '\u{1b}']), "{shown:?}");
    assert!(!asked["display"]["arguments"].as_str().unwrap().contains(['\u{202e}', '\u{1b}']));
    for refused in [json!({"answer": 1}), json!("yes"), json!({"answer": ""})] {
        let answer = json!({"decision": "answer", "data": refused});
        host.approver.resolve(&suspension_of(&turn), answer).problem(422, "invalid");
    }
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "decline"}));
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}
