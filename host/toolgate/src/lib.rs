//! toolgate as a library: a host for agent tools that are WebAssembly components, inside of your own program.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let host = toolgate::Host::builder().plugins("plugins").data("toolgate-data").open().await?;
//! for tool in host.handle().tools() {
//!     println!("{}", tool.tool.name);
//! }
//! # Ok(()) }
//! ```
//!
//! [`Host`] opens everything; [`Handle`] is what one asks it for: submit a turn, wait, answer what waits, follow what
//! happens, each in the name of a [`domain::Principal`]. `examples/embed.rs` shows a whole program.
//!
//! The feature `server`, which is off by default, adds the HTTP API: the module `doors` and bearer tokens. The binary
//! `toolgate` is the crate `toolgate-cli`, which uses this library with that feature.
//!
//! This crate alone names concrete types: the store, the sandbox, the registry and the server know each other only through
//! the ports of `dispatch`.

#![warn(missing_docs)]

mod buckets;
mod clock;
mod compiler;
pub mod config;
#[cfg(feature = "server")]
pub mod doors;
#[cfg(feature = "server")]
mod ended;
mod folder;
mod guards;
mod host;
#[cfg(feature = "server")]
mod keys;
#[cfg(feature = "server")]
mod links;
mod reach;
mod record;
#[cfg(feature = "server")]
pub mod tokens;
mod wire_up;

pub use clock::{WallClock, mint};
pub use compiler::CompilerProgram;
pub use dispatch::{
    Answer, CallRequest, Error, Follower, Handle, Item, Live, PendingItem, ProviderResult, Submitted, TurnRequest,
    Until,
};
pub use domain;
pub use folder::private as private_folder;
pub use host::{Builder, Host};
pub use sandbox::compile_child;
pub use wire_up::{OpenError, checking_sandbox, checking_settings};
