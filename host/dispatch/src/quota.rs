//! Quotas: the operator's limits on the use of the host by one principal. Most limit simultaneous use, and some limit a
//! rate. The host refuses a submission
//! above the quota and writes none of it. It never drops acknowledged work because of a quota.

use std::collections::HashMap;

use domain::rate::Rate;
use domain::{PrincipalId, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The number of turns that have not ended.
    pub open_turns: usize,
    /// The size of those turns in bytes: arguments, names of tools, contexts, origins and results. A second limit of
    /// the same size covers the memory of parsed values while the host checks requests. A request waits for
    /// free memory.
    pub open_bytes: usize,
    /// The number of calls that run in a guest. Others wait and start in the order of arrival. At least one can run.
    pub running_calls: usize,
    /// The number of calls that wait to run.
    pub waiting_calls: usize,
    /// New turns. Ephemeral turns do not count.
    pub turn_rate: Rate,
    /// The size of new turns in bytes, as in `open_bytes`. Ephemeral turns do not count. The results of guests count when
    /// they arrive, and delay later turns.
    pub byte_rate: Rate,
    /// The size of the stored records of all turns in bytes, also of those that have ended, until retention removes
    /// them.
    pub kept_bytes: u64,
    /// The number of open event streams. Only the HTTP server enforces this. An embedding program has no limit.
    pub event_streams: usize,
    /// The number of in-flight requests, excluding event streams. Only the HTTP server enforces this.
    pub requests: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            open_turns: 10_000,
            open_bytes: 256 << 20,
            running_calls: 64,
            waiting_calls: 1_024,
            turn_rate: Rate { per_second: 1_000, burst: 60_000 },
            byte_rate: Rate { per_second: 8 << 20, burst: 256 << 20 },
            kept_bytes: 64 << 30,
            event_streams: 64,
            requests: 256,
        }
    }
}

/// The quota of every principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotas {
    /// The quota of a principal that `named` does not contain.
    pub each: Quota,
    pub named: HashMap<PrincipalId, Quota>,
}

impl Quotas {
    #[must_use]
    pub fn of(&self, principal: &PrincipalId) -> Quota {
        self.named.get(principal).copied().unwrap_or(self.each)
    }
}

domain::names! {
    /// The limit that a submission would exceed, by its name in the configuration.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum QuotaBound {
        OpenTurns = "open_turns",
        OpenBytes = "open_bytes",
        /// The sum of [`Quota::running_calls`] and [`Quota::waiting_calls`].
        WaitingCalls = "waiting_calls",
        TurnRate = "turns_per_second",
        ByteRate = "bytes_per_second",
        KeptBytes = "kept_bytes",
    }
}

/// A submission would exceed its principal's quota. The client can submit it again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    pub principal: PrincipalId,
    pub bound: QuotaBound,
    pub limit: usize,
    /// The time until the same submission fits a rate. `None` for other limits: when they have room is not known.
    pub wait: Option<Span>,
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { principal, bound, limit, wait: _ } = self;
        match bound {
            QuotaBound::OpenTurns => write!(
                f,
                "{principal} has {limit} open turns, which is the limit (quota.open_turns); submit this one again when some have ended, or cancel some"
            ),
            QuotaBound::OpenBytes => write!(
                f,
                "this turn would raise the size of {principal}'s open turns above {limit} bytes (quota.open_bytes); submit it again when other turns have ended, or cancel some"
            ),
            QuotaBound::WaitingCalls => write!(
                f,
                "with this turn, more than {limit} calls of {principal} would run or wait to be run \
                 (quota.running_calls and quota.waiting_calls); submit it again when other calls have ended"
            ),
            QuotaBound::TurnRate => write!(
                f,
                "{principal} submits more than {limit} turns per second (quota.turns_per_second) and has used its burst; \
                 submit this one again later"
            ),
            QuotaBound::ByteRate => write!(
                f,
                "{principal} submits more than {limit} bytes per second (quota.bytes_per_second) and has used its burst; \
                 submit this turn again later"
            ),
            QuotaBound::KeptBytes => write!(
                f,
                "with this turn, the host would keep more than {limit} bytes of turns of {principal} (quota.kept_bytes); new \
                 turns are refused until retention removes old ones or the operator allows more; answers, cancellations \
                 and reads go on"
            ),
        }
    }
}
