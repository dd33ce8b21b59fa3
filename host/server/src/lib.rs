//! The HTTP server. Only this crate serves HTTP.
//!
//! A request passes these layers, from the outside in: the headers of every response (`guard`), metrics (`metrics`),
//! the handler of panics, the check of the host name (`guard`), the tokens that changed (`auth`), access tokens
//! (`access`), CORS (`cross_origin`), and then its route in
//! [`http`](self), which has one file per resource. A route knows its principal from the transport only (`auth`): from
//! a token, or from the cookie of a session that was opened with one (`signed`). It reads the body once (`body`,
//! [`api`]), calls [`dispatch::Handle`], and writes the response in the types of [`api`]. `error` turns every error
//! into a problem.
//!
//! The server has no compression, and it writes only JSON. Pages from elsewhere can be served beside the API
//! ([`router_with_pages`]).

mod access;
mod app;
mod auth;
mod body;
mod cookies;
mod cross_origin;
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
mod mcp_unread;
mod metrics;
mod openapi;
mod paths;
mod ports;
mod recheck;
mod serve;
mod signed;

pub use http::{document, router, router_with_pages};
pub use links::{Links, MadeLink, NoLink};
pub use ports::{
    About, AccessToken, AccessTokens, Authenticate, BackupError, Backups, Checkpoints, ExplainPolicy, Hosts,
    LongRequests, McpBody, McpClients, McpUnread, NotRevoked, PluginFault, Plugins, Ports, ProtectedResource, PutError,
    RevokedSessions, ServerSettings, Sessions, TokenRefusal,
};
pub use serve::{Connections, Tls, TlsError, TlsFiles, serve};
pub use signed::{OpenedBy, SessionMark, SigningKey};
