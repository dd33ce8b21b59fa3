//! Hosts inside a test that share one store in memory. Each knows of the others what hosts on a database know. A test decides when
//! the news arrive, and which hosts have ended.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dispatch::ports::{
    Commit, Footprint, NewFacts, News, PeerCommit, Peers, RowChange, RunningHost, Share, StoreFault,
};
use domain::{ConversationId, OwnerId, PrincipalId, Timestamp, ToolName};
use tokio::sync::Notify;

/// The hosts on a store.
#[derive(Default)]
pub struct Cluster(Mutex<State>);

#[derive(Default)]
struct State {
    alive: BTreeMap<OwnerId, Arc<Inbox>>,
    ended: BTreeSet<OwnerId>,
    attached: HashMap<(OwnerId, ConversationId), Vec<ToolName>>,
    open: HashMap<PrincipalId, Footprint>,
}

/// The news for one host.
#[derive(Default)]
struct Inbox {
    news: Mutex<VecDeque<News>>,
    arrived: Notify,
}

impl Inbox {
    fn send(&self, news: News) {
        lock(&self.news).push_back(news);
        self.arrived.notify_one();
    }
}

/// One of the hosts.
pub struct Member {
    cluster: Arc<Cluster>,
    owner: OwnerId,
    inbox: Arc<Inbox>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// A host that begins.
    #[must_use]
    pub fn join(self: &Arc<Self>, owner: OwnerId) -> Arc<Member> {
        let inbox = Arc::<Inbox>::default();
        lock(&self.0).alive.insert(owner, inbox.clone());
        Arc::new(Member { cluster: self.clone(), owner, inbox })
    }

    /// A host has ended, or its lease has: the others find that out.
    pub fn end(&self, owner: OwnerId) {
        let mut state = lock(&self.0);
        state.alive.remove(&owner);
        state.ended.insert(owner);
        state.attached.retain(|(of, _), _| *of != owner);
        state.alive.values().for_each(|inbox| inbox.send(News::Ended));
    }

    /// Whether a host has ended, or its lease has.
    #[must_use]
    pub fn has_ended(&self, owner: OwnerId) -> bool {
        lock(&self.0).ended.contains(&owner)
    }

    /// The usage of the open turns of all principals.
    #[must_use]
    pub fn open(&self) -> Footprint {
        lock(&self.0).open.values().fold(Footprint::default(), |all, of| Footprint {
            turns: all.turns + of.turns,
            bytes: all.bytes + of.bytes,
            suspensions: all.suspensions + of.suspensions,
        })
    }
}

impl Member {
    /// Whether its lease has ended, so that it commits nothing more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.cluster.has_ended(self.owner)
    }

    /// Tells the other hosts about a commit of this one.
    pub fn committed(&self, commit: &Commit) {
        let mut state = lock(&self.cluster.0);
        let mut ended = None;
        for row in &commit.rows {
            match row {
                RowChange::Open { principal, less, more } => {
                    let open = state.open.entry(principal.clone()).or_default();
                    open.turns = open.turns + more.turns - less.turns;
                    open.bytes = open.bytes + more.bytes - less.bytes;
                    open.suspensions = open.suspensions + more.suspensions - less.suspensions;
                }
                RowChange::Ended(row, _) => ended = Some(row.caller.clone()),
                _ => {}
            }
        }
        let news = match &commit.facts {
            Some(NewFacts::Turn { turn, conversation, expected, .. }) => {
                PeerCommit::Turn { turn: *turn, number: *expected, conversation: conversation.clone(), ended }
            }
            Some(NewFacts::Plugin(_)) => PeerCommit::Plugin,
            Some(_) => PeerCommit::Other,
            None => return,
        };
        let others = state.alive.iter().filter(|(owner, _)| **owner != self.owner);
        others.for_each(|(_, inbox)| inbox.send(News::Commits(vec![news.clone()])));
    }
}

#[async_trait]
impl Peers for Member {
    fn is_shared(&self) -> bool {
        true
    }

    fn share(&self) -> Share {
        let state = lock(&self.cluster.0);
        let index = state.alive.keys().position(|owner| *owner == self.owner);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        index.map_or(Share::NONE, |index| Share::new(number(index), number(state.alive.len())))
    }

    async fn news(&self) -> News {
        loop {
            if let Some(news) = lock(&self.inbox.news).pop_front() {
                return news;
            }
            self.inbox.arrived.notified().await;
        }
    }

    async fn ended_hosts(&self, owners: Vec<OwnerId>) -> Result<Vec<OwnerId>, StoreFault> {
        let state = lock(&self.cluster.0);
        Ok(owners.into_iter().filter(|owner| !state.alive.contains_key(owner)).collect())
    }

    async fn hosts(&self) -> Result<Vec<RunningHost>, StoreFault> {
        let host = |owner: &OwnerId| RunningHost {
            name: owner.to_string(),
            owner: *owner,
            version: "test".into(),
            address: None,
            config: Some(domain::Digest::of("configuration")),
            plugins: None,
            since: Timestamp::from_millis(0),
            renewed: Timestamp::from_millis(0),
            running_calls: 0,
            is_draining: false,
        };
        Ok(lock(&self.cluster.0).alive.keys().map(host).collect())
    }

    async fn attached(&self, conversation: &ConversationId) -> Result<Vec<ToolName>, StoreFault> {
        let state = lock(&self.cluster.0);
        let others = state.attached.iter().filter(|((owner, of), _)| *owner != self.owner && of == conversation);
        Ok(others.flat_map(|(_, tools)| tools.clone()).collect())
    }

    async fn attach(&self, conversation: &ConversationId, tools: Vec<ToolName>) -> Result<(), StoreFault> {
        lock(&self.cluster.0).attached.insert((self.owner, conversation.clone()), tools);
        Ok(())
    }

    async fn open_turns(&self, of: Option<&PrincipalId>) -> Result<Option<Footprint>, StoreFault> {
        match of {
            Some(principal) => Ok(Some(lock(&self.cluster.0).open.get(principal).copied().unwrap_or_default())),
            None => Ok(Some(self.cluster.open())),
        }
    }
}
