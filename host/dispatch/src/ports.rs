//! All I/O that this system can do, as traits. Whoever implements one of them is an edge; the loop knows none of them.

mod audit;
mod clock;
mod outbox;
mod policy;
mod store;
mod tools;

pub use audit::{Anchor, Audited, Head, Link, ParseAnchorError, Source, Tampering, Walk};
pub use clock::Clock;
pub use outbox::{Attempt, DeliveryRow, DeliveryState, Occasion, Subscribers};
pub use policy::{AsDeclared, Policy, Question};
pub use store::{
    AppendError, Commit, Committed, Facts, Feed, Filter, Index, Loaded, Page, Position, Store, StoreFault,
    SuspensionRow,
};
pub use tools::{Checks, End, LiveTool, Progress, Report, Run, Tools};
