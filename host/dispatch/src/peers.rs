//! The effects of commits and of ends of other hosts on the same store. Their commits have the same effects on the tasks that wait here as
//! commits of this host. Only the effects on disk are not repeated.

use std::sync::Arc;

use domain::{Span, Turn, TurnId};
use tokio::sync::Notify;

use crate::committer::{Storage, TurnChange};
use crate::expiry::Expiry;
use crate::feed::Feeds;
use crate::inbox::Inbox;
use crate::pipeline::Pipeline;
use crate::ports::{Footprint, News, PeerCommit, Peers, StoreFault, Subscribers};
use crate::standing::Standings;
use crate::turns::Entered;

/// How often the other hosts are informed how many calls run here.
const REPORT: Span = Span::from_secs(3);

/// The pause after a failure of the store.
const BACKOFF: Span = Span::from_secs(1);

/// Handles the news about other hosts.
pub(crate) struct PeerNews {
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) standings: Arc<Standings>,
    pub(crate) subscribers: Arc<dyn Subscribers>,
    pub(crate) expiry: Arc<Expiry>,
}

impl PeerNews {
    /// Works for as long as the host lives.
    pub(crate) async fn watch(self) {
        let ended = Notify::new();
        // A recovery may take long and must not delay the news.
        tokio::join!(self.hear(&ended), self.take_over(&ended));
    }

    async fn hear(&self, ended: &Notify) {
        let clock = &self.pipeline.shared.clock;
        let (mut report, mut unread) = (clock.now() + REPORT, Vec::new());
        loop {
            tokio::select! {
                news = self.peers.news() => unread = self.handle(news, unread, ended).await,
                () = clock.sleep_until(report) => {
                    self.peers.report(self.pipeline.tracker.counts().running_calls);
                    report = clock.now() + REPORT;
                    unread = self.renew(unread).await;
                }
            }
        }
    }

    /// Handles news. Returns the turns in memory that could not be read: those of before too.
    async fn handle(&self, news: News, mut unread: Vec<TurnId>, ended: &Notify) -> Vec<TurnId> {
        match news {
            News::Commits(commits) => {
                unread.extend(commits.iter().filter_map(PeerCommit::turn));
                unread.sort_unstable();
                unread.dedup();
                self.standings.outdated();
                unread = self.renew(unread).await;
                // Later, so that a follower that is woken reads a turn as it is now.
                commits.iter().for_each(|commit| self.feeds.peer_committed(commit));
                self.due();
                self.tell_inbox(&commits).await;
            }
            News::Missed => {
                self.standings.outdated();
                let all = self.pipeline.turns.all().iter().map(Entered::id).collect();
                unread = self.renew(all).await;
                self.feeds.missed();
                self.inbox.missed();
                self.due();
            }
            News::Ended => ended.notify_one(),
        }
        unread
    }

    /// Something may have become due, or is to be delivered.
    fn due(&self) {
        self.subscribers.deliveries_committed();
        self.pipeline.timers.timeout_approvals.peers_committed();
        self.pipeline.timers.alarm.no_later_than(self.pipeline.shared.clock.now());
    }

    /// Brings turns in memory up to date: stops runs that another host superseded, and wakes those who wait. Returns those that could
    /// not be read.
    async fn renew(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        let mut unread = Vec::new();
        for turn in turns {
            let Some(entered) = self.pipeline.turns.known(turn) else { continue };
            if let Err(error) = self.pipeline.renew(&entered).await {
                tracing::warn!(%turn, %error, "a turn that another host changed could not be read");
                unread.push(turn);
            }
        }
        unread
    }

    /// Tells the followers of the inbox about commits.
    async fn tell_inbox(&self, commits: &[PeerCommit]) {
        for commit in commits {
            let PeerCommit::Turn { turn, number, .. } = commit else { continue };
            if !self.inbox.is_followed() {
                return;
            }
            if let Err(error) = self.tell_inbox_of(*turn, *number).await {
                tracing::warn!(%turn, %error, "a commit of another host could not be read");
                return self.inbox.missed();
            }
        }
    }

    async fn tell_inbox_of(&self, turn: TurnId, number: u32) -> Result<(), StoreFault> {
        let until = async |commits| Ok(self.pipeline.log.load_until(turn, commits).await?.found());
        let Some(after) = until(number.saturating_add(1)).await?.and_then(|log| Turn::replay(&log.events)) else {
            return Ok(());
        };
        let before = match number {
            0 => None,
            number => until(number).await?.and_then(|log| Turn::replay(&log.events)),
        };
        let (reserved, storage) = (Footprint::default(), Storage::Stored);
        self.inbox.changed(&TurnChange { before: before.as_ref(), after: &after, reserved, storage });
        Ok(())
    }

    /// Recovers the calls of hosts that have ended.
    async fn take_over(&self, ended: &Notify) {
        loop {
            ended.notified().await;
            while let Err(error) = self.expiry.recover().await {
                tracing::error!(%error, "the calls of a host that has ended could not be read");
                self.pipeline.shared.clock.sleep(BACKOFF).await;
            }
            self.due();
        }
    }
}
