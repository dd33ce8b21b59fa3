//! The test kit: simulated time and a store for hosts inside the test, tools that are described by words, stores that
//! fail, the real host as a process, a client for its API, and components to load.

#![expect(clippy::expect_used, reason = "helpers of tests fail by panicking")]

pub mod arguments;
pub mod binary;
pub mod browser;
pub mod clock;
pub mod cluster;
pub mod database;
pub mod dev;
pub mod disk;
pub mod effects;
pub mod faults;
pub mod guests;
pub mod host;
pub mod hostile;
pub mod http;
pub mod kills;
pub mod parts;
pub mod power_loss;
pub mod random;
pub mod remote;
pub mod requests;
pub mod soak;
pub mod sse;
pub mod steps;
pub mod strace;
pub mod terminal;
pub mod tools;
pub mod wat;
pub mod world;

#[path = "../../host/domain/tests/support/invariants.rs"]
pub mod invariants;

pub use ::domain;
