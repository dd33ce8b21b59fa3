//! Reading logs and feeds.

use dispatch::ports::{
    Committed, EndedTurn, Facts, Feed, Loaded, Position, StoreFault, Tombstone, TurnEnding, TurnLog,
};
use domain::{TurnId, event::PluginEvent, retention::Removal};
use tokio_postgres::Row;

use super::reads::Reader;
use super::rows::{self, column, damaged, decode, limit, number, of_turn, position, signed};
use crate::record::{self, Record};

const LOG: &str = "SELECT number, record FROM commits WHERE source = 'turn' AND turn = $1 ORDER BY number LIMIT $2";
const TOMBSTONE: &str = "SELECT removed.conversation, removal.record FROM commits AS removed \
    JOIN commits AS removal ON removal.position = removed.removed_by \
    WHERE removed.source = 'turn' AND removed.turn = $1 LIMIT 1";

// The sums are over the sizes alone, so the records of other rows are not read.
const OF_CONVERSATION: &str = "SELECT position, turn, record, false AS is_end FROM (\
    SELECT position, turn, record, sum(octet_length(record)) OVER (ORDER BY position) AS total, \
    row_number() OVER (ORDER BY position) AS place FROM (\
    SELECT position, turn, record FROM commits WHERE conversation = $1 AND position > $2 AND record IS NOT NULL \
    ORDER BY position LIMIT $3) AS page) AS sized WHERE total <= $4 OR place = 1 ORDER BY position";
const OF_HOST: &str = "SELECT * FROM (SELECT page.*, sum(size) OVER (ORDER BY position) AS total, \
    row_number() OVER (ORDER BY position) AS place FROM (\
    (SELECT position, NULL::uuid AS turn, record, false AS is_end, NULL AS ending, octet_length(record) AS size FROM commits \
    WHERE source = 'plugin' AND position > $1 ORDER BY position LIMIT $2) \
    UNION ALL (SELECT position, turn, record, true, ending, octet_length(record) FROM ended_turns \
    WHERE position > $1 ORDER BY position LIMIT $2) ORDER BY position LIMIT $2) AS page) AS sized \
    WHERE total <= $3 OR place = 1 ORDER BY position";
const OF_CALLER: &str = "SELECT * FROM (SELECT page.*, sum(size) OVER (ORDER BY position) AS total, \
    row_number() OVER (ORDER BY position) AS place FROM (\
    SELECT position, turn, record, true AS is_end, ending, octet_length(record) AS size FROM ended_turns \
    WHERE caller = $1 AND position > $2 ORDER BY position LIMIT $3) AS page) AS sized \
    WHERE total <= $4 OR place = 1 ORDER BY position";

impl Reader {
    pub(super) async fn load(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        let log = self.query(LOG, &[&of_turn(turn), &i64::from(commits)]).await?;
        let (mut version, mut events) = (0, Vec::new());
        for row in &log {
            let Some(record) = column::<Option<&[u8]>>(row, "record")? else { return self.tombstone(turn).await };
            if number(row, "number")? != version {
                return self.noted(damaged(format!("commit {version} of {turn}: it is missing, so the log")));
            }
            match decode(record, record::read_events, || format!("commit {version} of {turn}")) {
                Ok(mut decoded) => events.append(&mut decoded),
                Err(fault) => return self.noted(fault),
            }
            version += 1;
        }
        if version > 0 {
            return Ok(Loaded::Found(TurnLog { version, events }));
        }
        if commits == 0 && self.first(TOMBSTONE, &[&of_turn(turn)]).await?.is_some() {
            return self.tombstone(turn).await;
        }
        Ok(Loaded::Absent)
    }

    /// Counts a damaged record whose fault goes to the caller in any case.
    pub(super) fn noted<T>(&self, fault: StoreFault) -> Result<T, StoreFault> {
        self.set_aside.take(fault.clone())?;
        Err(fault)
    }

    /// The remains of a removed turn.
    async fn tombstone(&self, turn: TurnId) -> Result<Loaded<TurnLog>, StoreFault> {
        let what = || format!("the removal of {turn}");
        let row = self.first(TOMBSTONE, &[&of_turn(turn)]).await?.ok_or_else(|| damaged(what()))?;
        let record: Option<&[u8]> = column(&row, "record")?;
        let Removal { at, rule, .. } = decode(record.unwrap_or_default(), Removal::read, what)?;
        Ok(Loaded::Removed(Tombstone { conversation: rows::conversation(&row)?, at, rule }))
    }

    pub(super) async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        commits: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        let (after, commits, bytes) = (signed(after.0), limit(commits), limit(bytes));
        let page = match feed {
            Feed::Conversation(conversation) => {
                self.query(OF_CONVERSATION, &[&conversation.as_str(), &after, &commits, &bytes]).await?
            }
            Feed::Host => self.query(OF_HOST, &[&after, &commits, &bytes]).await?,
            Feed::Caller(caller) => self.query(OF_CALLER, &[&caller.as_str(), &after, &commits, &bytes]).await?,
        };
        let mut committed = Vec::with_capacity(page.len());
        for row in &page {
            let position = position(row, "position")?;
            let facts = facts(row, position);
            let facts = match facts {
                Ok(facts) => facts,
                Err(fault) => {
                    self.set_aside.take(fault)?;
                    let turn = column::<Option<uuid::Uuid>>(row, "turn")?;
                    Facts::Unreadable { turn: turn.map(|turn| TurnId::from_bits(turn.as_u128())) }
                }
            };
            committed.push(Committed { position, facts });
        }
        Ok(committed)
    }
}

/// The facts of an entry of a feed.
fn facts(row: &Row, position: Position) -> Result<Facts, StoreFault> {
    let what = || format!("the commit at position {}", position.0);
    // A salvage lost it, and recorded that.
    let Some(record) = column::<Option<&[u8]>>(row, "record")? else { return Ok(Facts::Unreadable { turn: None }) };
    if column(row, "is_end")? {
        let ended = decode(record, EndedTurn::read, what)?;
        return Ok(Facts::Ended(TurnEnding::of(&ended, rows::read_ending(row)?)));
    }
    match column::<Option<uuid::Uuid>>(row, "turn")? {
        None => decode(record, PluginEvent::read, what).map(Facts::Plugin),
        Some(turn) => {
            let turn = TurnId::from_bits(turn.as_u128());
            decode(record, record::read_events, what).map(|events| Facts::Turn { turn, events })
        }
    }
}
