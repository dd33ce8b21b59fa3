//! Links that open one suspension for one principal, once. Making one needs the key, and is written down before anybody has
//! it; using one is a door.

use std::sync::Arc;

use dispatch::{Handle, WantedLink};
use domain::{LinkId, Principal, PrincipalId, Role, Span, SuspensionId, Timestamp};

use crate::doors::Authenticate;
use crate::signed::{Pass, Purpose, SigningKey};

/// The longest that a link may count.
pub(crate) const LONGEST: Span = Span::from_secs(7 * 24 * 60 * 60);

/// What makes links.
#[derive(Clone)]
pub struct Links {
    handle: Handle,
    key: SigningKey,
    auth: Arc<dyn Authenticate>,
}

/// A link, good for one use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its path, from the root of the host: `/link/…`. Whoever has it may answer, so it goes to one person.
    pub path: String,
    /// From then on it counts no more.
    pub expires: Timestamp,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum NoLink {
    /// Nobody has that name.
    #[error("nobody holds a token with the name {0}; make one: toolgate token create {0} --role approver")]
    Unknown(PrincipalId),
    /// Who has it could do nothing with the link.
    #[error("{0} has neither the role approver nor admin and answers nothing")]
    NoApprover(PrincipalId),
    /// The time is too short or too long.
    #[error("a link counts from one millisecond to {} milliseconds, seven days", LONGEST.millis())]
    Time,
    /// It could not be written down, or the suspension has ended.
    #[error(transparent)]
    NotMade(#[from] dispatch::Error),
}

impl Links {
    /// Links under this key, for those who hold tokens here.
    #[must_use]
    pub fn new(handle: Handle, key: SigningKey, auth: Arc<dyn Authenticate>) -> Self {
        Self { handle, key, auth }
    }

    /// A new link, had made by this admin, that lets `to` read and answer `suspension` within `ttl`. What they may do is what
    /// they may do when they use it; when their token is revoked, the link is worth nothing.
    ///
    /// # Errors
    /// [`NoLink`].
    pub async fn make(
        &self,
        by: &Principal,
        suspension: SuspensionId,
        to: &PrincipalId,
        ttl: Span,
    ) -> Result<Link, NoLink> {
        let id = LinkId::from_bits(self.handle.mint());
        let made = self.made(by, (id, None), suspension, to, ttl).await?;
        // Nobody has used what was just minted.
        made.ok_or(NoLink::Time)
    }

    /// The link of a webhook to a suspension, as [`Links::make`] has it: one for each principal. Asked for again, it is the same
    /// one, made to count for longer when less than half of its time is left. `None`: it was used.
    ///
    /// # Errors
    /// [`NoLink`].
    pub async fn of_webhook(
        &self,
        webhook: &str,
        suspension: SuspensionId,
        to: &PrincipalId,
        ttl: Span,
    ) -> Result<Option<Link>, NoLink> {
        let id = self.key.digest(Purpose::LinkId, &[webhook.as_bytes(), to.as_str().as_bytes()], suspension.bits());
        let system = Principal::new(PrincipalId::system(), [Role::Admin]);
        self.made(&system, (LinkId::from_bits(id), Some(webhook.into())), suspension, to, ttl).await
    }

    async fn made(
        &self,
        by: &Principal,
        (id, webhook): (LinkId, Option<Arc<str>>),
        suspension: SuspensionId,
        to: &PrincipalId,
        ttl: Span,
    ) -> Result<Option<Link>, NoLink> {
        if ttl.millis() == 0 || ttl > LONGEST {
            return Err(NoLink::Time);
        }
        let (holder, token) = self.auth.named(to).ok_or_else(|| NoLink::Unknown(to.clone()))?;
        if !answers(&holder) {
            return Err(NoLink::NoApprover(to.clone()));
        }
        let expires_at = self.handle.now() + ttl;
        let wanted = WantedLink { id, suspension, to: to.clone(), webhook, expires_at };
        let Some(expires) = self.handle.make_link(by, wanted).await? else { return Ok(None) };
        let pass = Pass { id: id.bits(), token, expires, only: Some(suspension) };
        Ok(Some(Link { path: format!("/link/{}", pass.sign(&self.key, Purpose::Link)), expires }))
    }

    /// What a link says, if it counts, and for whom it speaks. A path or an address that ends in the link is taken for it.
    pub(crate) fn read(&self, text: &str) -> Option<(Pass, SuspensionId, Principal)> {
        let text = text.rsplit('/').next().unwrap_or(text);
        let pass = Pass::open(text, &self.key, Purpose::Link, self.handle.now())?;
        let holder = self.auth.holder(pass.token).filter(answers)?;
        Some((pass, pass.only?, holder))
    }
}

fn answers(holder: &Principal) -> bool {
    holder.roles.has(Role::Approver) || holder.roles.has(Role::Admin)
}
