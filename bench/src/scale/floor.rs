//! Two floors, with the rows of a host. The group commit of PostgreSQL: a transaction for each commit, on as many connections as
//! callers. And batches: one connection that inserts the rows of all queued turns in one transaction, as a host does. They decide
//! nothing and run no guest.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::{BoxFuture, try_join_all};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use uuid::Uuid;

use super::hosts::{Cluster, connect};
use crate::http::post;
use crate::measure::now;

/// The turns of a host that are looked at for the sizes of their rows.
const LOOKED_AT: usize = 100;

/// The maximum number of commits in a transaction of a host.
const MAX_AT_ONCE: usize = 256;

/// The maximum number of connections. Two processors do not commit faster with more.
const CONNECTIONS: usize = 32;

// A turn of one call has two commits: one that begins it, and one that ends it.
const LIKE_A_TURN: &str = "SELECT (SELECT max(number) FROM commits WHERE source = 'turn') AS last, \
    (SELECT max(octet_length(record)) FROM commits WHERE source = 'turn' AND number = 0) AS begun, \
    (SELECT max(octet_length(record)) FROM commits WHERE source = 'turn' AND number = 1) AS ended, \
    caller, bytes, record, ended_at FROM ended_turns ORDER BY position DESC LIMIT 1";

const BEGIN: &str = "BEGIN";
const HEAD: &str = "UPDATE head SET position = $1, hash = $2";
const COMMITS: &str = "INSERT INTO commits (position, hash, source, turn, number, conversation, record, run) \
    SELECT position, $1, 'turn', turn, number, conversation, record, 1 \
    FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::text[], $6::bytea[]) AS new (position, turn, number, conversation, record)";
const CALLS: &str =
    "INSERT INTO calls (conversation, id, turn) SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[])";
const UNFINISHED: &str = "INSERT INTO unfinished_turns (turn, due_at, running) SELECT turn, $1, true \
    FROM unnest($2::uuid[]) AS new (turn)";
const FINISHED: &str = "DELETE FROM unfinished_turns WHERE turn = ANY ($1)";
const ENDED: &str = "INSERT INTO ended_turns (turn, ended_at, position, ending, conversation, caller, bytes, record) \
    SELECT turn, $1, position, 'settled', conversation, $2, $3, $4 \
    FROM unnest($5::uuid[], $6::bigint[], $7::text[]) AS new (turn, position, conversation)";
const KEPT: &str = "UPDATE kept SET bytes = bytes + $1";
const OPEN: &str = "UPDATE open_turns SET turns = turns + $1";

/// The rows of the turns of a caller.
struct Sample {
    begun: Vec<u8>,
    ended: Vec<u8>,
    caller: String,
    bytes: i64,
    row: Vec<u8>,
    time: i64,
}

impl Sample {
    fn read(row: &Row) -> Result<Self> {
        ensure!(row.try_get::<_, i64>("last")? == 1, "a turn of one call has other commits than the floor");
        let record = |name| anyhow::Ok(vec![b'r'; usize::try_from(row.try_get::<_, i32>(name)?)?]);
        let (begun, ended) = (record("begun")?, record("ended")?);
        let (caller, bytes) = (row.try_get("caller")?, row.try_get("bytes")?);
        Ok(Self { begun, ended, caller, bytes, row: row.try_get("record")?, time: row.try_get("ended_at")? })
    }
}

/// A commit that a caller waits for.
struct Commit {
    turn: Uuid,
    id: String,
    conversation: String,
    is_end: bool,
}

