//! The tools of a host for clients of the Model Context Protocol (MCP), over [`dispatch::Handle`] alone.
//!
//! The path of one `tools/call`: `frame` checks the text of the message and keeps the arguments verbatim; rmcp implements the
//! protocol and calls `connection`; `calls` submits a turn of one call, or joins the open call of the same request (`key`,
//! `deliveries`); `lanes` waits, and chooses the form in which a call that waits appears: a task (`tasks`), or a result that says
//! what the call waits for. If the client can ask its user, the result is a form or a page (`questions`). Otherwise the tool `toolgate_wait` (`wait`) gets the outcome later. Messages arrive as lines
//! ([`Endpoint::serve`], `lines`) or as HTTP requests ([`Endpoint::answer`]).
//!
//! Before the answer, a request may get notifications: the progress of its call (`waiter`), or the changes that it listens to
//! (`listen`). They are lines of rmcp's peer, or events of the response (`exchange`). Each one waits until the one before it is on its way
//! (`pace` limits them), and counts as unread (`unread`).
//!
//! Nothing here approves a call. The user of a client can answer a question of the client's own call.

mod calls;
mod card;
mod connection;
mod deliveries;
mod endpoint;
mod exchange;
mod frame;
mod key;
mod lanes;
mod lines;
mod listen;
mod pace;
mod parts;
mod questions;
mod results;
mod tasks;
mod tools;
mod unread;
mod wait;
mod waiter;

pub use endpoint::{Endpoint, ServeError};
pub use parts::{EndpointBounds, EndpointParts, Ready};
pub use unread::Unread;
