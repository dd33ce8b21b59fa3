//! Turns any error into the one error of the port.

use std::fmt::Display;

use dispatch::ports::StoreFault;

/// For `map_err`: what was attempted, and why it failed.
pub(crate) fn fault<E: Display>(attempted: &'static str) -> impl FnOnce(E) -> StoreFault {
    move |reason| StoreFault { attempted, reason: reason.to_string() }
}
