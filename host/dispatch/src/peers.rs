//! The effects of commits and of ends of other hosts on the same store. Their commits have the same effects on the tasks that wait here as
//! commits of this host. Only the effects on disk are not repeated.

use std::sync::Arc;

use domain::{Span, Turn, TurnId};

use crate::committer::TurnChange;
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
        let clock = &self.pipeline.shared.clock;
        loop {
            tokio::select! {
                news = self.peers.news() => self.handle(news).await,
                () = clock.sleep(REPORT) => self.peers.report(self.pipeline.tracker.counts().running_calls),
            }
        }
    }

    async fn handle(&self, news: News) {
        match news {
            News::Commits(commits) => {
                for commit in &commits {
                    self.committed(commit).await;
                }
                self.subscribers.deliveries_committed();
            }
            News::Missed => {
                self.standings.outdated();
                self.inbox.missed();
                for entered in self.pipeline.turns.all() {
                    self.renew(&entered).await;
                }
                self.feeds.missed();
                self.subscribers.deliveries_committed();
            }
            News::Ended => self.take_over().await,
        }
    }

    async fn committed(&self, commit: &PeerCommit) {
        match commit {
            PeerCommit::Turn { turn, number, .. } => {
                self.standings.outdated();
                if self.inbox.is_followed()
                    && let Err(error) = self.tell_inbox(*turn, *number).await
                {
                    tracing::warn!(%turn, %error, "a commit of another host could not be read");
                    self.inbox.missed();
                }
                if let Some(entered) = self.pipeline.turns.known(*turn) {
                    self.renew(&entered).await;
                }
            }
            PeerCommit::Plugin => {}
            PeerCommit::Other => self.standings.outdated(),
        }
        // Last, so that a follower that is woken reads a turn as it is now.
        self.feeds.peer_committed(commit);
    }

    /// Brings a turn in memory up to date: stops runs that another host superseded, and wakes those who wait for it.
    async fn renew(&self, entered: &Entered) {
        if let Err(error) = self.pipeline.renew(entered).await {
            tracing::warn!(turn = %entered.id(), %error, "a turn that another host changed could not be read");
        }
    }

    /// Tells the followers of the inbox what a commit did.
    async fn tell_inbox(&self, turn: TurnId, number: u32) -> Result<(), StoreFault> {
        let until = async |commits| Ok(self.pipeline.log.load_until(turn, commits).await?.found());
        let Some(after) = until(number.saturating_add(1)).await?.and_then(|log| Turn::replay(&log.events)) else {
            return Ok(());
        };
        let before = match number {
            0 => None,
            number => until(number).await?.and_then(|log| Turn::replay(&log.events)),
        };
        let storage = crate::committer::Storage::Stored;
        self.inbox.changed(&TurnChange {
            before: before.as_ref(),
            after: &after,
            reserved: Footprint::default(),
            storage,
        });
        Ok(())
    }

    /// Recovers the calls of hosts that have ended.
    async fn take_over(&self) {
        while let Err(error) = self.expiry.recover().await {
            tracing::error!(%error, "the calls of a host that has ended could not be read");
            self.pipeline.shared.clock.sleep(BACKOFF).await;
        }
        // Its share of what is due is now also ours.
        self.pipeline.timers.alarm.no_later_than(self.pipeline.shared.clock.now());
    }
}
