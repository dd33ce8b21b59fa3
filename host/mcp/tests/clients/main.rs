//! The endpoint with a real host and clients in the same process. Only tools and time are simulated.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod calls;
mod cards;
mod http;
mod joins;
mod messages;
mod questions;
mod streams;
mod tasks;
mod tools;
mod unread;
mod world;
