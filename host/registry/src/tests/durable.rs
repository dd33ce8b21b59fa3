//! Durable tools: what their components may import, and the schemas in the questions of their calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use capabilities::Grants;
use capabilities::filesystem::{Folder, FolderHandle};
use capabilities::keyvalue::KeyValueQuota;
use dispatch::ports::{AppendError, Run, RunJournal, StoreFault, Tools as _};
use domain::{
    Digest, Limits, Outcome, Timestamp,
    call::{Frozen, Pinned},
    journal::{Entry, JournalBounds, JournalSummary, ValueChange},
    outcome::FailureCode,
    step::{Durable, RunEnd, Step, StepEnd, StepRequest, StepWait},
    tool::{Recovery, Risk},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::running::{ok, run, run_of};
use crate::run::recording;
use crate::testing::{Notes, TestRegistry, plugin};
use crate::{GrantHolder, NotLoaded, PluginSettings};

const DURABLE: &str = "toolgate:plugin/durable@0.1.2";
const STORE: &str = "wasi:keyvalue/store@0.2.0-draft2";
const FOLDERS: &str = "wasi:filesystem/preopens@0.2.3";

/// The findings about a component on a host that grants the store and, if asked, a folder.
fn findings(imports: &[&str], tools: &Value, has_folder: bool) -> Vec<String> {
    let folder = Folder { path: "/srv".into(), at: "/data".into(), write: false, handle: FolderHandle::default() };
    let grants = Grants {
        keyvalue: Some(KeyValueQuota { bytes: 100, keys: 10 }),
        config: Some([("region".to_owned(), "eu".to_owned())].into()),
        folders: if has_folder { vec![folder] } else { Vec::new() },
        ..Grants::default()
    };
    let settings = PluginSettings { grants: Arc::new(grants), holder: GrantHolder::AnyComponent, limits: None };
    let world = TestRegistry::with(|all| drop(all.plugins.insert(plugin("slow"), settings)));
    match world.load("slow", json!({"imports": imports, "tools": tools}).to_string().as_bytes()) {
        Ok(_) => Vec::new(),
        Err(NotLoaded::Rejected { findings, .. }) => {
            findings.iter().map(|finding| format!("{}: {finding}", finding.rule.as_str())).collect()
        }
        Err(error) => panic!("another error: {error:?}"),
    }
}

#[test]
fn component_of_a_durable_tool_imports_only_what_repeats() {
    let durable = json!({"name": "deploy", "options": {"durable": true}});
    let plain = json!({"name": "read", "options": {"durable": false}});
    let beyond = |what: &str| {
        format!(
            "option-contradiction: a durable call cannot repeat its use of {what}, and the plugin has durable tools: deploy; \
             move the durable tools to another plugin, or do without these"
        )
    };
    let unused = "option-contradiction: the component imports the interface `durable`, and none of its tools is durable; \
                  declare the tools that wait with the option `\"durable\": true`, or build it without that import";
    for (imports, tools, has_folder, expected) in [
        (&[DURABLE][..], json!([durable, plain]), false, vec![]),
        (&[], json!([durable]), false, vec![]),
        (&[DURABLE, STORE, "wasi:config/store@0.2.0-rc.1"], json!([durable, plain]), false, vec![]),
        (&[FOLDERS], json!([durable]), false, vec![]),
        (&[FOLDERS], json!([durable]), true, vec![beyond("the granted folders")]),
        (&[DURABLE, STORE, FOLDERS], json!([durable]), true, vec![beyond("the granted folders")]),
        (&[DURABLE, STORE], json!([plain]), false, vec![unused.to_owned()]),
        (&[STORE, FOLDERS], json!([plain]), true, vec![]),
    ] {
        assert_eq!(findings(imports, &tools, has_folder), expected, "{imports:?} {tools}");
    }
}

#[test]
fn findings_about_durable_tools_come_with_all_others() {
    let tools = json!([{"name": "deploy", "description": "", "options": {"durable": true}}]);
    let found = findings(&[DURABLE, FOLDERS, "wasi:http/types@0.2.12"], &tools, true);
    let rules: Vec<_> = found.iter().map(|finding| finding.split(':').next().expect("a rule")).collect();
    assert_eq!(rules, ["import-not-granted", "description", "option-contradiction"], "{found:#?}");
    assert!(found[2].contains("the granted folders"), "{}", found[2]);
}

#[test]
fn durable_tool_ends_with_a_request_in_doubt_by_default() {
    let world = TestRegistry::new();
    let tool = |name: &str, options: Value| json!({"name": name, "options": options});
    let tools = [
        tool("a", json!({"durable": true})),
        tool("b", json!({"durable": true, "recovery": "retry"})),
        tool("c", json!({"durable": true, "recovery": "ask"})),
        tool("d", json!({"durable": false})),
    ];
    let loaded = world.load("slow", json!({"tools": tools}).to_string().as_bytes()).expect("loads");
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    let recovery = |name: &str| world.registry.find(name).expect("a tool").tool.options.recovery;
    assert_eq!(["a", "b", "c", "d"].map(recovery), [Recovery::Fail, Recovery::Retry, Recovery::Ask, Recovery::Retry]);
}

#[tokio::test]
async fn question_with_a_faulty_schema_fails_the_call() {
    let world = TestRegistry::new();
    let durable = |name: &str| json!({"name": name, "options": {"durable": true}});
    let tools = json!([durable("asks"), durable("awaits")]);
    world.load("slow", json!({"tools": tools}).to_string().as_bytes()).expect("loads");
    let ended = async |tool: &str, schema: &str| world.registry.run(run(&world, tool, schema)).await.ended;
    let failure = async |tool: &str, schema: &str| match ended(tool, schema).await {
        RunEnd::Outcome(Outcome::Failed(failure)) => failure,
        other => panic!("did not fail: {other:?}"),
    };
    for (tool, schema, says) in [
        ("asks", r#"{"type":"strin"}"#, "the `response` of its question is not a schema at /type"),
        ("asks", r#"{"$ref":"https://example.com"}"#, "outside of itself"),
        ("awaits", r#"{"type":"strin"}"#, "the `schema` of its question is not a schema at /type"),
        ("awaits", r#"{"$ref":"https://example.com"}"#, "outside of itself"),
    ] {
        let failure = failure(tool, schema).await;
        assert_eq!(failure.code, FailureCode::ToolFailed);
        assert!(failure.message.contains("the tool asked a question that is refused"), "{}", failure.message);
        assert!(failure.message.contains(says), "{}", failure.message);
    }
    for tool in ["asks", "awaits"] {
        assert!(matches!(ended(tool, r#"{"type":"string"}"#).await, RunEnd::Waits(_)));
    }
}

#[tokio::test]
async fn question_has_what_the_tool_declares_for_people() {
    let world = TestRegistry::new();
    let options = json!({"durable": true, "title": "Ask", "risk": "critical", "context_keys": ["page"]});
    let tools = json!([{"name": "asks", "options": options}]);
    world.load("slow", json!({"tools": tools}).to_string().as_bytes()).expect("loads");
    let ended = world.registry.run(run(&world, "asks", r#"{"type":"string"}"#)).await.ended;
    let RunEnd::Waits(StepRequest { wait: StepWait::Answer(question), .. }) = ended else { panic!("{ended:?}") };
    assert_eq!((question.title.as_deref(), question.risk), (Some("Ask"), Some(Risk::Critical)));
    assert_eq!(question.context_keys.as_deref(), Some(["page".to_owned()].as_slice()));
}

/// A registry with a durable tool that returns its limit on memory, where the operator allows so much.
fn allowing(memory: usize) -> TestRegistry {
    let world = TestRegistry::with(|settings| settings.limits.memory = memory);
    let tools = json!([{"name": "memory", "options": {"durable": true}}]);
    world.load("slow", json!({"tools": tools}).to_string().as_bytes()).expect("loads");
    world
}

#[tokio::test]
async fn run_has_the_limits_of_the_time_when_its_call_was_accepted() {
    let accepted = run(&allowing(2 << 20), "memory", "{}").pinned;
    for today in [1 << 20, 4 << 20] {
        let world = allowing(today);
        let later = Run { pinned: accepted.clone(), ..run(&world, "memory", "{}") };
        assert_eq!(world.registry.run(later).await, ok("2097152"), "today it is {today}");
        let older = run(&world, "memory", "{}");
        let pinned = Arc::new(Pinned { frozen: None, ..older.pinned.as_ref().clone() });
        assert_eq!(world.registry.run(Run { pinned, ..older }).await, ok(&today.to_string()), "of an older host");
    }
    assert_eq!(accepted.frozen, Some(Frozen::now(&Limits { memory: 2 << 20, ..Limits::default() })));
}

/// The part that a run repeats after these steps.
fn begun(steps: &[Step]) -> Durable {
    Durable { started_at: Timestamp::from_millis(0), steps: steps.into(), journal: [].into(), decided: [].into() }
}

#[tokio::test]
async fn call_of_an_unknown_version_ends_and_says_so() {
    let world = allowing(1 << 20);
    let newer = || {
        let run = run(&world, "memory", "{}");
        let frozen = run.pinned.frozen.map(|frozen| Frozen { version: 7, ..frozen });
        Run { pinned: Arc::new(Pinned { frozen, ..run.pinned.as_ref().clone() }), ..run }
    };
    let RunEnd::Outcome(Outcome::Failed(failure)) = world.registry.run(newer()).await.ended else { panic!("it ran") };
    assert!(failure.code == FailureCode::HostFault && failure.message.contains("version 7"), "{failure:?}");
    let step = Step { digest: Digest::of("step"), ended_at: Timestamp::from_millis(0), end: StepEnd::Elapsed };
    let notes = Arc::new(Notes::default());
    let begun = Run { durable: Some(begun(&[step])), monitor: notes.clone(), ..newer() };
    assert_eq!(world.registry.run(begun).await.ended, Outcome::InDoubt.into());
    let log = notes.0.lock().expect("unpoisoned").concat();
    assert!(log.starts_with("error: the call ends in doubt: ") && log.contains("version 7"), "{log}");
}

/// A journal on a disk that fails.
struct Broken;

#[async_trait]
impl RunJournal for Broken {
    async fn append(&self, _: Vec<Entry>, _: Vec<ValueChange>) -> Result<(), AppendError> {
        Err(AppendError::Fault(StoreFault::of_program("append", "/srv/data: no such device")))
    }

    fn summary(&self) -> JournalSummary {
        JournalSummary::default()
    }
}

#[tokio::test]
async fn caller_does_not_read_why_the_store_failed() {
    let recording = recording((Arc::new(Broken), JournalBounds::default()));
    let why = recording.writer.write(Vec::new(), Vec::new()).await;
    assert_eq!(why, Err("the host's store failed".to_owned()));
}

/// A registry whose operator grants the store to components of the plugin, or not.
fn granting(data: TempDir, holder: Option<GrantHolder>) -> TestRegistry {
    TestRegistry::on(data, |all| {
        let grants = Grants { keyvalue: Some(KeyValueQuota { bytes: 100, keys: 10 }), ..Grants::default() };
        let settings = |holder| PluginSettings { grants: Arc::new(grants), holder, limits: None };
        all.plugins.extend(holder.map(|holder| (plugin("slow"), settings(holder))));
    })
}

#[tokio::test]
async fn only_a_begun_call_outlasts_the_grants_of_its_component() {
    let world = granting(tempfile::tempdir().expect("a folder"), Some(GrantHolder::AnyComponent));
    let tools = json!([{"name": "who", "options": {"durable": true}}]);
    world.load("slow", json!({"imports": [DURABLE, STORE], "tools": tools}).to_string().as_bytes()).expect("loads");
    let pinned = run(&world, "who", "{}").pinned;
    let run_after = |steps: &[Step]| Run { durable: Some(begun(steps)), ..run_of(&pinned, "who", "{}") };
    let step = Step { digest: Digest::of("step"), ended_at: Timestamp::from_millis(0), end: StepEnd::Elapsed };
    let mut data = world.data;
    for holder in [Some(GrantHolder::Components([Digest::of("another component")].into())), None] {
        let without = granting(data, holder);
        for _ in 0..2 {
            assert_eq!(without.registry.run(run_after(std::slice::from_ref(&step))).await, ok("\"\""));
        }
        assert_eq!(without.fake.loads.load(Ordering::SeqCst), 2, "once without its grants, and once with its imports");
        let RunEnd::Outcome(Outcome::Failed(failure)) = without.registry.run(run_after(&[])).await.ended else {
            panic!("it ran")
        };
        assert!(failure.message.contains("can no longer be loaded: imports without a grant"), "{failure:?}");
        data = without.data;
    }
}
