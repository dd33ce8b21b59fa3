//! What one principal may use of the host at once, as the operator decides. A submission above the quota is refused
//! before anything of it is written. Acknowledged work is never dropped for a quota.

use std::collections::HashMap;

use domain::PrincipalId;

/// The limits of one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Turns that have not ended.
    pub open_turns: usize,
    /// The size of their submissions in bytes: arguments, names of tools, contexts. Also the memory of the parsed
    /// values of requests that are checked at this moment; such a request waits for room.
    pub open_bytes: usize,
    /// Calls whose guests run; more wait, first come, first served. At least one runs.
    pub running_calls: usize,
    /// Calls that wait for one of those to end.
    pub waiting_calls: usize,
    /// Open event streams. The HTTP server enforces this: a program that embeds a host may follow as much as it likes.
    pub event_streams: usize,
    /// Requests in flight, streams aside. The HTTP server enforces this, too.
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

/// The quota of every principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotas {
    /// For principals without a quota of their own.
    pub each: Quota,
    pub named: HashMap<PrincipalId, Quota>,
}

impl Quotas {
    #[must_use]
    pub fn of(&self, principal: &PrincipalId) -> Quota {
        self.named.get(principal).copied().unwrap_or(self.each)
    }
}

/// The limit that a submission would exceed.
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
    /// Every limit with its name in the configuration.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::OpenTurns, "open_turns"), (Self::OpenBytes, "open_bytes"), (Self::WaitingCalls, "waiting_calls")];
}

/// A submission that would exceed its principal's quota. It may be tried again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    pub principal: PrincipalId,
    pub bound: Bound,
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
