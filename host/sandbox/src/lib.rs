//! Runs guests. Whatever a guest does is an outcome of its call: it cannot make the host fail, outlast its limits, reach
//! what was not granted, or find anything of another call.
//!
//! ```text
//! bytes ─ Sandbox::load ─► Plugin ─ declarations ─► what it says of its tools
//!           inspect           └──── run(job) ─────► End { outcome, spent }
//!           cache, or structure     one Store, one instance, then thrown away
//!           link what is granted
//! ```
//!
//! A policy takes the same way without any grant: `Sandbox::load_policy`, `Policy::judge` (`policy.rs`).
//!
//! The only crate that knows the engine. Read `sandbox.rs`, `plugin.rs`, `call.rs` in this order; `limits.rs` and
//! `ending.rs` say what stops a guest and how that is told, `abi/` has the versions of the interface, `capability/` what
//! can be granted, `wasi.rs` what everybody gets.

mod abi;
mod blocking;
mod cache;
mod call;
mod capability;
mod clock;
mod compile;
mod ending;
mod engine;
mod features;
mod guest;
mod handles;
mod inspect;
pub mod json;
mod limits;
mod load;
mod plugin;
mod policy;
mod random;
mod report;
mod sandbox;
pub mod section;
mod spending;
mod structure;
mod wasi;

pub use abi::package::Newer;
pub use abi::{AbiVersion, Declared};
pub use cache::CacheOwner;
pub use call::{End, Job, Spent};
pub use capability::filesystem::{Folder, FolderHandle, raise_open_files};
pub use capability::http::{
    HostPattern, HttpClient, HttpRule, InvalidAuthority, InvalidRule, Reach, Resolver, Scheme, SystemResolver,
    is_public, may_reach,
};
pub use capability::keyvalue::{BucketError, Buckets, MemoryBuckets, Place, Quota, Swapped};
pub use capability::secrets::{InvalidSecret, LEAST_SECRET, MOST_SECRET, Secret, SecretPlace, SecretValue};
pub use capability::{Capabilities, Capability, Grants};
pub use clock::{Clock, SystemClock};
pub use compile::{ChildCompiler, CompileBounds, CompileCost, Compiler, compile_child};
pub use engine::{engine_config, guest_runtime};
pub use inspect::Interface;
pub use load::{ForeignImport, LoadError};
pub use plugin::Plugin;
pub use policy::{NoAnswer, Policy, PolicyAnswer, PolicyError, PolicyQuestion};
pub use random::{Random, SystemRandom};
pub use report::{Level, Sink, Update};
pub use sandbox::{Sandbox, Settings};
pub use structure::StructureBound;
