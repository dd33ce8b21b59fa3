//! The key-value data of plugins.

use std::ops::Bound;
use std::sync::mpsc;
use std::time::Duration;

use deadpool_postgres::Pool;
use dispatch::ports::StoreFault;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::fault::{database_fault, no_answer, pool_fault};
use crate::key_value::SortedMap;

const GET: &str = "SELECT value FROM plugin_values WHERE key = $1";
const PUT: &str =
    "INSERT INTO plugin_values (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const REMOVE: &str = "DELETE FROM plugin_values WHERE key = $1";
const FROM: &str = "SELECT key, value FROM plugin_values WHERE key >= $1 ORDER BY key LIMIT $2";
const AFTER: &str = "SELECT key, value FROM plugin_values WHERE key > $1 ORDER BY key LIMIT $2";

/// The number of entries that are read at once: first, and at most. Each has a bounded size.
const FIRST: i64 = 16;
const MAX_AT_ONCE: i64 = 128;

/// The data, for threads that may block.
pub(super) struct Values {
    runtime: Handle,
    pool: Pool,
    deadline: Duration,
    /// Why the store takes no commits. It then takes no values either.
    failed: watch::Receiver<Option<StoreFault>>,
}

/// Entries in the order of their keys.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Values {
    pub(super) fn new(
        runtime: Handle,
        pool: Pool,
        deadline: Duration,
        failed: watch::Receiver<Option<StoreFault>>,
    ) -> Self {
        Self { runtime, pool, deadline, failed }
    }

    /// Waits for work of the store's threads. The thread may belong to another runtime, and the work needs none of it.
    fn wait<T: Send + 'static>(
        &self,
        attempted: &'static str,
        work: impl Future<Output = Result<T, StoreFault>> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let (done, result) = mpsc::sync_channel(1);
        let deadline = self.deadline;
        self.runtime.spawn(async move {
            let result = timeout(deadline, work).await.unwrap_or_else(|_| Err(no_answer(attempted)));
            drop(done.send(result));
        });
        result.recv().map_err(|_| no_answer(attempted))?
    }

    fn page(&self, from: Bound<Vec<u8>>, entries: i64) -> Result<Entries, StoreFault> {
        const READ: &str = "read values";
        let pool = self.pool.clone();
        self.wait(READ, async move {
            let connection = pool.get().await.map_err(pool_fault(READ))?;
            let (statement, key) = match from {
                Bound::Included(key) => (FROM, key),
                Bound::Excluded(key) => (AFTER, key),
                Bound::Unbounded => (FROM, Vec::new()),
            };
            let statement = connection.prepare_cached(statement).await.map_err(database_fault(READ))?;
            let rows = connection.query(&statement, &[&key, &entries]).await.map_err(database_fault(READ))?;
            let entry = |row: &tokio_postgres::Row| Ok((row.try_get("key")?, row.try_get("value")?));
            rows.iter().map(|row| entry(row).map_err(database_fault(READ))).collect()
        })
    }
}

impl SortedMap for Values {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        const READ: &str = "read a value";
        let (pool, key) = (self.pool.clone(), key.to_vec());
        self.wait(READ, async move {
            let connection = pool.get().await.map_err(pool_fault(READ))?;
            let statement = connection.prepare_cached(GET).await.map_err(database_fault(READ))?;
            let row = connection.query_opt(&statement, &[&key]).await.map_err(database_fault(READ))?;
            row.map(|row| row.try_get("value")).transpose().map_err(database_fault(READ))
        })
    }

    fn put(&self, key: Vec<u8>, value: Option<&[u8]>) -> Result<(), StoreFault> {
        const WRITE: &str = "write a value";
        if let Some(fault) = &*self.failed.borrow() {
            return Err(fault.clone());
        }
        let (pool, value) = (self.pool.clone(), value.map(<[u8]>::to_vec));
        self.wait(WRITE, async move {
            let connection = pool.get().await.map_err(pool_fault(WRITE))?;
            let statement = if value.is_some() { PUT } else { REMOVE };
            let statement = connection.prepare_cached(statement).await.map_err(database_fault(WRITE))?;
            let written = match &value {
                Some(value) => connection.execute(&statement, &[&key, value]).await,
                None => connection.execute(&statement, &[&key]).await,
            };
            written.map(drop).map_err(database_fault(WRITE))
        })
    }

    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault> {
        let (mut from, mut entries) = (key, FIRST);
        loop {
            let page = self.page(from, entries)?;
            entries = MAX_AT_ONCE;
            for (key, value) in &page {
                if !each(key, value) {
                    return Ok(());
                }
            }
            match page.into_iter().last() {
                Some((last, _)) => from = Bound::Excluded(last),
                None => return Ok(()),
            }
        }
    }
}
