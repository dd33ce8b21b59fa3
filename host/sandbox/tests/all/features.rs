//! Every proposal of `docs/engine-features.md`, with a module or a component that uses it. It loads if the proposal is
//! on, and is refused if it is off.

use std::collections::BTreeSet;

use capabilities::Capabilities;
use domain::Digest;
use toolgate_sandbox::LoadError;
use toolgate_tests::binary::with_section;
use toolgate_tests::wat::guest;

use crate::world::sandbox;

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// A use of each proposal as text. The few without a text form are bytes.
const USES: &[(&str, &str)] = &[
    ("mutable-globals", r#"(module (global (export "g") (mut i32) (i32.const 0)))"#),
    ("saturating-float-to-int", "(module (func (drop (i32.trunc_sat_f32_s (f32.const 0)))))"),
    ("sign-extension", "(module (func (drop (i32.extend8_s (i32.const 0)))))"),
    ("multi-value", "(module (func (result i32 i32) (i32.const 0) (i32.const 0)))"),
    ("bulk-memory", "(module (memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))))"),
    ("reference-types", "(module (table 1 funcref) (func (drop (table.get 0 (i32.const 0)))))"),
    ("floats", "(module (func (drop (f64.const 0))))"),
    ("simd", "(module (func (drop (i32x4.splat (i32.const 0)))))"),
    ("extended-const", "(module (global i32 (i32.add (i32.const 1) (i32.const 2))))"),
    ("component-model", "(component)"),
    ("relaxed-simd", "(module (func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0)))))"),
    ("tail-call", "(module (func $f (return_call $f)))"),
    ("multi-memory", r#"(module (import "" "a" (memory 1)) (import "" "b" (memory 1)))"#),
    ("memory64", "(module (memory i64 1))"),
    ("custom-page-sizes", "(module (memory 1 (pagesize 1)))"),
    ("memory-control", "(module (memory 1) (func (memory.discard (i32.const 0) (i32.const 0))))"),
    ("threads", "(module (memory 1 1 shared))"),
    ("shared-everything-threads", "(module (type (shared (func))))"),
    ("function-references", "(module (type $t (func)) (func (param (ref $t)) (call_ref $t (local.get 0))))"),
    ("gc", "(module (type (struct (field i32))))"),
    ("gc-types", "(module (func (param externref)))"),
    ("custom-descriptors", "(module (rec (type $a (descriptor $b) (struct)) (type $b (describes $a) (struct))))"),
    ("exceptions", "(module (tag) (func (throw 0)))"),
    ("legacy-exceptions", "(module (func try catch_all end))"),
    ("stack-switching", "(module (type $f (func)) (type (cont $f)))"),
    (
        "wide-arithmetic",
        "(module (func (result i64 i64) (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))))",
    ),
    ("compact-imports", r#"(module (import "m" (item "a" (func)) (item "b" (func))))"#),
    ("component-model-async", "(component (type (stream u8)))"),
    (
        "component-model-async-stackful",
        r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
          (func (canon lift (core func $i "f") async)))"#,
    ),
    ("component-model-more-async-builtins", "(component (core func (canon subtask.cancel async)))"),
    ("component-model-threading", "(component (core func (canon thread.index)))"),
    ("component-model-error-context", "(component (core func (canon error-context.drop)))"),
    (
        "component-model-gc",
        r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
          (core type $t (func)) (func (canon lift (core func $i "f") gc)))"#,
    ),
    ("component-model-map", "(component (type (map string u8)))"),
    ("component-model-memory64", "(component (core func (canon context.get i64 0)))"),
    ("component-model-fixed-length-lists", "(component (type (list u8 4)))"),
    ("component-model-implements", r#"(component (import "a" (implements "b:c/d") (instance)))"#),
    ("component-model-values", r#"(component (import "v" (value u32)))"#),
    ("component-model-nested-names", r#"(component (import "a:b:c/d/e" (instance)))"#),
    // The text format does not support it yet.
    ("component-model-canonical-names", ""),
];

/// The name in each row of the page, and whether it is on.
fn page() -> Vec<(&'static str, bool)> {
    let page = include_str!("../../../../docs/engine-features.md");
    let row = |line: &'static str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some((cells.next()?.strip_prefix('`')?.strip_suffix('`')?, cells.next()? == "on"))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn enabled_features_load_and_disabled_ones_are_refused() {
    let mut wrong = Vec::new();
    for (name, is_on) in page() {
        let Some((_, text)) = USES.iter().find(|(used, _)| *used == name) else { continue };
        if text.is_empty() {
            continue;
        }
        let bytes = match wat::parse_str(text) {
            Ok(bytes) => bytes,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let id = if text.starts_with("(module") { 1 } else { 4 };
        let component = with_section(guest(ECHO), id, &bytes);
        match (is_on, sandbox().load(Digest::of(&component), &component, Capabilities::default())) {
            (true, Ok(_)) | (false, Err(LoadError::Compile(_))) => {}
            (_, Ok(_)) => wrong.push(format!("{name} is off and was taken")),
            (_, Err(other)) => wrong.push(format!("{name}: {other}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_proposal_of_the_page_is_tested() {
    let tried: BTreeSet<_> = USES.iter().map(|(name, _)| *name).collect();
    let page: BTreeSet<_> = page().into_iter().map(|(name, _)| name).collect();
    assert_eq!(tried, page);
}
