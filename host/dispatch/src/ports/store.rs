//! The store: everything that must outlive the process. It is ten small ports, one for each kind of reader. A backend
//! implements all of them, and each user takes only those that it needs.
//!
//! A store keeps logs and the indexes beside them. It knows no rule of a call's life. The laws on these pages are tests
//! (`host/store/tests/laws`), and each law runs on every backend.

use super::audit::Audit;
use super::call_log::CallLogs;
use super::health::Health;
use super::indexes::Indexes;
use super::journal::Journals;
use super::log::Log;
use super::outbox::Outbox;
use super::peers::Peers;
use super::retention::EndedTurns;
use super::standing::StandingApprovals;

/// All ports of a store. Every type that implements them is one.
///
/// Law of all reads: a read sees every commit whose `append` returned before the read began.
pub trait Store:
    Log + Indexes + Outbox + StandingApprovals + Audit + EndedTurns + CallLogs + Journals + Health + Peers
{
}

impl<T: Log + Indexes + Outbox + StandingApprovals + Audit + EndedTurns + CallLogs + Journals + Health + Peers> Store
    for T
{
}
