//! Native tests of a plugin, without a host: [`check`] tests declarations, [`run`] runs a tool.

mod attempt;
mod check;

pub use attempt::{Attempt, Run, Update, run};
pub use check::{Findings, check};

#[cfg(feature = "keyvalue")]
pub use crate::keyvalue::memory::Memory;
