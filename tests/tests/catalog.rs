//! Limits on the declaration and on the parts of a plugin. For each there is a component that reaches it, a message that names its
//! key, and a larger value of that key with which the component loads.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use domain::CatalogLimits;
use serde_json::{Value, json};
use toolgate_tests::binary::with_modules;
use toolgate_tests::guests::{fixture, with_section};
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::wat::{Wat, guest};

/// A component that reaches a limit.
struct Hit {
    component: Vec<u8>,
    /// A value that it exceeds.
    exceeded: u64,
    /// A value with which it loads. `None` for a component that never loads.
    enough: Option<u64>,
    /// More lines of the configuration that it needs to load.
    also: &'static str,
}

fn hit(component: Vec<u8>, exceeded: u64, enough: u64) -> Hit {
    Hit { component, exceeded, enough: Some(enough), also: "" }
}

/// Checks the component with both values of a key, such as `catalog.tools`.
fn check(host: &Host, key: &str, Hit { component, exceeded, enough, also }: &Hit) {
    fs::write(host.folder().join("it.wasm"), component).unwrap();
    let said = |value: u64, also: &str| -> (Said, Value) {
        let text = format!("{key} = {value}\n{also}\n");
        fs::write(host.folder().join("limits.toml"), text).unwrap();
        let said = host.cli(None, &["check", "it.wasm", "--json", "--config", "limits.toml"]);
        let report = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{key}: {said:?}"));
        (said, report)
    };
    let (refused, report) = said(*exceeded, "");
    let message = report["findings"][0]["message"].as_str().unwrap_or_default();
    assert_eq!(refused.code, 1, "{key} = {exceeded}: {report:#}");
    assert!(message.contains(&format!("(limit `{key}`)")), "{key} = {exceeded}: {report:#}");
    if let Some(enough) = enough {
        let (passed, report) = said(*enough, also);
        assert_eq!(passed.code, 0, "{key} = {enough}: {report:#}");
    }
}

/// A row for each limit. The macro destructures `CatalogLimits` with them, so a limit without a row does not compile.
macro_rules! every_limit {
    ($($field:ident: $key:literal => $hit:expr),+ $(,)?) => {{
        let CatalogLimits { $($field: _),+ } = CatalogLimits::default();
        [$((concat!("catalog.", $key), $hit)),+]
    }};
}

/// A plugin without tools that makes 300 handles when it is asked for them.
fn handles() -> Vec<u8> {
    let packages = "package wasi:io@0.2.0 { interface poll { resource pollable; } }
      package wasi:clocks@0.2.0 { interface monotonic-clock {
        use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; } }";
    let tools = "(local $n i32)
      (loop $again
        (drop (call $wait (i64.const 1)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 300))))
      (i32.const 64)";
    let imports =
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))"#;
    let world = "import wasi:clocks/monotonic-clock@0.2.0;";
    Wat { body: "(unreachable)", tools, imports, world, packages, ..Wat::default() }.build()
}

#[test]
fn every_catalog_limit_has_a_plugin_that_hits_it() {
    let host = Setup::default().prepare();
    let tool = |tool: Value| fixture(&json!([tool]));
    let with_handles = |exceeded, enough| Hit { also: "catalog.handles = 1000", ..hit(handles(), exceeded, enough) };
    let rows = every_limit! {
        tools: "tools" => hit(fixture(&json!([{"name": "a"}, {"name": "b"}])), 1, 2),
        declaration: "declaration_bytes" => hit(tool(json!({"description_bytes": 5_000})), 4_000, 8_000),
        description: "description_bytes" => hit(tool(json!({"description_bytes": 9_000})), 8_999, 9_000),
        schema: "schema_bytes" => hit(tool(json!({"parameters_bytes": 70_000})), 65_536, 71_000),
        options: "options_bytes" => hit(tool(json!({"options": {"title": "x".repeat(100)}})), 100, 200),
        time: "time_ms" => Hit { enough: None, ..hit(fixture(&json!("spin")), 100, 0) },
        memory: "memory_bytes" => hit(tool(json!({})), 65_536, 64 << 20),
        table_elements: "table_elements" => hit(tool(json!({})), 1, 20_000),
        instances: "instances" => hit(with_modules(guest("(unreachable)"), &["(module)"; 20]), 20, 64),
        handles: "handles" => hit(handles(), 299, 1_000),
        host_bytes: "host_bytes" => with_handles(1_000, 1 << 20),
        host_calls: "host_calls" => with_handles(100, 400),
    };
    for (key, hit) in &rows {
        check(&host, key, hit);
    }
}

#[test]
fn packed_declaration_has_the_same_limit() {
    let host = Setup::default().prepare();
    let padded = with_section(&fixture(&json!([{}])), &" ".repeat(5_000));
    let hit = Hit { enough: None, ..hit(padded, 4_999, 0) };
    check(&host, "catalog.declaration_bytes", &hit);
}

#[test]
fn every_limit_on_parts_has_a_component_that_hits_it() {
    let host = Setup::default().prepare();
    let with = |module: &str, count| with_modules(guest("(unreachable)"), &vec![module; count]);
    for (key, hit) in [
        ("compile.core_instances", Hit { also: "catalog.instances = 80", ..hit(with("(module)", 70), 64, 80) }),
        ("compile.memories", hit(with("(module (memory 1))", 5), 4, 10)),
        ("compile.tables", hit(with("(module (table 1 funcref))", 9), 8, 20)),
    ] {
        check(&host, key, &hit);
    }
}

/// A declared time above the operator's limit keeps no plugin from loading. Everything that shows the plugin says which time holds.
#[test]
fn timeout_above_the_limit_is_noted() {
    let component = fixture(&json!([{"name": "slow", "options": {"timeout_ms": 3_600_000}}, {"name": "quick"}]));
    let host = Setup::default().component("it", component).settings("limits.time_ms = 2500").start();
    let message =
        "`timeout_ms` is 3600000, and the limit `limits.time_ms` of this plugin is 2500; each run ends after 2500 ms";
    let notes = json!([{"tool": "slow", "message": message}]);
    let listed = host.admin.get("/v1/plugins").ok(200);
    assert_eq!(
        (&listed["plugins"][0]["notes"], &listed["plugins"][0]["state"]),
        (&notes, &json!("live")),
        "{listed:#}"
    );
    let said = host.cli(None, &["check", "plugins/it.wasm", "--json", "--config", "toolgate.toml"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &report["notes"], &report["ok"]), (0, &notes, &json!(true)), "{report:#}");
    let said = host.cli(None, &["check", "plugins/it.wasm", "--config", "toolgate.toml"]);
    assert!(said.out.ends_with(&format!("\n  note: tool slow: {message}\n")), "{said:?}");
    let said = host.cli(None, &["conform", "plugins/it.wasm", "--json", "--config", "toolgate.toml", "--seconds", "5"]);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(report["requirements"][0]["note"], json!(format!("tool slow: {message}")), "{report:#}");
}
