//! The task that writes. It takes the queued commits, checks each one under the lock of the head, writes all of them in one
//! transaction, and then replies.
//!
//! A `COMMIT` whose answer is lost may have happened. The task never repeats it blindly. It connects again, which waits until
//! the server has ended the old transaction, and asks for the state of that transaction. It repeats one that did not happen.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dispatch::ports::{AppendError, FaultKind, Head, Position, StoreFault};
use domain::TurnId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connect::Connector;
use super::fault::no_answer;
use super::load::load;
use super::plan::Plan;
use super::rows;
use super::session::{Failure, Session};
use super::write::write;

/// The largest number of commits in one transaction.
const MAX_AT_ONCE: usize = 256;

/// The time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);

/// The time between two attempts while nobody commits.
const WATCH: Duration = Duration::from_secs(1);

/// How often a transaction that did not happen is repeated.
const MAX_REPEATS: usize = 10;

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// A request to the committer.
pub(super) enum Work {
    Commit(Box<Plan>, Reply<Position, AppendError>),
    /// The committer replies when everything that was written before is on disk.
    Sync(Reply<(), StoreFault>),
}

/// The faults of the committer, for those who watch the host.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) failures: AtomicU64,
    pub(super) syncs: AtomicU64,
}

pub(super) struct Committer {
    connector: Connector,
    session: Option<Session>,
    /// The time for one transaction, and for a new connection after a loss.
    deadline: Duration,
    failed: watch::Sender<Option<StoreFault>>,
    counters: Arc<Counters>,
}

/// The end of a transaction.
enum Outcome {
    Committed(Vec<Result<Position, AppendError>>),
    /// The server refused it, and nothing happened.
    Refused(StoreFault),
    /// It did not happen, and can be repeated.
    NotYet(StoreFault),
    /// The connection was lost after the transaction was sent to its end.
    Unknown(Sent),
}

/// A transaction that was sent with its `COMMIT`.
struct Sent {
    transaction: String,
    head: Head,
    answers: Vec<Result<Position, AppendError>>,
    fault: StoreFault,
}

impl Committer {
    pub(super) fn new(
        connector: Connector,
        session: Session,
        deadline: Duration,
        failed: watch::Sender<Option<StoreFault>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self { connector, session: Some(session), deadline, failed, counters }
    }

