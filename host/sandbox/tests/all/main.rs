//! The guarantees of the sandbox, each with a guest that tries to break it. The guests are handwritten modules, so they
//! need no build, and each does exactly one thing.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod cache;
mod calls;
mod compiler;
mod durable;
mod features;
mod files;
mod keyvalue;
mod limits;
mod loading;
mod policies;
mod reports;
mod secrets;
mod stopping;
mod user_cache;
mod world;
