//! The ports without faults.

use async_trait::async_trait;
use dispatch::ports::{
    Audit, Audited, CallRecords, ChainEntry, Denial, EndedTurn, EndedTurns, Head, Position, StandingApprovals,
    StoreFault,
};
use domain::{
    ConversationId, Digest, StandingId, Timestamp, TurnId, event::HostStarted, retention::Removal,
    standing::StandingRow,
};

use super::MortalStore;

#[async_trait]
impl StandingApprovals for MortalStore {
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        self.inner.standing(id).await
    }

    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault> {
        self.inner.standings(after, limit).await
    }

    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault> {
        self.inner.denied(conversation, alike).await
    }

    async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
        self.inner.denials(after, limit).await
    }
}

#[async_trait]
impl Audit for MortalStore {
    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault> {
        self.inner.audit(after, limit).await
    }

    async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault> {
        self.inner.chain(after, limit).await
    }

    async fn removals(&self, after: Position, limit: usize) -> Result<Vec<(Position, Removal)>, StoreFault> {
        self.inner.removals(after, limit).await
    }

    async fn head(&self) -> Result<Head, StoreFault> {
        self.inner.head().await
    }

    async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
        self.inner.last_start().await
    }
}

#[async_trait]
impl EndedTurns for MortalStore {
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        self.inner.ended(after, limit).await
    }

    async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        self.inner.size_of_calls(turn, records).await
    }

    async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.inner.retention_time().await
    }

    async fn reclaim(&self) -> Result<u64, StoreFault> {
        self.inner.reclaim().await
    }
}
