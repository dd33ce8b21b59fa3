//! Deliveries to webhooks.

use std::collections::BTreeSet;

use async_trait::async_trait;
use dispatch::ports::{DeliveryRow, Outbox, StoreFault, Subject};
use domain::Timestamp;

use super::MemoryStore;

#[async_trait]
impl Outbox for MemoryStore {
    async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault> {
        Ok(self.state().deliveries_of(of).map(|(_, row)| row.clone()).collect())
    }

    async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault> {
        let state = self.state();
        let due = state.deliveries.values().filter(|row| row.webhook == webhook);
        let mut due: Vec<_> =
            due.filter_map(|row| Some((row.next()?, row))).filter(|(next, _)| *next <= until).collect();
        due.sort_by_key(|(next, _)| *next);
        Ok(due.into_iter().take(limit).map(|(_, row)| row.clone()).collect())
    }

    async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault> {
        let state = self.state();
        let pending = state.deliveries.values().filter(|row| row.next().is_some());
        Ok(pending.map(|row| row.webhook.clone()).collect::<BTreeSet<_>>().into_iter().collect())
    }
}
