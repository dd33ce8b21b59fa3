//! Components to load: the example plugins, and fixtures with declarations that a test writes.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The marker before the slot of a fixture. It occurs once in its bytes. See `tests/illegal/README.md`.
const MARKER: &[u8] = b"toolgate-fixture-slot-1\n";

/// The size of the slot in bytes.
const CAPACITY: usize = 256 * 1024;

/// An example plugin.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn plugin(name: &str) -> Vec<u8> {
    built("plugins", name)
}

/// One of the components that break rules.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn illegal(name: &str) -> Vec<u8> {
    built("tests/illegal", name)
}

/// A fixture that declares these tools and returns its arguments. It is legal if the declarations are.
///
/// # Panics
/// When it is not built, or the declarations do not fit into it.
#[must_use]
pub fn fixture(tools: &Value) -> Vec<u8> {
    patched(&illegal("fixture"), tools)
}

/// A component with its declarations replaced.
///
/// # Panics
/// When it has no slot, or the declarations do not fit into it.
#[must_use]
pub fn patched(component: &[u8], slot: &Value) -> Vec<u8> {
    let at = component.windows(MARKER.len()).position(|bytes| bytes == MARKER);
    let at = at.expect("the component has a slot for declarations") + MARKER.len();
    let (mut patched, slot) = (component.to_vec(), slot.to_string());
    assert!(slot.len() <= CAPACITY, "the declarations are {} bytes, the slot has {CAPACITY}", slot.len());
    patched[at..at + CAPACITY].fill(b' ');
    patched[at..at + slot.len()].copy_from_slice(slot.as_bytes());
    patched
}

/// The component with a section `toolgate:plugin` with this content at its end.
#[must_use]
pub fn with_section(component: &[u8], content: &str) -> Vec<u8> {
    let number = |mut value: usize| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap_or_default());
        bytes
    };
    let name = b"toolgate:plugin";
    let body = [&number(name.len()), name.as_slice(), content.as_bytes()].concat();
    [component, &[0], &number(body.len()), &body].concat()
}

fn built(folder: &str, name: &str) -> Vec<u8> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let path = root.join(folder).join("target/wasm32-wasip2/release").join(format!("{name}.wasm"));
    fs::read(path).unwrap_or_else(|error| {
        panic!(
            "{folder}: {name}.wasm cannot be read ({error}): run `cargo build --release --target wasm32-wasip2` in {folder}"
        )
    })
}

/// A policy. `judge` is the body of its function in WebAssembly text. It returns the address of an answer: `$proceed`,
/// or `$ask` or `$deny` with the address and length of a reason. A reason may use the memory from 4096 on.
///
/// # Panics
/// When the text is invalid.
#[must_use]
pub fn policy(judge: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
  (memory (export "memory") 64)
  (data (i32.const 512) "{{}}")
  (global $free (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func $answer (param $kind i32) (param $at i32) (param $len i32) (result i32)
    (i32.store (i32.const 16) (local.get $kind))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $len))
    (i32.store (i32.const 28) (i32.const 0))
    (i32.store (i32.const 32) (i32.const 512))
    (i32.store (i32.const 36) (i32.const 2))
    (i32.const 16))
  (func $proceed (result i32) (call $answer (i32.const 0) (i32.const 0) (i32.const 0)))
  (func $ask (param i32 i32) (result i32) (call $answer (i32.const 1) (local.get 0) (local.get 1)))
  (func $deny (param i32 i32) (result i32) (call $answer (i32.const 2) (local.get 0) (local.get 1)))
  (func (export "toolgate:policy/judge@0.1.0#judge") (param $question i32) (result i32) {judge})
)"#
    );
    let mut resolve = Resolve::default();
    let interface = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/policy/v0.1");
    let (package, _) = resolve.push_dir(interface).expect("our own interface");
    let world = resolve.select_world(&[package], Some("policy")).expect("its world");
    let mut module = wat::parse_str(text).expect("the text of the test");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("the world fits");
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).expect("the module fits the world");
    encoder.encode().expect("a component")
}
