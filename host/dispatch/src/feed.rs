//! Following conversations, the host, and the ends of a caller's turns. Committed events can be read again from any
//! position. Progress and the lines of guests' logs are live, and followers may miss some. The last lines of each log
//! are also stored (`run_logs.rs`).
//!
//! A follower subscribes first and then reads the store; a commit only wakes it. So it neither misses a commit nor sees
//! one twice, however slow it is, and no committed event is kept in memory for it.

mod latest;
mod reports;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use domain::{
    CallId, CallIndex, ConversationId, Event, Json, Outcome, Principal, PrincipalId, Span, Suspension, Turn, TurnId,
    call::Level,
    event::{CallEvent, PluginChange},
    principal::Role,
};
use tokio::sync::watch;

use crate::committer::{Observer, Storage, TurnChange};
use crate::ports::{
    Commit, Committed, Facts, Feed, Indexes, Log, NewFacts, PeerCommit, Position, Progress, RowChange, RunMonitor,
    StoreFault,
};
use crate::ring::{Bounds, Lagged, Receiver, Ring};
use crate::run_logs::RunWriter;
use crate::stop::StopSignal;
use latest::Latest;
pub use latest::{LatestProgress, ProgressFollower};
use reports::ClientReports;

/// How far a follower may fall behind, in live items and in bytes, before it loses the oldest.
const MAX_BACKLOG: Bounds = Bounds { items: 256, bytes: 512 << 10 };

/// The approximate size of a live item without its texts, in bytes.
const ITEM: usize = 256;

/// How many commits a follower reads at a time.
const PAGE: usize = 8;

/// How many bytes of commits a follower reads at a time, or one commit that is larger. A commit may hold megabytes, and
/// a follower may stop reading.
const PAGE_BYTES: usize = 256 << 10;

/// The largest event of an ephemeral turn that its followers get, in bytes.
const MAX_EVENT: usize = 16 << 10;

/// A live item. It is not stored.
#[derive(Debug, Clone)]
pub enum Live {
    /// A guest or a client reports progress.
    Progress {
        turn: TurnId,
        call: CallId,
        /// The call's position.
        index: CallIndex,
        progress: Progress,
    },
    /// A guest logs a line.
    Log {
        turn: TurnId,
        call: CallId,
        /// The attempt that logs it, from 1.
        run: u32,
        /// Its number among the lines of the run, from 1.
        number: u64,
        level: Level,
        /// The line, in the guest's words.
        line: String,
    },
    /// Events of an ephemeral turn, which are not stored.
    Ephemeral { turn: TurnId, events: Arc<[Event]> },
}

impl Live {
    /// The approximate size that it takes while slow followers have not read it, in bytes.
    fn size(&self) -> usize {
        let texts = match self {
            Self::Progress { progress, .. } => progress.message.len() + progress.data.as_ref().map_or(0, Json::size),
            Self::Log { line, .. } => line.len(),
            Self::Ephemeral { events, .. } => events.iter().map(|event| ITEM + size(event)).sum(),
        };
        ITEM + texts
    }
}

/// An item that a follower gets.
#[derive(Debug, Clone)]
pub enum Item {
    /// A commit, with its position.
    Committed(Committed),
    Live(Live),
}

#[derive(Debug, Clone)]
enum Signal {
    Committed,
    /// A live item of a turn, with the caller of the turn.
    Live(PrincipalId, Live),
}

/// The followers of each feed, and the number of clients' reports to them.
#[derive(Default)]
pub(crate) struct Feeds {
    followers: RwLock<HashMap<Feed, Arc<Ring<Signal>>>>,
    pub(crate) reports: ClientReports,
    pub(crate) latest: Arc<Latest>,
    /// Notified when the live tools have changed.
    pub(crate) tools: watch::Sender<()>,
}

impl Feeds {
    pub(crate) fn live(&self, conversation: &ConversationId, caller: &PrincipalId, live: Live) {
        let bytes = live.size();
        self.send(&Feed::Conversation(conversation.clone()), bytes, || Signal::Live(caller.clone(), live));
    }

    /// Sends the events of an ephemeral turn. Slow followers keep them in memory, so large events are left out: the
    /// caller gets those.
    fn ephemeral(&self, turn: &Turn, events: &[Event]) {
        let events = events.iter().filter(|event| size(event) <= MAX_EVENT).cloned().collect();
        self.live(&turn.conversation, &turn.caller, Live::Ephemeral { turn: turn.id, events });
    }

