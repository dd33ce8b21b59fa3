//! How the host knows that the database is as the host left it, and how the server knows that a write of values is of a host that
//! may write.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The term of the host and the number of writes of values that it has seen, for the committer and the writers of values.
pub(super) struct Fence {
    host: String,
    /// A random id. `None`: no term can be used.
    term: Mutex<Option<Uuid>>,
    /// The largest number that the server has confirmed, with a write of this host or with data that it read.
    writes: AtomicI64,
}

impl Fence {
    pub(super) fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), term: Mutex::default(), writes: AtomicI64::default() }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The present term, unless a write may happen later in it.
    pub(super) fn term(&self) -> Option<Uuid> {
        *self.locked()
    }

    /// Ends a term, because the outcome of one of its writes is unknown, or because the server does not know it.
    pub(super) fn end(&self, term: Uuid) {
        // A term that has begun since is as good as any.
        self.locked().take_if(|present| *present == term);
    }

    /// Remembers the number of writes of all hosts that the server has confirmed.
    pub(super) fn confirm(&self, writes: i64) {
        self.writes.fetch_max(writes, Ordering::SeqCst);
    }

    /// Begins a new term. The server refuses each later write of an earlier one, and it waits for those that have begun. Only the
    /// session with the lock may do this.
    ///
    /// If the server does not know an earlier term of this host, it has crashed, or another server took its place. It may have lost
    /// writes. Then the number of writes at that time was lower than this host has seen. Nobody could write before the first host
    /// had begun a term and stored the number, so no later writes hide the loss.
    pub(super) async fn begin(&self, session: &Session) -> Result<(), PostgresError> {
        let refused = PostgresError::refused;
        // Before the statement: what the server confirms in a term that it knows may be missing in the answer.
        let confirmed = self.writes.load(Ordering::SeqCst);
        let rows = session.query(BEGIN, &[&self.host]).await.map_err(refused("begin a term"))?;
        let read =
            |row: &Row| Ok::<_, StoreFault>((column(row, "term")?, column(row, "base")?, column(row, "is_known")?));
        let row = rows.first().ok_or_else(|| rows::damaged("the term of the host"));
        let begun = row.and_then(read).map_err(Failure::from).map_err(refused("begin a term"))?;
        let (term, base, is_known): (Uuid, i64, bool) = begun;
        if !is_known && base < confirmed {
            return Err(PostgresError::LostValues);
        }
        *self.locked() = Some(term);
        Ok(())
    }

    fn locked(&self) -> MutexGuard<'_, Option<Uuid>> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FOUND: &str = "SELECT position, hash, mark FROM head";
const BEGIN: &str = "WITH before AS (SELECT coalesce(min(base), (SELECT writes FROM value_writes)) AS base, \
    coalesce(bool_or(host = $1), false) AS is_known FROM value_terms) \
    INSERT INTO value_terms (host, term, base) SELECT $1, gen_random_uuid(), base FROM before \
    ON CONFLICT (host) DO UPDATE SET term = excluded.term RETURNING term, base, (SELECT is_known FROM before)";

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
    let rows = session.query(FOUND, &[]).await.map_err(refused("read its head"))?;
    let row = rows.first().ok_or_else(|| rows::damaged("the head of the audit"));
    let found = row.and_then(Mark::read).map_err(Failure::from).map_err(refused("read its head"))?;
    if let Some(known) = known.filter(|known| !known.has(found)) {
        return Err(known.differs(found));
    }
    fence.begin(session).await?;
    Ok(found)
}