    /// Returns when all senders of `queue` are dropped and the queue is empty.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let (mut waiting, mut drained) = (VecDeque::new(), Vec::with_capacity(MAX_AT_ONCE));
        loop {
            if waiting.is_empty() {
                let receiving = queue.recv_many(&mut drained, MAX_AT_ONCE);
                if self.failed.borrow().is_none() {
                    if receiving.await == 0 {
                        return;
                    }
                } else {
                    match timeout(WATCH, receiving).await {
                        Ok(0) => return,
                        Ok(_) => {}
                        Err(_) => self.recover().await,
                    }
                }
            } else {
                while waiting.len() + drained.len() < MAX_AT_ONCE {
                    let Ok(work) = queue.try_recv() else { break };
                    drained.push(work);
                }
            }
            waiting.extend(drained.drain(..));
            let batch = batch(&mut waiting);
            self.work(batch).await;
        }
    }

    /// Tries to connect again, so that the health of the store is known while nobody commits.
    async fn recover(&mut self) {
        if self.session.is_some() || self.connect().await.is_ok() {
            tracing::warn!("the database server answers, and the store takes commits again");
            self.failed.send_replace(None);
        }
    }

    async fn work(&mut self, batch: Vec<Work>) {
        let (mut plans, mut replies, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
        for work in batch {
            match work {
                Work::Commit(plan, reply) => {
                    plans.push(*plan);
                    replies.push(reply);
                }
                Work::Sync(reply) => syncs.push(reply),
            }
        }
        let answers = self.answers(&plans, !syncs.is_empty()).await;
        let (answers, synced) = match answers {
            Ok(answers) => (answers, Ok(())),
            // One commit that the server does not take must not keep the others from happening.
            Err(_) if plans.len() > 1 && self.failed.borrow().is_none() => {
                let mut answers = Vec::new();
                for plan in &plans {
                    let answer = self.answers(std::slice::from_ref(plan), false).await;
                    answers.extend(answer.unwrap_or_else(|fault| vec![Err(fault.into())]));
                }
                let synced = if syncs.is_empty() { Ok(()) } else { self.answers(&[], true).await.map(drop) };
                (answers, synced)
            }
            Err(fault) => (plans.iter().map(|_| Err(fault.clone().into())).collect(), Err(fault)),
        };
        // A send fails if the caller no longer waits; its commit is still valid.
        for (reply, answer) in replies.into_iter().zip(answers) {
            let _ = reply.send(answer);
        }
        for reply in syncs {
            let _ = reply.send(synced.clone());
        }
    }

    /// Makes the commits in one transaction. Each has its own answer, unless the whole transaction fails.
    async fn answers(&mut self, plans: &[Plan], syncs: bool) -> Result<Vec<Result<Position, AppendError>>, StoreFault> {
        for _ in 0..MAX_REPEATS {
            if self.session.is_none() {
                self.connect().await?;
            }
            let mut outcome = self.transaction(plans, syncs).await;
            if let Outcome::Unknown(sent) = outcome {
                outcome = self.resolve(sent).await;
            }
            match outcome {
                Outcome::Committed(answers) => {
                    self.counters.syncs.fetch_add(1, Ordering::Relaxed);
                    self.failed.send_replace(None);
                    return Ok(answers);
                }
                Outcome::Refused(fault) => {
                    self.refused(&fault).await;
                    return Err(fault);
                }
                Outcome::NotYet(fault) => tracing::warn!(%fault, "a transaction did not happen and is repeated"),
                Outcome::Unknown(Sent { fault, .. }) => return Err(self.fail(fault)),
            }
        }
        Err(self.fail(no_answer("commit")))
    }

    async fn transaction(&mut self, plans: &[Plan], syncs: bool) -> Outcome {
        let Some(session) = &self.session else { return Outcome::NotYet(no_answer("commit")) };
        let loaded = timeout(self.deadline, load(session, plans)).await;
        let (mut state, transaction) = match loaded {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(Failure::Refused(fault))) => return Outcome::Refused(fault),
            Ok(Err(Failure::Lost(fault))) => {
                self.disconnect();
                return Outcome::NotYet(fault);
            }
            Err(_) => {
                self.disconnect();
                return Outcome::NotYet(no_answer("commit"));
            }
        };
        let answers: Vec<_> = plans.iter().map(|plan| state.commit(plan)).collect();
        if !state.is_changed() && !syncs {
            // Every refusal depends on commits that are on disk.
            return match timeout(self.deadline, session.run("ROLLBACK")).await {
                Ok(Ok(())) => Outcome::Committed(answers),
                Ok(Err(Failure::Refused(fault))) => Outcome::Refused(fault),
                Ok(Err(Failure::Lost(_))) | Err(_) => {
                    self.disconnect();
                    Outcome::Committed(answers)
                }
            };
        }
        let fault = match timeout(self.deadline, write(session, &state)).await {
            Ok(Ok(())) => return Outcome::Committed(answers),
            Ok(Err(Failure::Refused(fault))) => return Outcome::Refused(fault),
            Ok(Err(Failure::Lost(fault))) => fault,
            Err(_) => no_answer("commit"),
        };
        self.disconnect();
        Outcome::Unknown(Sent { transaction, head: state.head, answers, fault })
    }

    /// Finds out whether a transaction happened.
    async fn resolve(&mut self, sent: Sent) -> Outcome {
        for _ in 0..MAX_REPEATS {
            if self.connect().await.is_err() {
                break;
            }
            let Some(session) = &self.session else { break };
            match timeout(self.deadline, happened(session, &sent)).await {
                Ok(Ok(true)) => return Outcome::Committed(sent.answers),
                Ok(Ok(false)) => return Outcome::NotYet(sent.fault),
                Ok(Err(Failure::Refused(fault))) => return Outcome::Unknown(Sent { fault, ..sent }),
                Ok(Err(Failure::Lost(_))) | Err(_) => self.disconnect(),
            }
        }
        Outcome::Unknown(sent)
    }

    /// Connects again. While the store has failed, one attempt is made for each batch; otherwise attempts go on until the
    /// deadline.
    async fn connect(&mut self) -> Result<(), StoreFault> {
        let is_first = self.failed.borrow().is_none();
        let connecting = async {
            let mut attempts = interval(PAUSE);
            attempts.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                attempts.tick().await;
                match self.connector.writer(self.deadline).await {
                    Err(error) if is_first && error.may_pass() => tracing::debug!(%error, "no connection yet"),
                    connected => return connected,
                }
            }
        };
        let fault = match timeout(self.deadline, connecting).await {
            Ok(Ok(session)) => {
                self.session = Some(session);
                return Ok(());
            }
            Ok(Err(error)) => StoreFault { kind: FaultKind::NoAnswer, attempted: "connect", reason: error.to_string() },
            Err(_) => no_answer("connect"),
        };
        Err(self.fail(fault))
    }

    /// Ends a transaction that the server refused.
    async fn refused(&mut self, fault: &StoreFault) {
        tracing::error!(%fault, "the database server refused a transaction");
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let Some(session) = &self.session else { return };
        if !matches!(timeout(self.deadline, session.run("ROLLBACK")).await, Ok(Ok(()))) {
            self.disconnect();
        }
    }

    fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }

    fn fail(&self, fault: StoreFault) -> StoreFault {
        tracing::error!(%fault, "the store takes no commits until the database server answers");
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        self.failed.send_replace(Some(fault.clone()));
        fault
    }
}

