//! Makes the deliveries of one webhook: what is due is sent, and what became of it is written down before anything else of
//! that suspension is sent. A kill in between sends it again, under the same id.

use std::collections::BTreeSet;
use std::sync::Arc;

use dispatch::ports::{Clock, DeliveryRow, DeliveryState, Store, StoreFault};
use domain::{Span, SuspensionId, Timestamp};
use futures::StreamExt;

use crate::send::{Post, Transport};
use crate::{Hook, Links, Suspensions, message, schedule};

/// Deliveries that are looked at before the index is read again.
const PAGE: usize = 64;

/// Suspensions of which one webhook is told at once.
const AT_ONCE: usize = 8;

/// The longest sleep: the clock may be set.
const LONGEST_SLEEP: Span = Span::from_secs(60);

/// How long a store that failed is left alone.
const BACKOFF: Span = Span::from_secs(1);

/// What deliveries are made with.
#[derive(Clone)]
pub struct Courier {
    /// Where they are written down.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What they are about.
    pub suspensions: Arc<dyn Suspensions>,
    /// What carries them.
    pub transport: Arc<dyn Transport>,
    /// What makes one-time links, where there is something that does.
    pub links: Option<Arc<dyn Links>>,
}

impl Courier {
    /// Delivers what one webhook is owed, for ever.
    pub(crate) async fn work(&self, hook: &Hook) {
        loop {
            let next = self.look(hook).await.unwrap_or_else(|error| {
                tracing::error!(webhook = hook.webhook.name, %error, "what is owed to a webhook could not be seen to");
                self.clock.now() + BACKOFF
            });
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                // Kept if it came while there was a look: nothing that was committed is missed.
                () = hook.wake.notified() => {}
            }
        }
    }

    /// Makes every delivery that is due, and says when to look again.
    async fn look(&self, hook: &Hook) -> Result<Timestamp, StoreFault> {
        let name = &hook.webhook.name;
        loop {
            let now = self.clock.now();
            let due = self.store.deliveries_due(name, now, PAGE).await?;
            if due.is_empty() {
                let latest = now + LONGEST_SLEEP;
                let next = self.store.deliveries_due(name, Timestamp::MAX, 1).await?;
                return Ok(next.first().and_then(DeliveryRow::next).map_or(latest, |next| next.min(latest)));
            }
            let suspensions: BTreeSet<SuspensionId> = due.iter().map(|row| row.suspension).collect();
            let told = futures::stream::iter(suspensions).map(|suspension| self.tell(hook, suspension));
            // One that fails does not break the others off in the middle of an attempt.
            let told: Vec<_> = told.buffer_unordered(AT_ONCE).collect().await;
            told.into_iter().collect::<Result<(), _>>()?;
        }
    }

    /// Tells a webhook of one suspension, in the order of what happened to it: while one thing has to wait, so does all that
    /// came after it.
    async fn tell(&self, hook: &Hook, suspension: SuspensionId) -> Result<(), StoreFault> {
        let mut not_before = None;
        for row in self.store.deliveries(suspension).await? {
            let Some(next) = row.next().filter(|_| row.webhook == hook.webhook.name) else { continue };
            match not_before {
                Some(until) if next < until => {
                    let state = DeliveryState::Pending { next: until };
                    self.store.delivery(DeliveryRow { state, ..row }).await?;
                }
                Some(_) => {}
                None if next > self.clock.now() => not_before = Some(next),
                None => {
                    let row = self.attempt(hook, &row).await?;
                    not_before = row.next();
                    self.store.delivery(row).await?;
                }
            }
        }
        Ok(())
    }

    async fn attempt(&self, hook: &Hook, row: &DeliveryRow) -> Result<DeliveryRow, StoreFault> {
        let webhook = &hook.webhook;
        let unreadable = |reason: String| StoreFault { attempted: "read what a webhook is told", reason };
        let Some(item) = self.suspensions.read(row.suspension).await.map_err(unreadable)? else {
            return Ok(schedule::given_up(row, "the suspension is gone", self.clock.now()));
        };
        let url = if item.closed.is_none() { self.link(hook, row).await } else { None };
        let body = message::body(row, &item, webhook.arguments, url.as_deref());
        let body = body.map_err(|error| unreadable(error.to_string()))?;
        let (id, timestamp) = (row.message_id(), self.clock.now().millis() / 1_000);
        let signature = webhook.secret.sign(&id, timestamp, &body);
        let headers =
            [("webhook-id", id), ("webhook-timestamp", timestamp.to_string()), ("webhook-signature", signature)];
        let post = Post { url: webhook.url.clone(), private: webhook.private, headers, body };
        let answered = self.transport.post(post).await;
        let row = schedule::after(row, answered, self.clock.now());
        log(&row);
        Ok(row)
    }

    /// The link for this message: that of its earlier attempts, unless somebody has used it. Without one the message is still
    /// worth sending.
    async fn link(&self, hook: &Hook, row: &DeliveryRow) -> Option<String> {
        let (wanted, links) = (hook.webhook.link.as_ref()?, self.links.as_ref()?);
        let made = links.link(&hook.webhook.name, row.suspension, wanted).await;
        let failed = |reason: &String| {
            tracing::warn!(webhook = row.webhook, suspension = %row.suspension, reason, "a webhook is told without a link");
        };
        made.inspect_err(failed).ok().flatten()
    }

    /// Gives up what is owed to webhooks that the operator has taken away.
    pub(crate) async fn give_up(&self, known: &BTreeSet<String>) {
        while let Err(error) = self.given_up(known).await {
            tracing::error!(%error, "what is owed to webhooks could not be read");
            self.clock.sleep_until(self.clock.now() + BACKOFF).await;
        }
    }

    async fn given_up(&self, known: &BTreeSet<String>) -> Result<(), StoreFault> {
        for name in self.store.webhooks_owed().await?.into_iter().filter(|name| !known.contains(name)) {
            loop {
                let owed = self.store.deliveries_due(&name, Timestamp::MAX, PAGE).await?;
                if owed.is_empty() {
                    break;
                }
                for row in owed {
                    let row = schedule::given_up(&row, "no webhook of this name is configured", self.clock.now());
                    self.store.delivery(row).await?;
                }
            }
        }
        Ok(())
    }
}

/// The URL is left out: part of it may be a secret.
fn log(row: &DeliveryRow) {
    let (webhook, suspension, occasion, attempts) = (&row.webhook, row.suspension, row.occasion, row.attempts);
    let last = row.last.as_ref();
    let (status, error) = (last.and_then(|last| last.status), last.and_then(|last| last.error.as_deref()));
    match row.state {
        DeliveryState::Delivered => {
            tracing::debug!(webhook, %suspension, %occasion, attempts, status, "a webhook was told")
        }
        DeliveryState::Pending { .. } => {
            tracing::info!(webhook, %suspension, %occasion, attempts, status, error, "a webhook is told again later");
        }
        DeliveryState::Failed => {
            tracing::warn!(webhook, %suspension, %occasion, attempts, status, error, "a webhook was not told, and is not again");
        }
    }
}