    /// Whether anybody follows the conversation. Live items are made only then.
    pub(crate) fn is_followed(&self, conversation: &ConversationId) -> bool {
        let feeds = self.followers.read().unwrap_or_else(PoisonError::into_inner);
        !feeds.is_empty() && feeds.contains_key(&Feed::Conversation(conversation.clone()))
    }

    fn send(&self, feed: &Feed, bytes: usize, signal: impl FnOnce() -> Signal) {
        let feeds = self.followers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(followers) = feeds.get(feed) {
            followers.send(signal(), bytes);
        }
    }

    /// Wakes the followers after a commit of another host.
    pub(crate) fn peer_committed(&self, commit: &PeerCommit) {
        match commit {
            PeerCommit::Turn { turn, conversation, ended, .. } => {
                self.send(&Feed::Conversation(conversation.clone()), 0, || Signal::Committed);
                if let Some(caller) = ended {
                    self.latest.ended(*turn);
                    self.send(&Feed::Caller(caller.clone()), 0, || Signal::Committed);
                    self.send(&Feed::Host, 0, || Signal::Committed);
                }
            }
            PeerCommit::Plugin => self.send(&Feed::Host, 0, || Signal::Committed),
            PeerCommit::Other => {}
        }
    }

    /// Wakes all followers: the store knows what they missed.
    pub(crate) fn missed(&self) {
        let feeds = self.followers.read().unwrap_or_else(PoisonError::into_inner);
        feeds.values().for_each(|followers| followers.send(Signal::Committed, 0));
    }

    fn subscribe(&self, feed: &Feed) -> Receiver<Signal> {
        let mut feeds = self.followers.write().unwrap_or_else(PoisonError::into_inner);
        feeds.entry(feed.clone()).or_insert_with(|| Ring::new(MAX_BACKLOG)).follow()
    }

    /// Drops a receiver while the map is locked. Otherwise two that are dropped at the same time could each see the other,
    /// and nobody would remove the entry.
    fn unsubscribe(&self, feed: &Feed, signals: Option<Receiver<Signal>>) {
        let mut feeds = self.followers.write().unwrap_or_else(PoisonError::into_inner);
        drop(signals);
        if feeds.get(feed).is_some_and(|followers| !followers.is_followed()) {
            feeds.remove(feed);
        }
    }
}

impl Observer for Feeds {
    fn observes_ephemeral(&self) -> bool {
        true
    }

    fn committed(&self, commit: &Commit, change: Option<&TurnChange<'_>>) {
        if let Some(change) = change {
            self.reports.committed(change.after);
            if change.after.is_ended() {
                self.latest.ended(change.after.id);
            }
        }
        match change.map(|change| (change.after, change.storage)) {
            Some((after, Storage::Stored)) => {
                self.send(&Feed::Conversation(after.conversation.clone()), 0, || Signal::Committed);
                if commit.rows.iter().any(|row| matches!(row, RowChange::Ended(..))) {
                    self.send(&Feed::Caller(after.caller.clone()), 0, || Signal::Committed);
                    self.send(&Feed::Host, 0, || Signal::Committed);
                }
            }
            Some((after, Storage::Ephemeral { is_followed: true, .. })) => self.ephemeral(after, commit.events()),
            Some((_, Storage::Ephemeral { is_followed: false, .. })) => {}
            None => {
                let Some(NewFacts::Plugin(event)) = &commit.facts else { return };
                self.send(&Feed::Host, 0, || Signal::Committed);
                match event.change {
                    PluginChange::Loaded { .. } | PluginChange::Unloaded => self.tools.send_replace(()),
                    PluginChange::Rejected { .. } => {}
                }
            }
        }
    }
}

/// Follows one feed in the name of a principal, who gets only the turns that it may see.
pub struct Follower {
    feeds: Arc<Feeds>,
    log: Arc<dyn Log>,
    indexes: Arc<dyn Indexes>,
    by: Principal,
    feed: Feed,
    /// Taken only by `drop`.
    signals: Option<Receiver<Signal>>,
    after: Position,
    behind: bool,
    /// Read and not returned yet.
    read: VecDeque<Item>,
}

impl Follower {
    pub(crate) fn new(
        feeds: Arc<Feeds>,
        log: Arc<dyn Log>,
        indexes: Arc<dyn Indexes>,
        by: Principal,
        feed: Feed,
        after: Position,
    ) -> Self {
        let signals = Some(feeds.subscribe(&feed));
        Self { feeds, log, indexes, by, feed, signals, after, behind: true, read: VecDeque::new() }
    }

