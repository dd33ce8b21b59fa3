//! The worker of one webhook. It sends what is due, and records the result before it sends the next message about the same
//! suspension or turn. After a kill in between, it sends the message again with the same id.

use std::collections::BTreeSet;
use std::sync::Arc;

use dispatch::ports::{Clock, DeliveryRow, DeliveryState, Occasion, Outbox, Peers, Report, Share, StoreFault, Subject};
use domain::{Digest, Span, SuspensionId, Timestamp, TurnId};
use futures::StreamExt;

use crate::send::{Request, Transport};
use crate::{Hook, HostView, LinkMaker, message, schedule};

/// Rows of one read of the index.
const PAGE: usize = 64;

/// Suspensions and turns that one webhook reports at once.
const CONCURRENCY: usize = 8;

/// The maximum sleep. It is bounded because the clock may be set.
const MAX_SLEEP: Span = Span::from_secs(60);

/// How often a host looks whether it has to deliver the messages of a webhook.
const MAX_PAUSE: Span = Span::from_secs(5);

/// The pause after a store error.
const BACKOFF: Span = Span::from_secs(1);

#[derive(Clone)]
pub struct DeliveryWorker {
    pub host: Arc<dyn HostView>,
    pub outbox: Arc<dyn Outbox>,
    /// One of several hosts delivers the messages of a webhook.
    pub peers: Arc<dyn Peers>,
    pub clock: Arc<dyn Clock>,
    pub transport: Arc<dyn Transport>,
    /// `None`: messages carry no links.
    pub links: Option<Arc<dyn LinkMaker>>,
}

impl DeliveryWorker {
    /// Delivers the messages of one webhook until the task is aborted.
    pub(crate) async fn work(&self, hook: &Hook) {
        loop {
            if !self.peers.share().has(&Digest::of(&hook.webhook.name)) {
                self.clock.sleep(MAX_PAUSE).await;
                continue;
            }
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
            let subjects: BTreeSet<Subject> = due.iter().map(|row| row.report.subject()).collect();
            let reports = futures::stream::iter(subjects).map(|subject| self.report(hook, subject));
            // All are collected first: an error must not cancel another attempt halfway.
            let reports: Vec<_> = reports.buffer_unordered(CONCURRENCY).collect().await;
            reports.into_iter().collect::<Result<(), _>>()?;
        }
    }

    /// Sends the messages about one suspension or turn in the order of its events: while one waits for its retry, the later
    /// ones wait too.
    async fn report(&self, hook: &Hook, subject: Subject) -> Result<(), StoreFault> {
        let mut not_before = None;
        for row in self.outbox.deliveries(subject).await? {
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
        let unreadable = |reason: String| StoreFault::of_program("make the body of a webhook message", reason);
        let body = match row.report {
            Report::Suspension(id, occasion) => self.about_suspension(hook, row, id, occasion).await,
            Report::TurnSettled(id) => self.about_turn(row, id).await,
        };
        let Some(body) = body.map_err(unreadable)? else {
            let why = format!("{} no longer exists, or its records are damaged", row.report.subject());
            return Ok(schedule::given_up(row, &why, self.clock.now()));
        };
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

    /// The body of a message about a suspension. `None` if the suspension cannot be read.
    async fn about_suspension(
        &self,
        hook: &Hook,
        row: &DeliveryRow,
        id: SuspensionId,
        occasion: Occasion,
    ) -> Result<Option<String>, String> {
        let Some(item) = self.host.suspension(id).await? else { return Ok(None) };
        let url = if item.closed.is_none() { self.link(hook, id).await } else { None };
        let body = message::of_suspension(row, occasion, &item, hook.webhook.arguments, url.as_deref());
        body.map(Some).map_err(|error| error.to_string())
    }

    /// The body of a message about a settled turn. `None` if the turn cannot be read.
    async fn about_turn(&self, row: &DeliveryRow, id: TurnId) -> Result<Option<String>, String> {
        let Some(turn) = self.host.turn(id).await? else { return Ok(None) };
        message::of_turn(row, &turn).map(Some).map_err(|error| error.to_string())
    }

    /// The link for this message: the one of its earlier attempts, unless it was used. The message is sent without a link if
    /// none can be made.
    async fn link(&self, hook: &Hook, suspension: SuspensionId) -> Option<String> {
        let (settings, links) = (hook.webhook.link.as_ref()?, self.links.as_ref()?);
        let made = links.link(&hook.webhook.name, suspension, settings).await;
        let failed = |reason: &String| {
            tracing::warn!(webhook = hook.webhook.name, %suspension, reason, "a webhook message is sent without its link");
        };
        made.inspect_err(failed).ok().flatten()
    }

    /// Gives up the deliveries of webhooks that the operator removed.
    pub(crate) async fn abandon_unknown(&self, known: &BTreeSet<String>) {
        // Another host may have them.
        if self.peers.share() != Share::ALL {
            return;
        }
        while let Err(error) = self.try_abandon_unknown(known).await {
            tracing::error!(%error, "the deliveries of removed webhooks could not be given up");
            self.clock.sleep(BACKOFF).await;
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
    let (webhook, message_id, attempts) = (&row.webhook, row.message_id(), row.attempts);
    let last = row.last.as_ref();
    let (status, error) = (last.and_then(|last| last.status), last.and_then(|last| last.error.as_deref()));
    match row.state {
        DeliveryState::Delivered => {
            tracing::debug!(webhook, message_id, attempts, status, "webhook message delivered")
        }
        DeliveryState::Pending { .. } => {
            tracing::info!(webhook, message_id, attempts, status, error, "webhook message will be retried");
        }
        DeliveryState::Failed => {
            tracing::warn!(webhook, message_id, attempts, status, error, "webhook message given up");
        }
    }
}