/// A connection, and what it writes.
struct Writer {
    client: Client,
    statements: Vec<(&'static str, Statement)>,
    sample: Arc<Sample>,
}

/// The tables of a host without the host.
pub(super) struct Floor {
    /// The first one also commits in batches.
    writers: Vec<Arc<Mutex<Writer>>>,
    position: Arc<AtomicI64>,
    /// The windows so far.
    windows: AtomicU64,
}

impl Floor {
    /// Makes a database with the tables of a host, and looks at the rows of some turns.
    pub(super) async fn new(server: &Path) -> Result<Self> {
        let mut cluster = Cluster::new(server, "floor").await?;
        cluster.start(1).await?;
        let mut connection = cluster.hosts[0].connect().await?;
        for n in 0..LOOKED_AT {
            post(&mut connection, &format!("sample_16_12_{n}"), false, "many12").await?;
        }
        cluster.hosts.clear();
        let client = connect(cluster.url()).await?;
        let sample = Arc::new(Sample::read(&client.query_one(LIKE_A_TURN, &[]).await?)?);
        client.batch_execute("INSERT INTO open_turns VALUES ('floor', 0, 0, 0) ON CONFLICT DO NOTHING").await?;
        let position = client.query_one("SELECT position FROM head", &[]).await?.try_get(0)?;
        let mut writers = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connect(cluster.url()).await?;
            writers.push(Arc::new(Mutex::new(Writer::new(client, sample.clone()).await?)));
        }
        Ok(Self { writers, position: Arc::new(AtomicI64::new(position)), windows: AtomicU64::new(0) })
    }

    /// Turns per second, in transactions of many commits on one connection.
    pub(super) async fn batched(&self, callers: usize, window: Duration) -> Result<f64> {
        let (queue, mut queued) = mpsc::channel::<(Commit, oneshot::Sender<()>)>(1024);
        let (writer, position) = (self.writers[0].clone(), self.position.clone());
        let committing = tokio::spawn(async move {
            let writer = writer.lock().await;
            let mut batch = Vec::with_capacity(MAX_AT_ONCE);
            while queued.recv_many(&mut batch, MAX_AT_ONCE).await > 0 {
                let (commits, answers): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
                let before = position.fetch_add(i64::try_from(commits.len())?, Ordering::Relaxed);
                writer.commit(&commits, before, true).await?;
                for answer in answers {
                    let _ = answer.send(());
                }
            }
            anyhow::Ok(())
        });
        let rate = self.rate(callers, window, move |_, commit| {
            let queue = queue.clone();
            async move {
                let (committed, answer) = oneshot::channel();
                queue.send((commit, committed)).await?;
                Ok(answer.await?)
            }
        });
        let rate = rate.await?;
        committing.await??;
        Ok(rate)
    }

    /// Turns per second, in a transaction for each commit, on as many connections as callers.
    pub(super) async fn grouped(&self, callers: usize, window: Duration) -> Result<f64> {
        let (writers, position) = (self.writers.clone(), self.position.clone());
        self.rate(callers, window, move |caller, commit| {
            let (writer, position) = (writers[caller % CONNECTIONS].clone(), position.clone());
            async move {
                let writer = writer.lock().await;
                writer.commit(&[commit], position.fetch_add(1, Ordering::Relaxed), false).await
            }
        })
        .await
    }

