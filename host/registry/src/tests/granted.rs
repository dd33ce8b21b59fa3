//! Grants are for a component by digest, not only by name, and a manifest only narrows them.

use std::sync::Arc;

use capabilities::Grants;
use capabilities::calls::ToolPattern;
use capabilities::keyvalue::KeyValueQuota;
use dispatch::ports::Tools as _;
use domain::Digest;
use serde_json::{Value, json};

use crate::testing::{TestRegistry, plugin};
use crate::{GrantHolder, LoadReport, NotLoaded, PluginSettings};

const STORE: &str = "wasi:keyvalue/store@0.2.0-draft2";
const HTTP: &str = "wasi:http/outgoing-handler@0.2.3";

/// A component with these imports, and with this manifest in its section.
fn component(tool: &str, imports: &[&str], wants: Option<Value>) -> Vec<u8> {
    let mut component = json!({"imports": imports, "tools": [{"name": tool}]});
    if let Some(wants) = wants {
        component["section"] = json!({"form": 1, "tools": [section_tool(tool)], "wants": wants});
    }
    component.to_string().into_bytes()
}

/// A tool in a section that equals the one of the fake guest.
pub(crate) fn section_tool(name: &str) -> Value {
    let declared = crate::testing::declared(&json!({ "name": name }));
    json!({
        "name": declared.name, "description": declared.description, "parameters": declared.parameters,
        "executor": "server", "approval": "auto", "streaming": false, "options": declared.options,
    })
}

fn granting(holder: GrantHolder) -> PluginSettings {
    let grants = Grants { keyvalue: Some(KeyValueQuota { bytes: 100, keys: 10 }), ..Grants::default() };
    PluginSettings { grants: Arc::new(grants), holder, limits: None }
}

fn world(holder: GrantHolder) -> TestRegistry {
    TestRegistry::with(|settings| drop(settings.plugins.insert(plugin("ledger"), granting(holder))))
}

