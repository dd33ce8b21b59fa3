//! All I/O of this system, as traits. An edge implements them, and the loop knows no implementation.

mod audit;
mod call_log;
mod clock;
mod commit;
mod disk;
mod fault;
mod footprint;
mod health;
mod indexes;
mod journal;
mod log;
mod outbox;
mod peers;
mod policy;
mod position;
mod principals;
mod retention;
mod standing;
mod store;
mod tools;

pub use audit::{
    Audit, Audited, ChainEntry, Checkpoint, Head, ParseCheckpointError, Recorded, Source, Tampering, Walk,
};
pub use call_log::{CallLogs, LogLine, RunLog};
pub use clock::Clock;
pub use commit::{AppendError, AudienceChange, Commit, Denial, JournalRow, NewFacts, RowChange};
pub use disk::Disk;
pub use fault::{FaultKind, StoreFault};
pub use footprint::Footprint;
pub(crate) use footprint::text;
pub use health::{Health, StoreHealth};
pub use indexes::{Audiences, BegunTurns, Filter, FoundSubmission, Indexes, Order, Page, SuspensionRow};
pub use journal::{JournalPage, Journals, RunJournal};
pub use log::{Committed, Facts, Feed, Log, TurnEnding, TurnLog};
pub use outbox::{Attempt, DeliveryRow, DeliveryState, Occasion, Outbox, Report, Subject, Subscribers, TURN_SETTLED};
pub use peers::{LivePlugins, News, PeerCommit, Peers, RunningHost, Share};
pub use policy::{AsDeclared, Policy, PolicyQuery};
pub use position::Position;
pub use principals::Principals;
pub use retention::{CallRecords, EndedTurn, EndedTurns, Loaded, Tombstone, TurnToRemove, TurnsToRemove};
pub use standing::StandingApprovals;
pub use store::Store;
pub use tools::{
    AllowedEffects, CHECK_COST, Checks, End, KnownTool, Lingering, Permit, Progress, Run, RunMonitor, Tools,
};
