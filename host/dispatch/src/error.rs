//! Why a request to the host was not carried out, and whose fault that is.

use domain::{CallId, Refusal};

use crate::ports::StoreFault;
use crate::quota::Busy;

/// A request that was not carried out. Nothing of it happened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such thing, or not for this principal.
    #[error("there is no such {0}, or it is not yours to see")]
    NotFound(&'static str),
    /// This principal may not do this.
    #[error("{0}")]
    NotAllowed(String),
    /// The call id was submitted before with other arguments, another tool, or among other calls.
    #[error("call id {call} was submitted before, {difference}; use a new id for a new call")]
    CallIdTaken {
        /// The id.
        call: CallId,
        /// What is different.
        difference: &'static str,
    },
    /// Part of the request is too large.
    #[error("{what} is {size} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The largest that is allowed.
        limit: usize,
    },
    /// The principal has as much at the host as it may. The same request may be made again later.
    #[error("{0}")]
    Busy(Busy),
    /// The rules of a call's life refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The host failed.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}
