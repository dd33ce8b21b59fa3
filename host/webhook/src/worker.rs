//! The worker of one webhook. It sends what is due, and records the result before it sends the next message about the same
//! suspension. After a kill in between, it sends the message again with the same id.

use std::collections::BTreeSet;
use std::sync::Arc;

use dispatch::ports::{Clock, DeliveryRow, DeliveryState, Outbox, StoreFault};
use domain::{Span, SuspensionId, Timestamp};
use futures::StreamExt;

use crate::send::{Request, Transport};
use crate::{Hook, Host, Links, message, schedule};

/// Rows of one read of the index.
const PAGE: usize = 64;

/// Suspensions that one webhook reports at once.
const CONCURRENCY: usize = 8;

/// The maximum sleep. It is bounded because the clock may be set.
const MAX_SLEEP: Span = Span::from_secs(60);

/// The pause after a store error.
const BACKOFF: Span = Span::from_secs(1);

#[derive(Clone)]
pub struct DeliveryWorker {
    pub host: Arc<dyn Host>,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    pub transport: Arc<dyn Transport>,
    /// `None`: messages carry no links.
    pub links: Option<Arc<dyn Links>>,
}

impl DeliveryWorker {
    /// Delivers the messages of one webhook until the task is aborted.
    pub(crate) async fn work(&self, hook: &Hook) {
        loop {
            let next = self.deliver_due(hook).await.unwrap_or_else(|error| {
                tracing::error!(webhook = hook.webhook.name, %error, "the deliveries of a webhook could not be made");
                self.clock.now() + BACKOFF
            });
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                // A wake-up during the delivery is kept, so no commit is missed.
                () = hook.wake.notified() => {}
            }
        }
    }

    /// Makes every delivery that is due, and returns when the next one is.
    async fn deliver_due(&self, hook: &Hook) -> Result<Timestamp, StoreFault> {
        let name = &hook.webhook.name;
        loop {
            let now = self.clock.now();
            let due = self.outbox.deliveries_due(name, now, PAGE).await?;
            if due.is_empty() {
                let latest = now + MAX_SLEEP;
                let next = self.outbox.deliveries_due(name, Timestamp::MAX, 1).await?;
                return Ok(next.first().and_then(DeliveryRow::next).map_or(latest, |next| next.min(latest)));
            }
            // A message whose delivery cannot be recorded would be sent again and again.
            if let Some(fault) = self.host.store_failure() {
                return Err(fault);
            }
            let suspensions: BTreeSet<SuspensionId> = due.iter().map(|row| row.suspension).collect();
            let reports = futures::stream::iter(suspensions).map(|suspension| self.report(hook, suspension));
            // All are collected first: an error must not cancel another attempt halfway.
            let reports: Vec<_> = reports.buffer_unordered(CONCURRENCY).collect().await;
            reports.into_iter().collect::<Result<(), _>>()?;
        }
    }

    /// Sends the messages about one suspension in the order of its events: while one waits for its retry, the later ones wait too.
    async fn report(&self, hook: &Hook, suspension: SuspensionId) -> Result<(), StoreFault> {
        let mut not_before = None;
        for row in self.outbox.deliveries(suspension).await? {
            let Some(next) = row.next().filter(|_| row.webhook == hook.webhook.name) else { continue };
            match not_before {
                Some(until) if next < until => {
                    let state = DeliveryState::Pending { next: until };
                    self.host.record(DeliveryRow { state, ..row }).await?;
                }
                Some(_) => {}
                None if next > self.clock.now() => not_before = Some(next),
                None => {
                    let row = self.attempt(hook, &row).await?;
                    not_before = row.next();
                    self.host.record(row).await?;
                }
            }
        }
        Ok(())
    }

    async fn attempt(&self, hook: &Hook, row: &DeliveryRow) -> Result<DeliveryRow, StoreFault> {
        let webhook = &hook.webhook;
        let unreadable = |reason: String| StoreFault::of_program("read the suspension of a webhook message", reason);
        let Some(item) = self.host.suspension(row.suspension).await.map_err(unreadable)? else {
            return Ok(schedule::given_up(
                row,
                "the suspension no longer exists, or its records are damaged",
                self.clock.now(),
            ));
        };
        let url = if item.closed.is_none() { self.link(hook, row).await } else { None };
        let body = message::body(row, &item, webhook.arguments, url.as_deref());
        let body = body.map_err(|error| unreadable(error.to_string()))?;
        let (id, timestamp) = (row.message_id(), self.clock.now().millis() / 1_000);
        let signature = webhook.secret.sign(&id, timestamp, &body);
        let headers =
            [("webhook-id", id), ("webhook-timestamp", timestamp.to_string()), ("webhook-signature", signature)];
        let request = Request { url: webhook.url.clone(), private: webhook.private, headers, body };
        let reply = self.transport.post(request).await;
        let row = schedule::after(row, reply, self.clock.now());
        log(&row);
        Ok(row)
    }

    /// The link for this message: the one of its earlier attempts, unless it was used. The message is sent without a link if
    /// none can be made.
    async fn link(&self, hook: &Hook, row: &DeliveryRow) -> Option<String> {
        let (settings, links) = (hook.webhook.link.as_ref()?, self.links.as_ref()?);
        let made = links.link(&hook.webhook.name, row.suspension, settings).await;
        let failed = |reason: &String| {
            tracing::warn!(webhook = row.webhook, suspension = %row.suspension, reason, "a webhook message is sent without its link");
        };
        made.inspect_err(failed).ok().flatten()
    }

    /// Gives up the deliveries of webhooks that the operator removed.
    pub(crate) async fn abandon_unknown(&self, known: &BTreeSet<String>) {
        while let Err(error) = self.try_abandon_unknown(known).await {
            tracing::error!(%error, "the deliveries of removed webhooks could not be given up");
            self.clock.sleep_until(self.clock.now() + BACKOFF).await;
        }
    }

    async fn try_abandon_unknown(&self, known: &BTreeSet<String>) -> Result<(), StoreFault> {
        for name in self.outbox.webhooks_with_pending().await?.into_iter().filter(|name| !known.contains(name)) {
            loop {
                let due = self.outbox.deliveries_due(&name, Timestamp::MAX, PAGE).await?;
                if due.is_empty() {
                    break;
                }
                for row in due {
                    let row = schedule::given_up(&row, "no webhook of this name is configured", self.clock.now());
                    self.host.record(row).await?;
                }
            }
        }
        Ok(())
    }
}

/// Logs an attempt without the URL: part of it may be a secret.
fn log(row: &DeliveryRow) {
    let (webhook, suspension, occasion, attempts) = (&row.webhook, row.suspension, row.occasion, row.attempts);
    let last = row.last.as_ref();
    let (status, error) = (last.and_then(|last| last.status), last.and_then(|last| last.error.as_deref()));
    match row.state {
        DeliveryState::Delivered => {
            tracing::debug!(webhook, %suspension, %occasion, attempts, status, "webhook message delivered")
        }
        DeliveryState::Pending { .. } => {
            tracing::info!(webhook, %suspension, %occasion, attempts, status, error, "webhook message will be retried");
        }
        DeliveryState::Failed => {
            tracing::warn!(webhook, %suspension, %occasion, attempts, status, error, "webhook message given up");
        }
    }
}
