//! The key-value data of plugins. A read, and a write that is no part of a commit, names the term of its host. So the server refuses it
//! after another host has taken over, after this host has given it up, and after a crash of the server.

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
use uuid::Uuid;

use super::committer::Work;
use super::fault::{no_answer, pool_fault};
use super::fence::Fence;
use super::rows::{column, damaged, unsigned};
use super::session::{Column, Failure};
use crate::fault::fault;
use crate::key_value::{NamespaceUsage, Present, SortedMap};

/// A read in a term. Without the term, it returns no row.
macro_rules! in_term {
    ($rest:literal) => {
        concat!("WITH present AS (SELECT writes FROM value_writes, value_terms WHERE host = $1 AND term = $2) ", $rest)
    };
}

/// A write in a term. It is counted also if the value has changed and nothing is written.
macro_rules! write_in_term {
    ($write:literal) => {
        concat!(
            "WITH held AS (SELECT term FROM value_terms WHERE host = $1 AND term = $2 FOR NO KEY UPDATE), \
            counted AS (UPDATE value_writes SET writes = writes + 1 FROM held RETURNING writes), made AS (",
            $write,
            " RETURNING key) SELECT writes, EXISTS (SELECT FROM made) AS is_made FROM counted"
        )
    };
}

const GET: &str = in_term!(
    "SELECT writes, value, write, bytes, keys FROM present LEFT JOIN plugin_values ON key = $3 \
    LEFT JOIN plugin_usage ON namespace = $4"
);
const FROM: &str = in_term!(
    "SELECT writes, key, value FROM present LEFT JOIN LATERAL (SELECT key, value FROM plugin_values \
    WHERE key >= $3 ORDER BY key LIMIT $4) AS entries ON true ORDER BY key"
);
const AFTER: &str = in_term!(
    "SELECT writes, key, value FROM present LEFT JOIN LATERAL (SELECT key, value FROM plugin_values \
    WHERE key > $3 ORDER BY key LIMIT $4) AS entries ON true ORDER BY key"
);
const INSERT: &str = write_in_term!(
    "INSERT INTO plugin_values (key, value, write) SELECT $3::bytea, $4::bytea, $5::uuid FROM counted \
    ON CONFLICT (key) DO NOTHING"
);
const UPDATE: &str =
    write_in_term!("UPDATE plugin_values SET value = $4, write = $5 FROM counted WHERE key = $3 AND value = $6");
const DELETE: &str = write_in_term!("DELETE FROM plugin_values USING counted WHERE key = $3 AND value = $4");

/// The number of entries that are read at once: first, and at most. Each has a bounded size.
const FIRST: i64 = 16;
const MAX_AT_ONCE: i64 = 128;

const WRITE: &str = "write a value";

/// How often a read or a write is tried that did not happen because its term had ended.
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

/// A key in the database.
struct Entry {
    value: Option<Vec<u8>>,
    /// `None`: a commit made it.
    write: Option<Uuid>,
    usage: NamespaceUsage,
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
    fn term(&self) -> Result<Uuid, StoreFault> {
        const RENEW: &str = "find out about a write";
        for _ in 0..MAX_TERMS {
            if let Some(term) = self.fence.term() {
                return Ok(term);
            }
            let (committer, deadline) = (self.committer.upgrade(), self.deadline);
            self.wait(RENEW, async move {
                let ended = || Failure::Lost(fault(RENEW)("the committer has ended"));
                let (reply, renewed) = oneshot::channel();
                let renewing = async {
                    committer.ok_or_else(ended)?.send(Work::Renew(reply)).await.map_err(|_| ended())?;
                    Ok(renewed.await.map_err(|_| ended())??)
                };
                timeout(deadline, renewing).await.unwrap_or_else(|_| Err(Failure::Lost(no_answer(RENEW))))
            })?;
        }
        Err(no_answer(RENEW))
    }

