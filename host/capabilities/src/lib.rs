//! The accesses that an operator can grant to a plugin: key-value data, HTTP requests, configuration values, folders,
//! secrets.
//!
//! Each capability is one folder. Its host functions work with a [`View`] of the call: the capability's own state, the
//! resource table and the usage. They do not know the call itself. `call.rs` lists the capabilities; `view.rs`,
//! `usage.rs`, `blocking.rs` and `stop.rs` are what they share.

pub mod blocking;
mod call;
pub mod config;
pub mod filesystem;
mod grants;
mod host_pattern;
pub mod http;
pub mod keyvalue;
pub mod secrets;
mod stop;
mod usage;
mod view;

pub use call::{Call, Granted, Services, States, link};
pub use grants::{Capabilities, Capability, Grants};
pub use host_pattern::{HostPattern, InvalidRule};
pub use stop::{Stop, excerpt, size};
pub use usage::{BytesInOut, Charge, HostMemory, Usage};
pub use view::{CallView, View};
