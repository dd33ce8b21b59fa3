//! The audit: recording the loading and unloading of plugins, and reading everything that was recorded.

use std::collections::HashMap;

use domain::{Principal, Turn, TurnId, event::PluginEvent};

use super::{Handle, admin};
use crate::audit::{self, AuditEntry, AuditFilter, AuditPage};
use crate::error::Error;
use crate::ports::{Audited, ChainEntry, Facts, Head, Loaded, Log, NewFacts, Position, Source, StoreFault};

/// Commits that are read at a time. Each may hold megabytes.
const AT_ONCE: usize = 8;

/// The maximum number of commits that are read for one page.
const MAX_EXAMINED: usize = 4_000;

/// A page with more than this ends early, in bytes of texts from people and plugins.
const PAGE_BYTES: usize = 4 << 20;

/// The size of the turns that are kept while a page is made, in bytes of their events. Above it they are dropped and
/// read again.
const MAX_KEPT_BYTES: usize = 32 << 20;

impl Handle {
    /// Records that a plugin was loaded, rejected or unloaded.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing is recorded.
    pub async fn plugin_changed(&self, event: PluginEvent) -> Result<(), StoreFault> {
        let recorded = self.inner.pipeline.committer.record(NewFacts::Plugin(event)).await;
        recorded.map_err(|error| error.into_fault("record a change of a plugin"))
    }

    /// The audit after a position, oldest first: at least `limit` entries if there are that many, and those of one commit
    /// together. A page may be empty and still have a next one if few entries match.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the role `admin`.
    pub async fn audit(
        &self,
        by: &Principal,
        filter: &AuditFilter,
        mut after: Position,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        admin(by)?;
        let (reader, log) = (self.inner.readers.audit.as_ref(), self.inner.pipeline.log.as_ref());
        let head = reader.head().await?;
        let (mut entries, mut bytes, mut examined) = (Vec::new(), 0, 0);
        let mut turns = ReadTurns { log, kept: HashMap::new(), bytes: 0 };
        loop {
            let commits = reader.audit(after, AT_ONCE).await?;
            if commits.is_empty() {
                return Ok(AuditPage { entries, next: None, head });
            }
            for audited in commits {
                let at = audited.head;
                if at.position > head.position {
                    return Ok(AuditPage { entries, next: None, head });
                }
                after = at.position;
                examined += 1;
                for entry in turns.entries(audited, filter).await?.into_iter().filter(|entry| filter.matches(entry)) {
                    bytes += entry.size();
                    entries.push((at, entry));
                }
                if entries.len() >= limit || bytes > PAGE_BYTES || examined >= MAX_EXAMINED {
                    let next = (after < head.position).then_some(after);
                    return Ok(AuditPage { entries, next, head });
                }
            }
        }
    }

    /// The entries of the chain after a position, and the head.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the role `admin`.
    pub async fn audit_chain(
        &self,
        by: &Principal,
        after: Position,
        limit: usize,
    ) -> Result<(Vec<ChainEntry>, Head), Error> {
        admin(by)?;
        let reader = &self.inner.readers.audit;
        // The head is read first, so that no page contains commits from after it.
        let head = reader.head().await?;
        let mut links = reader.chain(after, limit).await?;
        links.retain(|link| link.head.position <= head.position);
        Ok((links, head))
    }
}

/// The turns of a page, as they were at the commit that is being read.
struct ReadTurns<'a> {
    log: &'a dyn Log,
    /// With the number of commits that each has.
    kept: HashMap<TurnId, (Turn, u32)>,
    bytes: usize,
}

impl ReadTurns<'_> {
    async fn entries(&mut self, audited: Audited, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreFault> {
        if filter.passes_over(&audited.facts) {
            return Ok(Vec::new());
        }
        Ok(match (audited.facts, audited.source) {
            (Facts::Plugin(event), _) => vec![audit::of_plugin(&event)],
            (Facts::Started(start), _) => audit::of_start(&start),
            (Facts::Revoked(revoked), _) => vec![audit::of_revocation(&revoked)],
            (Facts::Removal(removal), _) => audit::of_removal(&removal),
            // The entry of the removal names the turn. The end of a turn is in feeds only.
            (Facts::Removed { .. } | Facts::Ended(_), _) => Vec::new(),
            (Facts::Unreadable { turn }, _) => vec![audit::of_damage(turn)],
            (Facts::Turn { turn, events }, Source::Turn { number, .. }) => {
                match self.with(turn, number, &events).await {
                    Ok(turn) => turn.map(|turn| audit::of_turn(&events, turn)).unwrap_or_default(),
                    // An earlier commit of the turn is damaged.
                    Err(fault) if fault.is_damage() => vec![audit::of_damage(Some(turn))],
                    Err(fault) => return Err(fault),
                }
            }
            // No store returns this.
            (Facts::Turn { .. }, Source::Plugin | Source::Started | Source::Revoked | Source::Removal) => Vec::new(),
        })
    }

    /// The turn with this commit. `None` if it was removed since the commit was read.
    async fn with(&mut self, id: TurnId, number: u32, events: &[domain::Event]) -> Result<Option<&Turn>, StoreFault> {
        let known = self.kept.remove(&id).filter(|(_, version)| *version == number);
        if self.bytes > MAX_KEPT_BYTES {
            self.kept.clear();
            self.bytes = 0;
        }
        let mut before = known.map(|(turn, _)| turn);
        if before.is_none() && number > 0 {
            before = match self.log.load_until(id, number).await? {
                Loaded::Found(loaded) => {
                    self.bytes += loaded.events.iter().map(size).sum::<usize>();
                    Turn::replay(&loaded.events)
                }
                Loaded::Removed(_) => return Ok(None),
                Loaded::Absent => None,
            };
        }
        let turn = match before {
            Some(mut turn) => {
                events.iter().for_each(|event| turn.apply(event));
                Some(turn)
            }
            None => Turn::replay(events),
        };
        self.bytes += events.iter().map(size).sum::<usize>();
        let turn = turn.ok_or_else(|| {
            StoreFault::damaged("read the audit", format!("the log of {id} does not begin with the start of a turn"))
        })?;
        Ok(Some(&self.kept.entry(id).insert_entry((turn, number + 1)).into_mut().0))
    }
}

/// The size of what callers and guests put into an event.
fn size(event: &domain::Event) -> usize {
    crate::feed::size(event) + size_of::<domain::Event>()
}
