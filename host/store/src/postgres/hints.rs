//! Hints that a host has committed something, by `LISTEN` and `NOTIFY`. They make the other hosts look at once. A hint can be lost, so
//! nobody relies on one.
//!
//! They are sent outside of the transactions of commits, and at most one in [`PAUSE`]: a server commits transactions with
//! notifications one after the other.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dispatch::ports::StoreFault;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::{AsyncMessage, Client, Config, Error};

use super::committer::Counters;
use super::fault::{database_fault, no_answer};
use super::life::Members;
use super::servers::{Connection, Servers};

const ATTEMPTED: &str = "send hints to other hosts";
const LISTEN: &str = "LISTEN toolgate";
const TELL: &str = "SELECT pg_notify('toolgate', $1)";

/// The shortest time between two hints of a host.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// The shortest time between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(1);

/// The hints of the other hosts.
#[derive(Default)]
pub(super) struct Hints {
    /// One has arrived.
    pub(super) arrived: Notify,
    is_listening: AtomicBool,
}

impl Hints {
    /// Whether hints arrive at all.
    pub(super) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Relaxed)
    }
}

/// The connection of a host that sends hints and gets those of the others.
pub(super) struct Messenger {
    pub(super) config: Config,
    pub(super) servers: Servers,
    /// Of the host. It ignores its own hints.
    pub(super) name: String,
    pub(super) deadline: Duration,
    pub(super) members: watch::Receiver<Members>,
    pub(super) counters: Arc<Counters>,
    pub(super) hints: Arc<Hints>,
}

impl Messenger {
    /// Runs until the store is closed.
    pub(super) async fn run(self) {
        let mut attempts = interval(RECONNECT);
        attempts.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            attempts.tick().await;
            if let Err(fault) = self.connect().await {
                tracing::debug!(%fault, "no hints of other hosts");
            }
            self.hints.is_listening.store(false, Ordering::Relaxed);
        }
    }

    /// Returns when the connection has ended.
    async fn connect(&self) -> Result<(), StoreFault> {
        let (client, connection) = self.answered(self.servers.connect(&self.config)).await?;
        tokio::select! {
            ended = self.tell(client) => ended,
            ended = self.hear(connection) => ended,
        }
    }

    async fn answered<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, StoreFault> {
        let done = timeout(self.deadline, work).await.map_err(|_| no_answer(ATTEMPTED))?;
        done.map_err(database_fault(ATTEMPTED))
    }

    /// Sends a hint after commits of this host, if there are other hosts.
    async fn tell(&self, client: Client) -> Result<(), StoreFault> {
        self.answered(client.batch_execute(LISTEN)).await?;
        self.hints.is_listening.store(true, Ordering::Relaxed);
        // Others may have committed before.
        self.hints.arrived.notify_one();
        let mut pauses = interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.counters.committed.notified().await;
            if self.members.borrow().has_others {
                pauses.tick().await;
                self.answered(client.execute(TELL, &[&self.name])).await?;
            }
        }
    }

    /// Keeps the connection running, and passes on the hints of other hosts.
    async fn hear(&self, mut connection: Connection) -> Result<(), StoreFault> {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message.map_err(database_fault(ATTEMPTED))? {
                AsyncMessage::Notification(hint) if hint.payload() != self.name => self.hints.arrived.notify_one(),
                _ => {}
            }
        }
        Ok(())
    }
}
