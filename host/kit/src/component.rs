//! Turns a core module into a component, and writes into it what built it.

use std::path::Path;

use anyhow::Context as _;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasm_metadata::Producers;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::world::WORLD;
use crate::{Failed, Language};

/// Makes a component of a module that was compiled against the world in `wit`, as [`crate::world::write`] wrote it.
///
/// The component imports only what the module imports. Compilers still emit functions of WASI's preview 1, which the adapter
/// translates to 0.2.
pub(crate) fn of(module: &[u8], wit: &Path) -> Result<Vec<u8>, Failed> {
    encode(module, wit).map_err(Failed::Component)
}

/// Adds a section `producers` that names the language and the tools of the build, as in `zig 0.16.0`. Some toolchains leave no
/// trace of themselves.
pub(crate) fn with_producers(component: &[u8], language: Language, tools: &[String]) -> Result<Vec<u8>, Failed> {
    let mut producers = Producers::empty();
    producers.add("language", name(language), "");
    for tool in tools {
        let (tool, version) = tool.split_once(' ').unwrap_or((tool, ""));
        producers.add("processed-by", tool, version);
    }
    producers.add_to_wasm(component).map_err(Failed::Component)
}

/// The tools in the section `producers` of a component, as in `zig 0.16.0`. The list is empty if the component has no such section.
#[must_use]
pub fn tools_of(component: &[u8]) -> Vec<String> {
    let producers = Producers::from_wasm(component).ok().flatten();
    let tools = producers.as_ref().and_then(|producers| producers.get("processed-by"));
    let named = |(name, version): (&String, &String)| format!("{name} {version}").trim_end().to_owned();
    tools.map(|tools| tools.iter().map(named).collect()).unwrap_or_default()
}

/// A language as the section names it.
fn name(language: Language) -> &'static str {
    match language {
        Language::Rust => "Rust",
        Language::Python => "Python",
        Language::JavaScript => "JavaScript",
        Language::TypeScript => "TypeScript",
        Language::Go => "Go",
        Language::C => "C",
    }
}

fn encode(module: &[u8], wit: &Path) -> anyhow::Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).with_context(|| format!("{} cannot be read", wit.display()))?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        .encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_names_its_tools_once() {
        let empty = b"\0asm\x0d\0\x01\0";
        let tools = ["zig 0.16.0".to_owned(), "go1.27.3".to_owned()];
        let once = with_producers(empty, Language::C, &tools).unwrap();
        let said = Producers::from_wasm(&once).unwrap().unwrap();
        let field = |field: &str| -> Vec<(String, String)> {
            let values = said.get(field).unwrap();
            values.iter().map(|(name, version)| (name.clone(), version.clone())).collect()
        };
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(field("language"), [pair("C", "")]);
        assert_eq!(field("processed-by"), [pair("zig", "0.16.0"), pair("go1.27.3", "")]);
        assert_eq!(with_producers(&once, Language::C, &tools).unwrap(), once);
        assert_eq!(tools_of(&once), tools);
        assert_eq!(tools_of(empty), Vec::<String>::new());
    }
}
