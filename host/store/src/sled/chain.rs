//! Reading the chain of the audit from the tree.

use dispatch::ports::{Audited, ChainEntry, Facts, Head, Position, Recorded, Source, StoreFault};
use domain::{
    event::{HostStarted, PluginEvent},
    retention::Removal,
    standing::StandingRevoked,
};

use super::blobs;
use super::keys;
use super::reader::{Reader, damaged};
use super::remains::{lost, tombstone};
use super::tree::Tree;
use crate::fault::fault;
use crate::record::{self, Record};

/// The head of the chain, as it is stored.
pub(super) fn head(tree: &Tree) -> Result<Head, StoreFault> {
    match tree.get(keys::HEAD).map_err(fault("read the head of the audit"))? {
        None => Ok(Head::START),
        Some(value) => keys::read_head(&value).ok_or_else(|| damaged("the head of the audit")),
    }
}

/// The key of the record of a commit.
pub(super) fn key_of(position: Position, source: Source) -> Vec<u8> {
    match source {
        Source::Turn { turn, number } => keys::log(turn, number),
        Source::Plugin => keys::at(&[keys::HOST_FEED], position),
        Source::Started => keys::at(&[keys::STARTED], position),
        Source::Revoked => keys::at(&[keys::REVOKED], position),
        Source::Removal => keys::at(&[keys::REMOVAL], position),
    }
}

/// Whether a record can be decoded, or says that it was removed.
pub(super) fn decodes(source: Source, record: &[u8]) -> bool {
    match source {
        _ if lost(record).is_some() => true,
        Source::Turn { .. } => tombstone(record).is_some() || record::read_events(record).is_ok(),
        Source::Plugin => PluginEvent::read(record).is_ok(),
        Source::Started => HostStarted::read(record).is_ok(),
        Source::Revoked => StandingRevoked::read(record).is_ok(),
        Source::Removal => Removal::read(record).is_ok(),
    }
}

impl Reader {
    pub(super) async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault> {
        let mut audited = Vec::new();
        for (position, value) in self.positions(&[keys::AUDIT], after, limit)? {
            let what = || format!("the commit at position {}", position.0);
            let Some((hash, source)) = keys::read_link(&value) else {
                self.set_aside.take(&keys::at(&[keys::AUDIT], position), damaged(what()))?;
                continue;
            };
            let facts = match self.facts(position, source, &what).await {
                Ok(facts) => facts,
                Err(fault) => {
                    let turn = if let Source::Turn { turn, .. } = source { Some(turn) } else { None };
                    self.unreadable(turn, position, fault)?
                }
            };
            audited.push(Audited { head: Head { position, hash }, source, facts });
        }
        Ok(audited)
    }

    async fn facts(
        &self,
        position: Position,
        source: Source,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<Facts, StoreFault> {
        let record = match (self.record(position, source)?, source) {
            (Some(record), _) => record,
            (None, Source::Turn { turn, .. }) if self.removal_on_disk(turn).await? => {
                return Ok(Facts::Removed { turn });
            }
            (None, _) => return Err(damaged(what())),
        };
        Ok(match source {
            _ if lost(&record).is_some() => Facts::Unreadable { turn: None },
            Source::Turn { turn, .. } => match self.decode(&record, record::read_events, what).await {
                Ok(events) => Facts::Turn { turn, events },
                Err(_) if self.removal_on_disk(turn).await? => Facts::Removed { turn },
                Err(fault) => return Err(fault),
            },
            Source::Plugin => Facts::Plugin(self.decode(&record, PluginEvent::read, what).await?),
            Source::Started => Facts::Started(self.decode(&record, HostStarted::read, what).await?),
            Source::Revoked => Facts::Revoked(self.decode(&record, StandingRevoked::read, what).await?),
            Source::Removal => Facts::Removal(self.decode(&record, Removal::read, what).await?),
        })
    }

    /// Hashes records that may be large, so it runs where blocking is allowed.
    pub(super) async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault> {
        let (this, seen) = (self.clone(), self.recoveries());
        let read = move || -> Result<Vec<ChainEntry>, StoreFault> {
            let links = this.positions(&[keys::AUDIT], after, limit)?;
            links.iter().map(|(position, value)| this.link(*position, value)).collect()
        };
        let entries = tokio::task::spawn_blocking(read).await.map_err(fault("read the audit"))??;
        let removal = |entry: &ChainEntry| match entry.record {
            Recorded::Removed { by, .. } => by,
            Recorded::Kept(_) | Recorded::Missing => None,
        };
        self.on_disk(entries.iter().filter_map(removal).max().unwrap_or_default(), seen).await?;
        Ok(entries)
    }

    pub(super) async fn removals(
        &self,
        mut after: Position,
        limit: usize,
    ) -> Result<Vec<(Position, Removal)>, StoreFault> {
        let mut removals = Vec::new();
        while removals.len() < limit {
            let page = self.positions(&[keys::REMOVAL], after, limit - removals.len())?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            for (position, record) in page {
                let what = || format!("the removal at position {}", position.0);
                if lost(&record).is_some() {
                    continue;
                }
                match self.decode(&record, Removal::read, &what).await {
                    Ok(removal) => removals.push((position, removal)),
                    Err(fault) => self.set_aside.take(&keys::at(&[keys::REMOVAL], position), fault)?,
                }
            }
        }
        Ok(removals)
    }

    /// The head of the chain on disk. Later commits could still be lost.
    pub(super) async fn head(&self) -> Result<Head, StoreFault> {
        let position = self.durable.borrow().until();
        if position == Head::START.position {
            return Ok(Head::START);
        }
        let value = self.tree.get(keys::at(&[keys::AUDIT], position)).map_err(fault("read the audit"))?;
        let link = value.and_then(|value| keys::read_link(&value));
        link.map(|(hash, _)| Head { position, hash }).ok_or_else(|| damaged("the head of the audit"))
    }

    pub(super) async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
        let last = self.tree.scan_prefix([keys::STARTED]).next_back();
        let Some((key, value)) = last.transpose().map_err(fault("read the last start"))? else { return Ok(None) };
        match self.decode(&value, HostStarted::read, &|| "the last start of a host".to_owned()).await {
            // The next start then records all of its grants as new.
            Err(fault) => self.set_aside.take(&key, fault).map(|()| None),
            start => start.map(Some),
        }
    }

