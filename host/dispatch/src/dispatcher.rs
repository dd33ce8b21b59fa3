//! A running host: its parts and its background tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::calls_below::CallsBelow;
use crate::committer::{Committer, Contributor, Observer};
use crate::expiry::Expiry;
use crate::feed::Feeds;
use crate::footprint::OpenTurns;
use crate::forget::Forget;
use crate::handle::{Handle, Readers};
use crate::inbox::Inbox;
use crate::index::IndexChanges;
use crate::journal::JournalRuns;
use crate::lingering::EndedCalls;
use crate::nested::{self, NestedTurns, Nesting};
use crate::outbox::Webhooks;
use crate::parts::Parts;
use crate::peers::PeerNews;
use crate::pipeline::Pipeline;
use crate::ports::{Store, Subscribers};
use crate::presence::Presence;
use crate::retention::{RetentionRules, TurnRemover};
use crate::run_logs::RunLogs;
use crate::runner::Runner;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::standing::Standings;
use crate::timers::Timers;
use crate::tracker::QuotaTracker;
use crate::turns::Turns;

/// A running host. Dropping it stops its background tasks. The next host recovers the calls that were running.
pub struct Dispatcher {
    handle: Handle,
    watching: [JoinHandle<()>; 6],
}

impl Dispatcher {
    /// Starts a host: recovers the calls of a killed host, then handles turns that are due.
    ///
    /// Must be called in a tokio runtime, which it uses for everything except the guests.
    pub fn start(parts: Parts) -> Self {
        let Parts {
            store,
            tools,
            policy,
            principals,
            clock,
            disk,
            guests: guest_runtime,
            owner,
            mint,
            settings,
            bounds,
            quotas,
            retention,
            logs,
            subscribers,
        } = parts;
        let (webhooks, logs) = (Arc::new(Webhooks(subscribers.clone())), Arc::new(RunLogs::new(logs, clock.clone())));
        let (standings, inbox, feeds) = (Arc::<Standings>::default(), Arc::<Inbox>::default(), Arc::<Feeds>::default());
        let (timers, is_shared) = (Arc::<Timers>::default(), store.is_shared());
        let (turns, tracker) = (Arc::new(Turns::new(is_shared)), Arc::new(QuotaTracker::new(quotas, is_shared)));
        let (nested, nestings) = NestedTurns::new();
        let (nested, below) = (Arc::new(nested), Arc::new(CallsBelow::new(is_shared)));
        let observers: Vec<Arc<dyn Observer>> = vec![
            webhooks.clone(),
            standings.clone(),
            tracker.clone(),
            inbox.clone(),
            feeds.clone(),
            timers.clone(),
            logs.clone(),
            nested.clone(),
            below.clone(),
            Arc::new(EndedCalls(tools.clone())),
            Arc::<Turns>::clone(&turns),
        ];
        let committer =
            Arc::new(Committer::new(store.clone(), contributors(webhooks.clone(), logs.clone(), is_shared), observers));
        let shared = Arc::new(Shared {
            tools,
            policy,
            principals,
            clock,
            disk,
            guest_runtime,
            owner,
            mint,
            settings,
            bounds,
            is_draining: AtomicBool::new(false),
        });
        let pipeline = Arc::new(Pipeline {
            shared: shared.clone(),
            log: store.clone(),
            journals: store.clone(),
            peers: store.clone(),
            committer,
            turns,
            tracker,
            runner: Runner::new(&shared, store.clone(), feeds.clone()),
            feeds,
            timers,
            logs,
            signals: Signals::new(store.clone()),
            below,
        });
        let known = Known { standings, inbox, nested, nestings };
        Self::watch(pipeline, &store, known, (subscribers, retention))
    }

    /// Starts the background tasks.
    fn watch(
        pipeline: Arc<Pipeline>,
        store: &Arc<dyn Store>,
        Known { standings, inbox, nested, nestings }: Known,
        (subscribers, retention): (Arc<dyn Subscribers>, RetentionRules),
    ) -> Self {
        let (shared, committer, logs) = (pipeline.shared.clone(), pipeline.committer.clone(), pipeline.logs.clone());
        let (presence, clock) = (Arc::new(Presence::new(store.clone(), store.clone())), shared.clock.clone());
        let (indexes, open_since) = (store.clone(), clock.now());
        let (peers, presence_of) = (store.clone(), presence.clone());
        let expiry = Expiry { pipeline: pipeline.clone(), indexes, peers, presence: presence_of, nested, open_since };
        let expiry = Arc::new(expiry);
        let news = PeerNews {
            peers: store.clone(),
            pipeline: pipeline.clone(),
            feeds: pipeline.feeds.clone(),
            inbox: inbox.clone(),
            standings: standings.clone(),
            subscribers,
            expiry: expiry.clone(),
        };
        let forget = Forget { standing: store.clone(), committer: committer.clone() };
        let retention = TurnRemover::new(store.clone(), store.clone(), store.clone(), committer.clone(), retention);
        let readers = readers(store, (standings, inbox), &retention);
        let handle = Handle::new(pipeline, presence, readers);
        let watching = [
            tokio::spawn(expiry.watch()),
            tokio::spawn(news.watch()),
            tokio::spawn(forget.watch(
                store.clone(),
                clock.clone(),
                shared.settings.denied_again,
                shared.settings.denied_bytes,
            )),
            tokio::spawn(retention.watch(clock, store.clone(), store.clone(), shared.tools.clone())),
            tokio::spawn(logs.watch(committer)),
            tokio::spawn(nested::watch(handle.clone(), nestings)),
        ];
        Self { handle, watching }
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

/// Parts that observe commits, for the background tasks.
struct Known {
    standings: Arc<Standings>,
    inbox: Arc<Inbox>,
    nested: Arc<NestedTurns>,
    nestings: UnboundedReceiver<Nesting>,
}

fn contributors(webhooks: Arc<Webhooks>, logs: Arc<RunLogs>, is_shared: bool) -> Vec<Arc<dyn Contributor>> {
    // The deliveries follow from the rows that the indexes contribute.
    let mut contributors: Vec<Arc<dyn Contributor>> =
        vec![Arc::new(IndexChanges), Arc::new(JournalRuns), webhooks, logs];
    if is_shared {
        contributors.push(Arc::new(OpenTurns));
    }
    contributors
}

fn readers(
    store: &Arc<dyn Store>,
    (standings, inbox): (Arc<Standings>, Arc<Inbox>),
    retention: &TurnRemover,
) -> Readers {
    Readers {
        indexes: store.clone(),
        outbox: store.clone(),
        standing: store.clone(),
        logs: store.clone(),
        journals: store.clone(),
        health: store.clone(),
        audit: store.clone(),
        standings,
        inbox,
        retention_lag: retention.lag.clone(),
        removals: retention.removals.subscribe(),
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.watching.iter().for_each(JoinHandle::abort);
    }
}