    /// Whether this follower may see turns of this caller. A conversation can be followed before its first turn, which may
    /// give it to another owner.
    fn may_see(&self, caller: &PrincipalId) -> bool {
        match &self.feed {
            Feed::Conversation(conversation) => self.by.may_see(conversation, caller),
            Feed::Host | Feed::Caller(_) => true,
        }
    }

    /// Whether this follower may see facts of its feed. For those of a conversation, its owner decides.
    fn shows(&self, facts: &Facts) -> bool {
        match (facts, &self.feed) {
            (Facts::Ended(ending), _) => self.by.may_see(&ending.conversation, &ending.caller),
            (_, Feed::Host) => self.by.roles.has(Role::Admin) && self.by.conversation.is_none(),
            (_, Feed::Conversation(_) | Feed::Caller(_)) => true,
        }
    }

    /// Removes the commits if the follower may not see turns of the conversation's owner.
    async fn visible(&self, committed: Vec<Committed>) -> Result<VecDeque<Item>, StoreFault> {
        let owner = match &self.feed {
            Feed::Conversation(conversation) => self.indexes.owner(conversation).await?,
            Feed::Host | Feed::Caller(_) => None,
        };
        // Every turn of a conversation belongs to its owner: the store refuses the first commit of any other.
        let is_visible = owner.is_none_or(|owner| self.may_see(&owner));
        let visible = committed.into_iter().filter(|committed| is_visible && self.shows(&committed.facts));
        Ok(visible.map(Item::Committed).collect())
    }

    /// The next item. Safe to cancel: an item that was not returned is returned next.
    ///
    /// # Errors
    /// [`StoreFault`] when the store cannot be read.
    pub async fn next(&mut self) -> Result<Item, StoreFault> {
        loop {
            self.ready().await;
            if let Some(item) = self.read().await? {
                return Ok(item);
            }
        }
    }

    /// Waits until there may be something to read. Reads nothing.
    pub async fn ready(&mut self) {
        while self.read.is_empty() && !self.behind {
            let Some(signals) = &mut self.signals else { return std::future::pending().await };
            match signals.recv().await {
                Ok(Signal::Live(caller, live)) if self.may_see(&caller) => self.read.push_back(Item::Live(live)),
                Ok(Signal::Live(..)) => {}
                // Missed signals may have been commits; the store knows.
                Ok(Signal::Committed) | Err(Lagged) => self.behind = true,
            }
        }
    }

    /// The next item that is there, after [`Follower::ready`]. Waits only for the store. Safe to cancel, as
    /// [`Follower::next`].
    ///
    /// # Errors
    /// [`StoreFault`] when the store cannot be read.
    pub async fn read(&mut self) -> Result<Option<Item>, StoreFault> {
        if self.read.is_empty() && self.behind {
            let page = self.log.follow(&self.feed, self.after, PAGE, PAGE_BYTES).await?;
            let (is_more, after) = (!page.is_empty(), page.last().map(|last| last.position));
            // If this is cancelled here, the same page is read again.
            self.read = self.visible(page).await?;
            self.behind = is_more;
            self.after = after.unwrap_or(self.after);
        }
        Ok(self.read.pop_front())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.feeds.unsubscribe(&self.feed, self.signals.take());
    }
}

/// The size of what callers, people and guests put into an event.
pub(crate) fn size(event: &Event) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, Json::size);
    match event {
        Event::TurnStarted { context, .. } => json(context),
        Event::Call { event, .. } => match event {
            CallEvent::Requested { arguments, origin, .. } => arguments.size() + json(origin),
            CallEvent::Suspended { suspension } => suspension_size(suspension),
            CallEvent::Resolved { resolution, .. } => json(&resolution.data) + json(&resolution.arguments),
            CallEvent::Settled { outcome: Outcome::Ok { value, .. }, .. } => value.size(),
            CallEvent::Settled { .. }
            | CallEvent::Covered { .. }
            | CallEvent::Voted { .. }
            | CallEvent::Delegated { .. }
            | CallEvent::AuthorityRevoked { .. }
            | CallEvent::LinkMade { .. }
            | CallEvent::LinkUsed { .. }
            | CallEvent::Escalated { .. }
            | CallEvent::ClientAwaited { .. }
            | CallEvent::Expired { .. }
            | CallEvent::Started { .. }
            | CallEvent::Resumed { .. }
            | CallEvent::LeaseExtended { .. } => 0,
        },
        Event::TurnCancelled { .. } | Event::TurnSettled { .. } => 0,
    }
}

