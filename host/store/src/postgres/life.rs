//! Keeps this host alive for the others, and finds out which of them are. It renews the lease of this host, removes hosts whose leases
//! have ended, and reads which hosts there are. It has a connection of its own, so it also works while a transaction of commits waits
//! for another host.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use dispatch::ports::{LivePlugins, Share, StoreFault};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::committer::Work;
use super::differences::{Differences, Setup};
use super::error::PostgresError;
use super::fault::no_answer;
use super::hosts::Me;
use super::live_plugins;
use super::migrate::KNOWN;
use super::reads::{Reader, Reads};
use super::rows::{column, limit, signed};

const RENEW: &str = "UPDATE hosts SET lease_until = clock_timestamp() + make_interval(secs => $3), \
    renewed_at = clock_timestamp(), running = $4, draining = $5 WHERE name = $1 AND owner = $2 \
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, \
    (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS server";
// A row that is locked is that of a host in a transaction.
const REMOVE: &str = "DELETE FROM hosts WHERE name IN (SELECT name FROM hosts WHERE name <> $1 \
    AND lease_until < clock_timestamp() FOR UPDATE SKIP LOCKED) RETURNING name";
const MEMBERS: &str = "SELECT name, owner, lease_until >= clock_timestamp() AS is_current, draining, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, key, names, digests, \
    CASE WHEN version = $1 AND format = $2 THEN config END AS config FROM hosts LEFT JOIN live_plugins ON host = name ORDER BY name";

pub(super) const ATTEMPTED: &str = "renew the lease of the host";

/// The renewals in the time of a lease.
const RENEWALS: u32 = 3;

/// The part of a lease after which a renewal that failed is tried again.
const RETRY: u32 = 15;

/// The time between two attempts to renew the lease for the first time.
const PAUSE: Duration = Duration::from_millis(100);

/// The facts that this host tells the others.
#[derive(Default)]
pub(super) struct Report {
    pub(super) running: AtomicU64,
    pub(super) is_draining: AtomicBool,
    /// `None`: they are not known yet.
    pub(super) plugins: Mutex<Option<LivePlugins>>,
}

/// The knowledge about all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) share: Share,
    /// Whether another host is alive.
    pub(super) has_others: bool,
    /// The number of times that another host was found to have ended.
    pub(super) ended: u64,
}

impl Default for Members {
    fn default() -> Self {
        Self { share: Share::ALL, has_others: false, ended: 0 }
    }
}

/// Since when a host has renewed its lease without a break. Times are those of the database, in milliseconds.
#[derive(Debug, Default)]
struct Renewals {
    /// When the first renewal was, when the last one was, and when the server started.
    unbroken: Option<(i64, i64, i64)>,
}

impl Renewals {
    /// Adds a renewal. Returns whether the host may remove those whose leases have ended: for a whole lease, they could have renewed
    /// theirs as well. After an outage of the database, all leases have ended, and the first host that is connected again must not
    /// remove the others.
    fn add(&mut self, now: i64, server: i64, lease: i64) -> bool {
        let since = match self.unbroken {
            Some((since, last, before)) if before == server && (last..=last.saturating_add(lease)).contains(&now) => {
                since
            }
            _ => now,
        };
        self.unbroken = Some((since, now, server));
        now - since >= lease
    }

    /// A renewal has failed.
    fn end(&mut self) {
        self.unbroken = None;
    }
}

/// The time of the database, as it was read. Between two reads, it passes as the machine's stopwatch says, so an operator who sets the
/// clock of the machine changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseTime {
    millis: i64,
    read: Instant,
}

impl DatabaseTime {
    /// The time of this machine. An open store has that of the database.
    fn of_machine() -> Self {
        let since = UNIX_EPOCH.elapsed().unwrap_or_default();
        Self { millis: i64::try_from(since.as_millis()).unwrap_or(i64::MAX), read: instant() }
    }

    /// The present time, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        let passed = u64::try_from(self.read.elapsed().as_millis()).unwrap_or(u64::MAX);
        u64::try_from(self.millis).unwrap_or_default().saturating_add(passed)
    }
}

/// Since when the store takes no commits.
#[derive(Debug, Default)]
struct Failing(Option<Instant>);

impl Failing {
    /// Whether it has lasted for this time.
    fn lasts(&mut self, is_failing: bool, time: Duration) -> bool {
        self.0 = is_failing.then(|| self.0.unwrap_or_else(instant));
        self.0.is_some_and(|since| since.elapsed() >= time)
    }
}

