//! toolgate as a library: a host for agent tools that are WebAssembly components, inside your own program.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use toolgate::{Host, TurnRequest};
//!
//! let host = Host::builder()
//!     .plugins("plugins")           // watched: a component put here is live once it is compiled
//!     .data("toolgate-data")        // turns, components, compiled code; one host at a time
//!     .approve_own_calls()          // if this program also asks the person
//!     .open()
//!     .await?;
//! let me = Host::principal("my-agent")?;
//! for tool in host.handle().tools() {
//!     println!("{}", tool.tool.name);
//! }
//! # Ok(()) }
//! ```
//!
//! A [`Host`] runs the plugins. Its [`Handle`] submits turns, waits for them, answers suspensions and follows events, each in the
//! name of a [`domain::Principal`]. `examples/embed.rs` is a complete program.
//!
//! The feature `server`, which is off by default, adds the HTTP API, bearer tokens, backups and signed checkpoints. The binary
//! `toolgate` is the crate `toolgate-cli`, which uses this library with that feature.
//!
//! This crate chooses the concrete types. The store, the sandbox, the registry and the server know each other only through
//! the ports of `dispatch`.

#![warn(missing_docs)]

#[cfg(feature = "server")]
mod access_tokens;
#[cfg(feature = "server")]
pub mod backup;
mod buckets;
mod builder;
#[cfg(feature = "server")]
pub mod checkpoint;
mod clock;
mod compiler;
pub mod config;
mod disk;
mod error;
#[cfg(feature = "server")]
mod files;
mod folder;
mod guards;
mod host;
#[cfg(feature = "server")]
mod host_files;
#[cfg(feature = "server")]
pub mod http_api;
#[cfg(feature = "server")]
mod keys;
#[cfg(feature = "server")]
mod links;
mod machine;
#[cfg(feature = "server")]
pub mod moving;
mod reach;
mod record;
#[cfg(feature = "server")]
mod revoked;
mod sandboxes;
#[cfg(feature = "postgres")]
mod shared_components;
#[cfg(feature = "server")]
mod shared_documents;
#[cfg(feature = "postgres")]
mod shared_secret;
#[cfg(feature = "server")]
pub mod tokens;
mod upstream_servers;
#[cfg(feature = "upstream")]
pub mod upstreams;
mod wire_up;

pub use builder::Builder;
pub use clock::{WallClock, mint};
pub use compiler::CompilerProgram;
pub use dispatch::{
    Answer, CallRequest, Error, Follower, Handle, Item, Live, ProviderResult, Submitted, SuspensionView, TurnRequest,
    Until,
};
pub use domain;
pub use error::OpenError;
pub use folder::private as private_folder;
pub use host::Host;
pub use sandbox::compile_child;
pub use sandboxes::{checking_sandbox, checking_settings};
#[cfg(feature = "upstream")]
pub use upstream;