    /// An entry with the digest that its record has now.
    pub(super) fn link(&self, position: Position, value: &[u8]) -> Result<ChainEntry, StoreFault> {
        let what = || damaged(format!("the chain entry at position {}", position.0));
        let (hash, source) = keys::read_link(value).ok_or_else(what)?;
        let record = match self.recorded(position, source)? {
            // It may have been removed, with its large record, since it was read.
            Recorded::Missing => self.recorded(position, source)?,
            recorded => recorded,
        };
        Ok(ChainEntry { head: Head { position, hash }, source, record })
    }

    /// The state of a record. The digest of a blob is computed from its file, because its name proves nothing.
    fn recorded(&self, position: Position, source: Source) -> Result<Recorded, StoreFault> {
        let record = match (self.record(position, source)?, source) {
            (Some(record), _) => record,
            (None, Source::Turn { turn, number }) => return self.remaining_record(position, turn, number),
            (None, _) => return Ok(Recorded::Missing),
        };
        match (source, tombstone(&record), blobs::referred(&record)) {
            (Source::Turn { turn, number }, Some(digest), _) => self.removed_record(digest, turn, number),
            _ if let Some(lost) = lost(&record) => self.lost_record(lost, position),
            (_, _, Some(blob)) if self.blobs.read_now(blob).is_err() => Ok(Recorded::Missing),
            _ => Ok(Recorded::Kept(blobs::digest(&record))),
        }
    }

    /// Whether the record of an entry can be decoded.
    pub(super) fn is_readable(&self, position: Position, source: Source) -> bool {
        let Ok(Some(record)) = self.record(position, source) else { return false };
        let blob = blobs::referred(&record).map(|blob| self.blobs.read_now(blob)).transpose();
        blob.is_ok_and(|blob| decodes(source, blob.as_deref().unwrap_or(&record)))
    }

    /// The head as it is stored, if the chain leads to it from another head.
    pub(super) fn continues(&self, from: Head) -> Result<Head, StoreFault> {
        let broken = || {
            StoreFault::damaged(
                "open the database again",
                "the audit chain on disk does not continue the last known head",
            )
        };
        let mut head = Head::START;
        if from != head {
            let link = self.tree.get(keys::at(&[keys::AUDIT], from.position)).map_err(fault("read the audit"))?;
            let link = self.link(from.position, &link.ok_or_else(broken)?)?;
            head = Some(link.head).filter(|head| *head == from).ok_or_else(broken)?;
        }
        let stored = self::head(&self.tree)?;
        while head.position < stored.position {
            let next = Position(head.position.0 + 1);
            let link = self.tree.get(keys::at(&[keys::AUDIT], next)).map_err(fault("read the audit"))?;
            let link = self.link(next, &link.ok_or_else(broken)?)?;
            head = head.then(link.source, link.record.digest().ok_or_else(broken)?);
            if head != link.head {
                return Err(broken());
            }
        }
        if head == stored { Ok(head) } else { Err(broken()) }
    }

    /// The record of the commit at a position, if it is there.
    fn record(&self, position: Position, source: Source) -> Result<Option<sled::IVec>, StoreFault> {
        let value = self.tree.get(key_of(position, source)).map_err(fault("read what is stored"))?;
        Ok(match source {
            Source::Plugin | Source::Started | Source::Revoked | Source::Removal => value,
            Source::Turn { .. } => value.and_then(|value| {
                let (stamp, _) = keys::stamped(&value)?;
                (stamp == position).then(|| value.subslice(keys::STAMP, value.len() - keys::STAMP))
            }),
        })
    }
}