#[expect(clippy::disallowed_methods, reason = "the time since the clock of the database was read is measured here")]
fn instant() -> Instant {
    Instant::now()
}

pub(super) struct Life {
    requests: Reads,
    me: Me,
    report: Arc<Report>,
    committer: mpsc::WeakSender<Work>,
    members: watch::Sender<Members>,
    time: watch::Sender<DatabaseTime>,
    renewals: Renewals,
    /// The owners of the other hosts that were alive.
    others: BTreeSet<Uuid>,
    differences: Differences,
}

impl Life {
    pub(super) fn new(requests: Reads, me: Me, report: Arc<Report>, committer: mpsc::WeakSender<Work>) -> Self {
        let (members, time) = (watch::channel(Members::default()).0, watch::channel(DatabaseTime::of_machine()).0);
        let (renewals, others, differences) = (Renewals::default(), BTreeSet::new(), Differences::default());
        Self { requests, me, report, committer, members, time, renewals, others, differences }
    }

    pub(super) fn members(&self) -> watch::Receiver<Members> {
        self.members.subscribe()
    }

    pub(super) fn time(&self) -> watch::Receiver<DatabaseTime> {
        self.time.subscribe()
    }

    /// The first renewal. Without the time of the database and the other hosts, a host does not know what is due.
    pub(super) async fn begin(&mut self, deadline: Duration) -> Result<(), PostgresError> {
        let (mut attempts, mut last) = (interval(PAUSE), no_answer(ATTEMPTED));
        let renewing = async {
            loop {
                attempts.tick().await;
                match self.renew().await {
                    Ok(is_alive) => return is_alive,
                    Err(fault) => last = fault,
                }
            }
        };
        match timeout(deadline, renewing).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(PostgresError::Ended),
            Err(_) => Err(PostgresError::Refused { attempted: last.attempted, reason: last.reason }),
        }
    }

    /// Returns when the store takes no commits any more. A host that cannot commit for a whole lease lets the lease end, so that
    /// others take its calls over.
    pub(super) async fn run(
        mut self,
        mut final_failure: watch::Receiver<Option<StoreFault>>,
        failed: watch::Receiver<Option<StoreFault>>,
    ) {
        let (mut failing, mut lets_lease_end) = (Failing::default(), false);
        let mut ticks = interval((self.me.lease / RENEWALS).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // The sender is dropped with the committer.
                _ = final_failure.wait_for(Option::is_some) => return,
            }
            let is_failing = failed.borrow().is_some();
            if failing.lasts(is_failing, self.me.lease) {
                if !lets_lease_end {
                    tracing::warn!("the lease of this host is not renewed, because the store takes no commits");
                }
                lets_lease_end = true;
                self.renewals.end();
                continue;
            }
            lets_lease_end = false;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => {
                    // Without a committer, the store was closed, and the host has left in order.
                    if let Some(committer) = self.committer.upgrade() {
                        let _ = committer.send(Work::Ended).await;
                    }
                    return;
                }
                Err(fault) => {
                    tracing::debug!(%fault, "the lease is not renewed");
                    self.renewals.end();
                    ticks.reset_after(self.me.lease / RETRY);
                }
            }
        }
    }

    /// Renews the lease. Returns whether the host is still alive.
    async fn renew(&mut self) -> Result<bool, StoreFault> {
        let (name, owner, lease) = (self.me.name().to_owned(), self.me.owner(), self.me.lease());
        let running = signed(self.report.running.load(Ordering::Relaxed));
        let is_draining = self.report.is_draining.load(Ordering::Relaxed);
        let renew = move |connection: super::reads::Reader| async move {
            connection.first(RENEW, &[&name, &owner, &lease, &running, &is_draining]).await
        };
        let Some(renewed) = self.requests.run(renew).await? else { return Ok(false) };
        let (now, server) = (column(&renewed, "now")?, column(&renewed, "server")?);
        if self.renewals.add(now, server, limit(usize::try_from(self.me.lease.as_millis()).unwrap_or(usize::MAX))) {
            let name = self.me.name().to_owned();
            let removed =
                self.requests.run(|connection| async move { connection.query(REMOVE, &[&name]).await }).await?;
            for row in &removed {
                tracing::warn!(
                    host = column::<&str>(row, "name")?,
                    "the lease of another host has ended; its calls are recovered"
                );
            }
        }
        self.read().await.map(|()| true)
    }

    /// Reads which hosts are alive. Those whose leases have ended, and those that take no new work, have no share of it.
    async fn read(&mut self) -> Result<(), StoreFault> {
        let before = instant();
        let version = self.me.identity.version.clone();
        let read = |connection: Reader| async move { connection.query(MEMBERS, &[&version, &KNOWN]).await };
        let rows = self.requests.run(read).await?;
        let (mut others, mut index, mut hosts) = (BTreeSet::new(), 0, 0);
        let (mut said, mut setups) = (None, Vec::new());
        for row in &rows {
            let (name, owner): (&str, Uuid) = (column(row, "name")?, column(row, "owner")?);
            let is_current: bool = column(row, "is_current")?;
            let plugins = live_plugins::read(row)?;
            if owner == self.me.owner() {
                index = hosts;
                said = plugins;
                // Half of the time went by before the server read its clock.
                self.time
                    .send_replace(DatabaseTime { millis: column(row, "now")?, read: before + before.elapsed() / 2 });
            } else {
                others.insert(owner);
                if is_current {
                    let setup = Setup { key: column(row, "key")?, config: column(row, "config")?, plugins };
                    setups.push((owner, name.to_owned(), setup));
                }
            }
            hosts += u32::from((name == self.me.name() || is_current) && !column::<bool>(row, "draining")?);
        }
        let has_ended = !self.others.is_subset(&others);
        self.members.send_if_modified(|members| {
            let ended = members.ended + u64::from(has_ended);
            let found = Members { share: Share::new(index, hosts), has_others: !others.is_empty(), ended };
            std::mem::replace(members, found) != found
        });
        self.others = others;
        self.compare(said, setups).await
    }

    /// Compares this host with the others. Tells them which plugins are live here, if its row does not say that yet.
    async fn compare(
        &mut self,
        said: Option<LivePlugins>,
        others: Vec<(Uuid, String, Setup)>,
    ) -> Result<(), StoreFault> {
        let plugins = self.report.plugins.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let [key, config] = [self.me.identity.key, self.me.identity.config].map(|digest| digest.as_bytes().to_vec());
        let own = Setup { key, config: Some(config), plugins };
        self.differences.compare(&own, others);
        let Some(live) = own.plugins.filter(|live| said.as_ref() != Some(live)) else { return Ok(()) };
        let me = self.me.clone();
        self.requests.run(|connection| async move { live_plugins::write(&connection, &me, &live).await }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_renewed_for_a_whole_lease_removes_others() {
        let mut renewals = Renewals::default();
        let mut add = |now| renewals.add(now, 1, 15);
        assert_eq!([0, 5, 10, 14, 15, 20].map(&mut add), [false, false, false, false, true, true]);
        // The host was paused.
        assert_eq!([36, 41, 51, 60].map(&mut add), [false, false, true, true]);
        // The clock of the database was set.
        assert_eq!([9_000, 9_010, 10, 20, 25].map(&mut add), [false, false, false, false, true]);
    }

    #[test]
    fn time_of_the_database_passes_as_the_stopwatch_says() {
        let hour = Duration::from_secs(60 * 60);
        let time = |millis| DatabaseTime { millis, read: instant().checked_sub(hour).unwrap() };
        let (an_hour, later) = (60 * 60 * 1_000, 70 * 60 * 1_000);
        assert!((an_hour + 5..later).contains(&time(5).now()));
        assert!((an_hour..later).contains(&time(-5).now()));
        assert!(DatabaseTime::of_machine().now() > 1_700_000_000_000);
    }

    #[test]
    fn failure_lasts_only_without_a_break() {
        let (mut failing, hour) = (Failing::default(), Duration::from_secs(60 * 60));
        assert!(!failing.lasts(true, hour));
        failing.0 = instant().checked_sub(hour);
        assert!(failing.lasts(true, hour));
        assert!(!failing.lasts(false, hour));
        assert!(!failing.lasts(true, hour));
    }

    #[test]
    fn first_host_after_a_restart_of_the_server_removes_nobody() {
        let mut renewals = Renewals::default();
        let times = [(0, 1), (10, 1), (20, 1), (21, 2), (31, 2), (35, 2), (36, 2)];
        let may_remove = times.map(|(now, server)| renewals.add(now, server, 15));
        assert_eq!(may_remove, [false, false, true, false, false, false, true]);
        renewals.end();
        assert_eq!([40, 50, 55].map(|now| renewals.add(now, 2, 15)), [false, false, true]);
    }
}
