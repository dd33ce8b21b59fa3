//! Loads plugins and offers their tools to the loop: checks, the live catalog, and the watched folder.
//!
//! ```text
//! NAME.wasm ─ watch ─┐
//! PUT, library ──────┴─► load ─ examine ─ rules ─► store the bytes ─► replace the catalog ─► event
//!                          │ any finding                                   │
//!                          └─► event; the live plugin stays live           └─► find, pinned, list, run
//! ```
//!
//! Read `load.rs` first: how a plugin becomes live. Then `run.rs`: how its calls run. `rules.rs` has the rules for
//! declarations, `settings.rs` the operator's decisions, and `components.rs` the files on disk.

mod blocking;
mod catalog;
mod component;
mod components;
mod declaration;
mod examine;
mod files;
mod finding;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod grants;
mod guests;
mod json;
mod load;
mod note;
mod pack;
mod permits;
mod registry;
mod results;
mod rules;
mod run;
mod schema;
mod settings;
mod shared;
mod upstream;
mod watch;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use capabilities::{Manifest, manifest, words};
pub use components::RemoteComponents;
pub use domain::LoadRule;
pub use examine::refusal;
pub use finding::Finding;
pub use grants::Access;
pub use load::{LoadReport, NotLoaded};
pub use note::Note;
pub use pack::{PackError, Packed};
pub use registry::{CheckReport, OpenError, PluginStatus, Registry};
pub use rules::{MAX_PROMPT, MAX_SCHEMA_DEPTH, MAX_TITLE};
pub use schema::{checks, violations};
pub use settings::{GrantHolder, PluginSettings, RegistrySettings};
pub use shared::Events;
pub use upstream::upstream_tool;
pub use watch::{nearest_name, plugin_name, read_component};
