//! The tools of a host for clients of the Model Context Protocol (MCP), over [`dispatch::Handle`] alone.
//!
//! The path of one `tools/call`: `frame` checks the text of the message and keeps the arguments verbatim; rmcp implements the
//! protocol and calls `connection`; `calls` submits a turn of one call, or joins the open call of the same request (`key`,
//! `deliveries`), and waits for a bounded time; `results` writes the outcome, or a result that says what the call waits for. The tool
//! `toolgate_wait` (`wait`) gets the outcome later. A client that knows tasks gets one instead (`tasks`). Messages arrive as lines ([`Endpoint::serve`], `lines`) or as HTTP requests
//! ([`Endpoint::answer`]).
//!
//! Nothing here approves a call or answers a question.

mod calls;
mod connection;
mod deliveries;
mod endpoint;
mod frame;
mod key;
mod lines;
mod results;
mod tasks;
mod tools;
mod wait;

pub use endpoint::{Endpoint, EndpointBounds, EndpointParts, Ready, ServeError};
