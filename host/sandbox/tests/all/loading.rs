//! Components that are refused before they run. The refusal names all errors.

use std::sync::Arc;

use capabilities::{Capabilities, Capability};
use domain::{CatalogLimits, Digest};
use toolgate_sandbox::{AbiVersion, ForeignImport, Job, LoadError, Sandbox, SandboxSettings};
use toolgate_tests::binary::{replaced, with_modules};
use toolgate_tests::wat::{Wat, guest};

use crate::world::{RUNTIME, job, load, outcome, sandbox, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

fn refusal(component: &[u8], grants: Capabilities) -> LoadError {
    sandbox().load(Digest::of(component), component, grants).expect_err("refused")
}

#[test]
fn kind_of_a_component_is_recognised() {
    let interface = Sandbox::inspect(&guest(ECHO)).expect("a plugin");
    assert_eq!(interface.imports, ["toolgate:plugin/host@0.1.2", "toolgate:plugin/tool-types@0.1.2"]);
    assert!(interface.exports.iter().any(|name| name == "toolgate:plugin/server@0.1.2"));
    assert_eq!((interface.speaks, interface.version.as_str()), (AbiVersion::V0_1, "0.1.2"));
    assert!(interface.has_server);
}

#[test]
fn every_foreign_import_is_named_with_its_missing_grant() {
    let component = Wat {
        body: ECHO,
        imports: r#"(import "wasi:http/outgoing-handler@0.2.3" "handle" (func))
          (import "wasi:keyvalue/store@0.2.0-draft2" "open" (func (param i32 i32 i32)))
          (import "evil:corp/steal@1.0.0" "all" (func))"#,
        world: "import wasi:http/outgoing-handler@0.2.3; import evil:corp/steal@1.0.0;
          import wasi:keyvalue/store@0.2.0-draft2;",
        packages: "package wasi:http@0.2.3 { interface outgoing-handler { handle: func(); } }
          package evil:corp@1.0.0 { interface steal { all: func(); } }",
        ..Wat::default()
    }
    .build();
    let LoadError::Imports(mut found) = refusal(&component, Capabilities::default()) else { panic!("another refusal") };
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let foreign = |name: &str, needs| ForeignImport { name: name.into(), needs };
    let expected = [
        foreign("evil:corp/steal@1.0.0", None),
        foreign("wasi:http/outgoing-handler@0.2.3", Some(Capability::Http)),
        foreign("wasi:keyvalue/store@0.2.0-draft2", Some(Capability::KeyValue)),
    ];
    assert_eq!(found, expected);
    let LoadError::Imports(found) = refusal(&component, Capabilities::of([Capability::KeyValue])) else {
        panic!("another refusal")
    };
    assert_eq!(found.len(), 2);
    let text = refusal(&component, Capabilities::default()).to_string();
    assert!(text.contains("(needs the grant `keyvalue`)") && text.contains("(no grant exists"), "{text}");
}

/// The same component with another interface version.
fn of_version(version: &str) -> Vec<u8> {
    replaced(guest(ECHO), "@0.1.2", &format!("@{version}"))
}

/// A component that checks for cancellation, with another interface version, in which that function has another name.
fn of_the_future(version: &str, function: &str) -> Vec<u8> {
    let imports = r#"(import "toolgate:plugin/host@0.1.2" "stop-requested" (func $stop (result i32)))"#;
    let component = Wat { body: &format!("(drop (call $stop)) {ECHO}"), imports, ..Wat::default() }.build();
    replaced(replaced(component, "@0.1.2", &format!("@{version}")), "stop-requested", function)
}

#[test]
fn unknown_version_is_refused_by_name() {
    for version in ["0.2.0", "1.0.0"] {
        let refusal = refusal(&of_version(version), Capabilities::default());
        assert!(matches!(&refusal, LoadError::Version { found, .. } if found == version), "{refusal}");
        let said = format!(
            "built against version {version} of toolgate:plugin; this host supports 0.1, up to 0.1.2: build it against 0.1.2, or \
             use a host that supports {version}"
        );
        assert_eq!(refusal.to_string(), said);
    }
}

#[test]
fn imports_of_a_newer_host_are_named() {
    assert_eq!(crate::world::value(outcome(&of_the_future("0.1.9", "stop-requested"))), "{}", "it uses nothing newer");
    let refused = refusal(&of_the_future("0.1.9", "stop-sometimes"), Capabilities::default());
    assert_eq!(
        refused.to_string(),
        "it needs `stop-sometimes` of the interface `host`, which this host does not have: it was built against version 0.1.9 \
         of toolgate:plugin, and this host has 0.1.2: use a newer host, or build it against 0.1.2"
    );
    // The name of an interface is read before compilation.
    let component = wat::parse_str(
        r#"(component
          (import "toolgate:plugin/timers@0.1.9" (instance))
          (import "toolgate:plugin/dreams@0.1.9" (instance))
          (core module $m (func (export "f")))
          (core instance $i (instantiate $m))
          (func $f (canon lift (core func $i "f")))
          (instance $catalog (export "tools" (func $f)))
          (export "toolgate:plugin/catalog@0.1.9" (instance $catalog)))"#,
    )
    .expect("text");
    let refused = Sandbox::inspect(&component).expect_err("refused").to_string();
    assert!(refused.starts_with("it needs the interface `timers`, the interface `dreams`, which"), "{refused}");
    // Imports count like exports.
    let mixed = replaced(guest(ECHO), "toolgate:plugin/host@0.1.2", "toolgate:plugin/host@0.2.1");
    assert!(matches!(refusal(&mixed, Capabilities::default()), LoadError::Version { found, .. } if found == "0.2.1"));
}

