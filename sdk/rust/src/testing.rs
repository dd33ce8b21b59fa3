//! Tests of a plugin on the native target, without a host: [`check`] what is declared, [`run`] what is written.

mod attempt;
mod check;

pub use attempt::{Attempt, Run, Update, run};
pub use check::{Findings, check};

#[cfg(feature = "keyvalue")]
pub use crate::keyvalue::memory::Memory;
