//! How plugins become live, are replaced and are unloaded.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dispatch::ports::Tools as _;
use domain::{Digest, Span, ToolName, gate::RuleEffect, tool::Approval};
use serde_json::json;
use toolgate_tests::clock::SimClock;

use crate::testing::{TestRegistry, component, one, plugin};
use crate::{GrantHolder, LoadReport, NotLoaded, OpenError, PluginSettings, Registry, RegistrySettings};

fn findings(result: Result<LoadReport, NotLoaded>) -> Vec<String> {
    match result {
        Err(NotLoaded::Rejected { findings, .. }) => findings.iter().map(ToString::to_string).collect(),
        other => panic!("was not refused: {other:?}"),
    }
}

#[test]
fn a_plugin_is_live_as_a_whole_or_not_at_all() {
    let world = TestRegistry::new();
    world.load("mail", &component(&[json!({"name": "send"}), json!({"name": "read"})])).expect("loads");
    assert_eq!(world.event(), "mail loaded [send, read]");
    assert_eq!(world.tools(), ["read", "send"]);

    let broken = component(&[json!({"name": "read"}), json!({"name": "delete", "description": ""})]);
    let expected = "tool delete: the description is empty; say what the tool does and when to use it";
    assert_eq!(findings(world.load("mail", &broken)), [expected]);
    assert_eq!(world.event(), format!("mail rejected {:?}", [expected]));
    assert_eq!(world.tools(), ["read", "send"], "what was live still is");
    let status = &world.registry.plugins()[0];
    assert!(
        status.live.is_some() && status.rejected.as_ref().is_some_and(|(digest, _)| *digest == Digest::of(&broken))
    );

    world.load("mail", &one("read")).expect("loads");
    assert_eq!(world.tools(), ["read"]);
    assert_eq!(world.registry.plugins()[0].rejected, None);
}

#[tokio::test]
async fn plugin_that_changes_keeps_no_instance() {
    let world = TestRegistry::new();
    let released = || std::mem::take(&mut *world.fake.released.lock().expect("unpoisoned"));
    world.load("mail", &one("read")).expect("loads");
    released();
    world.load("mail", &one("read")).expect("it is live");
    findings(world.load("mail", b"refused"));
    world.load("other", &one("write")).expect("loads");
    assert!(!released().contains(&plugin("mail")), "it has not changed");
    world.load("mail", &one("send")).expect("loads");
    assert_eq!(released(), [plugin("mail")]);
    assert!(world.registry.remove(plugin("mail")).await.expect("removed"));
    assert_eq!(released(), [plugin("mail")]);
}

#[test]
fn components_that_do_not_list_their_tools_are_refused() {
    let world = TestRegistry::new();
    assert_eq!(
        findings(world.load("a", b"\0asm")),
        ["the WebAssembly cannot be read: it ends too early; build it again"]
    );
    let crash = json!({"crash": "the guest trapped"}).to_string();
    assert_eq!(
        findings(world.load("a", crash.as_bytes())),
        ["the plugin did not list its tools: the guest trapped; let `catalog.tools` return a constant"]
    );
}

#[test]
fn missing_grants_are_found_with_all_other_faults() {
    let store = "wasi:keyvalue/store@0.2.0-draft2";
    let bytes = json!({"imports": [store], "tools": [{"name": "keep", "description": ""}]}).to_string();
    let world = TestRegistry::new();
    assert_eq!(
        findings(world.load("ledger", bytes.as_bytes())),
        [
            format!(
                "the component imports `wasi:keyvalue/store@0.2.0-draft2` (needs the grant `keyvalue`); grant it in \
                 toolgate.toml, under `[plugin.ledger]`: `component = \"{}\"`, `grants.keyvalue = true`; or do without it",
                Digest::of(&bytes)
            )
            .as_str(),
            "tool keep: the description is empty; say what the tool does and when to use it",
        ]
    );
    let foreign = json!({"imports": ["wasi:sockets/tcp@0.2.0"], "tools": []}).to_string();
    assert_eq!(
        findings(world.load("net", foreign.as_bytes())),
        [
            "the component imports `wasi:sockets/tcp@0.2.0` (no grant exists that allows it); remove this import: no grant can allow it"
        ]
    );

    let bytes = json!({"imports": [store], "tools": [{"name": "keep"}]}).to_string();
    let granting = TestRegistry::with(|settings| {
        let granted = granting_keyvalue();
        settings.plugins.insert(plugin("ledger"), granted);
    });
    granting.load("ledger", bytes.as_bytes()).expect("loads");
    findings(granting.load("other", bytes.as_bytes()));
}

