//! Plugins and policies from a few lines of WebAssembly text. A test gives the part that differs, and this file adds
//! the rest.

use anyhow::{Context as _, Result, anyhow};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A guest. Its code may use
/// - `(call $log (level) (ptr) (len))` of the host,
/// - the memory from 4096 on; everything below belongs to this frame.
///
/// A plugin may also use
/// - `(call $ok (ptr) (len))`, which makes a result of a text and returns its address,
/// - `(call $ok_number (i64))`, the same with a number,
/// - `(call $progress …)` of the host.
///
/// A policy may also use `$proceed`, `$ask`, `$ask_high` and `$deny`. Each returns the address of an answer. All but
/// the first take the address and length of a reason, and `$ask_high` adds a high risk. The memory at 512 holds `{}`.
#[derive(Clone, Copy, Default)]
pub struct Wat<'a> {
    /// The body of a plugin's `server.run` or of a policy's `judge`, which returns the address of its result. The
    /// locals `$args` and `$args_len` are the arguments of a plugin. The local `$q` is the address of a policy's
    /// question.
    pub body: &'a str,
    /// More imports. They must come first in a module.
    pub imports: &'a str,
    /// More items: tables, functions, globals, data.
    pub items: &'a str,
    /// The body of `catalog.tools`; no tools if it is empty.
    pub tools: &'a str,
    /// More of the world, in WIT: `import wasi:random/random@0.2.0;`.
    pub world: &'a str,
    /// The packages that `world` names, in WIT.
    pub packages: &'a str,
    /// The encoding of all texts.
    pub encoding: Encoding,
}

/// The encoding of a guest's texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub enum Encoding {
    /// The usual one.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Two bytes for each unit. Lengths count units.
    #[serde(rename = "utf-16")]
    Utf16,
}

/// A plugin with this `run`.
///
/// # Panics
/// When the text is invalid.
#[must_use]
pub fn guest(body: &str) -> Vec<u8> {
    Wat { body, ..Wat::default() }.build()
}

/// A policy with this `judge`.
///
/// # Panics
/// When the text is invalid.
#[must_use]
pub fn policy(body: &str) -> Vec<u8> {
    Wat { body, ..Wat::default() }.build_policy()
}

impl Wat<'_> {
    /// The component of a plugin.
    ///
    /// # Panics
    /// When the text is invalid.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        self.plugin().expect("the text of the test")
    }

    /// The component of a policy.
    ///
    /// # Panics
    /// When the text is invalid.
    #[must_use]
    pub fn build_policy(&self) -> Vec<u8> {
        let Self { body, .. } = self;
        let export =
            format!(r#"(func (export "toolgate:policy/judge@0.1.0#judge") (param $q i32) (result i32) {body})"#);
        let module = self.module(POLICY_IMPORTS, ANSWERS, &export);
        component(&module, &POLICY, self).expect("the text of the test")
    }

    /// The component of a plugin, or the fault in its text.
    pub(crate) fn plugin(&self) -> Result<Vec<u8>> {
        let Self { body, tools, .. } = self;
        let tools = if tools.is_empty() { "(i32.const 64)" } else { tools };
        let exports = format!(
            r#"(func (export "toolgate:plugin/catalog@0.1.2#tools") (result i32) {tools})
  (func (export "toolgate:plugin/server@0.1.2#run")
    (param $id i32) (param $id_len i32) (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32)
    (param $key i32) (param $key_len i32) (param $attempt i32) (param $scope i32) (param $scope_len i32) (result i32)
    {body})"#
        );
        component(&self.module(PLUGIN_IMPORTS, RESULTS, &exports), &PLUGIN, self)
    }

    /// The complete module. It gets a memory and an allocator unless the text has its own.
    fn module(&self, host: &str, helpers: &str, exports: &str) -> String {
        let Self { imports, items, .. } = self;
        let code = without_comments(imports) + &without_comments(items);
        let unless = |own: &str, part: &'static str| if code.contains(own) { "" } else { part };
        let memory = unless("(memory ", r#"(memory (export "memory") 2)"#);
        let realloc = unless("(func $realloc ", REALLOC);
        format!("(module\n{host}\n{imports}\n{memory}\n{realloc}\n{helpers}\n{items}\n{exports}\n)")
    }
}

/// The text without its line comments, so that a comment about `(func $run …)` does not count.
pub(crate) fn without_comments(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.split(";;").next().unwrap_or_default())).collect()
}