const STATUS: &str = "SELECT pg_xact_status($1::text::xid8) AS status";
const ENTRY: &str = "SELECT hash FROM commits WHERE position = $1";

pub(super) const STATEMENTS: &[&str] = &[STATUS, ENTRY];

/// Whether a transaction happened. The new connection has the lock of the host, so the old transaction has ended.
async fn happened(session: &Session, sent: &Sent) -> Result<bool, Failure> {
    let status = session.query(STATUS, &[&sent.transaction]).await?;
    let status: Option<String> = status.first().map(|row| rows::column(row, "status")).transpose()?.flatten();
    match status.as_deref() {
        Some("committed") => {}
        Some("aborted") => return Ok(false),
        // The server has forgotten it, or is another one.
        _ => {
            let reason = format!("the state of the transaction {} is unknown", sent.transaction);
            return Err(StoreFault { kind: FaultKind::NoAnswer, attempted: "commit", reason }.into());
        }
    }
    // The commits must be where this transaction has put them. A standby that took over may have given its number to another.
    if sent.head == Head::START {
        return Ok(true);
    }
    let entry = session.query(ENTRY, &[&rows::signed(sent.head.position.0)]).await?;
    let hash = entry.first().map(|row| rows::digest(row, "hash")).transpose()?;
    if hash == Some(sent.head.hash) {
        return Ok(true);
    }
    let reason = format!("the audit has another entry at position {} than this host wrote", sent.head.position.0);
    Err(StoreFault::damaged("commit", reason).into())
}

/// The next commits for one transaction. A removal is alone. A commit that ends a turn is in no batch with an earlier commit to
/// that turn, whose size it needs, and none follows it.
fn batch(waiting: &mut VecDeque<Work>) -> Vec<Work> {
    let (mut batch, mut turns) = (Vec::new(), HashMap::<TurnId, bool>::new());
    while let Some(work) = waiting.front() {
        if let Work::Commit(plan, _) = work {
            let ends = plan.ends();
            let is_in_order = plan.turns().all(|turn| match turns.get(&turn) {
                None => true,
                Some(has_ended) => !has_ended && ends != Some(turn),
            });
            if batch.len() == MAX_AT_ONCE || !is_in_order || (plan.is_removal() && !batch.is_empty()) {
                break;
            }
            turns.extend(plan.turns().map(|turn| (turn, ends == Some(turn))));
        }
        let is_alone = matches!(work, Work::Commit(plan, _) if plan.is_removal());
        batch.extend(waiting.pop_front());
        if is_alone {
            break;
        }
    }
    batch
}
