//! Reading deliveries to webhooks.

use dispatch::ports::{DeliveryRow, RowChange, StoreFault, Subject};
use domain::Timestamp;

use super::keys;
use super::reader::{Reader, damaged, following};
use crate::fault::fault;
use crate::record::Record;

impl Reader {
    pub(super) async fn delivery(
        &self,
        subject: Subject,
        number: u32,
        webhook: &str,
    ) -> Result<Option<DeliveryRow>, StoreFault> {
        let Some(row) = self.stamped(&keys::delivery(subject, number, webhook)).await? else { return Ok(None) };
        let what = || format!("the delivery to {webhook} about {subject}");
        self.decode(&row, DeliveryRow::read, &what).await.map(Some)
    }

    /// The pending entries that change with these rows, as they are now.
    pub(super) async fn pending_before(&self, rows: &[RowChange]) -> Result<Vec<Vec<u8>>, StoreFault> {
        let mut pending = Vec::new();
        for change in rows {
            let RowChange::Delivery(row) = change else { continue };
            let before = self.delivery(row.report.subject(), row.report.number(), &row.webhook).await?;
            pending.extend(before.as_ref().and_then(keys::next_delivery));
        }
        Ok(pending)
    }

    pub(super) async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault> {
        let mut rows = Vec::new();
        for key in self.tree.scan_prefix(keys::deliveries_of(of)).keys() {
            let key = key.map_err(fault("read deliveries"))?;
            if keys::subject_of_delivery(&key) != Some(of) {
                continue;
            }
            // It may have been removed since its key was read.
            let Some(row) = self.stamped(&key).await? else { continue };
            let what = || format!("a delivery about {of}");
            rows.push(self.decode(&row, DeliveryRow::read, &what).await?);
        }
        Ok(rows)
    }

    /// Leaves out entries whose row changed since they were read.
    pub(super) async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault> {
        let last = keys::last_to_deliver_at(webhook, until);
        let due = self.tree.range(keys::to_deliver(webhook)..=last).keys();
        let mut rows = Vec::new();
        for key in due {
            if rows.len() == limit {
                break;
            }
            let key = key.map_err(fault("read deliveries"))?;
            let Some((_, next, subject, number)) = keys::read_to_deliver(&key) else {
                self.set_aside.take(&key, damaged("it"))?;
                continue;
            };
            match self.delivery(subject, number, webhook).await {
                Ok(row) => rows.extend(row.filter(|row| row.next() == Some(next))),
                Err(fault) => self.set_aside.take(&keys::delivery(subject, number, webhook), fault)?,
            }
        }
        Ok(rows)
    }

    /// Jumps from name to name: the number of deliveries to each does not matter.
    pub(super) async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault> {
        let (mut names, mut from) = (Vec::new(), vec![keys::TO_DELIVER]);
        while let Some(entry) = self.tree.range(from..vec![keys::TO_DELIVER + 1]).next() {
            let (key, _) = entry.map_err(fault("read deliveries"))?;
            let Some((name, ..)) = keys::read_to_deliver(&key) else {
                self.set_aside.take(&key, damaged("it"))?;
                from = following(key.to_vec());
                continue;
            };
            names.push(name.to_owned());
            from = [keys::to_deliver(name).as_slice(), &[u8::MAX; 29]].concat();
        }
        Ok(names)
    }
}
