//! Reading deliveries to webhooks.

use dispatch::ports::{DeliveryRow, StoreFault, Subject};
use domain::Timestamp;
use tokio_postgres::Row;

use super::reads::Reader;
use super::rows::{self, column, decode, limit, millis};
use crate::record::Record;

const DELIVERIES: &str =
    "SELECT record FROM deliveries WHERE is_about_turn = $1 AND subject = $2 ORDER BY number, webhook";
const DUE: &str = "SELECT record FROM deliveries WHERE webhook = $1 AND next_at <= $2 \
    ORDER BY next_at, subject, number LIMIT $3";
// Jumps from name to name: the number of deliveries to each does not matter.
const WEBHOOKS: &str = "WITH RECURSIVE names AS (\
    (SELECT webhook FROM deliveries WHERE next_at IS NOT NULL ORDER BY webhook LIMIT 1) \
    UNION ALL SELECT (SELECT webhook FROM deliveries WHERE next_at IS NOT NULL AND webhook > names.webhook \
    ORDER BY webhook LIMIT 1) FROM names WHERE names.webhook IS NOT NULL) \
    SELECT webhook FROM names WHERE webhook IS NOT NULL";

fn delivery(row: &Row) -> Result<DeliveryRow, StoreFault> {
    decode(column(row, "record")?, DeliveryRow::read, || "a delivery".to_owned())
}

impl Reader {
    pub(super) async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault> {
        let (is_about_turn, subject) = rows::subject(of);
        let found = self.query(DELIVERIES, &[&is_about_turn, &subject]).await?;
        found.iter().map(delivery).collect()
    }

    pub(super) async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        deliveries: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault> {
        let found = self.query(DUE, &[&webhook, &millis(until), &limit(deliveries)]).await?;
        self.intact(&found, delivery)
    }

    pub(super) async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault> {
        self.query(WEBHOOKS, &[]).await?.iter().map(|row| column(row, "webhook")).collect()
    }
}