/// The size of the prompt, the defaults, the subject and the schema of a suspension.
pub(crate) fn suspension_size(suspension: &Suspension) -> usize {
    let prompt = suspension.about().and_then(|about| about.prompt.as_ref()).map_or(0, |prompt| prompt.len());
    let defaults = suspension.asked().and_then(|asked| asked.defaults.as_ref()).map_or(0, Json::size);
    let subject = suspension.step.as_ref().and_then(|step| step.subject.as_ref()).map_or(0, Json::size);
    suspension.data_schema().map_or(0, Json::size) + prompt + defaults + subject
}

/// Sends a guest's reports to the followers of its conversation.
pub(crate) struct LiveMonitor {
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) conversation: ConversationId,
    pub(crate) caller: PrincipalId,
    pub(crate) turn: TurnId,
    pub(crate) call: CallId,
    pub(crate) index: CallIndex,
    pub(crate) streaming: bool,
    pub(crate) log: RunWriter,
    pub(crate) stop: Arc<StopSignal>,
}

impl LiveMonitor {
    /// Whether anybody sees the reports of the call. Nobody does after it has ended.
    fn is_seen(&self) -> bool {
        self.feeds.is_followed(&self.conversation) && !self.stop.is_requested()
    }
}

impl RunMonitor for LiveMonitor {
    fn try_start(&self, grace: Span) -> bool {
        self.stop.try_start(grace)
    }

    fn stop_requested(&self) -> bool {
        self.stop.is_requested()
    }

    fn progress(&self, progress: Progress) {
        // Only a tool that declares streaming reports progress: clients rely on its declaration.
        if !self.streaming || self.stop.is_requested() {
            return;
        }
        self.feeds.latest.report(self.turn, &progress);
        if self.is_seen() {
            let live = Live::Progress { turn: self.turn, call: self.call.clone(), index: self.index, progress };
            self.feeds.live(&self.conversation, &self.caller, live);
        }
    }

    fn log(&self, level: Level, line: &str) {
        tracing::debug!(target: "guest", turn = %self.turn, call = %self.call, level = level.as_str(), line);
        let (run, number) = (self.log.run(), self.log.line(level, line));
        if self.is_seen() {
            let (turn, call, line) = (self.turn, self.call.clone(), line.to_owned());
            let live = Live::Log { turn, call, run, number, level, line };
            self.feeds.live(&self.conversation, &self.caller, live);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    #[tokio::test]
    async fn followers_that_do_not_read_keep_a_limited_size() {
        let (conversation, caller) = (ConversationId::new("c").unwrap(), PrincipalId::new("ann").unwrap());
        let (turn, call, index) = (TurnId::from_bits(1), CallId::new("a").unwrap(), CallIndex(0));
        let text = "x".repeat(10 << 10);
        let value = Json::unchecked(format!("\"{text}\""));
        let progress = Progress { message: text.clone(), fraction: None, data: Some(value.clone()) };
        let outcome = Outcome::Ok { value, trusted: true };
        let event = CallEvent::Settled { outcome, receipt: None, at: Timestamp::from_millis(1) };
        let events = Arc::from([Event::Call { call: index, event: event.clone() }, Event::Call { call: index, event }]);
        let lives = [
            Live::Progress { turn, call: call.clone(), index, progress },
            Live::Log { turn, call, run: 1, number: 1, level: Level::Info, line: text.repeat(2) },
            Live::Ephemeral { turn, events },
        ];
        for live in lives {
            let (feeds, mut kept) = (Feeds::default(), 0);
            let mut signals = feeds.subscribe(&Feed::Conversation(conversation.clone()));
            for _ in 0..MAX_BACKLOG.items {
                feeds.live(&conversation, &caller, live.clone());
            }
            let mut next = async || {
                tokio::select! { biased; signal = signals.recv() => Some(signal), () = std::future::ready(()) => None }
            };
            assert!(matches!(next().await, Some(Err(Lagged))), "{live:?}");
            while let Some(Ok(_)) = next().await {
                kept += 1;
            }
            assert_eq!(kept, MAX_BACKLOG.bytes / live.size(), "each has 20 KiB of texts");
            assert!((20..26).contains(&kept), "{kept}");
        }
    }
}
