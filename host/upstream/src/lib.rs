//! The tools of upstream MCP servers. Such a server is a program that the operator names. It runs outside the sandbox, with the
//! rights of the host's user. The host gates, checks, records and bounds its calls as those of other server tools.
//!
//! ```text
//! pins (accepted declarations) ─┐
//! tools/list of the server ─────┴─► catalog: only tools whose declaration is the accepted one ─► find, list, pinned
//! run ─► server: one process, restarted with a backoff ─► connection: one request per call ─► result
//! ```
//!
//! Read `server.rs` first: one upstream. `connection.rs` has the protocol and its bounds, `pins.rs` the accepted declarations.

mod catalog;
mod child;
mod connection;
mod declaration;
mod diff;
mod message;
mod pins;
mod reading;
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
pub use diff::{Change, Changed, Gate, Review};
pub use pins::{AcceptedServer, Pins, PinsFault};
pub use settings::{Bounds, MakeTool, Offer, Parts, Program, Redact, UpstreamSettings};
pub use supervise::{hide_from_servers, supervise};
pub use target::Target;
pub use upstreams::{UpstreamStatus, Upstreams};
