//! Bindings for C and Go, generated from the world that a plugin is built against.
//!
//! The world offers everything. Compilers drop the functions that nothing calls, and wit-component drops their imports, so a
//! component imports what its tools use.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use wit_bindgen_core::{Files, WorldGenerator};
use wit_parser::Resolve;

use crate::Failed;
use crate::world::WORLD;

/// The prefix of the names in the C bindings, and the stem of their files. `sdk/c` uses it.
const C_NAME: &str = "tools";

/// The Go packages of the bindings, and of the functions that the generated exports call.
const GO_IMPORTS: &str = "toolgate/internal/bindings";
const GO_EXPORTS: &str = "toolgate/internal/exports";

/// The module that Go bindings import, and the packages of `sdk/go` that take its place.
const GO_RUNTIME: (&str, &str) = ("go.bytecodealliance.org/pkg/wit/", "toolgate/internal/wit/");

/// Writes `tools.c` and `tools.h`.
pub(crate) fn c(wit: &Path, folder: &Path) -> Result<(), Failed> {
    // `component::of` embeds the type of the component. The object file would do the same, for one compiler only.
    let options =
        wit_bindgen_c::Opts { no_object_file: true, rename_world: Some(C_NAME.to_owned()), ..Default::default() };
    let files = generate(wit, options.build())?;
    for (path, content) in files.iter() {
        write(&folder.join(path), content)?;
    }
    Ok(())
}

/// Writes Go packages, and returns the paths of their files below the folder and below `internal/bindings` of the SDK.
pub(crate) fn go(wit: &Path, folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let options = wit_bindgen_go::Opts {
        format: wit_bindgen_go::Format::False,
        pkg_name: Some(GO_IMPORTS.to_owned()),
        export_pkg_name: Some(GO_EXPORTS.to_owned()),
        ..Default::default()
    };
    let files = generate(wit, options.build())?;
    let mut written = Vec::new();
    // The other files let native tests link functions without a body. The bindings are only for components.
    for (path, content) in files.iter().filter(|(path, _)| path.ends_with(".go")) {
        let content = String::from_utf8_lossy(content).replace(GO_RUNTIME.0, GO_RUNTIME.1);
        write(&folder.join(path), format!("//go:build wasip1\n\n{content}").as_bytes())?;
        written.push(PathBuf::from(path));
    }
    Ok(written)
}

fn generate(wit: &Path, mut generator: Box<dyn WorldGenerator>) -> Result<Files, Failed> {
    let mut generated = || {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(wit).with_context(|| format!("{} cannot be read", wit.display()))?;
        let world = resolve.select_world(&[package], Some(WORLD))?;
        let mut files = Files::default();
        generator.generate(&mut resolve, world, &mut files)?;
        Ok(files)
    };
    generated().map_err(Failed::Component)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failed> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Failed::writing(folder))?;
    fs::write(path, content).map_err(Failed::writing(path))
}