#[test]
fn a_tools_name_belongs_to_one_live_plugin() {
    let world = TestRegistry::new();
    world.load("first", &one("search")).expect("loads");
    assert_eq!(
        findings(world.load("second", &one("search"))),
        ["tool search: the live plugin first has a tool of this name; rename the tool, or unload that plugin first"]
    );
    assert!(world.registry.shared.remove(&plugin("first"), None).expect("removes"));
    world.load("second", &one("search")).expect("loads");
}

#[test]
fn a_component_is_asked_once_and_a_restart_does_not_compile() {
    let world = TestRegistry::new();
    let bytes = one("echo");
    assert!(world.load("echo", &bytes).expect("loads").changed);
    assert!(!world.load("echo", &bytes).expect("is live").changed);
    world.load("echo", &one("other")).expect("loads");
    world.load("echo", &bytes).expect("loads");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2, "once for each digest");
    assert_eq!(world.fake.loads.load(Ordering::SeqCst), 2);

    let again = TestRegistry::on(world.data, |_| {});
    again.load("echo", &bytes).expect("loads");
    assert_eq!(again.fake.loads.load(Ordering::SeqCst), 0);
    assert_eq!(again.tools(), ["echo"]);
}

#[test]
fn changed_grants_are_checked_again() {
    let bytes = json!({"imports": ["wasi:keyvalue/store@0.2.0-draft2"], "tools": [{"name": "keep"}]}).to_string();
    let granted = granting_keyvalue();
    let world = TestRegistry::with(|settings| settings.plugins = [(plugin("ledger"), granted)].into());
    world.load("ledger", bytes.as_bytes()).expect("loads");
    let revoked = TestRegistry::on(world.data, |_| {});
    assert_eq!(findings(revoked.load("ledger", bytes.as_bytes())).len(), 1);
}

#[test]
fn components_are_kept_for_as_long_as_somebody_needs_them() {
    let world = TestRegistry::new();
    let (old, new) = (one("old"), one("new"));
    let (old_digest, new_digest) = (Digest::of(&old), Digest::of(&new));
    world.load("tool", &old).expect("loads");
    world.load("tool", &new).expect("loads");
    let collect = |in_use: &[Digest]| {
        let in_use: HashSet<_> = in_use.iter().copied().collect();
        world.registry.shared.collect(in_use).expect("collects")
    };
    assert_eq!(collect(&[]), 0, "it was live since the last time");
    assert_eq!(collect(&[old_digest]), 0, "a call is pinned to it");
    assert!(world.registry.pinned(&plugin("tool"), old_digest, "old").is_some());
    assert_eq!(collect(&[]), 1);
    assert!(world.registry.pinned(&plugin("tool"), old_digest, "old").is_none());
    assert!(world.registry.pinned(&plugin("tool"), new_digest, "new").is_some());
    let kept = world.fake.kept.lock().expect("unpoisoned").clone();
    assert_eq!(kept, HashSet::from([new_digest]), "compiled code goes with its component");
}

#[test]
fn a_compiler_that_panics_is_a_finding_about_the_component() {
    let world = TestRegistry::new();
    let bytes = json!({"compiler": "panics", "tools": []}).to_string();
    let expected = "the compiler crashed on it: it panicked; build it with another version or other settings";
    assert_eq!(findings(world.load("bomb", bytes.as_bytes())), [expected]);
    world.load("tool", &one("tool")).expect("the next one loads");
    assert_eq!(world.tools(), ["tool"]);
}

#[test]
fn a_waiting_call_finds_its_tool_without_its_plugin() {
    let world = TestRegistry::new();
    let digest = world.load("pay", &component(&[json!({"name": "pay", "gated": true})])).expect("loads").component;
    let again = TestRegistry::on(world.data, |_| {});
    assert!(again.tools().is_empty());
    let tool = again.registry.pinned(&plugin("pay"), digest, "pay").expect("is kept");
    assert_eq!(tool.tool.plugin, plugin("pay"));
    assert_eq!(tool.pinned.component, digest);
    assert!(again.registry.pinned(&plugin("pay"), digest, "other").is_none());
    assert!(again.registry.pinned(&plugin("pay"), Digest::of("unknown"), "pay").is_none());
    assert_eq!(again.fake.loads.load(Ordering::SeqCst), 0);
}

