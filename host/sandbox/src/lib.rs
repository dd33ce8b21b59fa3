//! Runs guests. Every guest ends with an outcome: it cannot make the host fail, exceed its limits, reach anything that is not
//! granted, or find data of another call.
//!
//! ```text
//! bytes ─ Sandbox::load ─► Plugin ─ declarations ─► its tools
//!           inspect           └──── run(job) ─────► GuestEnd { outcome, spent }
//!           cache, or structure     one Store, one instance, then dropped
//!           link what is granted
//! ```
//!
//! A durable call ends its run when it waits, and a later run in a new instance repeats and continues it (`durable.rs`). With
//! `linger_ms`, the instance is kept for a short time, and the later run continues it (`lingering.rs`).
//!
//! A policy is loaded and asked the same way, without any grant: `Sandbox::load_policy`, `Policy::decide` (`policy.rs`).
//!
//! Read `sandbox.rs`, `plugin.rs` and `call.rs` in this order. `limits.rs` and `ending.rs` stop a guest and report why, `abi/`
//! has the versions of the interface, `wasi.rs` the imports of every guest. The crate `capabilities` has what can be granted.

mod abi;
mod cache;
mod call;
mod clock;
mod compile;
mod durable;
mod ending;
mod engine;
mod features;
mod guest;
mod handles;
mod heap;
mod inspect;
mod instance;
mod job;
mod limits;
mod lingering;
mod load;
mod plugin;
mod policy;
mod pool;
mod random;
mod report;
mod run;
mod sandbox;
pub mod section;
mod shared;
mod stream;
mod structure;
mod tail;
mod wasi;

pub use abi::policy::PolicyQuestion;
pub use abi::{AbiVersion, Declared};
pub use cache::CacheOwner;
pub use clock::{GuestClock, SystemClock};
pub use compile::{ChildCompiler, CompileBounds, Compiler, Confinement, Landlock, compile_child};
pub use engine::{ComponentParts, engine_config, guest_runtime};
pub use heap::return_large_memory;
pub use inspect::ComponentInterface;
pub use job::{Durable, GuestEnd, Job, RunEnd, RunUsage};
pub use lingering::LingerCounts;
pub use load::{CompileCost, ForeignImport, LoadError, Newer, StructureBound, TooManyParts};
pub use plugin::Plugin;
pub use policy::{LoadedPolicy, NoAnswer, PolicyAnswer, PolicyError};
pub use random::{Random, SystemRandom};
pub use report::{Sink, Update};
pub use sandbox::{Sandbox, SandboxSettings};
