//! How the host knows that the database is as the host left it, and how the server knows that a write of values is of a host that is
//! alive.

use std::sync::atomic::{AtomicI64, Ordering};

use dispatch::ports::{Head, Position, StoreFault};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PostgresError;
use super::rows::{self, column};
use super::session::{Failure, Session};

/// What a transaction of commits leaves in the row of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// After the transaction.
    pub(super) head: Head,
    /// A random id. Each transaction has its own.
    pub(super) id: Uuid,
}

/// The row of this host.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnRow {
    /// Of the last transaction of this host.
    pub(super) mark: Mark,
    /// The number of this run. No two runs of hosts on a database have the same.
    pub(super) run: i32,
}

impl OwnRow {
    pub(super) fn read(row: &Row) -> Result<Self, StoreFault> {
        Ok(Self { mark: Mark { head: rows::head(row)?, id: column(row, "mark")? }, run: column(row, "run")? })
    }
}

/// The term of the host and the number of its writes of values, for the committer and the writers of values.
#[derive(Default)]
pub(super) struct Fence {
    /// 0: no term can be used.
    term: AtomicI64,
    /// The largest number of a write that the server has confirmed.
    pub(super) confirmed: AtomicI64,
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
        self.confirmed.fetch_max(writes, Ordering::SeqCst);
    }

    /// Begins a new term. The server refuses each later write of an earlier one, and it waits for those that have begun. Only the
    /// session with the lock of the host may do this. Returns whether the host is alive.
    pub(super) async fn begin(&self, session: &Session, host: &str, owner: Uuid) -> Result<bool, Failure> {
        let rows = session.query(BEGIN, &[&host, &owner]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        self.confirm(column(row, "writes")?);
        self.term.store(column(row, "term")?, Ordering::SeqCst);
        Ok(true)
    }
}

const BEGIN: &str = "UPDATE host_values SET term = nextval('terms') FROM hosts \
    WHERE host = $1 AND hosts.name = host AND hosts.owner = $2 RETURNING term, writes";

pub(super) const STATEMENTS: &[&str] = &[BEGIN];

/// The knowledge of a host about its database, from its commits before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// After the last acknowledged transaction.
    pub(super) last: Mark,
    /// After a transaction whose answer was lost.
    pub(super) in_doubt: Option<Mark>,
}

impl Known {
    /// Whether the database has the last transaction of this host, and those of other hosts before it.
    pub(super) fn has(&self, own: Mark, head: Position) -> bool {
        (own == self.last || Some(own) == self.in_doubt) && head >= own.head.position
    }

    /// The database has another mark, or an earlier head.
    pub(super) const fn differs(&self, head: Position) -> PostgresError {
        PostgresError::Changed { found: head.0, left: self.last.head.position.0 }
    }
}
