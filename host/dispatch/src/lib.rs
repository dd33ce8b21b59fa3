//! The loop: load, decide, commit, publish, perform; and the ports it needs.

pub mod ports;
