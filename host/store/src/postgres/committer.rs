//! The task that writes. It takes the queued commits, checks each one under the lock of the head, writes all of them in one
//! transaction, and then replies.
//!
//! Each transaction leaves a mark of its own in the row of its host, and begins only if the row has the mark of the one before. So the
//! task notices a server that has lost commits. It then takes no more commits: only a person knows which server is the right one. It
//! also takes no more commits if the row was removed: then another host recovers the calls of this one.
//!
//! A `COMMIT` whose answer is lost may have happened. The task never repeats it blindly. It connects again, which waits until the
//! server has ended the old transaction, and reads the mark. It repeats a transaction that did not happen. One that did happen may
//! not be on the standby yet, so it is acknowledged after another one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dispatch::ports::{AppendError, FaultKind, Position, StoreFault};
use domain::TurnId;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::connect::Connector;
use super::error::PostgresError;
use super::fault::no_answer;
use super::fence::{Fence, Known, Mark};
use super::hosts::leave;
use super::left;
use super::load::{Begun, load};
use super::plan::Plan;
use super::session::{Failure, Session};
use super::write::write;

#[cfg(test)]
mod tests;

/// The largest number of commits in one transaction.
const MAX_AT_ONCE: usize = 256;

/// The largest size of the records in one transaction, in bytes, unless one commit alone is larger.
const MAX_BYTES: usize = 16 << 20;

/// The time between two attempts to connect, before the store has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The time between two looks at the connection. After a failure, it doubles with each attempt, up to the maximum.
const WATCH: Duration = Duration::from_secs(1);
const MAX_WATCH: Duration = Duration::from_secs(8);

/// How often a transaction that did not happen is repeated.
const MAX_REPEATS: usize = 10;

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// The position of each commit of a transaction, or its refusal.
type Answers = Vec<Result<Position, AppendError>>;

/// A request to the committer.
pub(super) enum Work {
    Commit(Box<Plan>, Reply<Position, AppendError>),
    /// The committer replies when everything that was written before is on disk.
    Sync(Reply<(), StoreFault>),
    /// The committer begins a new term of the writers of values.
    Renew(Reply<(), StoreFault>),
    /// The row of this host was removed.
    Ended,
}

/// The work and the faults of the committer, for those who watch the host.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) failures: AtomicU64,
    pub(super) syncs: AtomicU64,
    /// A transaction with commits has happened.
    pub(super) committed: Notify,
}

pub(super) struct Committer {
    connector: Connector,
    session: Option<Session>,
    /// The mark of the last acknowledged transaction.
    last: Mark,
    /// The mark of a transaction without commits whose answer was lost. Nobody relies on it.
    in_doubt: Option<Mark>,
    /// The marks of transactions after it that may have happened.
    unanswered: Vec<Uuid>,
    fence: Arc<Fence>,
    /// The time for one transaction, and for a new connection after a loss.
    deadline: Duration,
    failed: watch::Sender<Option<StoreFault>>,
    /// A failure that only a restart of the host ends.
    final_failure: watch::Sender<Option<StoreFault>>,
    /// The time until the next look at the connection.
    pause: Duration,
    counters: Arc<Counters>,
}

/// The end of a transaction.
enum Outcome {
    Committed(Answers),
    /// The server refused it, and nothing happened.
    Refused(StoreFault),
    /// It did not happen, and can be repeated.
    NotYet(StoreFault),
    /// The connection was lost after the transaction was sent to its end.
    Unknown(Sent),
    /// The store has failed.
    Failed(StoreFault),
}

/// A transaction that was sent with its `COMMIT`.
struct Sent {
    mark: Mark,
    answers: Answers,
    fault: StoreFault,
}

impl Committer {
    pub(super) fn new(
        connector: Connector,
        (session, last): (Session, Mark),
        fence: Arc<Fence>,
        deadline: Duration,
        (failed, final_failure): (watch::Sender<Option<StoreFault>>, watch::Sender<Option<StoreFault>>),
        counters: Arc<Counters>,
    ) -> Self {
        let (session, in_doubt, unanswered, pause) = (Some(session), None, Vec::new(), WATCH);
        Self { connector, session, last, in_doubt, unanswered, fence, deadline, failed, final_failure, pause, counters }
    }