    /// Turns per second of `callers` callers. Each waits for the end of its turn before the next.
    async fn rate<F>(
        &self,
        callers: usize,
        window: Duration,
        commit: impl Fn(usize, Commit) -> F + Clone + Send + 'static,
    ) -> Result<f64>
    where
        F: Future<Output = Result<()>> + Send,
    {
        let windows = self.windows.fetch_add(1, Ordering::Relaxed);
        let (done, start) = (Arc::new(AtomicUsize::new(0)), now());
        let callers: Vec<_> = (0..callers)
            .map(|caller| {
                let (commit, done) = (commit.clone(), done.clone());
                tokio::spawn(async move {
                    let mut n = 0;
                    while start.elapsed() < window {
                        // As with ids that begin with the time, later ones are larger.
                        let turn = Uuid::from_u64_pair((windows + 1) << 48 | n, caller as u64);
                        for is_end in [false, true] {
                            let (id, conversation) = (format!("floor{windows}_{caller}_{n}"), format!("many{caller}"));
                            commit(caller, Commit { turn, id, conversation, is_end }).await?;
                        }
                        n += 1;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        drop(commit);
        for caller in callers {
            caller.await??;
        }
        Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
    }
}

impl Writer {
    async fn new(client: Client, sample: Arc<Sample>) -> Result<Self> {
        let mut statements = Vec::new();
        for statement in [BEGIN, HEAD, COMMITS, CALLS, UNFINISHED, FINISHED, ENDED, KEPT, OPEN] {
            statements.push((statement, client.prepare(statement).await?));
        }
        Ok(Self { client, statements, sample })
    }

    /// Writes the rows of commits in one transaction. All statements are sent at once. `with_shared`: also the rows that each
    /// transaction changes.
    async fn commit(&self, batch: &[Commit], before: i64, with_shared: bool) -> Result<()> {
        let Sample { begun, ended, caller, bytes, row, time } = &*self.sample;
        let (ends, begins): (Vec<_>, Vec<_>) = batch.iter().zip(before + 1..).partition(|(of, _)| of.is_end);
        let head = before + i64::try_from(batch.len())?;
        let hash = [7_u8; 32].as_slice();
        let all = || begins.iter().chain(&ends);
        let positions: Vec<_> = all().map(|(_, position)| *position).collect();
        let turns: Vec<_> = all().map(|(of, _)| of.turn).collect();
        let numbers: Vec<_> = all().map(|(of, _)| i64::from(of.is_end)).collect();
        let conversations: Vec<_> = all().map(|(of, _)| of.conversation.as_str()).collect();
        let records: Vec<_> = all().map(|(of, _)| if of.is_end { ended } else { begun }.as_slice()).collect();
        let ids: Vec<_> = begins.iter().map(|(of, _)| of.id.as_str()).collect();
        let ([turns_begun, turns_ended], [of_begun, of_ended]) =
            (split(&turns, begins.len()), split(&conversations, begins.len()));
        let [_, end_positions] = split(&positions, begins.len());
        let (kept, open) =
            (bytes * i64::try_from(ends.len())?, i64::try_from(begins.len())? - i64::try_from(ends.len())?);
        let mut sent: Vec<BoxFuture<'_, _>> = Vec::new();
        let mut add = |is_needed: bool, sql, parameters| {
            if is_needed {
                sent.push(self.sent(sql, parameters));
            }
        };
        add(true, BEGIN, vec![]);
        add(with_shared, HEAD, vec![&head, &hash]);
        add(true, COMMITS, vec![&hash, &positions, &turns, &numbers, &conversations, &records]);
        add(!begins.is_empty(), CALLS, vec![&of_begun, &ids, &turns_begun]);
        add(!begins.is_empty(), UNFINISHED, vec![time, &turns_begun]);
        add(!ends.is_empty(), FINISHED, vec![&turns_ended]);
        add(!ends.is_empty(), ENDED, vec![time, caller, bytes, row, &turns_ended, &end_positions, &of_ended]);
        add(with_shared && !ends.is_empty(), KEPT, vec![&kept]);
        add(with_shared, OPEN, vec![&open]);
        sent.push(Box::pin(self.client.batch_execute("COMMIT")));
        try_join_all(sent).await?;
        Ok(())
    }

    fn sent<'a>(
        &'a self,
        sql: &'static str,
        parameters: Vec<&'a (dyn ToSql + Sync)>,
    ) -> BoxFuture<'a, Result<(), tokio_postgres::Error>> {
        Box::pin(async move {
            let prepared = self.statements.iter().find(|(of, _)| *of == sql);
            match prepared {
                Some((_, statement)) => self.client.execute(statement, &parameters).await.map(drop),
                None => self.client.batch_execute(sql).await,
            }
        })
    }
}

/// The values of the turns that begin, and of those that end.
fn split<T: Copy>(values: &[T], begins: usize) -> [Vec<T>; 2] {
    let (begun, ended) = values.split_at(begins);
    [begun.to_vec(), ended.to_vec()]
}
