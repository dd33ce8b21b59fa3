//! What one principal may have at the host at once, as the operator decides it. Whoever would have more is refused before
//! anything of it is written; nothing that was acknowledged is ever dropped for a quota.

use std::collections::HashMap;

use domain::PrincipalId;

/// Bounds on what one principal may have at the host at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Turns that have not ended.
    pub open_turns: usize,
    /// What those turns were submitted with, in bytes: arguments, names of tools, contexts.
    pub open_bytes: usize,
    /// Calls whose guests run; more wait, first come, first served. At least one runs.
    pub running_calls: usize,
    /// Calls that wait for one of those to end.
    pub waiting_calls: usize,
    /// Event streams that are open. Kept by the doors: a program that embeds a host may follow as much as it likes.
    pub event_streams: usize,
    /// Requests that are being answered, streams aside. Kept by the doors, too.
    pub requests: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            open_turns: 10_000,
            open_bytes: 256 << 20,
            running_calls: 64,
            waiting_calls: 1_024,
            event_streams: 64,
            requests: 256,
        }
    }
}

/// The quota of everybody, and of those to whom the operator gave another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Everybody's.
    pub each: Quota,
    /// Of single principals.
    pub named: HashMap<PrincipalId, Quota>,
}

impl Quotas {
    /// The quota of a principal.
    #[must_use]
    pub fn of(&self, principal: &PrincipalId) -> Quota {
        self.named.get(principal).copied().unwrap_or(self.each)
    }
}

/// Which bound of a quota a submission would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// [`Quota::open_turns`].
    OpenTurns,
    /// [`Quota::open_bytes`].
    OpenBytes,
    /// [`Quota::running_calls`] and [`Quota::waiting_calls`] together.
    WaitingCalls,
}

impl Bound {
    /// Every bound with the operator's name of it.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::OpenTurns, "open_turns"), (Self::OpenBytes, "open_bytes"), (Self::WaitingCalls, "waiting_calls")];
}

/// A submission that would exceed its principal's quota by now. It may be made again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Whose quota.
    pub principal: PrincipalId,
    /// Which bound of it.
    pub bound: Bound,
    /// How much it allows.
    pub limit: usize,
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { principal, bound, limit } = self;
        match bound {
            Bound::OpenTurns => write!(
                f,
                "{principal} has {limit} turns that have not ended, and that is how many one principal may have \
                 (quota.open_turns); submit this one again when some have ended, or cancel some"
            ),
            Bound::OpenBytes => write!(
                f,
                "with this turn, what {principal} has submitted and what has not ended would be more than {limit} \
                 bytes (quota.open_bytes); submit it again when other turns have ended, or cancel some"
            ),
            Bound::WaitingCalls => write!(
                f,
                "with this turn, more than {limit} calls of {principal} would run or wait to be run \
                 (quota.running_calls and quota.waiting_calls); submit it again when other calls have ended"
            ),
        }
    }
}
