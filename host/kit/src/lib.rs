//! Skeletons, toolchains and builds for authors of plugins, in every language.
//!
//! ```text
//! folder ─► Project: language, name, requested ─► recipe (build/LANGUAGE.rs) ─► component
//!                                               │
//!               toolchain in the cache, from a pinned list with hashes (toolchain.rs)
//! ```
//!
//! Nothing here knows the engine or a host. The binary packs and checks what the kit builds. The kit writes to the plugin's own
//! folder and to the [`Cache`], and nowhere else.

mod bindings;
pub mod build;
mod cache;
mod command;
mod component;
pub mod examples;
mod failed;
mod fixed;
mod language;
mod names;
mod parsed;
mod project;
pub mod reply;
mod segments;
mod skeleton;
mod toolchain;
mod world;

pub use build::Built;
pub use cache::Cache;
pub use component::tools_of;
pub use failed::{Failed, Fault};
pub use language::Language;
pub use project::Project;
pub use skeleton::{File, Sample, skeleton};

/// Files of the repository that the binary embeds: the SDKs with their templates and lists of tools, and the interface. Each
/// has its path from the root, with `/` between the parts.
pub type Carried = &'static [(&'static str, &'static [u8])];

/// The settings of a build.
pub struct Kit<'a> {
    /// The files that the binary embeds.
    pub carried: Carried,
    /// The folder of the toolchains.
    pub cache: Cache,
    /// Whether the network is off limits.
    pub offline: bool,
    /// Gets one line for each step of the build.
    pub say: &'a dyn Fn(&str),
    /// Gets what the compilers of a successful build have printed, such as warnings.
    pub printed: &'a dyn Fn(&str),
}

impl Kit<'_> {
    /// Passes on what a compiler has printed, unless it printed nothing.
    fn pass_on(&self, printed: &str) {
        let printed = printed.trim_end();
        if !printed.trim_start().is_empty() {
            (self.printed)(printed);
        }
    }

    /// A file that the binary embeds.
    fn carried(&self, path: &str) -> Result<&'static [u8], Failed> {
        let found = self.carried.iter().find(|(carried, _)| *carried == path).map(|(_, content)| *content);
        found.ok_or_else(|| {
            Failed::project(format!("this toolgate was built without {path}"), "build it from a whole clone")
        })
    }
}
