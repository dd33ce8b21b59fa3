//! The HTTP door. The only crate that knows HTTP.
//!
//! A request passes, from the outside in: headers that every answer carries (`guard`), counting (`metrics`), a net for
//! panics, the names under which the server answers (`guard`), the origins of others' pages (`cross_origin`), and then its
//! door in [`http`](self), one file per resource. A door knows its principal from the transport alone (`auth`): from a token,
//! or from the cookie of a session that was opened with one (`signed`). It reads the body once (`body`, [`api`]), asks
//! [`dispatch::Handle`], and writes what it answers as [`api`] says. What goes wrong becomes a problem in `error`.
//!
//! Deliberately absent: compression, TLS, and any text that is not JSON, save that pages which are made elsewhere may be
//! served beside the API ([`router_with_pages`]).

mod app;
mod auth;
mod body;
mod cookies;
mod cross_origin;
mod doors;
mod error;
mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod http;
mod in_flight;
mod inbox;
mod links;
mod login_throttle;
mod metrics;
mod openapi;
mod serve;
mod signed;

pub use doors::{
    Authenticate, Doors, EndedSessions, ExplainPolicy, Hosts, NotEnded, PluginFault, Plugins, PutError, Sessions,
    Settings,
};
pub use http::{document, router, router_with_pages};
pub use links::{Link, Links, NoLink};
pub use serve::{Connections, serve};
pub use signed::{SessionMark, SigningKey};
