//! How the host knows that the database is as the host left it, and how the server knows that a write of values is of a host that is
//! alive.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dispatch::ports::{Head, Position, StoreFault};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PostgresError;
use super::rows::{self, column};
use super::session::{Failure, Session};

/// The trace of a transaction of commits in the row of its host.
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

/// The term of the host and the number of writes of values that it has seen, for the committer and the writers of values.
pub(super) struct Fence {
    host: String,
    terms: Mutex<Terms>,
    /// The largest number that the server has confirmed, with a write of this host or with data that it read.
    writes: AtomicI64,
}

#[derive(Default)]
struct Terms {
    /// A random id. `None`: no term can be used.
    present: Option<Uuid>,
    /// The id of the row in which the server keeps the term. A crash of the server removes the row.
    row: Option<Uuid>,
}

impl Fence {
    pub(super) fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), terms: Mutex::default(), writes: AtomicI64::default() }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The present term, unless a write may happen later in it.
    pub(super) fn term(&self) -> Option<Uuid> {
        self.terms().present
    }

    /// Ends a term, because the outcome of one of its writes is unknown, or because the server does not know it.
    pub(super) fn end(&self, term: Uuid) {
        // A term that has begun since is as good as any.
        self.terms().present.take_if(|present| *present == term);
    }

    /// Remembers the number of writes of all hosts that the server has confirmed.
    pub(super) fn confirm(&self, writes: i64) {
        self.writes.fetch_max(writes, Ordering::SeqCst);
    }

    /// Begins a new term. The server refuses each later write of an earlier one, and it waits for those that have begun. Only the
    /// session with the lock of the host may do this.
    ///
    /// If the row of the earlier terms is lost, the server has crashed, or another server took its place, and writes may be lost too.
    /// Then the number of writes at that time was lower than this host has seen. Nobody could write before the first host had begun
    /// a term. It stores the number for each host that is alive, so neither later writes nor the end of that host hide the loss.
    pub(super) async fn begin(&self, session: &Session, owner: Uuid) -> Result<(), PostgresError> {
        let refused = PostgresError::refused;
        // Before the statement: what the server confirms in a term that it knows may be missing in the answer.
        let confirmed = self.writes.load(Ordering::SeqCst);
        let rows = session.query(BEGIN, &[&self.host, &owner]).await.map_err(refused("begin a term"))?;
        let read = |row: &Row| Ok::<_, StoreFault>((column(row, "id")?, column(row, "term")?, column(row, "base")?));
        let row = rows.first().ok_or(PostgresError::Ended)?;
        let (row, term, base): (Uuid, Uuid, i64) = read(row).map_err(Failure::from).map_err(refused("begin a term"))?;
        let mut terms = self.terms();
        if terms.row != Some(row) && base < confirmed {
            return Err(PostgresError::LostValues);
        }
        *terms = Terms { present: Some(term), row: Some(row) };
        Ok(())
    }

    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hosts that have no row yet get one with the same number, and a term that nobody knows. A host that is removed meanwhile is
/// left out. The order of the names is that in which all hosts lock the rows.
const BEGIN: &str = "WITH own AS (SELECT name FROM hosts WHERE name = $1 AND owner = $2), \
    others AS (SELECT name FROM hosts WHERE name <> $1 AND NOT EXISTS (SELECT FROM value_terms WHERE host = name) \
    FOR KEY SHARE SKIP LOCKED), \
    first AS (SELECT coalesce(min(base), (SELECT writes FROM value_writes)) AS base FROM value_terms), \
    begun AS (INSERT INTO value_terms AS present (host, term, base) SELECT name, gen_random_uuid(), base FROM first CROSS JOIN \
    (SELECT name FROM own UNION ALL SELECT name FROM others WHERE EXISTS (SELECT FROM own)) AS alive ORDER BY name \
    ON CONFLICT (host) DO UPDATE SET term = CASE present.host WHEN $1 THEN excluded.term ELSE present.term END \
    RETURNING host, id, term, base) SELECT id, term, base FROM begun WHERE host = $1";

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
