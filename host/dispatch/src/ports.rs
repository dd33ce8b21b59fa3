//! All I/O that this system can do, as traits. Whoever implements one of them is an edge; the loop knows none of them.

mod clock;
mod store;
mod tools;

pub use clock::Clock;
pub use store::{
    AppendError, AuditEntry, Commit, Committed, Facts, Feed, Filter, Index, Loaded, Page, Position, Store, StoreFault,
    SuspensionRow,
};
pub use tools::{Checks, End, LiveTool, Progress, Report, Run, Tools};
