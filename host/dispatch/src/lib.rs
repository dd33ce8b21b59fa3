//! The loop, and the ports it needs.
//!
//! One call takes one path, by plain calls:
//!
//! 1. [`Handle::submit`] looks the tools up and makes a plan for each call (`plan`),
//! 2. `ledger` holds it against the caller's quota, and [`domain::Turn::submit`] decides which facts follow,
//! 3. `index` derives what changes of the indexes, and [`ports::Store::append`] makes both durable,
//! 4. `feed` wakes whoever follows,
//! 5. `perform` starts what the new state owes: [`ports::Tools::run`],
//! 6. and the outcome of that is the next input of the same step (`dispatcher`).
//!
//! An answer, an expiry, a cancellation and a restart are inputs like any other. Nothing here knows a database, an
//! engine or a wire format.

mod audit;
mod dispatcher;
mod error;
mod exact;
mod expiry;
mod feed;
mod forget;
mod handle;
mod idempotency;
mod inbox;
mod index;
mod judge;
mod ledger;
mod outbox;
mod perform;
mod plan;
pub mod ports;
mod presence;
mod prompt;
mod quota;
mod request;
mod silence;
mod standing;
mod start;
mod stop;
mod turns;

pub use audit::{Action, AuditEntry, AuditFilter, AuditPage, UnknownAction};
pub use dispatcher::{Host, Parts};
pub use error::Error;
pub use exact::Exact;
pub use feed::{Follower, Item, Live};
pub use handle::{Answered, Handle, Open, WantedLink};
pub use inbox::{InboxFollower, Waiting};
pub use presence::Attachment;
pub use prompt::{Template, TemplateError};
pub use quota::{Bound, Busy, Quota, Quotas};
pub use request::{
    Answer, Bounds, CallRequest, Counts, Origin, PendingItem, ProviderResult, Submitted, TurnRequest, Until,
};
pub use start::{Start, begin};
