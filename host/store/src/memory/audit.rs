//! The audit: the chain of all commits.

use std::ops::Bound;

use async_trait::async_trait;
use dispatch::ports::{Audit, Audited, ChainEntry, Head, Position, Recorded, Source, StoreFault};
use domain::{TurnId, event::HostStarted, retention::Removal};

use super::{MemoryStore, Stored};

/// The turn of an entry of the chain.
fn of_turn(source: Source) -> Option<TurnId> {
    match source {
        Source::Turn { turn, .. } => Some(turn),
        Source::Plugin | Source::Started | Source::Revoked | Source::Removal => None,
    }
}

#[async_trait]
impl Audit for MemoryStore {
    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault> {
        let state = self.state();
        let audited = |&(head, source, _): &(Head, Source, Stored)| {
            Some(Audited { head, source, facts: state.facts_at(head.position, source)? })
        };
        Ok(state.links(after, limit).filter_map(audited).collect())
    }

    async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault> {
        let state = self.state();
        let entry = |&(head, source, Stored { digest, .. }): &(Head, Source, Stored)| {
            let removal = of_turn(source).and_then(|turn| state.removed.get(&turn));
            let record = match removal {
                Some((_, by)) => Recorded::Removed { digest, by: Some(*by) },
                None => Recorded::Kept(digest),
            };
            ChainEntry { head, source, record }
        };
        Ok(state.links(after, limit).map(entry).collect())
    }

    async fn removals(&self, after: Position, limit: usize) -> Result<Vec<(Position, Removal)>, StoreFault> {
        let state = self.state();
        let later = state.removals.range((Bound::Excluded(after), Bound::Unbounded));
        Ok(later.take(limit).map(|(position, removal)| (*position, removal.clone())).collect())
    }

    async fn head(&self) -> Result<Head, StoreFault> {
        Ok(self.state().head())
    }

    async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
        Ok(self.state().starts.last_key_value().map(|(_, start)| start.clone()))
    }
}
