//! Builds: one recipe for each language, in a file of its own.

mod c;
mod go;
mod js;
mod python;
mod rust;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Failed, Kit, Language, Project, component};

/// The result of a build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component, with nothing packed into it.
    pub component: Vec<u8>,
    /// The tools of the build with their versions, as in `go1.27.3`.
    pub tools: Vec<String>,
    /// The time that the build took, including installations.
    pub took: Duration,
}

/// The result of a recipe.
struct Made {
    component: Vec<u8>,
    tools: Vec<String>,
}

/// Builds a plugin: installs missing toolchains, compiles, and makes a component.
///
/// Writes to the plugin's folders `build`, `target` and `node_modules`, and to the cache.
///
/// # Errors
/// [`Failed`] says what failed, whose fault it is, and what to do.
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

/// A file that a tool has written.
fn read(path: &PathBuf) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(Failed::reading(path))
}

#[expect(clippy::disallowed_methods, reason = "a build says how long it took")]
fn now() -> Instant {
    Instant::now()
}
