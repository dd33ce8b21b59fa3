//! The loop, and the ports it needs.
//!
//! The path of one call:
//!
//! 1. [`Handle::submit`] checks the caller's quota (`tracker`),
//! 2. it finds the tools and plans each call (`plan`), and [`domain::Turn::submit`] decides the events,
//! 3. `committer` adds the changes of the indexes, and [`ports::Log::append`] makes all of it durable,
//! 4. observers react to the commit: `feed` wakes followers, `turns` wakes [`Handle::wait`], `tracker` counts,
//! 5. if a call needs an approval, the turn waits on disk until [`Handle::resolve`] brings the next input,
//! 6. `pipeline/perform` starts the effects of the new state: [`ports::Tools::run`],
//! 7. the outcome of a run is the next input to the same pipeline.
//!
//! An answer, an expiry, a cancellation and a restart are inputs like any other. Nothing here knows a database, an
//! engine or a wire format.

mod alarm;
mod audit;
mod calls_below;
mod committer;
mod dispatcher;
mod error;
pub mod exact;
mod expiry;
mod feed;
mod footprint;
mod forget;
mod handle;
mod idempotency;
mod inbox;
mod index;
mod journal;
mod lingering;
mod loads;
mod nested;
mod outbox;
mod parts;
mod peers;
mod pending;
mod pipeline;
mod plan;
pub mod ports;
mod presence;
mod prompt;
mod quota;
mod recheck;
mod request;
mod retention;
mod ring;
mod run_logs;
mod runner;
mod shared;
mod signals;
mod standing;
mod start;
mod stop;
mod timeout_approvals;
mod timers;
mod tracker;
mod turns;

pub use audit::{Action, AuditEntry, AuditFilter, AuditPage, Ended, UnknownAction};
pub use dispatcher::Dispatcher;
pub use error::{Difference, Error, Forbidden, RequestPart, Resource};
pub use feed::{Follower, Item, LatestProgress, Live, ProgressFollower};
pub use forget::forget;
pub use handle::{
    Answered, CallOfHost, Handle, KeptTurn, LinkPermit, LinkRequest, Open, SuspensionPage, TurnWait, Within,
};
pub use inbox::{InboxFollower, Waiting};
pub use index::index_rows;
pub use parts::Parts;
pub use presence::Attachment;
pub use prompt::{Template, TemplateError};
pub use quota::{Busy, Quota, QuotaBound, Quotas};
pub use request::{
    Answer, Bounds, CallRequest, Counts, Edit, EditDefaults, Origin, ProviderResult, Submitted, SuspensionView,
    TurnRequest, Until,
};
pub use retention::{Amount, Hold, Mode, Pruned, RetentionRules, prune};
pub use run_logs::LogBounds;
pub use start::{Start, begin};
