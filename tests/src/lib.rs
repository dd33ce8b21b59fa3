//! What the tests of the whole share: a clock that moves when told to, tools that are made of words, stores that fail.

pub mod clock;
pub mod faults;
pub mod random;
pub mod tools;

#[path = "../../host/domain/tests/support/invariants.rs"]
pub mod invariants;

pub use ::domain;
