//! The shared parts of the integration tests: a simulated clock, tools that are described by words, stores that fail,
//! the real host as a process, a client for its API, and components to load.

#![expect(clippy::expect_used, reason = "helpers of tests fail by panicking")]

pub mod clock;
pub mod dev;
pub mod faults;
pub mod guests;
pub mod host;
pub mod hostile;
pub mod http;
pub mod random;
pub mod sse;
pub mod tools;

#[path = "../../host/domain/tests/support/invariants.rs"]
pub mod invariants;

pub use ::domain;
