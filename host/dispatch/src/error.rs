//! Why a request to the host failed, and whose fault that is.

use domain::{CallId, Refusal, Timestamp, retention::RemovalRule};

use crate::ports::StoreFault;
use crate::quota::Busy;

/// Why a principal may not make requests of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    #[error("only a principal with the role caller submits turns")]
    Submit,
    #[error("only a principal with the role client attaches as one")]
    Attach,
    #[error("only a principal with the role admin may do this")]
    Admin,
    #[error("only the approver who gave a standing approval, or an admin, can revoke it")]
    Revoke,
}

/// A request that failed. It changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or this principal may not see it.
    #[error("there is no such {0}, or it is not yours to see")]
    NotFound(&'static str),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The turn ended, and retention removed it.
    #[error("the turn was removed by retention at {}: {rule}", domain::rfc3339(*.at))]
    Removed { at: Timestamp, rule: RemovalRule },
    /// The call id belongs to a turn that retention removed. The call never runs again.
    #[error(
        "call id {call} belongs to a turn that was removed by retention at {}: {rule}; the call is not run again, and a \
         new call needs a new id",
        domain::rfc3339(*.at)
    )]
    CallRemoved { call: CallId, at: Timestamp, rule: RemovalRule },
    /// The call id was submitted before with other arguments, another tool, or among other calls.
    #[error("call id {call} was submitted before, {difference}; use a new id for a new call")]
    CallIdTaken {
        /// The id that was submitted before.
        call: CallId,
        difference: &'static str,
    },
    /// Part of the request is too large.
    #[error("{what} is {size} bytes; at most {limit} are allowed")]
    TooLarge { what: &'static str, size: usize, limit: usize },
    /// The principal's quota is used up. The same request may be tried again later.
    #[error("{0}")]
    Busy(Busy),
    /// The domain refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The host failed.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}
