//! Builds: one recipe for each language, each in a file of its own.

mod c;
mod go;
mod js;
mod python;
mod rust;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Failed, Kit, Language, Project, component};

/// What was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component, with nothing packed into it.
    pub component: Vec<u8>,
    /// What it was built with, each with its version, as in `go1.27.3`.
    pub tools: Vec<String>,
    /// How long it took, installations included.
    pub took: Duration,
}

/// What a recipe makes.
struct Made {
    component: Vec<u8>,
    tools: Vec<String>,
}

/// Builds a plugin: installs what is missing and may be installed, compiles, and makes a component.
///
/// Writes into the plugin's folders `build`, `target` and `node_modules`, and into the cache.
///
/// # Errors
/// What failed, whose fault it is, and what to do.
pub fn build(kit: &Kit<'_>, project: &Project) -> Result<Built, Failed> {
    let begun = now();
    let made = match project.language() {
        Language::Rust => rust::build(kit, project),
        Language::Python => python::build(kit, project),
        Language::JavaScript | Language::TypeScript => js::build(kit, project),
        Language::Go => go::build(kit, project),
        Language::C => c::build(kit, project),
    }?;
    let component = component::with_producers(&made.component, project.language(), &made.tools)?;
    Ok(Built { component, tools: made.tools, took: begun.elapsed() })
}

/// What a tool was told to write.
fn read(path: &PathBuf) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(Failed::reading(path))
}

#[expect(clippy::disallowed_methods, reason = "a build says how long it took")]
fn now() -> Instant {
    Instant::now()
}
