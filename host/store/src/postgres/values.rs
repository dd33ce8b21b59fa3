//! The key-value data of plugins. A write that is no part of a commit names the term of its host, so that the server refuses it
//! after another host has taken over, and after this host has given it up.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use dispatch::ports::StoreFault;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::committer::Work;
use super::fault::{no_answer, pool_fault};
use super::fence::Fence;
use super::rows::column;
use super::session::{Column, Failure};
use crate::fault::fault;
use crate::key_value::SortedMap;

const GET: &str = "SELECT value FROM plugin_values WHERE key = $1";
const PUT: &str = "WITH held AS (UPDATE host_values SET writes = writes + 1 WHERE term = $1 RETURNING writes), \
    put AS (INSERT INTO plugin_values (key, value) SELECT $2::bytea, $3::bytea FROM held \
    ON CONFLICT (key) DO UPDATE SET value = excluded.value) SELECT writes FROM held";
const REMOVE: &str = "WITH held AS (UPDATE host_values SET writes = writes + 1 WHERE term = $1 RETURNING writes), \
    removed AS (DELETE FROM plugin_values USING held WHERE key = $2) SELECT writes FROM held";
const FROM: &str = "SELECT key, value FROM plugin_values WHERE key >= $1 ORDER BY key LIMIT $2";
const AFTER: &str = "SELECT key, value FROM plugin_values WHERE key > $1 ORDER BY key LIMIT $2";

/// The number of entries that are read at once: first, and at most. Each has a bounded size.
const FIRST: i64 = 16;
const MAX_AT_ONCE: i64 = 128;

/// How often a write is tried that did not happen because its term had ended.
const MAX_TERMS: usize = 3;

/// The data, for threads that may block.
pub(super) struct Values {
    runtime: Handle,
    pool: Pool,
    deadline: Duration,
    /// Why the store takes no commits. It then takes no values either.
    failed: watch::Receiver<Option<StoreFault>>,
    fence: Arc<Fence>,
    committer: mpsc::WeakSender<Work>,
}

/// Entries in the order of their keys.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Values {
    pub(super) const fn new(
        runtime: Handle,
        pool: Pool,
        deadline: Duration,
        failed: watch::Receiver<Option<StoreFault>>,
        fence: Arc<Fence>,
        committer: mpsc::WeakSender<Work>,
    ) -> Self {
        Self { runtime, pool, deadline, failed, fence, committer }
    }

    /// Waits for work of the store's threads. The thread may belong to another runtime, and the work needs none of it.
    fn wait<T: Send + 'static>(
        &self,
        attempted: &'static str,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (done, result) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(async move { drop(done.send(work.await)) });
        result.recv().map_err(|_| Failure::Lost(no_answer(attempted)))?
    }

    /// Runs a statement.
    fn query(
        &self,
        attempted: &'static str,
        statement: &'static str,
        parameters: Vec<Column>,
    ) -> Result<Vec<Row>, Failure> {
        let (pool, deadline) = (self.pool.clone(), self.deadline);
        self.wait(attempted, async move {
            let mut used = None;
            let answered = async {
                let connection = pool.get().await.map_err(pool_fault(attempted))?;
                let connection = used.insert(connection);
                let prepared = connection.prepare_cached(statement).await.map_err(Failure::of(attempted))?;
                let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|column| &**column as _).collect();
                connection.query(&prepared, &parameters).await.map_err(Failure::of(attempted))
            };
            let answered = timeout(deadline, answered).await;
            answered.unwrap_or_else(|_| {
                // The next user of the connection would wait for the same answer.
                drop(used.map(Object::take));
                Err(Failure::Lost(no_answer(attempted)))
            })
        })
    }

    /// The present term. After a write whose outcome is unknown, it is a new one: then the write has happened, or it never will.
    fn term(&self) -> Result<i64, StoreFault> {
        const RENEW: &str = "find out about a write";
        for _ in 0..MAX_TERMS {
            if let Some(term) = self.fence.term() {
                return Ok(term);
            }
            let committer = self.committer.upgrade();
            self.wait(RENEW, async move {
                let ended = || Failure::Lost(fault(RENEW)("the committer has ended"));
                let (reply, renewed) = oneshot::channel();
                committer.ok_or_else(ended)?.send(Work::Renew(reply)).await.map_err(|_| ended())?;
                Ok(renewed.await.map_err(|_| ended())??)
            })?;
        }
        Err(no_answer(RENEW))
    }

    fn page(&self, from: Bound<Vec<u8>>, entries: i64) -> Result<Entries, StoreFault> {
        const READ: &str = "read values";
        let _ = self.term()?;
        let (statement, key) = match from {
            Bound::Included(key) => (FROM, key),
            Bound::Excluded(key) => (AFTER, key),
            Bound::Unbounded => (FROM, Vec::new()),
        };
        let rows = self.query(READ, statement, vec![Box::new(key), Box::new(entries)])?;
        rows.iter().map(|row| Ok((column(row, "key")?, column(row, "value")?))).collect()
    }

    /// Makes a write, unless its term has ended. Returns the number of writes.
    fn write(&self, term: i64, key: &[u8], value: Option<&[u8]>) -> Result<Option<i64>, Failure> {
        let mut parameters: Vec<Column> = vec![Box::new(term), Box::new(key.to_vec())];
        let statement = match value {
            Some(value) => {
                parameters.push(Box::new(value.to_vec()));
                PUT
            }
            None => REMOVE,
        };
        let rows = self.query("write a value", statement, parameters)?;
        Ok(rows.first().map(|row| column(row, "writes")).transpose()?)
    }
}

impl SortedMap for Values {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        let _ = self.term()?;
        let rows = self.query("read a value", GET, vec![Box::new(key.to_vec())])?;
        rows.first().map(|row| column(row, "value")).transpose()
    }

    fn put(&self, key: Vec<u8>, value: Option<&[u8]>) -> Result<(), StoreFault> {
        if let Some(fault) = &*self.failed.borrow() {
            return Err(fault.clone());
        }
        for _ in 0..MAX_TERMS {
            let term = self.term()?;
            match self.write(term, &key, value) {
                Ok(Some(writes)) => {
                    self.fence.confirm(writes);
                    return Ok(());
                }
                Ok(None) => self.fence.end(term),
                Err(Failure::Refused(fault)) => return Err(fault),
                Err(Failure::Lost(fault)) => {
                    self.fence.end(term);
                    // The value is read in a later term.
                    let happened = self.get(&key)?.as_deref() == value;
                    return if happened { Ok(()) } else { Err(fault) };
                }
            }
        }
        Err(no_answer("write a value"))
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
