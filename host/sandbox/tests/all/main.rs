//! What the sandbox promises, each promise with a guest that tries it. The guests are modules written by hand, so that
//! nothing has to be built and each does exactly one thing.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "what takes how long is what some of these tests are about")]

mod cache;
mod calls;
mod compiler;
mod features;
mod files;
mod guests;
mod keyvalue;
mod limits;
mod loading;
mod policies;
mod reports;
mod secrets;
mod stopping;
mod user_cache;
mod world;
