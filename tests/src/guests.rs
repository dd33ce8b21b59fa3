//! Components to load: the example plugins, and fixtures with declarations that a test writes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary;

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

/// The tables of `toolgate.toml` for an example plugin with the workflow: it may send requests to this service, and call these
/// tools.
#[must_use]
pub fn rollout_grants(plugin: &str, service: &str, calls: &[&str]) -> String {
    format!(
        "[plugin.{plugin}]\ncomponent = \"any\"\n[plugin.{plugin}.grants]\ncalls = {calls:?}\nconfig = {{ service = \"{service}\" }}\n\
         http = [{{ url = \"{service}\", methods = [\"GET\", \"POST\"], private = true, idempotent = true }}]\n"
    )
}

/// One of the components that break rules.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn illegal(name: &str) -> Vec<u8> {
    built("tests/illegal", name)
}

/// One of the components that break rules, or an example plugin.
///
/// # Panics
/// When neither is built.
#[must_use]
pub fn any(name: &str) -> Vec<u8> {
    if path("tests/illegal", name).is_file() { illegal(name) } else { plugin(name) }
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
    let name = b"toolgate:plugin";
    let mut body = Vec::new();
    binary::leb(&mut body, name.len());
    body.extend([name.as_slice(), content.as_bytes()].concat());
    binary::with_section(component.to_vec(), 0, &body)
}

fn path(folder: &str, name: &str) -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    root.join(folder).join("target/wasm32-wasip2/release").join(format!("{name}.wasm"))
}

fn built(folder: &str, name: &str) -> Vec<u8> {
    fs::read(path(folder, name)).unwrap_or_else(|error| {
        panic!(
            "{folder}: {name}.wasm cannot be read ({error}): run `cargo build --release --target wasm32-wasip2` in {folder}"
        )
    })
}