fn only(bytes: &[u8]) -> GrantHolder {
    GrantHolder::Components([Digest::of(bytes)].into())
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
fn a_changed_component_has_no_grants_until_review() {
    let (old, new) = (component("keep", &[STORE], None), component("keep", &[STORE, STORE], None));
    let world = world(only(&old));
    world.load("ledger", &old).expect("loads");
    let expected = format!(
        "the grants of the plugin ledger are for {}, and this component is {new}; review it with `toolgate grants \
         ledger`, then write `component = \"{new}\"` under `[plugin.ledger]`, or `component = \"any\"` to grant it to \
         any component of that name",
        Digest::of(&old),
        new = Digest::of(&new),
    );
    assert_eq!(found(world.load("ledger", &new)), [("needs-review", expected)]);
    assert_eq!(world.tools(), ["keep"], "what was live still is");
    let status = &world.registry.plugins()[0];
    assert_eq!(status.live.as_ref().map(|(digest, _)| *digest), Some(Digest::of(&old)));
    assert!(status.access.as_ref().is_some_and(|access| access.effective.keyvalue.is_some()));

    // A component that needs none of the grants is loaded, without any of them.
    let plain = component("keep", &[], None);
    world.load("ledger", &plain).expect("loads");
    let component = world.registry.shared.component(&plugin("ledger"), Digest::of(&plain)).expect("is live");
    assert_eq!(*component.grants, Grants::default());
}

#[test]
fn grants_may_follow_the_name_or_be_for_several() {
    let (one, other) = (component("keep", &[STORE], None), component("other", &[STORE], None));
    for holder in [GrantHolder::AnyComponent, GrantHolder::Components([Digest::of(&one), Digest::of(&other)].into())] {
        let world = world(holder);
        world.load("ledger", &one).expect("loads");
        world.load("ledger", &other).expect("loads");
        assert!(found(world.load("stranger", &one)).iter().all(|(rule, _)| *rule == "import-not-granted"));
    }
}

#[test]
fn folders_need_a_review_of_a_changed_component() {
    let world = TestRegistry::with(|settings| {
        let handle = capabilities::filesystem::FolderHandle::default();
        let folder = capabilities::filesystem::Folder { path: "/srv".into(), at: "/data".into(), write: false, handle };
        let grants = Grants { folders: vec![folder], ..Grants::default() };
        let holder = GrantHolder::Components([Digest::of("another")].into());
        settings.plugins.insert(plugin("ledger"), PluginSettings { grants: grants.into(), holder, limits: None });
    });
    let asks = component("keep", &["wasi:filesystem/preopens@0.2.3"], None);
    assert_eq!(found(world.load("ledger", &asks))[0].0, "needs-review");
    world.load("ledger", &component("keep", &[], None)).expect("loads");
    // A manifest without folders shows that only the toolchain added the import.
    let wants_none = component("keep", &["wasi:filesystem/preopens@0.2.3"], Some(json!({})));
    world.load("ledger", &wants_none).expect("loads");
}

#[test]
fn a_manifest_narrows_what_is_granted_and_widens_nothing() {
    let world = world(GrantHolder::AnyComponent);
    let wants = |wants: Value| component("keep", &[STORE], Some(wants));
    let grants = |bytes: &[u8]| {
        let loaded = world.load("ledger", bytes).expect("loads");
        (*world.registry.shared.component(&plugin("ledger"), loaded.component).expect("is live").grants).clone()
    };
    let quota = |bytes, keys| Grants { keyvalue: Some(KeyValueQuota { bytes, keys }), ..Grants::default() };
    assert_eq!(grants(&wants(json!({"keyvalue": {"bytes": 7, "why": "to keep"}}))), quota(7, 10));
    let wide = json!({
        "keyvalue": {"bytes": 1_000_000, "keys": 1_000_000, "why": "more"},
        "http": [{"url": "https://*.example/", "why": "everything"}],
        "config": [{"name": "region", "why": "a"}],
        "folders": [{"at": "/etc", "write": true, "why": "a"}],
        "secrets": [{"name": "token", "hosts": ["evil.example"], "places": ["query:key"], "why": "a"}],
    });
    assert_eq!(grants(&wants(wide)), quota(100, 10));

    let found = found(world.load("ledger", &wants(json!({}))));
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("request `keyvalue` in the plugin's manifest"), "{found:?}");
}

#[test]
fn missing_grants_are_named_with_their_lines() {
    let world = TestRegistry::new();
    let wants = json!({
        "http": [{"url": "https://api.example/v1/", "methods": ["POST"], "why": "to post"}],
        "secrets": [{"name": "api.token", "hosts": ["api.example"], "places": ["header:authorization"], "why": "a"}],
    });
    let bytes = component("post", &[HTTP, "wasi:config/store@0.2.0-rc.1"], Some(wants));
    let found: Vec<_> = found(world.load("poster", &bytes)).into_iter().map(|(_, text)| text).collect();
    let component = Digest::of(&bytes);
    assert_eq!(
        found,
        [
            format!(
                "the component imports `{HTTP}` (needs the grant `http`); grant it in toolgate.toml, under \
                 `[plugin.poster]`: `component = \"{component}\"`, `grants.http = [{{ url = \"https://api.example/v1/\", \
                 methods = [\"POST\"] }}]`; or do without it"
            ),
            format!(
                "the component imports `wasi:config/store@0.2.0-rc.1` (needs the grant `config`); grant it in \
                 toolgate.toml, under `[plugin.poster]`: `component = \"{component}\"`, `grants.secrets.\"api.token\" = {{ \
                 env = \"API_TOKEN\", hosts = [\"api.example\"], places = [\"header:authorization\"] }}`; or do without it"
            ),
        ]
    );
}

