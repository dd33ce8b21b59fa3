//! Tools for agents in Rust, as WebAssembly components for toolgate.
//!
//! A tool is a typed function with its declaration. Arguments and result are ordinary types, and their JSON Schemas are
//! derived. This is a complete plugin:
//!
//! ```
//! use toolgate_sdk::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Args {
//!     /// The text to count.
//!     text: String,
//! }
//!
//! toolgate_sdk::plugin! {
//!     Tool::server("word_count", "Counts the words of a text.", |args: Args, _call: &Call| {
//!         Ok(args.text.split_whitespace().count())
//!     })
//!     .read_only(),
//! }
//!
//! let run = toolgate_sdk::testing::run(tools(), "word_count", json!({"text": "to be or not"}));
//! assert_eq!(run.result, Ok(json!(4)));
//! # toolgate_sdk::testing::check(&tools()).unwrap();
//! ```
//!
//! The four kinds of tools differ in who produces the result: [`Tool::server`], [`Tool::human`], [`Tool::client`],
//! [`Tool::provider`]. Server and client tools may be gated with `requires_approval()`. Combinations that make no sense
//! do not compile: for example, the options of gated tools exist only on gated tools. [`testing::check`] finds other
//! mistakes in a unit test.
//!
//! A server tool that is declared [`Tool::durable`] may wait in the middle of its code, for people, for external systems and for time:
//! [`mod@durable`].
//!
//! A component can also be a [`mod@policy`], which decides about calls instead of running them.

mod arguments;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod bindings;
mod call;
#[cfg(feature = "config")]
pub mod config;
mod declare;
pub mod durable;
mod failure;
#[cfg(target_family = "wasm")]
mod guest;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "keyvalue")]
pub mod keyvalue;
mod options;
mod plugin;
pub mod policy;
mod schema;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod tool;
mod waiting;

pub use call::{Call, Level, Outlet, Request, Scope};
pub use failure::Failure;
pub use options::{OnExpiry, Recovery};
pub use plugin::{AnyTool, Declarable, Plugin, Tools};
pub use policy::Risk;
pub use schema::NoArguments;
pub use tool::{
    Approval, Asks, Auto, Client, Executor, ExecutorKind, Gateable, Gated, Human, Provider, Server, Tool, Waits,
};

/// The usual imports of a plugin.
pub mod prelude {
    pub use crate::durable::{External, Question, ToolCalls, WaitError};
    pub use crate::{Call, Failure, Level, NoArguments, OnExpiry, Recovery, Risk, Tool};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};
}
