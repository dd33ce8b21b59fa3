//! Tells the outside that something waits for an answer: signed webhooks, delivered at least once.
//!
//! What a webhook is owed is committed together with what it is told of (`dispatch::ports::Subscribers`), so a kill forgets
//! nothing. Each webhook has a task of its own, so that one which does not answer delays no other. Signatures are those of
//! the Standard Webhooks specification; whom a host may connect to, [`Addresses`] says.

mod message;
mod schedule;
mod secret;
mod send;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Occasion, Subscribers, SuspensionRow};
use dispatch::{Handle, PendingItem};
use domain::{Principal, PrincipalId, Role, Span, SuspensionId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use url::Url;

pub use self::schedule::MOST_ATTEMPTS;
pub use self::secret::{InvalidSecret, Secret};
pub use self::send::{Addresses, Answered, Http, Post, Transport};
pub use self::worker::Courier;

/// One webhook.
#[derive(Clone)]
pub struct Webhook {
    /// Its name: of at most 64 bytes, and no other webhook's.
    pub name: String,
    /// Where it is.
    pub url: Url,
    /// What its messages are signed with.
    pub secret: Secret,
    /// What it is told of.
    pub events: BTreeSet<EventName>,
    /// Which suspensions it is told of.
    pub wants: Arc<dyn Fn(&SuspensionRow) -> bool + Send + Sync>,
    /// Whether it is sent the arguments of calls.
    pub arguments: bool,
    /// Whether it may be at an address that is not public.
    pub private: bool,
    /// The one-time link that it is sent with what is open, if it is sent any.
    pub link: Option<Link>,
}

/// What a webhook can be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventName {
    /// A suspension began.
    Opened,
    /// Others may answer it now.
    Escalated,
    /// It ended.
    Closed,
}

impl EventName {
    /// Every event.
    pub const ALL: [Self; 3] = [Self::Opened, Self::Escalated, Self::Closed];
}

impl From<Occasion> for EventName {
    fn from(occasion: Occasion) -> Self {
        match occasion {
            Occasion::Opened => Self::Opened,
            Occasion::Escalated { .. } => Self::Escalated,
            Occasion::Closed => Self::Closed,
        }
    }
}

/// A one-time link, as an operator wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// As whom its holder answers.
    pub principal: PrincipalId,
    /// How long it can be opened.
    pub ttl: Span,
    /// Where people reach the host.
    pub base: Url,
}

/// Makes one-time links.
#[async_trait]
pub trait Links: Send + Sync {
    /// A URL under which its holder may answer this suspension, once. Asked for again for the same webhook, suspension and
    /// principal, it is the same link: using it once uses it up. `None`: it was used.
    ///
    /// # Errors
    /// Why there is none, for the log.
    async fn link(&self, webhook: &str, suspension: SuspensionId, wanted: &Link) -> Result<Option<String>, String>;
}

/// Reads what a webhook is told of.
#[async_trait]
pub trait Suspensions: Send + Sync {
    /// The suspension as it is now; `None` if there is none.
    ///
    /// # Errors
    /// What the store says, for the log.
    async fn read(&self, suspension: SuspensionId) -> Result<Option<PendingItem>, String>;
}

#[async_trait]
impl Suspensions for Handle {
    async fn read(&self, suspension: SuspensionId) -> Result<Option<PendingItem>, String> {
        let system = Principal::new(PrincipalId::system(), [Role::Admin]);
        match self.suspension(&system, suspension).await {
            Ok(item) => Ok(Some(item)),
            Err(dispatch::Error::Refused(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The webhooks of a host.
#[derive(Default)]
pub struct Webhooks(Vec<Arc<Hook>>);

/// A webhook, and what wakes the task that delivers to it.
pub(crate) struct Hook {
    pub(crate) webhook: Webhook,
    pub(crate) wake: Notify,
}

impl Webhooks {
    /// These webhooks.
    #[must_use]
    pub fn new(webhooks: impl IntoIterator<Item = Webhook>) -> Self {
        let hook = |webhook| Arc::new(Hook { webhook, wake: Notify::new() });
        Self(webhooks.into_iter().map(hook).collect())
    }

    /// Whether any of them is sent links.
    #[must_use]
    pub fn want_links(&self) -> bool {
        self.0.iter().any(|hook| hook.webhook.link.is_some())
    }

    /// Begins to deliver: a task for each webhook, which ends when it is aborted, and one that gives up what is owed to webhooks
    /// that are not among these. Must be called in a tokio runtime.
    #[must_use]
    pub fn deliver(&self, courier: &Courier) -> Vec<JoinHandle<()>> {
        let known: BTreeSet<String> = self.0.iter().map(|hook| hook.webhook.name.clone()).collect();
        let giving_up = courier.clone();
        let mut tasks = vec![tokio::spawn(async move { giving_up.give_up(&known).await })];
        tasks.extend(self.0.iter().map(|hook| {
            let (courier, hook) = (courier.clone(), hook.clone());
            tokio::spawn(async move { courier.work(&hook).await })
        }));
        tasks
    }
}

impl Subscribers for Webhooks {
    fn wanting(&self, occasion: Occasion, row: &SuspensionRow) -> Vec<String> {
        let wants = |webhook: &&Webhook| webhook.events.contains(&occasion.into()) && (webhook.wants)(row);
        self.0.iter().map(|hook| &hook.webhook).filter(wants).map(|webhook| webhook.name.clone()).collect()
    }

    fn owed(&self) {
        self.0.iter().for_each(|hook| hook.wake.notify_one());
    }
}