#[test]
fn an_unknown_package_is_refused_with_its_exports() {
    let refused = refusal(&replaced(guest(ECHO), "toolgate:plugin/", "othergate:plugi/"), Capabilities::default());
    assert!(matches!(refused, LoadError::NotAPlugin { .. }));
    let said = refused.to_string();
    let (what, exports) = said.split_once("; it exports ").expect("both");
    assert_eq!(
        what,
        "not a plugin: it does not export `toolgate:plugin/catalog@0.1.x`, as everything built against wit/ does"
    );
    for export in ["`othergate:plugi/catalog@0.1.2`", "`othergate:plugi/server@0.1.2`"] {
        assert!(exports.contains(export), "{exports}");
    }
}

#[test]
fn components_of_older_versions_still_run() {
    let ran = |version: &str, tool: &str| {
        let component = std::fs::read(format!("../../tests/fixtures/wit-{version}.wasm")).expect("it is kept");
        let interface = Sandbox::inspect(&component).expect("a plugin");
        assert_eq!((interface.version.as_str(), interface.speaks), (version, AbiVersion::V0_1));
        let plugin = load(&component);
        let job = Job { tool: tool.into(), ..job("old", r#"{"value":3}"#) };
        assert_eq!(value(RUNTIME.block_on(plugin.run(&job, &tight(), Arc::new(()))).ended), "3");
        let tools = RUNTIME.block_on(plugin.declarations(&CatalogLimits::default())).expect("its tools");
        tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(ran("0.1.0", "old_count"), ["old_count", "old_gated", "old_ask", "old_identity", "old_refuse"]);
    assert_eq!(ran("0.1.1", "stoppable_count"), ["stoppable_count"]);
}

#[test]
fn a_later_patch_of_the_same_version_runs() {
    assert_eq!(crate::world::value(outcome(&of_version("0.1.7"))), "{}");
}

#[test]
fn file_that_is_not_a_plugin_is_recognised() {
    let refuse = |bytes: &[u8]| refusal(bytes, Capabilities::default());
    for (bytes, expected) in [
        (&b""[..], "an empty file"),
        (b"#!/bin/sh\n", "a text"),
        (b"\x7fELF\x02\x01\x01", "a program or library for Linux"),
        (b"PK\x03\x04\x14", "a zip archive"),
        (b"(component)", "the text of a WebAssembly component"),
        (b"\0asn\x0d\0\x01\xff", "something unknown"),
    ] {
        let refused = refuse(bytes);
        assert!(matches!(refused, LoadError::NotWebAssembly(kind) if kind == expected), "{refused}");
        let said = format!("this is {expected} and not a WebAssembly component; run `toolgate build`");
        assert!(refused.to_string().starts_with(&said), "{refused}");
    }
    assert!(matches!(refuse(b"\0asm"), LoadError::Malformed(_)));
    assert!(matches!(refuse(&wat::parse_str("(module)").expect("text")), LoadError::Module));
    assert!(matches!(refuse(&wat::parse_str("(component)").expect("text")), LoadError::NotAPlugin { .. }));
    let whole = guest(ECHO);
    for end in (0..whole.len()).step_by(97) {
        let refused = refuse(&whole[..end]);
        assert!(!matches!(refused, LoadError::Host(_)), "cut at {end}: {refused}");
    }
}

#[test]
fn corrupt_bytes_are_refused_or_run_within_limits() {
    let whole = guest(ECHO);
    for at in (8..whole.len()).step_by(61) {
        let mut rotten = whole.clone();
        rotten[at] ^= 0x55;
        if let Ok(plugin) = sandbox().load(Digest::of(&rotten), &rotten, Capabilities::default()) {
            // Any outcome is allowed, but the call must end.
            let _ = crate::world::run(&plugin, &crate::world::tight());
        }
    }
}

#[test]
fn export_of_another_type_is_refused() {
    let component = wat::parse_str(
        r#"(component
          (core module $m (func (export "f")))
          (core instance $i (instantiate $m))
          (func $f (canon lift (core func $i "f")))
          (instance $catalog (export "tools" (func $f)))
          (export "toolgate:plugin/catalog@0.1.2" (instance $catalog)))"#,
    )
    .expect("text");
    let plugin = sandbox().load(Digest::of(&component), &component, Capabilities::default());
    // Its name is right, so it loads. The first call finds another type.
    let asked = crate::world::RUNTIME.block_on(plugin.expect("it links").declarations(&CatalogLimits::default()));
    assert!(asked.is_err());
}

#[test]
fn size_and_parts_of_components_are_limited() {
    let small =
        Sandbox::new(SandboxSettings { pool: 1, max_component: 1000, ..SandboxSettings::default() }).expect("a pool");
    let component = guest(ECHO);
    let refused = small.load(Digest::of(&component), &component, Capabilities::default());
    assert!(matches!(refused, Err(LoadError::TooLarge { max: 1000, .. })));
    for (module, count, says) in [
        ("(module)", 70, "it has more than 64 core instances (limit `compile.core_instances`)"),
        ("(module (memory 1))", 10, "it has more than 4 linear memories (limit `compile.memories`)"),
        ("(module (table 1 funcref))", 10, "it has more than 8 tables (limit `compile.tables`)"),
    ] {
        let refused = refusal(&with_modules(guest(ECHO), &vec![module; count]), Capabilities::default());
        assert!(matches!(refused, LoadError::Parts(_)) && refused.to_string() == says, "{refused}");
    }
}

#[test]
fn machine_dependent_features_do_not_compile() {
    let relaxed =
        "(drop (i32x4.extract_lane 0 (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0)))) (i32.const 0)";
    assert!(matches!(refusal(&guest(relaxed), Capabilities::default()), LoadError::Compile(_)));
}

#[test]
fn a_flood_of_imports_is_refused_before_it_is_listed() {
    let imports: String = (0..2_000).map(|n| format!("(import \"a:b/c{n}@1.0.0\" (instance))")).collect();
    let component = wat::parse_str(format!("(component {imports})")).expect("text");
    assert!(matches!(refusal(&component, Capabilities::default()), LoadError::Malformed(_)));
}
