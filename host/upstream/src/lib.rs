//! The tools of upstream MCP servers. Such a server is a program that the operator names, or a service at a URL. It runs outside the
//! sandbox; a program has the rights of the host's user. The host gates, checks, records and bounds its calls as those of other
//! server tools.
//!
//! ```text
//! pins (what is accepted) ──────┐
//! tools/list of the server ─────┴─► catalog: only tools whose declaration is the accepted one ─► find, list, pinned
//! run ─► server: one connection, made again with a backoff ─► connection: one request per call ─► result
//! ```
//!
//! Read `server.rs` first: one upstream. `connection.rs` is the protocol's client with two transports, `pipe.rs` and `remote.rs`. Each
//! bounds what the server sends. `pins.rs` has what the operator accepted.

mod catalog;
mod child;
mod connection;
mod declaration;
mod diff;
mod message;
mod parts;
mod pause;
mod pins;
mod pipe;
mod reading;
mod remote;
mod result;
mod server;
mod settings;
mod stderr;
mod supervise;
mod target;
mod unasked;
mod upstreams;

pub use catalog::Problem;
pub use declaration::{Annotations, Declaration};
pub use diff::{Change, Gate, Review};
pub use parts::Changed;
pub use pins::{AcceptedServer, Pins, PinsFault};
pub use settings::{Bounds, Endpoint, MakeTool, Offer, Parts, Place, Program, Redact, Token, UpstreamSettings};
pub use supervise::{hide_from_servers, supervise};
pub use target::Target;
pub use upstreams::{UpstreamStatus, Upstreams};
