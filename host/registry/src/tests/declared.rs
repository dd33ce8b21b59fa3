//! Declarations in a section: checked before anything is compiled, and compared with `tools()` later.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::granted::section_tool;
use crate::testing::TestRegistry;
use crate::{LoadReport, NotLoaded};

/// A component with this section, whose `tools()` returns these tools.
fn packed(tools: Value, section: Value) -> Vec<u8> {
    json!({"tools": tools, "section": section}).to_string().into_bytes()
}

fn section(tools: &[Value]) -> Value {
    json!({"form": 1, "tools": tools})
}

fn found(result: Result<LoadReport, NotLoaded>) -> Vec<(&'static str, String)> {
    match result {
        Err(NotLoaded::Rejected { findings, .. }) => {
            findings.iter().map(|finding| (finding.rule.as_str(), finding.to_string())).collect()
        }
        other => panic!("was not refused: {other:?}"),
    }
}

#[test]
fn a_section_is_checked_before_anything_is_compiled() {
    let world = TestRegistry::new();
    let mut tool = section_tool("pay");
    tool["description"] = "".into();
    let findings = found(world.load("pay", &packed(json!([{"name": "pay"}]), section(&[tool]))));
    assert_eq!(findings[0].0, "description");
    assert_eq!(world.fake.loads.load(Ordering::SeqCst), 0);
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 0);

    let lacking = json!({
        "imports": ["wasi:keyvalue/store@0.2.0-draft2"], "tools": [{"name": "pay"}],
        "section": section(&[section_tool("pay")]),
    });
    assert_eq!(found(world.load("pay", lacking.to_string().as_bytes()))[0].0, "import-not-granted");
    assert_eq!(world.fake.loads.load(Ordering::SeqCst), 0, "what is not granted is not run either");
}

#[test]
fn a_section_that_equals_the_tools_is_compared_once() {
    let world = TestRegistry::new();
    let bytes = packed(json!([{"name": "pay"}]), section(&[section_tool("pay")]));
    world.load("pay", &bytes).expect("loads");
    assert_eq!(world.tools(), ["pay"]);
    let again = TestRegistry::on(world.data, |_| {});
    again.load("pay", &bytes).expect("loads");
    assert_eq!(again.fake.loads.load(Ordering::SeqCst), 0, "it was asked before");
}

#[test]
fn every_difference_refuses_the_load() {
    let said = json!([{"name": "pay", "gated": false}, {"name": "read"}]);
    let tools = || [section_tool("pay"), section_tool("read")];
    let with = |field: &str, value: Value| {
        let mut tools = tools();
        tools[0][field] = value;
        section(&tools)
    };
    let remedy = "pack the component as it is with `toolgate pack`, and let `tools()` return a constant";
    for (section, expected) in [
        (
            with("approval", "requires-approval".into()),
            r#"tool pay: the section says `approval` is "requires-approval", `tools()` says "auto""#,
        ),
        (
            with("executor", "client".into()),
            r#"tool pay: the section says `executor` is "client", `tools()` says "server""#,
        ),
        (with("streaming", true.into()), r#"tool pay: the section says `streaming` is "true", `tools()` says "false""#),
        (
            with("options", r#"{"title":"Pay"}"#.into()),
            r#"tool pay: the section says `options` is "{\"title\":\"Pay\"}", `tools()` says "{}""#,
        ),
        (
            with("description", "Reads.".into()),
            r#"tool pay: the section says `description` is "Reads.", `tools()` says "Does something.""#,
        ),
        (section(&[section_tool("pay")]), "tool read: `tools()` has a tool that the section does not declare"),
        (
            section(&[section_tool("pay"), section_tool("read"), section_tool("write")]),
            "tool write: the section declares a tool that `tools()` does not have",
        ),
        (
            section(&[section_tool("read"), section_tool("pay")]),
            "the section and `tools()` have the same tools in another order or number",
        ),
    ] {
        let world = TestRegistry::new();
        let found = found(world.load("pay", &packed(said.clone(), section)));
        assert_eq!(found, [("declaration-differs", format!("{expected}; {remedy}"))]);
        assert!(world.tools().is_empty());
    }
}

#[test]
fn an_unreadable_section_refuses_the_load() {
    let subscribed_to = |wants: Value| json!({"form": 1, "tools": [section_tool("pay")], "wants": wants});
    let mut unknown = section_tool("pay");
    unknown["executor"] = "nobody".into();
    for (section, expected) in [
        (json!("not JSON"), "the component's declaration cannot be read"),
        (json!("{\"form\":1,\"form\":1,\"tools\":[]}"), "duplicate field"),
        (json!({"form": 1}), "missing field `tools`"),
        (json!({"form": 1, "tools": [], "more": 1}), "unknown field `more`"),
        (json!({"form": 2, "everything": "else"}), "has form 2, but this host reads form 1"),
        (section(&[unknown]), "names an executor or an approval that does not exist"),
        (section(&[json!({"name": "pay"})]), "missing field `description`"),
        (json!(2), "the component has 2 sections"),
        (subscribed_to(json!({"sockets": true})), "unknown field `sockets`"),
        (subscribed_to(json!({"http": [{"url": "gopher://a", "why": "a"}]})), "gopher://a"),
        (subscribed_to(json!({"http": [{"url": "https://a.example"}]})), "missing field `why`"),
        (subscribed_to(json!({"config": [{"name": "a", "why": ""}]})), "config: a has no `why`"),
    ] {
        let world = TestRegistry::new();
        let found = found(world.load("pay", &packed(json!([{"name": "pay"}]), section.clone())));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == "declaration-form" && found[0].1.contains(expected), "{section}: {found:?}");
        assert_eq!(world.fake.loads.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_missing_required_declaration_refuses_the_load() {
    let world = TestRegistry::with(|settings| settings.require_declaration = true);
    let found = found(world.load("pay", &packed(json!([{"name": "pay"}]), Value::Null)));
    assert_eq!(
        found,
        [(
            "declaration-missing",
            "the component has no declaration, and this host requires one; pack it with `toolgate pack FILE`"
                .to_owned()
        )]
    );
    assert_eq!(world.fake.loads.load(Ordering::SeqCst), 0);
    world.load("pay", &packed(json!([{"name": "pay"}]), section(&[section_tool("pay")]))).expect("loads");
}
