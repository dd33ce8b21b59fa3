//! Makes a component from the text of a case. A complete module or component is used unchanged. Any other text gets the
//! missing parts of a plugin.

use anyhow::{Context as _, Result, anyhow};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The interface of a plugin.
const INTERFACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/v0.1");

/// The WASI interfaces that the cases import.
const WASI: &str = include_str!("../../hostile/wasi.wit");

/// The address of the declaration's texts. A case may use the memory from 4096 on.
const TEXTS: usize = 256;

/// The component of a case with this tool.
pub(super) fn component(text: &str, world: &str, tool: &str) -> Result<Vec<u8>> {
    let code = without_comments(text);
    let code = code.trim_start();
    if code.starts_with("(component") {
        return wat::parse_str(text).context("the text of the component");
    }
    let module = if code.starts_with("(module") { text.to_owned() } else { completed(text, code, tool) };
    let mut module = wat::parse_str(&module).with_context(|| module.clone())?;
    let (resolve, world) = resolved(code, world)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let mut encoder = ComponentEncoder::default().validate(true).module(&module)?;
    encoder.encode().context("the module does not fit its world")
}

/// The world: ours, the WASI imports of the module, and the additions of the case.
fn resolved(code: &str, more: &str) -> Result<(Resolve, wit_parser::WorldId)> {
    let mut resolve = Resolve::default();
    resolve.push_dir(INTERFACE).map_err(|error| anyhow!("{error:#}"))?;
    let mut imports = String::new();
    for name in code.match_indices("(import \"").filter_map(|(at, start)| code[at + start.len()..].split('"').next()) {
        let line = format!("import {name};\n");
        if name.starts_with("wasi:") && !imports.contains(&line) {
            imports.push_str(&line);
        }
    }
    let text = format!(
        "package hostile:guest;\nworld guest {{ include toolgate:plugin/plugin@0.1.1;\n{imports}{more} }}\n{WASI}"
    );
    let package = resolve.push_str("guest.wit", &text).map_err(|error| anyhow!("{error:#}"))?;
    let world = resolve.select_world(&[package], Some("guest")).map_err(|error| anyhow!("{error:#}"))?;
    Ok((resolve, world))
}

/// The complete module. Imports must come first. Other parts are added if the case does not define their names.
fn completed(text: &str, code: &str, tool: &str) -> String {
    let lacks = |part: &str| !code.contains(part);
    let mut parts = String::new();
    if lacks("(memory ") {
        parts.push_str("(memory (export \"memory\") 2)\n");
    }
    if lacks("(func $realloc ") {
        parts.push_str(REALLOC);
    }
    if lacks("(func $tools ") {
        parts.push_str(&declaration(tool));
    }
    if lacks("(func $run ") {
        parts.push_str("(func $run (param i32 i32) (result i32) (call $ok (local.get 0) (local.get 1)))\n");
    }
    format!("(module\n{HOST}\n{text}\n{parts}\n{EXPORTS})")
}

/// The imports of every module.
const HOST: &str = r#"
  (import "toolgate:plugin/host@0.1.1" "log" (func $log (param i32 i32 i32)))
  (import "toolgate:plugin/host@0.1.1" "progress" (func $progress (param i32 i32 i32 f64 i32 i32 i32)))"#;

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
    (local.get $at))
"#;

/// The exports, and two ways to end a call: `$ok` with a JSON text, `$ok_number` with a number.
const EXPORTS: &str = r#"
  (func $ok (param $at i32) (param $len i32) (result i32)
    (i32.store (i32.const 16) (i32.const 0))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $len))
    (i32.const 16))
  (func $ok_number (param $n i64) (result i32)
    (local $at i32)
    (local.set $at (i32.const 128))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
      (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
      (br_if $digit (i64.ne (local.get $n) (i64.const 0))))
    (call $ok (local.get $at) (i32.sub (i32.const 128) (local.get $at))))
  (func (export "toolgate:plugin/catalog@0.1.1#tools") (result i32) (call $tools))
  (func (export "toolgate:plugin/server@0.1.1#run")
    (param $id i32) (param $id_len i32) (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32)
    (param $key i32) (param $key_len i32) (param $attempt i32) (param $scope i32) (param $scope_len i32) (result i32)
    (call $run (local.get $args) (local.get $args_len)))
"#;

/// One server tool that streams, in the form of the canonical ABI: at 128 the record, at 168 the list of it.
fn declaration(tool: &str) -> String {
    let texts = [tool, "A hostile tool.", r#"{"type":"object"}"#, "{}"];
    let (mut at, mut data, mut places) = (TEXTS, String::new(), Vec::new());
    for text in texts {
        places.push((at, text.len()));
        data.push_str(&text.replace('"', "\\22"));
        at += text.len();
    }
    let word = |n: usize| n.to_le_bytes()[..4].iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let pair = |(at, len): (usize, usize)| word(at) + &word(len);
    // Executor 0 is `server`, approval 0 is `auto`, and it streams.
    let record =
        [pair(places[0]), pair(places[1]), pair(places[2]), "\\00\\00\\01\\00".into(), pair(places[3])].concat();
    let list = pair((128, 1));
    format!(
        "(data (i32.const 128) \"{record}\")\n(data (i32.const 168) \"{list}\")\n(data (i32.const {TEXTS}) \"{data}\")\n\
         (func $tools (result i32) (i32.const 168))\n"
    )
}

/// The text without its line comments, so that a comment about `(func $run …)` does not count.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.split(";;").next().unwrap_or_default())).collect()
}
