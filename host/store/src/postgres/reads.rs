//! Reads, and writes outside of commits. They run on the threads of the store, because the runtime of their caller may have no I/O,
//! and each has a deadline.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Timeouts};
use dispatch::ports::StoreFault;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::{database_fault, no_answer, pool_fault};
use super::session::Session;
use crate::fault::fault;

/// For the faults of reads.
pub(super) const READ: &str = "read what is stored";

/// The maximum number of damaged records that are counted.
const MAX_DAMAGED: usize = 10_000;

/// The damaged records that were found since the store was opened, by their names.
#[derive(Clone, Default)]
pub(super) struct SetAside(Arc<Mutex<BTreeSet<String>>>);

impl SetAside {
    /// Counts a damaged record. Passes on faults that are not damage.
    pub(super) fn take(&self, fault: StoreFault) -> Result<(), StoreFault> {
        if !fault.is_damage() {
            return Err(fault);
        }
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < MAX_DAMAGED && found.insert(fault.reason.clone()) {
            tracing::error!(reason = fault.reason, "a damaged record is set aside");
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Connections for one kind of statements.
pub(super) struct Reads {
    runtime: Handle,
    pool: Pool,
    deadline: Duration,
    /// For faults.
    attempted: &'static str,
    timed_out: AtomicU64,
    pub(super) set_aside: SetAside,
}

impl Reads {
    pub(super) fn new(runtime: Handle, pool: Pool, deadline: Duration, attempted: &'static str) -> Self {
        Self { runtime, pool, deadline, attempted, timed_out: AtomicU64::new(0), set_aside: SetAside::default() }
    }

    pub(super) fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    pub(super) async fn run<T, R>(&self, read: impl FnOnce(Reader) -> R + Send + 'static) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        R: Future<Output = Result<T, StoreFault>> + Send,
    {
        let (pool, set_aside, attempted) = (self.pool.clone(), self.set_aside.clone(), self.attempted);
        let deadline = self.deadline;
        let reading = self.runtime.spawn(async move {
            let mut used = None;
            let reading = async {
                // The deadline is for the connection too.
                let connection = pool.timeout_get(&Timeouts::new()).await.map_err(pool_fault(attempted))?;
                let connection = used.insert(Arc::new(connection)).clone();
                read(Reader { connection, attempted, set_aside }).await
            };
            let read = timeout(deadline, reading).await;
            if read.is_err() {
                // The next user of the connection would wait for the same answer, which may never come.
                drop(used.and_then(Arc::into_inner).map(Object::take));
            }
            read
        });
        reading.await.map_err(fault(attempted))?.unwrap_or_else(|_| {
            self.timed_out.fetch_add(1, Ordering::Relaxed);
            Err(no_answer(attempted))
        })
    }
}

/// One connection.
pub(super) struct Reader {
    connection: Arc<Object>,
    attempted: &'static str,
    pub(super) set_aside: SetAside,
}

impl Reader {
    /// Reads in the transaction of a session.
    pub(super) fn on(session: Session, attempted: &'static str) -> Self {
        Self { connection: Arc::new(session.into_connection()), attempted, set_aside: SetAside::default() }
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreFault> {
        let statement = self.connection.prepare_cached(statement).await.map_err(database_fault(self.attempted))?;
        self.connection.query(&statement, parameters).await.map_err(database_fault(self.attempted))
    }

    /// The first row.
    pub(super) async fn first(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, StoreFault> {
        Ok(self.query(statement, parameters).await?.into_iter().next())
    }

    /// The values of rows, without those of damaged ones.
    pub(super) fn intact<T>(
        &self,
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreFault>,
    ) -> Result<Vec<T>, StoreFault> {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            match read(row) {
                Ok(value) => values.push(value),
                Err(fault) => self.set_aside.take(fault)?,
            }
        }
        Ok(values)
    }
}