#[test]
fn a_waiting_call_keeps_its_manifest_after_a_restart() {
    let wants = json!({"keyvalue": {"bytes": 7, "why": "to keep"}});
    let bytes = component("keep", &[STORE], Some(wants));
    let world = world(only(&bytes));
    let digest = world.load("ledger", &bytes).expect("loads").component;
    let again = |holder| {
        move |settings: &mut crate::RegistrySettings| drop(settings.plugins.insert(plugin("ledger"), granting(holder)))
    };
    let restarted = TestRegistry::on(world.data, again(only(&bytes)));
    assert!(restarted.registry.pinned(&plugin("ledger"), digest, "keep").is_some());
    let pinned = restarted.registry.shared.component(&plugin("ledger"), digest).expect("is known");
    assert_eq!(pinned.grants.keyvalue, Some(KeyValueQuota { bytes: 7, keys: 10 }));
    // An operator who revokes a grant revokes it for the waiting calls too.
    let revoked = TestRegistry::on(restarted.data, again(GrantHolder::default()));
    let pinned = revoked.registry.shared.component(&plugin("ledger"), digest).expect("is known");
    assert_eq!(*pinned.grants, Grants::default());
}

#[test]
fn a_waiting_call_keeps_the_grants_of_its_own_plugin() {
    let bytes = component("keep", &[STORE], None);
    let world = world(GrantHolder::AnyComponent);
    let digest = world.load("ledger", &bytes).expect("loads").component;
    let wide = Grants { keyvalue: Some(KeyValueQuota { bytes: 1_000_000, keys: 1_000 }), ..Grants::default() };
    let twice = move |settings: &mut crate::RegistrySettings| {
        drop(settings.plugins.insert(plugin("ledger"), granting(GrantHolder::AnyComponent)));
        let wide = PluginSettings { grants: wide.clone().into(), holder: GrantHolder::AnyComponent, limits: None };
        drop(settings.plugins.insert(plugin("archive"), wide));
    };
    let quota = |world: &TestRegistry, name: &str| {
        let component = world.registry.shared.component(&plugin(name), digest).expect("is known");
        assert_eq!(component.plugin, plugin(name));
        component.grants.keyvalue.map(|quota| quota.bytes)
    };
    let again = TestRegistry::on(world.data, twice.clone());
    // Only the second plugin is live now, with the same tools.
    again.load("archive", &bytes).expect("loads");
    assert_eq!((quota(&again, "archive"), quota(&again, "ledger")), (Some(1_000_000), Some(100)));
    // The same after a restart, although the record on disk names the plugin that was loaded last.
    let restarted = TestRegistry::on(again.data, twice);
    assert_eq!((quota(&restarted, "ledger"), quota(&restarted, "archive")), (Some(100), Some(1_000_000)));
}

#[tokio::test]
async fn call_without_its_grant_is_refused_with_the_key() {
    let bytes = component("roll_out", &[], None);
    let any = || GrantHolder::AnyComponent;
    for (calls, holder, is_granted) in [
        ("ledger_*", any(), true),
        ("ledger_post", only(&bytes), true),
        ("ledger_read", any(), false),
        ("ledger_*", only(b"another component"), false),
    ] {
        let calls = vec![ToolPattern::try_from(calls.to_owned()).expect("a pattern")];
        let grants = Arc::new(Grants { calls, ..Grants::default() });
        let settings = PluginSettings { grants, holder, limits: None };
        let world = TestRegistry::with(|all| drop(all.plugins.insert(plugin("rollout"), settings)));
        world.load("rollout", &bytes).expect("loads");
        let tool = world.registry.find("roll_out").expect("it is live");
        let refusal = world.registry.call_refusal(&tool.pinned, "ledger_post").await.expect("it is known");
        assert_eq!(refusal.is_none(), is_granted, "{refusal:?}");
        if let Some(text) = refusal {
            assert_eq!(
                text,
                "the plugin rollout may not call \"ledger_post\": its manifest must request the tool under `wants.calls`, and \
                 the operator must grant it to this component with `grants.calls = [\"ledger_post\"]` in the plugin's table of \
                 toolgate.toml"
            );
        }
    }
}