    /// Returns when all senders of `queue` are dropped and the queue is empty. The host has then left, and its lock is free.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let (mut waiting, mut drained) = (VecDeque::new(), Vec::with_capacity(MAX_AT_ONCE));
        let mut watch = interval(WATCH);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if waiting.is_empty() {
                tokio::select! {
                    received = queue.recv_many(&mut drained, MAX_AT_ONCE) => if received == 0 { break },
                    _ = watch.tick() => {
                        self.look().await;
                        watch.reset_after(self.pause);
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
        self.leave().await;
    }

    /// Tells the other hosts that this one has ended. After a failure, they find out when its lease ends.
    async fn leave(mut self) {
        if let Some(session) = &self.session
            && self.failure().is_none()
            && !matches!(timeout(self.deadline, leave(session, &self.connector.me)).await, Ok(Ok(())))
        {
            tracing::warn!("the other hosts find out that this one has ended when its lease ends");
        }
        self.disconnect();
    }

    /// Tries again after a failure. Otherwise looks whether the connection is still there, so that the health of the store is known
    /// while nobody commits.
    async fn look(&mut self) {
        if self.final_failure.borrow().is_some() {
            return;
        }
        if self.failed.borrow().is_none() {
            if self.session.as_ref().is_some_and(Session::is_closed) {
                self.disconnect();
                let _ = self.connect(None).await;
            }
            return;
        }
        self.pause = (self.pause * 2).min(MAX_WATCH);
        // A transaction without commits shows that the server takes commits.
        if self.answers(&[], true).await.is_ok() {
            tracing::warn!("the store takes commits again");
            self.failed.send_replace(None);
        }
    }

    /// Why the store takes no commits.
    fn failure(&self) -> Option<StoreFault> {
        self.failed.borrow().clone()
    }

    async fn work(&mut self, batch: Vec<Work>) {
        let (mut plans, mut replies, mut syncs, mut renewals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for work in batch {
            match work {
                Work::Commit(plan, reply) => {
                    plans.push(*plan);
                    replies.push(reply);
                }
                Work::Sync(reply) => syncs.push(reply),
                Work::Renew(reply) => renewals.push(reply),
                Work::Ended => drop(self.end(&PostgresError::Ended)),
            }
        }
        let (answers, synced) = self.all_answers(&plans, !syncs.is_empty()).await;
        // A send fails if the caller no longer waits; its commit is still valid.
        for (reply, answer) in replies.into_iter().zip(answers) {
            let _ = reply.send(answer);
        }
        for reply in syncs {
            let _ = reply.send(synced.clone());
        }
        if !renewals.is_empty() {
            let renewed = self.renew().await;
            for reply in renewals {
                let _ = reply.send(renewed.clone());
            }
        }
    }

    /// Makes the commits, together if the server takes all of them.
    async fn all_answers(&mut self, plans: &[Plan], syncs: bool) -> (Answers, Result<(), StoreFault>) {
        if plans.is_empty() && !syncs {
            return (Vec::new(), Ok(()));
        }
        let fault = match self.answers_unless_failed(plans, syncs).await {
            Ok(answers) => {
                if !plans.is_empty() {
                    self.pause = WATCH;
                    self.counters.committed.notify_one();
                }
                return (answers, Ok(()));
            }
            Err(fault) => fault,
        };
        if plans.len() <= 1 || self.failure().is_some() {
            return (plans.iter().map(|_| Err(fault.clone().into())).collect(), Err(fault));
        }
        // One commit that the server does not take must not keep the others from happening.
        let mut answers = Vec::new();
        for plan in plans {
            let answer = self.answers_unless_failed(std::slice::from_ref(plan), false).await;
            answers.extend(answer.unwrap_or_else(|fault| vec![Err(fault.into())]));
        }
        self.counters.committed.notify_one();
        let synced = if syncs { self.answers_unless_failed(&[], true).await.map(drop) } else { Ok(()) };
        (answers, synced)
    }

    async fn answers_unless_failed(&mut self, plans: &[Plan], syncs: bool) -> Result<Answers, StoreFault> {
        match self.failure() {
            Some(fault) => Err(fault),
            None => self.answers(plans, syncs).await,
        }
    }

    /// Makes the commits in one transaction. Each has its own answer, unless the whole transaction fails.
    async fn answers(&mut self, plans: &[Plan], syncs: bool) -> Result<Answers, StoreFault> {
        for _ in 0..MAX_REPEATS {
            self.connect(None).await?;
            let mut outcome = self.transaction(plans, syncs).await;
            if let Outcome::Unknown(sent) = outcome {
                outcome = self.resolve(sent).await;
            }
            match outcome {
                Outcome::Committed(answers) => {
                    self.counters.syncs.fetch_add(1, Ordering::Relaxed);
                    return Ok(answers);
                }
                Outcome::Refused(fault) => return Err(self.refused(fault).await),
                Outcome::NotYet(fault) => tracing::warn!(%fault, "a transaction did not happen and is repeated"),
                Outcome::Unknown(Sent { fault, .. }) | Outcome::Failed(fault) => return Err(fault),
            }
        }
        Err(self.fail(no_answer("commit"), false))
    }

    async fn transaction(&mut self, plans: &[Plan], syncs: bool) -> Outcome {
        let Some(session) = &self.session else { return Outcome::NotYet(no_answer("commit")) };
        let loaded = timeout(self.deadline, load(session, &self.connector.me, plans)).await;
        let Begun { mut state, own, next } = match loaded {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(Failure::Refused(fault))) => return Outcome::Refused(fault),
            Ok(Err(Failure::Overtaken(fault) | Failure::Lost(fault))) => {
                self.disconnect();
                return Outcome::NotYet(fault);
            }
            Err(_) => {
                self.disconnect();
                return Outcome::NotYet(no_answer("commit"));
            }
        };
        let known = Known { last: self.last, in_doubt: None };
        let own = match own {
            Some(own) if known.has(own.mark, state.head.position) => own,
            Some(_) => return Outcome::Failed(self.end(&known.differs(state.head.position))),
            None => return Outcome::Failed(self.end(&PostgresError::Ended)),
        };
        let answers: Vec<_> = plans.iter().map(|plan| state.commit(plan)).collect();
        if !state.is_changed() && !syncs {
            // Every refusal depends on commits that are on disk.
            return match timeout(self.deadline, session.run("ROLLBACK")).await {
                Ok(Ok(())) => Outcome::Committed(answers),
                Ok(Err(Failure::Refused(fault) | Failure::Overtaken(fault))) => Outcome::Refused(fault),
                Ok(Err(Failure::Lost(_))) | Err(_) => {
                    self.disconnect();
                    Outcome::Committed(answers)
                }
            };
        }
        let mark = Mark { head: state.head, id: next };
        let fault = match timeout(self.deadline, write(session, &self.connector.me, own.run, &state, mark)).await {
            Ok(Ok(())) => {
                self.last = mark;
                self.unanswered.clear();
                return Outcome::Committed(answers);
            }
            Ok(Err(Failure::Refused(fault))) => return Outcome::Refused(fault),
            // The `COMMIT` has ended the transaction.
            Ok(Err(Failure::Overtaken(fault))) => return Outcome::NotYet(fault),
            Ok(Err(Failure::Lost(fault))) => fault,
            Err(_) => no_answer("commit"),
        };
        self.unanswered.push(mark.id);
        self.disconnect();
        Outcome::Unknown(Sent { mark, answers, fault })
    }

    /// Finds out whether a transaction happened. If the server cannot be asked, its callers get an error. If it did happen, no
    /// observer of the host has seen it, so the next connection then finds a mark that it does not know. One without commits is repeated.
    async fn resolve(&mut self, sent: Sent) -> Outcome {
        let before = self.last;
        match self.connect(Some(sent.mark)).await {
            Ok(()) if self.last == sent.mark && !sent.answers.is_empty() => match self.confirm().await {
                Ok(()) => Outcome::Committed(sent.answers),
                Err(fault) => {
                    self.disconnect();
                    self.last = before;
                    Outcome::Failed(fault)
                }
            },
            Ok(()) => Outcome::NotYet(sent.fault),
            Err(fault) => {
                self.in_doubt = Some(sent.mark).filter(|_| sent.answers.is_empty());
                Outcome::Failed(fault)
            }
        }
    }

    /// Waits until what the database has is on the disk of each server that must have it. A transaction whose connection was lost can
    /// be visible before its standby has it. One behind it, without commits, is acknowledged only then.
    async fn confirm(&mut self) -> Result<(), StoreFault> {
        let mut in_doubt = None;
        for _ in 0..MAX_REPEATS {
            self.connect(in_doubt).await?;
            match self.transaction(&[], true).await {
                Outcome::Committed(_) => return Ok(()),
                Outcome::Unknown(sent) => in_doubt = Some(sent.mark),
                Outcome::NotYet(_) => {}
                Outcome::Refused(fault) => return Err(self.refused(fault).await),
                Outcome::Failed(fault) => return Err(fault),
            }
        }
        Err(self.fail(no_answer("commit"), false))
    }

    /// Connects, unless there is a connection. While the store has failed, one attempt is made; otherwise attempts go on until the
    /// deadline.
    async fn connect(&mut self, in_doubt: Option<Mark>) -> Result<(), StoreFault> {
        if self.session.is_some() {
            return Ok(());
        }
        let in_doubt = in_doubt.or(self.in_doubt);
        let (is_first, known) = (self.failure().is_none(), Known { last: self.last, in_doubt });
        let connecting = async {
            let mut attempts = interval(PAUSE);
            attempts.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                attempts.tick().await;
                match self.connector.writer(self.deadline, Some(known), &self.fence).await {
                    Err(error) if is_first && error.may_pass() => tracing::debug!(%error, "no connection yet"),
                    connected => return connected,
                }
            }
        };
        let connected = timeout(self.deadline, connecting).await;
        match connected {
            Ok(Ok((session, own))) => {
                (self.session, self.last, self.in_doubt) = (Some(session), own.mark, None);
                Ok(())
            }
            Ok(Err(error)) => Err(self.not_connected(&error)),
            Err(_) => Err(self.fail(no_answer("connect"), false)),
        }
    }

    fn not_connected(&mut self, error: &PostgresError) -> StoreFault {
        let is_final = error.is_final();
        let (kind, attempted) =
            if is_final { (FaultKind::Disk, "go on with the database") } else { (FaultKind::NoAnswer, "connect") };
        self.fail(StoreFault { kind, attempted, reason: error.to_string() }, is_final)
    }

    /// Only a restart of the host ends this failure.
    fn end(&mut self, error: &PostgresError) -> StoreFault {
        self.disconnect();
        let before = self.final_failure.borrow().clone();
        before.unwrap_or_else(|| self.not_connected(error))
    }

    /// Begins a new term, in which no write of an earlier one happens any more.
    async fn renew(&mut self) -> Result<(), StoreFault> {
        if let Some(fault) = self.failure() {
            return Err(fault);
        }
        if let Some(session) = &self.session {
            match timeout(self.deadline, self.fence.begin(session, self.connector.me.owner())).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) if error.is_final() => return Err(self.end(&error)),
                Ok(Err(_)) | Err(_) => self.disconnect(),
            }
        }
        self.connect(None).await
    }

    /// Ends a transaction that the server refused. Without space, the server takes no other one either.
    async fn refused(&mut self, fault: StoreFault) -> StoreFault {
        if let Some(session) = &self.session
            && !matches!(timeout(self.deadline, session.run("ROLLBACK")).await, Ok(Ok(())))
        {
            self.disconnect();
        }
        match fault.kind {
            FaultKind::NoSpace | FaultKind::Disk => self.fail(fault, false),
            FaultKind::NoAnswer | FaultKind::Damaged | FaultKind::Program => {
                tracing::error!(%fault, "the database server refused a transaction");
                fault
            }
        }
    }

    fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }

    /// From now on the store takes no commits. Attempts that fail again are the same failure.
    fn fail(&mut self, fault: StoreFault, is_final: bool) -> StoreFault {
        if is_final {
            tracing::error!(%fault, "the store takes no commits until the host is started again");
        } else if self.failure().is_none() {
            tracing::error!(%fault, "the store takes no commits until the database server takes them");
        }
        if is_final || self.failure().is_none() {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        // Before the failure is visible: its readers rely on the file and on `final_failure`.
        if is_final {
            let me = &self.connector.me;
            left::keep(me.left.as_deref(), me.owner(), self.last, &self.unanswered);
            self.final_failure.send_replace(Some(fault.clone()));
        }
        self.failed.send_replace(Some(fault.clone()));
        fault
    }
}

/// The next commits for one transaction. A removal is alone. A commit that ends a turn is in no batch with an earlier commit to
/// that turn, whose size it needs, and none follows it.
fn batch(waiting: &mut VecDeque<Work>) -> Vec<Work> {
    let (mut batch, mut turns, mut bytes) = (Vec::new(), HashMap::<TurnId, bool>::new(), 0);
    while let Some(work) = waiting.front() {
        if let Work::Commit(plan, _) = work {
            let ends = plan.ends();
            let is_in_order = plan.turns().all(|turn| match turns.get(&turn) {
                None => true,
                Some(has_ended) => !has_ended && ends != Some(turn),
            });
            bytes += plan.bytes;
            let is_full = batch.len() == MAX_AT_ONCE || bytes > MAX_BYTES || plan.is_removal();
            if !is_in_order || (is_full && !batch.is_empty()) {
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
