//! Polls for the commits of other hosts, at once when a hint of one arrives.

use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::{News, PeerCommit, Position, Source, StoreFault};
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_postgres::Row;

use super::hints::{Hints, PAUSE};
use super::life::Members;
use super::reads::Reads;
use super::rows::{self, column, limit, signed};

// Commits of this host are skipped. Those of hosts of format 2 have no run.
const NEWS: &str = "SELECT head.position AS head, page.* FROM head LEFT JOIN LATERAL (\
    SELECT commits.position, commits.source, commits.turn, commits.number, commits.conversation, ended_turns.caller \
    FROM commits LEFT JOIN ended_turns ON ended_turns.position = commits.position AND ended_turns.turn = commits.turn \
    WHERE commits.position > $1 AND commits.run IS DISTINCT FROM $2 ORDER BY commits.position LIMIT $3) AS page ON true \
    ORDER BY page.position";

/// The time between two polls while another host is alive and its hints do not arrive.
const OFTEN: Duration = Duration::from_millis(100);

/// The commits of one poll.
const PAGE: usize = 1_000;

/// Commits are not reported one by one if there are more since the last poll.
const MAX_COMMITS: u64 = 10_000;

pub(super) struct Poller {
    requests: Reads,
    /// Of this host.
    run: i32,
    /// The last position that was reported.
    seen: Position,
    members: watch::Receiver<Members>,
    hints: Arc<Hints>,
    /// The shortest time between two polls: each other host sends hints.
    pauses: Interval,
    /// The time between two polls otherwise.
    seldom: Duration,
    /// The number of ends of hosts that was reported.
    ended: u64,
    news: mpsc::Sender<News>,
}

impl Poller {
    /// Polls for commits after a position. The channel has room for what the next reader gets.
    pub(super) fn new(
        requests: Reads,
        run: i32,
        seen: Position,
        members: watch::Receiver<Members>,
        (hints, seldom): (Arc<Hints>, Duration),
    ) -> (Self, mpsc::Receiver<News>) {
        let (news, reader) = mpsc::channel(1);
        let mut pauses = interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        (Self { requests, run, seen, members, hints, pauses, seldom, ended: 0, news }, reader)
    }

    /// Returns when the store is closed or takes no commits any more.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(OFTEN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sender = self.news.clone();
        while let Ok(room) = sender.reserve().await {
            let Some(news) = self.next(&mut ticks).await else { return };
            room.send(news);
        }
    }

    async fn next(&mut self, ticks: &mut Interval) -> Option<News> {
        loop {
            let members = *self.members.borrow_and_update();
            if members.ended != self.ended {
                self.ended = members.ended;
                return Some(News::Ended);
            }
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.hints.arrived.notified() => {}
                changed = self.members.changed() => {
                    changed.ok()?;
                    continue;
                }
            }
            self.pauses.tick().await;
            match self.poll().await {
                Ok(Some(news)) => return Some(news),
                Ok(None) => {}
                Err(fault) => tracing::debug!(%fault, "no news of other hosts"),
            }
            let is_blind = members.has_others && !self.hints.is_listening();
            ticks.reset_after(if is_blind { OFTEN } else { self.seldom });
        }
    }

    async fn poll(&mut self) -> Result<Option<News>, StoreFault> {
        let (seen, run) = (signed(self.seen.0), self.run);
        let poll = move |connection: super::reads::Reader| async move {
            connection.query(NEWS, &[&seen, &run, &limit(PAGE)]).await
        };
        let rows = self.requests.run(poll).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let head = rows::position(first, "head")?;
        // An earlier head: a server without the last commits of another host took over.
        if head.0.checked_sub(self.seen.0).is_none_or(|commits| commits > MAX_COMMITS) {
            self.seen = head;
            return Ok(Some(News::Missed));
        }
        if column::<Option<i64>>(first, "position")?.is_none() {
            self.seen = head;
            return Ok(None);
        }
        let last = rows.last().filter(|_| rows.len() == PAGE);
        self.seen = last.map_or(Ok(head), |last| rows::position(last, "position"))?;
        Ok(Some(News::Commits(rows.iter().map(|row| commit(row).unwrap_or(PeerCommit::Other)).collect())))
    }
}

fn commit(row: &Row) -> Result<PeerCommit, StoreFault> {
    Ok(match rows::read_source(row)? {
        Source::Turn { turn, number } => {
            let is_end = column::<Option<&str>>(row, "caller")?.is_some();
            let ended = if is_end { Some(rows::principal(row, "caller")?) } else { None };
            PeerCommit::Turn { turn, number, conversation: rows::conversation(row)?, ended }
        }
        Source::Plugin => PeerCommit::Plugin,
        Source::Started | Source::Revoked | Source::Removal => PeerCommit::Other,
    })
}
