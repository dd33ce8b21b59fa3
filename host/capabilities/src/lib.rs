//! The accesses that an operator can grant to a plugin: key-value data, HTTP requests, configuration values, folders,
//! secrets, calls of other tools.
//!
//! Each capability is one folder. Its host functions work with a [`View`] of the call: the capability's own state, the
//! resource table and the usage. They do not know the call itself. A folder implements [`request::GrantRequest`] for its
//! grants and, if it has an interface, [`interface::Interface`] for its state in a call. `list.rs` lists the folders;
//! `grants.rs`, `manifest.rs`, `table.rs` and `call.rs` are generated from this list. `view.rs`, `usage.rs`,
//! `blocking.rs`, `fair_share.rs`, `journal.rs`, `per_plugin.rs`, `stop.rs` and `words.rs` are what the folders share.

pub mod blocking;
mod call;
pub mod calls;
pub mod config;
pub mod fair_share;
pub mod filesystem;
mod grants;
mod host_pattern;
pub mod http;
pub mod interface;
pub mod journal;
pub mod keyvalue;
mod list;
pub mod manifest;
mod per_plugin;
pub mod request;
pub mod secrets;
mod stop;
mod table;
mod usage;
mod view;
pub mod words;

pub use self::calls::refusal as call_refusal;
pub use call::{CallParts, Services, States, link, link_inert};
pub use grants::{Capabilities, Capability, Grants};
pub use host_pattern::HostPattern;
pub use manifest::Manifest;
pub use secrets::Vault;
pub use stop::{Stop, excerpt, size};
pub use table::{GrantsTable, Opened};
pub use usage::{BytesInOut, Charge, HostMemory, SharedMemory, Usage};
pub use view::{CallView, View};