/// The folder of an interface, and the world in it.
pub(crate) struct Interface(&'static str, &'static str);

/// The interface of plugins.
pub(crate) const PLUGIN: Interface =
    Interface(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/v0.1"), "toolgate:plugin/plugin@0.1.2");

/// The interface of policies.
const POLICY: Interface =
    Interface(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/policy/v0.1"), "toolgate:policy/policy@0.1.0");

/// Makes a component from the text of a module. The world, the packages and the encoding are those of `guest`.
pub(crate) fn component(module: &str, interface: &Interface, guest: &Wat<'_>) -> Result<Vec<u8>> {
    let Wat { world, packages, encoding, .. } = guest;
    let Interface(folder, included) = interface;
    let text = format!("package test:guest;\nworld guest {{ include {included};\n{world} }}\n{packages}");
    let mut resolve = Resolve::default();
    resolve.push_dir(folder).map_err(|error| anyhow!("{error:#}"))?;
    let package = resolve.push_str("guest.wit", &text).map_err(|error| anyhow!("{error:#}"))?;
    let world = resolve.select_world(&[package], Some("guest")).map_err(|error| anyhow!("{error:#}"))?;
    let mut binary = wat::parse_str(module).with_context(|| module.to_owned())?;
    let encoding = match encoding {
        Encoding::Utf8 => StringEncoding::UTF8,
        Encoding::Utf16 => StringEncoding::UTF16,
    };
    embed_component_metadata(&mut binary, &resolve, world, encoding)?;
    let mut encoder = ComponentEncoder::default().validate(true).module(&binary)?;
    encoder.encode().context("the module does not fit its world")
}

/// The imports of every plugin.
const PLUGIN_IMPORTS: &str = r#"
  (import "toolgate:plugin/host@0.1.2" "log" (func $log (param i32 i32 i32)))
  (import "toolgate:plugin/host@0.1.2" "progress" (func $progress (param i32 i32 i32 f64 i32 i32 i32)))"#;

/// The import of every policy.
const POLICY_IMPORTS: &str = r#"(import "toolgate:policy/host@0.1.0" "log" (func $log (param i32 i32 i32)))"#;

/// Allocates memory from 64 KiB on and never frees any.
const REALLOC: &str = r#"
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
    (local.get $at))"#;

/// The results of a plugin: a JSON text, or a number.
const RESULTS: &str = "
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
    (call $ok (local.get $at) (i32.sub (i32.const 1024) (local.get $at))))";

/// The answers of a policy. At 16 is the kind, at 20 the reason, at 28 whether there is a risk, at 29 the risk, and at
/// 32 the options.
const ANSWERS: &str = r#"
  (data (i32.const 512) "{}")
  (func $proceed (result i32) (i32.store8 (i32.const 16) (i32.const 0)) (i32.const 16))
  (func $ask (param $at i32) (param $len i32) (result i32)
    (i32.store8 (i32.const 16) (i32.const 1))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $len))
    (i32.store8 (i32.const 28) (i32.const 0))
    (i32.store (i32.const 32) (i32.const 512))
    (i32.store (i32.const 36) (i32.const 2))
    (i32.const 16))
  (func $ask_high (param $at i32) (param $len i32) (result i32)
    (drop (call $ask (local.get $at) (local.get $len)))
    (i32.store8 (i32.const 28) (i32.const 1))
    (i32.store8 (i32.const 29) (i32.const 2))
    (i32.const 16))
  (func $deny (param $at i32) (param $len i32) (result i32)
    (i32.store8 (i32.const 16) (i32.const 2))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $len))
    (i32.const 16))"#;
