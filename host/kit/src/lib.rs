//! What authors of plugins have: skeletons, toolchains, and builds in every language.
//!
//! ```text
//! folder ─► Project: language, name, wants ─► recipe (build/LANGUAGE.rs) ─► component
//!                                               │
//!               toolchain in the cache, from a pinned list with hashes (toolchain.rs)
//! ```
//!
//! Nothing here knows the engine or a host: packing and checking what was built is the binary's. Nothing is written outside of
//! the plugin's own folder and the [`Cache`].

pub mod build;
mod cache;
mod command;
mod component;
pub mod examples;
mod failed;
mod language;
mod names;
mod project;
mod segments;
mod skeleton;
mod toolchain;
mod world;

pub use build::Built;
pub use cache::Cache;
pub use failed::{Failed, Fault};
pub use language::Language;
pub use project::{Project, Wants};
pub use skeleton::{File, skeleton};

/// Files of the repository that the binary carries: each with its path from the root, with `/` between the parts. The SDKs with
/// their templates and lists of tools, and the interface.
pub type Carried = &'static [(&'static str, &'static [u8])];

/// What every recipe works with.
pub struct Kit<'a> {
    /// What the binary carries.
    pub carried: Carried,
    /// Where toolchains are kept.
    pub cache: Cache,
    /// Whether nothing may be fetched.
    pub offline: bool,
    /// Told what is being done, one line each.
    pub say: &'a dyn Fn(&str),
}

impl Kit<'_> {
    /// A file that the binary carries.
    fn carried(&self, path: &str) -> Result<&'static [u8], Failed> {
        let found = self.carried.iter().find(|(carried, _)| *carried == path).map(|(_, content)| *content);
        found.ok_or_else(|| {
            Failed::project(format!("this toolgate was built without {path}"), "build it from a whole clone")
        })
    }
}
