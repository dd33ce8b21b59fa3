//! Signed webhooks: they report that a suspension opened, escalated or closed, or that a turn settled. Delivery is at
//! least once.
//!
//! The host commits a delivery together with the event that causes it (`dispatch::ports::Subscribers`), so a kill loses none.
//! Each webhook has its own task: a receiver that does not answer delays no other. Signatures follow the Standard Webhooks
//! specification. [`Addresses`] decides which addresses the host may connect to.

mod message;
mod schedule;
mod secret;
mod send;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{DeliveryRow, Occasion, StoreFault, Subscribers, SuspensionRow};
use dispatch::{Handle, SuspensionView};
use domain::{Principal, PrincipalId, Span, SuspensionId, Turn, TurnId, principal::Role};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use url::Url;

pub use self::secret::{InvalidSigningSecret, SigningSecret};
pub use self::send::{Addresses, Http, Reply, Request, Transport};
pub use self::worker::DeliveryWorker;

#[derive(Clone)]
pub struct Webhook {
    /// Unique, at most 64 bytes.
    pub name: String,
    pub url: Url,
    /// Signs its messages.
    pub secret: SigningSecret,
    pub events: BTreeSet<WebhookEvent>,
    /// Selects the suspensions that it reports.
    pub reports: Arc<dyn Fn(&SuspensionRow) -> bool + Send + Sync>,
    /// Selects the settled turns that it reports.
    pub reports_turn: Arc<dyn Fn(&Turn) -> bool + Send + Sync>,
    /// Whether messages carry the arguments of calls.
    pub arguments: bool,
    /// Whether its address may be private.
    pub private: bool,
    /// The one-time link that messages about open suspensions carry.
    pub link: Option<LinkSettings>,
}

/// The events that a webhook can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookEvent {
    Opened,
    /// More people may answer it.
    Escalated,
    Closed,
    /// Every call of a turn has its outcome.
    TurnSettled,
}

impl WebhookEvent {
    /// Those of suspensions, which are also all that a webhook gets if its configuration names none.
    pub const OF_SUSPENSIONS: [Self; 3] = [Self::Opened, Self::Escalated, Self::Closed];
}

impl From<Occasion> for WebhookEvent {
    fn from(occasion: Occasion) -> Self {
        match occasion {
            Occasion::Opened => Self::Opened,
            Occasion::Escalated { .. } => Self::Escalated,
            Occasion::Closed => Self::Closed,
        }
    }
}

/// The settings of a one-time link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    /// The principal in whose name its holder answers.
    pub principal: PrincipalId,
    /// How long it is valid.
    pub ttl: Span,
    /// The public address of the host.
    pub base: Url,
}

/// Makes one-time links.
#[async_trait]
pub trait LinkMaker: Send + Sync {
    /// A URL whose holder may answer this suspension once. The same webhook, suspension and principal always give the same
    /// link. `None`: the link was used.
    ///
    /// # Errors
    /// The reason, for the log.
    async fn link(
        &self,
        hook: &str,
        suspension: SuspensionId,
        settings: &LinkSettings,
    ) -> Result<Option<String>, String>;
}

/// The host whose suspensions and turns webhooks report.
#[async_trait]
pub trait HostView: Send + Sync {
    /// The current suspension; `None` if it does not exist, or its stored records are damaged.
    ///
    /// # Errors
    /// The store's error, for the log.
    async fn suspension(&self, suspension: SuspensionId) -> Result<Option<SuspensionView>, String>;

    /// The current turn; `None` if it does not exist, or its stored records are damaged.
    ///
    /// # Errors
    /// The store's error, for the log.
    async fn turn(&self, turn: TurnId) -> Result<Option<Turn>, String>;

    /// Records the progress of a delivery.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing is recorded.
    async fn record(&self, row: DeliveryRow) -> Result<(), StoreFault>;

    /// Why nothing can be recorded at present. `None`: it can.
    fn store_failure(&self) -> Option<StoreFault>;
}

#[async_trait]
impl HostView for Handle {
    async fn suspension(&self, suspension: SuspensionId) -> Result<Option<SuspensionView>, String> {
        let system = Principal::new(PrincipalId::system(), [Role::Admin]);
        match Self::suspension(self, &system, suspension).await {
            Ok(item) => Ok(Some(item)),
            Err(dispatch::Error::Refused(_)) => Ok(None),
            // Later messages must not wait for it.
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn turn(&self, turn: TurnId) -> Result<Option<Turn>, String> {
        match self.turn_for_host(turn).await {
            Ok(turn) => Ok(turn),
            Err(fault) if fault.is_damage() => Ok(None),
            Err(fault) => Err(fault.to_string()),
        }
    }

    async fn record(&self, row: DeliveryRow) -> Result<(), StoreFault> {
        self.record_delivery(row).await
    }

    fn store_failure(&self) -> Option<StoreFault> {
        self.store_health().failure
    }
}

/// The webhooks of a host.
#[derive(Default)]
pub struct Webhooks(Vec<Arc<Hook>>);

/// A webhook, and the signal that wakes its task.
pub(crate) struct Hook {
    pub(crate) webhook: Webhook,
    pub(crate) wake: Notify,
}

impl Webhooks {
    #[must_use]
    pub fn new(webhooks: impl IntoIterator<Item = Webhook>) -> Self {
        let hook = |webhook| Arc::new(Hook { webhook, wake: Notify::new() });
        Self(webhooks.into_iter().map(hook).collect())
    }

    /// Whether any message carries a link.
    #[must_use]
    pub fn send_links(&self) -> bool {
        self.0.iter().any(|hook| hook.webhook.link.is_some())
    }

    fn subscribed(&self, reports: impl Fn(&Webhook) -> bool) -> Vec<String> {
        let webhooks = self.0.iter().map(|hook| &hook.webhook);
        webhooks.filter(|webhook| reports(webhook)).map(|webhook| webhook.name.clone()).collect()
    }

    /// Starts one task for each webhook, which runs until it is aborted, and one task that gives up the deliveries of webhooks
    /// that the operator removed. Call it in a tokio runtime.
    #[must_use]
    pub fn deliver(&self, worker: &DeliveryWorker) -> Vec<JoinHandle<()>> {
        let known: BTreeSet<String> = self.0.iter().map(|hook| hook.webhook.name.clone()).collect();
        let abandoning = worker.clone();
        let mut tasks = vec![tokio::spawn(async move { abandoning.abandon_unknown(&known).await })];
        tasks.extend(self.0.iter().map(|hook| {
            let (worker, hook) = (worker.clone(), hook.clone());
            tokio::spawn(async move { worker.work(&hook).await })
        }));
        tasks
    }
}

impl Subscribers for Webhooks {
    fn subscribed_to(&self, occasion: Occasion, row: &SuspensionRow) -> Vec<String> {
        self.subscribed(|webhook| webhook.events.contains(&occasion.into()) && (webhook.reports)(row))
    }

    fn subscribed_to_turn(&self, turn: &Turn) -> Vec<String> {
        self.subscribed(|webhook| webhook.events.contains(&WebhookEvent::TurnSettled) && (webhook.reports_turn)(turn))
    }

    fn deliveries_committed(&self) {
        self.0.iter().for_each(|hook| hook.wake.notify_one());
    }
}
