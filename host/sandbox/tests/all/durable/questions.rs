//! Questions of durable calls: their parts, mistakes in them, and the secrets in what a guest says.

use std::sync::Arc;

use capabilities::Grants;
use capabilities::secrets::{Secret, SecretValue};
use domain::approvers::Need;
use domain::principal::Channels;
use domain::step::{Question, Step, StepEnd, StepWait};
use domain::tool::Risk;
use domain::{Json, Limits, Span, outcome::FailureCode};
use toolgate_sandbox::Job;

use super::{APPROVE, ASK, AWAIT, PROMPT, component, continued, run, step, waits};
use crate::world::{RUNTIME, failed, load, nowhere, tight};

#[test]
fn whole_question_reaches_the_host() {
    let question = r#"{"prompt":"Which?","responses":["blue","green"],"response":{"type":"object","minProperties":1},
      "expires_ms":60000,"risk":"high","who":["group:ops","principal:ada"]}"#;
    let request = waits(run(&load(&component(ASK)), &continued(question, &[])).0);
    let expected = Question {
        prompt: "Which?".into(),
        responses: Some(Arc::new(["blue".to_owned(), "green".to_owned()])),
        response: Some(Json::unchecked(r#"{"type":"object","minProperties":1}"#)),
        expires: Some(Span::from_secs(60)),
        risk: Some(Risk::High),
        needs: Arc::new([Need {
            who: ["group:ops", "principal:ada"].map(|who| who.parse().expect("an approver")).into(),
            quorum: 1,
            escalate: None,
            via: Channels::ANY,
        }]),
        ..Question::default()
    };
    assert_eq!(request.wait, StepWait::Answer(expected));
}

#[test]
fn malformed_question_fails_the_call() {
    let (asks, approves, awaits) = (load(&component(ASK)), load(&component(APPROVE)), load(&component(AWAIT)));
    let metadata = format!(r#"{{"prompt":"x","metadata":"{}"}}"#, "x".repeat(4_095));
    let long = format!(r#"{{"prompt":"{}"}}"#, "x".repeat(4_097));
    let huge = format!(r#"{{"prompt":"x","response":{{"description":"{}"}}}}"#, "x".repeat(256 << 10));
    for (plugin, question, says) in [
        (&asks, "Go?", "`ask` is refused: it is not JSON: "),
        (&asks, r#"["Go?"]"#, "`ask` is refused: it is not a JSON object"),
        (&asks, "{}", "it has no `prompt`"),
        (&asks, r#"{"prompt":""}"#, "`prompt` must be a string of 1 to 4096 bytes"),
        (&asks, &long, "`prompt` must be a string of 1 to 4096 bytes"),
        (&asks, &huge, "it has 262188 bytes, and the maximum is 262144"),
        (&asks, r#"{"prompt":"a","prompt":"b"}"#, "it is not JSON: "),
        (&asks, r#"{"prompt":"a","subject":1}"#, "`ask` has no key `subject`"),
        (&asks, r#"{"prompt":"a","colour":1}"#, "`ask` has no key `colour`"),
        (&asks, r#"{"prompt":"a","responses":[]}"#, "`responses` must be"),
        (&asks, r#"{"prompt":"a","responses":["open"]}"#, "`responses` must be"),
        (&asks, r#"{"prompt":"a","responses":["b","b"]}"#, "`responses` must be"),
        (&asks, r#"{"prompt":"a","response":"string"}"#, "`response` must be a JSON Schema"),
        (&asks, r#"{"prompt":"a","expires_ms":0}"#, "`expires_ms` must be an integer from 1 to 31536000000"),
        (&asks, r#"{"prompt":"a","expires_ms":1.5}"#, "`expires_ms` must be an integer"),
        (&asks, r#"{"prompt":"a","risk":"some"}"#, "`risk` must be"),
        (&asks, r#"{"prompt":"a","who":["ada"]}"#, "`who` must be"),
        (&asks, r#"{"prompt":"a","who":[]}"#, "`who` must be"),
        (&asks, r#"{"prompt":"a","quorum":2}"#, "`ask` has no key `quorum`"),
        (&approves, r#"{"prompt":"a"}"#, "`approve` is refused: it has no `subject`"),
        (&approves, r#"{"prompt":"a","subject":1,"responses":["b"]}"#, "`approve` has no key `responses`"),
        (&approves, r#"{"prompt":"a","subject":{"b":1},"editable":["c"]}"#, "`editable` must be"),
        (&approves, r#"{"prompt":"a","subject":1,"editable":"some"}"#, "`editable` must be"),
        (&asks, r#"{"prompt":"a","name":"b"}"#, "`ask` has no key `name`"),
        (&approves, r#"{"prompt":"a","subject":1,"schema":true}"#, "`approve` has no key `schema`"),
        (&awaits, "{}", "`await-external` is refused: it has no `prompt`"),
        (&awaits, r#"{"prompt":"a","who":["role:admin"]}"#, "`await-external` has no key `who`"),
        (&awaits, r#"{"prompt":"a","schema":7}"#, "`schema` must be a JSON Schema"),
        (&awaits, r#"{"prompt":"a","name":"b c"}"#, "`name` must be a string of 1 to 64"),
        (&awaits, &metadata, "`metadata` must be JSON of at most 4096 bytes"),
    ] {
        let message = failed(run(plugin, &continued(question, &[])).0, FailureCode::ToolFailed);
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn secret_in_an_answer_is_redacted_in_all_a_guest_says() {
    let value = SecretValue::new("hunter2-hunter2").expect("a value");
    let secret = Secret { name: "PIN".into(), value, hosts: Vec::new(), places: Vec::new() };
    let grants = Arc::new(Grants { secrets: vec![secret], ..Grants::default() });
    let job = |question: &str, steps: &[Step]| Job { grants: grants.clone(), ..continued(question, steps) };
    let run = |body: &str, question: &str, steps: &[Step]| run(&load(&component(body)), &job(question, steps)).0;
    let request = waits(run(AWAIT, PROMPT, &[]));
    let received = step(&request, StepEnd::Received(Json::unchecked(r#"{"pin":"hunter2-hunter2"}"#)));
    assert_eq!(crate::world::value(run(AWAIT, PROMPT, &[received])), r#"{"pin":"[secret PIN]"}"#);
    let knows = r#"{"prompt":"is it hunter2-hunter2?","metadata":"hunter2-hunter2"}"#;
    let StepWait::External { question, metadata, .. } = waits(run(AWAIT, knows, &[])).wait else { panic!("a wait") };
    assert_eq!((&*question.prompt, metadata), ("is it [secret PIN]?", Some(Json::unchecked("\"[secret PIN]\""))));
    let knows = r#"{"prompt":"it is hunter2-hunter2","subject":["hunter2-hunter2"]}"#;
    let StepWait::Approval { question, subject, .. } = waits(run(APPROVE, knows, &[])).wait else { panic!("a wait") };
    assert_eq!((&*question.prompt, subject.as_str()), ("it is [secret PIN]", r#"["[secret PIN]"]"#));
    let message = failed(run(ASK, r#"{"prompt":"a","hunter2-hunter2":1}"#, &[]), FailureCode::ToolFailed);
    assert!(message.contains("`ask` has no key `[secret PIN]`"), "{message}");
    // A redacted name would be another one.
    let lingers = Limits { linger: Span::from_secs(3_600), ..tight() };
    for (body, question, key) in [
        (ASK, r#"{"prompt":"a","who":["role:approver","principal:hunter2-hunter2"]}"#, "`who`"),
        (APPROVE, r#"{"prompt":"a","subject":1,"who":["group:hunter2-hunter2"]}"#, "`who`"),
        (APPROVE, r#"{"prompt":"a","subject":{"hunter2-hunter2":1},"editable":["hunter2-hunter2"]}"#, "`editable`"),
        (AWAIT, r#"{"prompt":"a","name":"hunter2-hunter2.b"}"#, "`name`"),
    ] {
        let kept = Job { recording: Some(nowhere()), ..job(question, &[]) };
        let kept = RUNTIME.block_on(load(&component(body)).run(&kept, &lingers, Arc::new(()))).ended;
        for ended in [run(body, question, &[]), kept] {
            let message = failed(ended, FailureCode::ToolFailed);
            assert!(message.contains(key) && !message.contains("hunter2"), "{message}");
        }
    }
}
