//! The watched folder. Nothing here sleeps: each test waits for the event that it expects.

use std::fs;

use crate::testing::{TestRegistry, component, one, plugin};

/// Puts a complete file into the folder.
fn place(world: &TestRegistry, name: &str, bytes: impl AsRef<[u8]>) {
    let aside = world.folder.join(format!("{name}.part"));
    fs::write(&aside, bytes).expect("writes");
    fs::rename(&aside, world.folder.join(format!("{name}.wasm"))).expect("renames");
}

#[test]
fn files_are_loaded_replaced_and_unloaded() {
    let world = TestRegistry::watching();
    place(&world, "mail", one("send"));
    assert_eq!(world.event(), "mail loaded [send]");
    place(&world, "mail", one("send_mail"));
    assert_eq!(world.event(), "mail loaded [send_mail]");
    place(&world, "mail", "half a compo");
    assert!(world.event().starts_with("mail rejected"));
    assert_eq!(world.tools(), ["send_mail"], "a broken replacement unseats nothing");
    fs::remove_file(world.folder.join("mail.wasm")).expect("removes");
    assert_eq!(world.event(), "mail unloaded");
    assert!(world.tools().is_empty());
}

#[test]
fn a_file_that_is_written_in_place_is_loaded() {
    let world = TestRegistry::watching();
    fs::write(world.folder.join("plain.wasm"), one("plain")).expect("writes");
    let mut event = world.event();
    // On a busy machine the writer can pause between creating the file and filling it, longer than the settling time.
    if event.starts_with("plain rejected") {
        event = world.event();
    }
    assert_eq!(event, "plain loaded [plain]");
}

#[test]
fn a_plugin_under_a_new_name_finds_its_tools_free() {
    let world = TestRegistry::watching();
    place(&world, "b", one("search"));
    assert_eq!(world.event(), "b loaded [search]");
    fs::rename(world.folder.join("b.wasm"), world.folder.join("a.wasm")).expect("renames");
    let mut events = [world.event(), world.event()];
    events.sort();
    assert_eq!(events, ["a loaded [search]", "b unloaded"]);
}

#[test]
fn a_plugin_whose_tools_were_taken_is_loaded_once_they_are_free() {
    let world = TestRegistry::watching();
    place(&world, "first", one("search"));
    assert_eq!(world.event(), "first loaded [search]");
    place(&world, "second", one("search"));
    assert!(world.event().starts_with("second rejected"));
    place(&world, "first", one("other"));
    assert_eq!(world.event(), "first loaded [other]");
    assert_eq!(world.event(), "second loaded [search]");
}

#[test]
fn file_with_an_invalid_name_has_a_finding_of_its_own() {
    let world = TestRegistry::watching();
    fs::write(world.folder.join("notes.txt"), "not looked at").expect("writes");
    fs::create_dir(world.folder.join("folder.wasm")).expect("creates");
    place(&world, "my tool", one("mine"));
    // The plugin with the nearest name has other findings.
    place(&world, "my-tool", "half a compo");
    assert!(world.event().starts_with("my-tool rejected"));
    let misnamed: Vec<_> = world.registry.misnamed().into_iter().collect();
    let [(path, finding)] = misnamed.as_slice() else { panic!("{misnamed:?}") };
    assert!(path.ends_with("my tool.wasm"), "{path:?}");
    assert!(finding.to_string().ends_with("rename the file, for example to my-tool.wasm"), "{finding}");
    assert_eq!(world.registry.plugins().len(), 1);
    assert!(world.is_quiet());
}

#[test]
#[cfg(target_os = "linux")]
fn pipe_in_the_folder_keeps_no_plugin_waiting() {
    let world = TestRegistry::watching();
    let pipe = world.folder.join("a.wasm");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).expect("creates");
    place(&world, "good", one("search"));
    assert_eq!(world.event(), "good loaded [search]");
    // The file may become a pipe after the scan.
    let finding = crate::read_component(&pipe).expect_err("is refused");
    assert!(finding.to_string().contains("not a regular file"), "{finding}");
}

#[test]
fn a_put_plugin_is_live_and_in_the_folder() {
    let world = TestRegistry::watching();
    let put = |bytes: &[u8]| world.registry.shared.load(&plugin("put"), bytes, Some(&world.folder));
    put(&one("first")).expect("loads");
    assert_eq!(world.event(), "put loaded [first]");
    assert_eq!(fs::read(world.folder.join("put.wasm")).expect("reads"), one("first"));

    put(&component(&[serde_json::json!({"name": "a b"})])).expect_err("is refused");
    assert!(world.event().starts_with("put rejected"));
    assert_eq!(fs::read(world.folder.join("put.wasm")).expect("reads"), one("first"));
    assert_eq!(world.tools(), ["first"]);

    assert!(world.registry.shared.remove(&plugin("put"), Some(&world.folder)).expect("removes"));
    assert_eq!(world.event(), "put unloaded");
    assert!(!world.folder.join("put.wasm").exists());
    assert!(!world.registry.shared.remove(&plugin("put"), Some(&world.folder)).expect("removes"));
}

#[test]
fn a_removal_does_not_wait_for_a_compilation() {
    let world = TestRegistry::watching();
    world.registry.shared.load(&plugin("bad"), &one("steal"), Some(&world.folder)).expect("loads");
    assert_eq!(world.event(), "bad loaded [steal]");
    let compiling = world.registry.shared.loading();
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| world.registry.shared.remove(&plugin("bad"), Some(&world.folder)));
        assert_eq!(world.event(), "bad unloaded");
        assert!(world.tools().is_empty() && !world.folder.join("bad.wasm").exists());
        drop(compiling);
        assert!(removing.join().expect("no panic").expect("removes"));
    });
}

#[test]
fn plugin_is_listed_as_loading_while_it_waits_for_the_lock() {
    let world = TestRegistry::watching();
    let (sender, seen) = std::sync::mpsc::channel();
    let shared = world.registry.shared.clone();
    let look = move || sender.send(shared.names_in_progress()).expect("it is awaited");
    *world.registry.shared.meanwhile.lock().expect("no panic") = Some(Box::new(look));
    world.registry.shared.load(&plugin("slow"), &one("tool"), None).expect("loads");
    assert_eq!(seen.recv().expect("it looked"), [plugin("slow")].into());
    assert!(world.registry.loading().is_empty());
}
