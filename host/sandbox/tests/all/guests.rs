//! Makes plugins from a few lines of WebAssembly text. A test gives the part that differs, and this file adds the rest.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A guest. `run` is the body of `server.run`, which returns the address of its result; the locals `$args` and
/// `$args_len` are its arguments. It may use
/// - `(call $ok (ptr) (len))`, which makes a result of a text and returns its address,
/// - `(call $ok_number (i64))`, the same with a number,
/// - `(call $log (level) (ptr) (len))` and `(call $progress …)` of the host,
/// - the memory from 4096 on; everything below belongs to this frame.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wat<'a> {
    /// The body of `server.run`.
    pub(crate) run: &'a str,
    /// More imports. They must come first in a module.
    pub(crate) imports: &'a str,
    /// More items: tables, functions, globals, data.
    pub(crate) items: &'a str,
    /// The body of `catalog.tools`; no tools if it is empty.
    pub(crate) tools: &'a str,
    /// More of the world, in WIT: `import wasi:random/random@0.2.0;`.
    pub(crate) world: &'a str,
    /// The packages that `world` names, in WIT.
    pub(crate) packages: &'a str,
}

/// A guest with this `run`.
pub(crate) fn guest(run: &str) -> Vec<u8> {
    Wat { run, ..Wat::default() }.build()
}

impl Wat<'_> {
    /// The module.
    fn module(&self) -> String {
        let Self { run, imports, items, tools, .. } = self;
        let tools = if tools.is_empty() { "(i32.const 64)" } else { tools };
        format!(
            r#"(module
  (import "toolgate:plugin/host@0.1.1" "log" (func $log (param i32 i32 i32)))
  (import "toolgate:plugin/host@0.1.1" "progress"
    (func $progress (param i32 i32 i32 f64 i32 i32 i32)))
  {imports}
  (memory (export "memory") 2)
  (global $free (mut i32) (i32.const 65536))
  (func $realloc (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (loop $grow
      (if (i32.gt_u (global.get $free) (i32.shl (memory.size) (i32.const 16)))
        (then
          (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then (unreachable)))
          (br $grow))))
    (local.get $at))
  (func $ok (param $at i32) (param $len i32) (result i32)
    (i32.store (i32.const 16) (i32.const 0))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $len))
    (i32.const 16))
  (func $ok_number (param $n i64) (result i32)
    (local $at i32)
    (local.set $at (i32.const 1024))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
      (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
      (br_if $digit (i64.ne (local.get $n) (i64.const 0))))
    (call $ok (local.get $at) (i32.sub (i32.const 1024) (local.get $at))))
  {items}
  (func (export "toolgate:plugin/catalog@0.1.1#tools") (result i32) {tools})
  (func $run (export "toolgate:plugin/server@0.1.1#run")
    (param $id i32) (param $id_len i32) (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32)
    (param $key i32) (param $key_len i32) (param $attempt i32) (param $scope i32) (param $scope_len i32) (result i32)
    {run})
)"#
        )
    }

    /// The component.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut resolve = Resolve::default();
        resolve.push_dir("../../wit/v0.1").expect("our own interface");
        let text = format!(
            "package test:guest;\nworld guest {{ include toolgate:plugin/plugin@0.1.1; {} }}\n{}",
            self.world, self.packages
        );
        let package = resolve.push_str("guest.wit", &text).expect("the world of the test");
        let world = resolve.select_world(&[package], Some("guest")).expect("there is one world");
        let mut module = wat::parse_str(self.module()).expect("the text of the test");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("the world fits");
        let mut encoder =
            ComponentEncoder::default().validate(true).module(&module).expect("the module fits the world");
        encoder.encode().expect("a component")
    }
}

/// The component with a text in its bytes replaced by one of the same length.
pub(crate) fn replaced(mut component: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..component.len() - from.len() {
        if component[at..].starts_with(from.as_bytes()) {
            component[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
    }
    component
}

/// Adds core modules to a component, each instantiated once. So it gets parts that one module cannot have, such as
/// several memories.
pub(crate) fn with_modules(mut component: Vec<u8>, modules: &[&str]) -> Vec<u8> {
    let before = count_modules(&component);
    for text in modules {
        section(&mut component, 1, &wat::parse_str(text).expect("the text of the test"));
    }
    for index in (before..).take(modules.len()) {
        // One core instance: instantiate, the module's index, no arguments.
        section(&mut component, 2, &[1, 0, index, 0]);
    }
    component
}

/// Adds a section to a component.
pub(crate) fn with_section(mut component: Vec<u8>, id: u8, body: &[u8]) -> Vec<u8> {
    section(&mut component, id, body);
    component
}

fn count_modules(component: &[u8]) -> u8 {
    let outer = wat::parse_bytes(component).expect("binary stays as it is");
    let (mut rest, mut count) = (&outer[8..], 0);
    while let [id, after @ ..] = rest {
        let (size, used) = unleb(after);
        count += u8::from(*id == 1);
        rest = &after[used + size..];
    }
    count
}

fn section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    out.push(id);
    let mut size = body.len();
    while size >= 0x80 {
        out.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
    out.extend_from_slice(body);
}

fn unleb(bytes: &[u8]) -> (usize, usize) {
    let used = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let size = bytes[..used].iter().rev().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
    (size, used)
}