    /// Runs a statement in the present term. `None`: the server does not know the term any more.
    fn in_term(
        &self,
        attempted: &'static str,
        term: Uuid,
        statement: &'static str,
        parameters: Vec<Column>,
    ) -> Result<Option<Vec<Row>>, Failure> {
        let of_term: [Column; 2] = [Box::new(self.fence.host().to_owned()), Box::new(term)];
        let rows = self.query(attempted, statement, of_term.into_iter().chain(parameters).collect())?;
        match rows.first() {
            Some(row) => self.fence.confirm(column(row, "writes")?),
            None => self.fence.end(term),
        }
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    /// Reads in the present term. So what a host reads is never older than what it has read before, also after a crash of the server.
    fn read(
        &self,
        attempted: &'static str,
        statement: &'static str,
        parameters: impl Fn() -> Vec<Column>,
    ) -> Result<Vec<Row>, StoreFault> {
        for _ in 0..MAX_TERMS {
            if let Some(rows) = self.in_term(attempted, self.term()?, statement, parameters())? {
                return Ok(rows);
            }
        }
        Err(no_answer(attempted))
    }

    /// The value of a key, the write that made it, and the usage of a namespace.
    fn entry(&self, namespace: &str, key: &[u8]) -> Result<Entry, StoreFault> {
        let columns = || -> Vec<Column> { vec![Box::new(key.to_vec()), Box::new(namespace.as_bytes().to_vec())] };
        let rows = self.read("read a value", GET, columns)?;
        let row = rows.first().ok_or_else(|| damaged("a value"))?;
        let counted = |name| Ok::<_, StoreFault>(column::<Option<i64>>(row, name)?.map_or(0, unsigned));
        let usage = NamespaceUsage::new(namespace, counted("bytes")?, counted("keys")?);
        Ok(Entry { value: column(row, "value")?, write: column(row, "write")?, usage })
    }

    fn page(&self, from: &Bound<Vec<u8>>, entries: i64) -> Result<Entries, StoreFault> {
        let (statement, key) = match from {
            Bound::Included(key) => (FROM, key.as_slice()),
            Bound::Excluded(key) => (AFTER, key.as_slice()),
            Bound::Unbounded => (FROM, [].as_slice()),
        };
        let rows = self.read("read values", statement, || vec![Box::new(key.to_vec()), Box::new(entries)])?;
        let pairs =
            rows.iter().filter_map(|row| column::<Option<Vec<u8>>>(row, "key").transpose().map(|key| (key, row)));
        pairs.map(|(key, row)| Ok((key?, column(row, "value")?))).collect()
    }

    /// Makes a write with this id, unless its term has ended or the value is another one. `None`: the term has ended.
    fn write(
        &self,
        term: Uuid,
        id: Uuid,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Option<bool>, Failure> {
        let bytes = |bytes: &[u8]| -> Column { Box::new(bytes.to_vec()) };
        let mut parameters = vec![bytes(key)];
        let statement = match (old, new) {
            (None, None) => return Ok(Some(true)),
            (None, Some(new)) => {
                parameters.extend([bytes(new), Box::new(id)]);
                INSERT
            }
            (Some(old), Some(new)) => {
                parameters.extend([bytes(new), Box::new(id), bytes(old)]);
                UPDATE
            }
            (Some(old), None) => {
                parameters.push(bytes(old));
                DELETE
            }
        };
        let rows = self.in_term(WRITE, term, statement, parameters)?;
        let row = rows.as_ref().and_then(|rows| rows.first());
        Ok(row.map(|row| column(row, "is_made")).transpose()?)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it tells a write from those of other hosts, and its value does not matter"
)]
fn write_id() -> Uuid {
    Uuid::new_v4()
}

impl SortedMap for Values {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(self.entry("", key)?.value)
    }

    fn present(&self, namespace: &str, key: &[u8]) -> Result<Present, StoreFault> {
        let Entry { value, usage, .. } = self.entry(namespace, key)?;
        Ok(Present { value, usage: Some(usage) })
    }

    fn swap(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, StoreFault> {
        if let Some(fault) = &*self.failed.borrow() {
            return Err(fault.clone());
        }
        let id = write_id();
        for _ in 0..MAX_TERMS {
            let term = self.term()?;
            match self.write(term, id, key, old, new) {
                Ok(Some(is_made)) => return Ok(is_made),
                Ok(None) => {}
                Err(Failure::Overtaken(_)) => return Ok(false),
                Err(Failure::Refused(fault)) => return Err(fault),
                Err(Failure::Lost(fault)) => {
                    self.fence.end(term);
                    // The entry is read in a later term, so the write has happened, or it never will. The same value is no proof:
                    // two hosts that increment a number write the same one. The id of the write is a proof. With another id,
                    // the write did not happen, or another host has replaced its value: nobody knows, so it is a fault.
                    // A removal leaves no id. An absent key is as the caller wants it, also if another host removed it.
                    let now = self.entry("", key)?;
                    let is_made = if new.is_some() { now.write == Some(id) } else { now.value.is_none() };
                    return if is_made { Ok(true) } else { Err(fault) };
                }
            }
        }
        Err(no_answer(WRITE))
    }

    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault> {
        let (mut from, mut entries) = (key, FIRST);
        loop {
            let page = self.page(&from, entries)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::PostgresSettings;
    use crate::postgres::connect::Connector;

    #[test]
    fn wait_for_a_new_term_has_a_deadline() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let deadline = Duration::from_millis(10);
        let settings = PostgresSettings { deadline, ..PostgresSettings::new("postgres:///t?user=u&host=/missing") };
        let pool = Connector::new(&settings, Vec::new()).unwrap().values(1).unwrap();
        // The committer takes the request, and never answers.
        let (queue, _work) = mpsc::channel(1);
        let (_failing, failed) = watch::channel(None);
        let fence = Arc::new(Fence::new("a"));
        let values = Values::new(runtime.handle().clone(), pool, deadline, failed, fence, queue.downgrade());
        assert_eq!(values.get(b"k").unwrap_err().to_string(), no_answer("find out about a write").to_string());
    }
}
