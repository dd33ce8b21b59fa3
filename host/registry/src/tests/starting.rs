//! The start: the registry is open before the plugins of its folder are loaded.

use std::collections::HashSet;
use std::fs;
use std::sync::mpsc::{Sender, channel};

use dispatch::ports::Tools;
use domain::Digest;
use futures::FutureExt as _;
use serde_json::json;
use tempfile::TempDir;

use super::running::{ok, run};
use crate::RegistrySettings;
use crate::testing::{FakeSandbox, TestRegistry, one, plugin};

fn watching(settings: &mut RegistrySettings) {
    settings.folder = Some(settings.data.join("plugins"));
}

/// A world whose folder has the plugins `a` and `b`. The load of `a` ends when the sender is dropped.
fn held(data: TempDir) -> (TestRegistry, Sender<()>) {
    let folder = data.path().join("plugins");
    fs::create_dir_all(&folder).expect("creates");
    fs::write(folder.join("a.wasm"), json!({"held": true, "tools": [{"name": "first"}]}).to_string()).expect("writes");
    fs::write(folder.join("b.wasm"), one("echo")).expect("writes");
    let (release, gate) = channel();
    let fake = FakeSandbox { gate: Some(gate).into(), ..FakeSandbox::default() };
    (TestRegistry::starting(data, fake, watching), release)
}

#[test]
fn plugins_are_loading_until_they_are_live() {
    let (world, release) = held(tempfile::tempdir().expect("a folder"));
    let registry = world.registry.clone();
    assert!(registry.is_starting());
    assert_eq!(registry.loading(), [plugin("a"), plugin("b")]);
    assert_eq!(Tools::loading(&registry), 2);
    assert!(registry.plugins().iter().all(|plugin| plugin.loading && plugin.live.is_none()));
    drop(release);
    world.wait();
    assert_eq!([world.event(), world.event()], ["a loaded [first]", "b loaded [echo]"]);
    assert_eq!(world.tools(), ["echo", "first"]);
    assert!(!registry.is_starting() && registry.loading().is_empty());
    assert_eq!(Tools::loading(&registry), 0);
}

#[test]
fn a_live_plugin_that_is_replaced_is_not_missing() {
    let world = TestRegistry::new();
    world.load("mail", &one("send")).expect("loads");
    let _replacing = world.registry.shared.in_progress(&plugin("mail"));
    assert_eq!(world.registry.loading(), [plugin("mail")]);
    assert_eq!(Tools::loading(&world.registry), 0, "its tools are known");
    let _new = world.registry.shared.in_progress(&plugin("new"));
    assert_eq!(Tools::loading(&world.registry), 1);
}

#[test]
fn a_start_ends_also_if_a_plugin_is_refused() {
    let data = tempfile::tempdir().expect("a folder");
    let folder = data.path().join("plugins");
    fs::create_dir_all(&folder).expect("creates");
    fs::write(folder.join("bad.wasm"), "half a compo").expect("writes");
    fs::write(folder.join("my tool.wasm"), one("mine")).expect("writes");
    let world = TestRegistry::on(data, watching);
    assert!(world.registry.loading().is_empty() && !world.registry.is_starting());
    assert!(world.registry.plugins().iter().all(|plugin| plugin.rejected.is_some()));
}

#[tokio::test]
async fn a_waiting_call_runs_before_its_plugin_is_live_again() {
    let (before, _) = held(tempfile::tempdir().expect("a folder"));
    before.registry.loaded().await;
    let call = run(&before, "echo", "1");
    // Without its record, the component of `a` is compiled again.
    let component = before.registry.find("first").unwrap_or_else(|_| panic!("it is live")).pinned.component;
    let record = before.data.path().join(format!("components/{}.json", component.hex()));
    fs::remove_file(record).expect("removes");
    let (again, release) = held(before.data);
    assert!(again.tools().is_empty());
    assert_eq!(again.registry.run(call).await, ok("1"), "it runs the component that it is pinned to");
    drop(release);
}

#[test]
fn nothing_is_removed_before_the_start_has_ended() {
    let (world, release) = held(tempfile::tempdir().expect("a folder"));
    let bytes = one("echo");
    world.registry.shared.components.keep(Digest::of(&bytes), &bytes).expect("writes");
    // A collection needs a runtime, which the test makes below.
    assert!(world.registry.collect(HashSet::new()).now_or_never().is_none(), "it waits");
    drop(release);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(runtime.block_on(world.registry.collect(HashSet::new())).expect("collects"), 0);
    assert_eq!(world.tools(), ["echo", "first"]);
}
