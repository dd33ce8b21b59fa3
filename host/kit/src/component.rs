//! From a core module to a component.

use std::path::Path;

use anyhow::Context as _;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::Failed;
use crate::world::WORLD;

/// Makes a component of a module that was compiled against the world in `wit`, as [`crate::world::write`] wrote it.
///
/// What the module does not import is left out, so the component asks for no more than it uses. Functions of WASI's preview 1,
/// which compilers still emit, become those of 0.2.
pub(crate) fn of(module: &[u8], wit: &Path) -> Result<Vec<u8>, Failed> {
    encode(module, wit).map_err(Failed::Component)
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