#[test]
fn a_call_is_pinned_to_declaration_and_policy() {
    let world = TestRegistry::with(|settings| {
        settings.rules = crate::testing::rules(&[("gated_*", RuleEffect::Ask), ("never_*", RuleEffect::Deny)]);
        settings.limits.time = Span::from_secs(10);
    });
    let tools = [
        json!({"name": "plain"}),
        json!({"name": "quick", "options": {"timeout_ms": 5}}),
        json!({"name": "slow", "options": {"timeout_ms": 3_600_000}}),
        json!({"name": "gated_run"}),
        json!({"name": "never_ask", "executor": "human"}),
        json!({"name": "locate", "executor": "client", "options": {"result": {"type":"array"}, "expires_ms": 7}}),
    ];
    let loaded = world.load("all", &component(&tools)).expect("loads");
    let notes = "tool slow: `timeout_ms` is 3600000, and the limit `limits.time_ms` of this plugin is 10000; each run ends \
        after 10000 ms";
    assert_eq!(loaded.notes.iter().map(ToString::to_string).collect::<Vec<_>>(), [notes]);
    assert_eq!(world.registry.plugins()[0].notes, loaded.notes);
    let live = |name: &str| world.registry.find(name).unwrap_or_else(|_| panic!("{name} is live"));
    assert_eq!(live("plain").pinned.timeout, Span::from_secs(10));
    assert_eq!(live("plain").pinned.wait, None);
    assert_eq!(live("quick").pinned.timeout, Span::from_millis(5));
    assert_eq!(live("slow").pinned.timeout, Span::from_secs(10));
    let gated = live("gated_run");
    assert_eq!((gated.effect, gated.tool.approval, gated.pinned.approval), {
        (RuleEffect::Ask, Approval::Auto, Approval::RequiresApproval)
    });
    assert_eq!(gated.pinned.wait.as_ref().map(|wait| wait.expires), Some(Span::from_secs(86_400)));
    assert_eq!((live("never_ask").effect, live("never_ask").pinned.approval), (RuleEffect::Deny, Approval::Auto));
    let wait = live("locate").pinned.wait.clone().expect("waits");
    assert_eq!(wait.expires, Span::from_millis(7));
    assert_eq!(wait.result_schema.expect("has a schema").as_str(), r#"{"type":"array"}"#);
}

#[test]
fn the_nearest_live_tool_is_offered() {
    let world = TestRegistry::new();
    world.load("mail", &component(&[json!({"name": "send_mail"}), json!({"name": "read_mail"})])).expect("loads");
    let near = |name: &str| world.registry.find(name).err().flatten();
    assert_eq!(near("send_email"), ToolName::new("send_mail").ok());
    assert_eq!(near("weather"), None);
}

#[test]
fn settings_that_contradict_themselves_open_nothing() {
    let data = tempfile::tempdir().expect("a folder");
    let mut settings = RegistrySettings::new(data.path());
    settings.default_expires = Span::ZERO;
    let fake = Arc::new(crate::testing::FakeSandbox::default());
    let opened = Registry::start(settings, fake, Arc::<SimClock>::default(), Arc::new(|_| {}), None);
    assert!(matches!(opened, Err(OpenError::Settings(findings)) if findings.len() == 1));
}

#[test]
fn two_hundred_known_plugins_restart_without_compiling() {
    let bytes: Vec<_> = (0..200).map(|n| one(&format!("tool_{n}"))).collect();
    let data = tempfile::tempdir().expect("a folder");
    let folder = data.path().join("plugins");
    std::fs::create_dir(&folder).expect("a folder");
    for (n, bytes) in bytes.iter().enumerate() {
        std::fs::write(folder.join(format!("p{n}.wasm")), bytes).expect("writes");
    }
    let first = TestRegistry::on(data, |settings| settings.folder = Some(settings.data.join("plugins")));
    assert_eq!(first.tools().len(), 200);
    let again = TestRegistry::on(first.data, |settings| settings.folder = Some(settings.data.join("plugins")));
    assert_eq!(again.tools().len(), 200);
    assert_eq!(again.fake.loads.load(Ordering::SeqCst), 0, "nothing is compiled before it is called");
}

fn granting_keyvalue() -> PluginSettings {
    let grants = capabilities::Grants {
        keyvalue: Some(capabilities::keyvalue::KeyValueQuota::default()),
        ..capabilities::Grants::default()
    };
    PluginSettings { grants: grants.into(), holder: GrantHolder::AnyComponent, limits: None }
}
