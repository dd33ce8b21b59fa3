//! The HTTP door. The only crate that knows HTTP, public JSON and the formats of models' providers.
//!
//! A request passes, from the outside in: headers that every answer carries (`guard`), counting (`metrics`), a net for
//! panics, the names under which the server answers (`guard`), and then its door in [`http`](self), one file per
//! resource. A door knows its principal from the transport alone (`auth`), parses the body once (`json`, `formats`), asks
//! [`dispatch::Handle`], and writes what it answers as [`wire`] says. What goes wrong becomes a problem in `error`.
//!
//! Deliberately absent: cookies, CORS, compression, TLS, and any text that is not JSON.

mod auth;
mod doors;
mod error;
mod events;
mod formats;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod http;
mod json;
mod metrics;
mod openapi;
mod serve;
mod visits;
pub mod wire;

pub use doors::{Authenticate, Doors, ExplainPolicy, Hosts, PluginFault, Plugins, PutError, Settings};
pub use http::router;
pub use openapi::document;
pub use serve::{Connections, serve};
