//! Reading the chain of the audit.

use std::collections::BTreeMap;

use dispatch::ports::{Audited, ChainEntry, Facts, Head, Position, Recorded, Source, StoreFault};
use domain::{
    event::{HostStarted, PluginEvent},
    retention::Removal,
    standing::StandingRevoked,
};
use tokio_postgres::Row;

use super::reads::Reader;
use super::rows::{self, column, damaged, decode, digest, head, limit, position, signed, unsigned};
use crate::record::{self, Record};

const AUDIT: &str = "SELECT position, hash, source, turn, number, record FROM commits WHERE position > $1 \
    ORDER BY position LIMIT $2";
const CHAIN: &str = "SELECT position, hash, source, turn, number, removed_by, coalesce(sha256(record), digest) AS digest \
    FROM commits WHERE position > $1 ORDER BY position LIMIT $2";
const REMOVALS_AT: &str = "SELECT position, record FROM commits WHERE source = 'removal' AND record IS NOT NULL \
    AND position = ANY ($1)";
const REMOVALS: &str = "SELECT position, record FROM commits WHERE source = 'removal' AND record IS NOT NULL AND position > $1 \
    ORDER BY position LIMIT $2";
const HEAD: &str = "SELECT position, hash FROM head";
const LAST_START: &str =
    "SELECT record FROM commits WHERE source = 'started' AND record IS NOT NULL ORDER BY position DESC LIMIT 1";

fn removal(row: &Row) -> Result<(Position, Removal), StoreFault> {
    let at = position(row, "position")?;
    let record: Option<&[u8]> = column(row, "record")?;
    Ok((at, decode(record.unwrap_or_default(), Removal::read, || format!("the removal at position {}", at.0))?))
}

impl Reader {
    pub(super) async fn audit(&self, after: Position, entries: usize) -> Result<Vec<Audited>, StoreFault> {
        let page = self.query(AUDIT, &[&signed(after.0), &limit(entries)]).await?;
        self.intact(&page, |row| {
            let (head, source) = (head(row)?, rows::read_source(row)?);
            let turn = if let Source::Turn { turn, .. } = source { Some(turn) } else { None };
            let facts = match (column::<Option<&[u8]>>(row, "record")?, turn) {
                (None, Some(turn)) => Ok(Facts::Removed { turn }),
                // A salvage lost it, and recorded that.
                (None, None) => Ok(Facts::Unreadable { turn }),
                (Some(record), _) => facts(record, source, head.position),
            };
            let facts = match facts {
                Ok(facts) => facts,
                Err(fault) => {
                    self.set_aside.take(fault)?;
                    Facts::Unreadable { turn }
                }
            };
            Ok(Audited { head, source, facts })
        })
    }

    /// The digests are computed by the server from the records as they are, so that a changed record is found.
    pub(super) async fn chain(&self, after: Position, entries: usize) -> Result<Vec<ChainEntry>, StoreFault> {
        let page = self.query(CHAIN, &[&signed(after.0), &limit(entries)]).await?;
        let mut by = Vec::new();
        for row in &page {
            by.extend(column::<Option<i64>>(row, "removed_by")?);
        }
        by.sort_unstable();
        by.dedup();
        let found = if by.is_empty() { Vec::new() } else { self.query(REMOVALS_AT, &[&by]).await? };
        let removals: BTreeMap<Position, Removal> = self.intact(&found, removal)?.into_iter().collect();
        page.iter().map(|row| entry(row, &removals)).collect()
    }

    pub(super) async fn removals(
        &self,
        after: Position,
        entries: usize,
    ) -> Result<Vec<(Position, Removal)>, StoreFault> {
        let page = self.query(REMOVALS, &[&signed(after.0), &limit(entries)]).await?;
        self.intact(&page, removal)
    }

    pub(super) async fn head(&self) -> Result<Head, StoreFault> {
        head(&self.first(HEAD, &[]).await?.ok_or_else(|| damaged("the head of the audit"))?)
    }

    pub(super) async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
        let Some(row) = self.first(LAST_START, &[]).await? else { return Ok(None) };
        let start = decode(column(&row, "record")?, HostStarted::read, || "the last start of a host".to_owned());
        match start {
            Ok(start) => Ok(Some(start)),
            // The next start then records all of its grants as new.
            Err(fault) => self.set_aside.take(fault).map(|()| None),
        }
    }
}

/// An entry of the chain. A removed record needs a later removal that names its turn. One that a salvage did not find needs a removal
/// that names its position.
fn entry(row: &Row, removals: &BTreeMap<Position, Removal>) -> Result<ChainEntry, StoreFault> {
    let (head, source) = (head(row)?, rows::read_source(row)?);
    let digest = digest(row, "digest")?;
    let removed_by: Option<i64> = column(row, "removed_by")?;
    let record = match (removed_by, source) {
        (None, _) => Recorded::Kept(digest),
        (Some(by), Source::Turn { turn, number }) => {
            let by = Position(unsigned(by));
            let covers = |removal: &Removal| {
                removal.turns.iter().any(|removed| removed.turn == turn && removed.commits > number)
            };
            Recorded::Removed { digest, by: removals.get(&by).is_some_and(covers).then_some(by) }
        }
        (Some(by), _) => {
            let by = Position(unsigned(by));
            let covers = |removal: &Removal| removal.lost.contains(&head.position.0);
            Recorded::Removed { digest, by: removals.get(&by).is_some_and(covers).then_some(by) }
        }
    };
    Ok(ChainEntry { head, source, record })
}

fn facts(record: &[u8], source: Source, at: Position) -> Result<Facts, StoreFault> {
    let what = || format!("the commit at position {}", at.0);
    Ok(match source {
        Source::Turn { turn, .. } => Facts::Turn { turn, events: decode(record, record::read_events, what)? },
        Source::Plugin => Facts::Plugin(decode(record, PluginEvent::read, what)?),
        Source::Started => Facts::Started(decode(record, HostStarted::read, what)?),
        Source::Revoked => Facts::Revoked(decode(record, StandingRevoked::read, what)?),
        Source::Removal => Facts::Removal(decode(record, Removal::read, what)?),
    })
}
