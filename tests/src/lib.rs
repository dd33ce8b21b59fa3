//! What the tests of the whole share: a clock that moves when told to, tools that are made of words, stores that fail; and
//! for those that see it from outside, the real host as a process, a client for its API, and components to load.

#![expect(clippy::expect_used, reason = "what tests are made of fails by panicking, as tests do")]

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
