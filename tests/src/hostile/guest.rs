//! Makes a component from the text of a case. A complete module or component is used unchanged. Any other text gets the
//! missing parts of a plugin.

use anyhow::{Context as _, Result};

use crate::wat::{Encoding, PLUGIN, Wat, component as encoded, without_comments};

/// The WASI interfaces that the cases import.
const WASI: &str = include_str!("../../hostile/wasi.wit");

/// The address of the declaration's texts. A case may use the memory from 4096 on.
const TEXTS: usize = 256;

/// Interfaces that a module can import without a `world`.
const IMPORTED: [&str; 2] = ["wasi:", "toolgate:plugin/durable@"];

/// The declaration of a module's tool.
pub(super) struct Declared<'a> {
    pub(super) tool: &'a str,
    pub(super) options: &'a str,
}

/// The component of a case with this tool.
pub(super) fn component(text: &str, world: &str, encoding: Encoding, tool: &Declared<'_>) -> Result<Vec<u8>> {
    let code = without_comments(text);
    let code = code.trim_start();
    if code.starts_with("(component") {
        return wat::parse_str(text).context("the text of the component");
    }
    let world = imported(code) + world;
    if code.starts_with("(module") {
        return encoded(text, &PLUGIN, &Wat { world: &world, packages: WASI, encoding, ..Wat::default() });
    }
    let mut items = String::new();
    if !code.contains("(func $tools ") {
        items.push_str(&declaration(tool, encoding));
    }
    if !code.contains("(func $run ") {
        items.push_str("(func $run (param i32 i32) (result i32) (call $ok (local.get 0) (local.get 1)))\n");
    }
    let body = "(call $run (local.get $args) (local.get $args_len))";
    // The text may begin with imports, which must come first.
    Wat { body, imports: text, items: &items, tools: "(call $tools)", world: &world, packages: WASI, encoding }.plugin()
}

/// The imports of the module, in WIT.
fn imported(code: &str) -> String {
    let mut imports = String::new();
    for name in code.match_indices("(import \"").filter_map(|(at, start)| code[at + start.len()..].split('"').next()) {
        let line = format!("import {name};\n");
        if IMPORTED.iter().any(|known| name.starts_with(known)) && !imports.contains(&line) {
            imports.push_str(&line);
        }
    }
    imports
}

/// One server tool that streams, in the form of the canonical ABI: at 128 the record, at 168 the list of it.
fn declaration(Declared { tool, options }: &Declared<'_>, encoding: Encoding) -> String {
    let texts = [tool, "A hostile tool.", r#"{"type":"object"}"#, options];
    let (mut at, mut data, mut places) = (TEXTS, String::new(), Vec::new());
    for text in texts {
        places.push((at, text.len()));
        // The texts are ASCII, so a second byte of each unit is zero.
        let (rest, bytes) = if encoding == Encoding::Utf16 { ("\\00", 2) } else { ("", 1) };
        for character in text.chars() {
            data.push_str(&if character == '"' { "\\22".to_owned() } else { character.to_string() });
            data.push_str(rest);
        }
        at += bytes * text.len();
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
