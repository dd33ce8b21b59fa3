//! How the host knows that the database is as the host left it, and how the server knows that a write of values is of the host that
//! has the lock.

use std::sync::atomic::{AtomicI64, Ordering};

use dispatch::ports::{Head, StoreFault};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PostgresError;
use super::rows::{self, column};
use super::session::{Failure, Session};

/// The state of the database after a transaction of commits. An equal mark means that there was no other one since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) head: Head,
    /// A random id. Each transaction has its own.
    pub(super) id: Uuid,
}

impl Mark {
    pub(super) fn read(row: &Row) -> Result<Self, StoreFault> {
        let head = Head { position: rows::position(row, "position")?, hash: rows::digest(row, "hash")? };
        Ok(Self { head, id: column(row, "mark")? })
    }
}

/// The term of the host and the number of its writes of values, for the committer and the writers of values.
#[derive(Default)]
pub(super) struct Fence {
    /// 0: no term can be used.
    term: AtomicI64,
    /// The largest number that the server has confirmed.
    writes: AtomicI64,
}

impl Fence {
    /// The present term, unless a write may happen later in it.
    pub(super) fn term(&self) -> Option<i64> {
        Some(self.term.load(Ordering::SeqCst)).filter(|term| *term != 0)
    }

    /// Ends a term, because the outcome of one of its writes is unknown, or because the server does not know it.
    pub(super) fn end(&self, term: i64) {
        // A term that has begun since is as good as any.
        let _ = self.term.compare_exchange(term, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Remembers that the server has confirmed a write.
    pub(super) fn confirm(&self, writes: i64) {
        self.writes.fetch_max(writes, Ordering::SeqCst);
    }

    /// Begins a new term. The server refuses each later write of an earlier one, and it waits for those that have begun. Only the
    /// session with the lock may do this.
    pub(super) async fn begin(&self, session: &Session) -> Result<(), Failure> {
        let rows = session.query(BEGIN, &[]).await?;
        let row = rows.first().ok_or_else(|| rows::damaged("the term of the host"))?;
        self.confirm(column(row, "writes")?);
        self.term.store(column(row, "term")?, Ordering::SeqCst);
        Ok(())
    }
}

const FOUND: &str = "SELECT position, hash, mark, writes FROM head CROSS JOIN host";
const BEGIN: &str = "UPDATE host SET term = term + 1 RETURNING term, writes";

pub(super) const STATEMENTS: &[&str] = &[FOUND, BEGIN];

/// The knowledge of a host about its database, from its commits before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// After the last acknowledged transaction.
    pub(super) last: Mark,
    /// After a transaction whose answer was lost.
    pub(super) in_doubt: Option<Mark>,
}

impl Known {
    fn has(&self, found: Mark) -> bool {
        found == self.last || Some(found) == self.in_doubt
    }

    /// The database has another mark.
    pub(super) const fn differs(&self, found: Mark) -> PostgresError {
        PostgresError::Changed { found: found.head.position.0, left: self.last.head.position.0 }
    }
}

/// Compares the database with what the host knows about it, if it was connected before, and begins a new term. Returns the mark.
pub(super) async fn take_over(session: &Session, known: Option<Known>, fence: &Fence) -> Result<Mark, PostgresError> {
    let refused = PostgresError::refused;
    // Before the query: a write that the server confirms later may be missing in its answer.
    let confirmed = fence.writes.load(Ordering::SeqCst);
    let rows = session.query(FOUND, &[]).await.map_err(refused("read its head"))?;
    let read = |row: &Row| Ok::<_, StoreFault>((Mark::read(row)?, column::<i64>(row, "writes")?));
    let row = rows.first().ok_or_else(|| rows::damaged("the head of the audit"));
    let (found, writes) = row.and_then(read).map_err(Failure::from).map_err(refused("read its head"))?;
    if let Some(known) = known {
        if !known.has(found) {
            return Err(known.differs(found));
        }
        if writes < confirmed {
            return Err(PostgresError::LostValues);
        }
    }
    fence.begin(session).await.map_err(refused("begin a term"))?;
    Ok(found)
}
