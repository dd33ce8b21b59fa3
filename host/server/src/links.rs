//! One-time links, each to one suspension for one principal. Making one needs the signing key and is recorded before
//! the link is handed out. `http/session.rs` accepts them.

use std::sync::Arc;

use dispatch::{Handle, LinkRequest};
use domain::{
    LinkId, Principal, PrincipalId, Span, SuspensionId, Timestamp, principal::Role, suspension::SuspensionKind,
};

use crate::ports::Authenticate;
use crate::signed::{Pass, Purpose, SigningKey};

/// The maximum validity of a link.
pub(crate) const MAX_VALIDITY: Span = Span::from_secs(7 * 24 * 60 * 60);

#[derive(Clone)]
pub struct Links {
    handle: Handle,
    key: SigningKey,
    auth: Arc<dyn Authenticate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeLink {
    /// Its path, from the root of the host: `/link/…`, or `/v1/links/…` to an external wait. Its holder may answer, so send it
    /// to one person or system only.
    pub path: String,
    pub expires: Timestamp,
}

/// Why a link was not made.
#[derive(Debug, thiserror::Error)]
pub enum NoLink {
    /// No principal has this name.
    #[error("there is no token with the name {0}; make one: toolgate token create {0} --role approver")]
    Unknown(PrincipalId),
    /// The principal has no role that the link needs.
    #[error("{0} cannot use this link: it needs the role approver or admin, or caller for an external wait")]
    NoApprover(PrincipalId),
    /// The time is too short or too long.
    #[error("a link is valid for one millisecond to {} milliseconds, which is seven days", MAX_VALIDITY.millis())]
    Time,
    /// It could not be recorded, or the suspension has ended.
    #[error(transparent)]
    NotMade(#[from] dispatch::Error),
}

impl Links {
    /// Links that are signed with this key, for principals that `auth` knows.
    #[must_use]
    pub fn new(handle: Handle, key: SigningKey, auth: Arc<dyn Authenticate>) -> Self {
        Self { handle, key, auth }
    }

    /// Makes a link, on behalf of this principal, that lets `to` read and answer `suspension` within `ttl`. The roles of
    /// `to` are checked when the link is used. Revoking the token of `to` revokes the link.
    ///
    /// # Errors
    /// [`NoLink`].
    pub async fn make(
        &self,
        by: &Principal,
        suspension: SuspensionId,
        to: &PrincipalId,
        ttl: Span,
    ) -> Result<MadeLink, NoLink> {
        let id = LinkId::from_bits(self.handle.mint());
        let made = self.made(by, (id, None), suspension, to, ttl).await?;
        // A new link is never used already.
        made.ok_or(NoLink::Time)
    }

    /// The link in a webhook's messages about a suspension: one for each principal, otherwise as [`Links::make`]. Later
    /// calls return the same link and extend it when less than half of its time is left. `None` if it was used.
    ///
    /// # Errors
    /// [`NoLink`].
    pub async fn of_webhook(
        &self,
        webhook: &str,
        suspension: SuspensionId,
        to: &PrincipalId,
        ttl: Span,
    ) -> Result<Option<MadeLink>, NoLink> {
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
    ) -> Result<Option<MadeLink>, NoLink> {
        let permit = self.handle.may_make_link(by, suspension, to).await?;
        if ttl.millis() == 0 || ttl > MAX_VALIDITY {
            return Err(NoLink::Time);
        }
        self.auth.refresh().await;
        let (holder, token) = self.auth.named(to).ok_or_else(|| NoLink::Unknown(to.clone()))?;
        let is_external = permit.kind == SuspensionKind::External;
        if !(answers(&holder) || is_external && holder.roles.has(Role::Caller)) {
            return Err(NoLink::NoApprover(to.clone()));
        }
        let expires_at = self.handle.now() + ttl;
        let request = LinkRequest { id, webhook, expires_at };
        let Some(expires) = self.handle.make_link(permit, request).await? else { return Ok(None) };
        let pass = Pass { id: id.bits(), token, expires, only: Some(suspension) };
        // A person opens the page of a link, and an external system sends its result to the API.
        let root = if is_external { "/v1/links" } else { "/link" };
        Ok(Some(MadeLink { path: format!("{root}/{}", pass.sign(&self.key, Purpose::Link)), expires }))
    }

    /// The content of a valid link and its principal. Also accepts a path or an address that ends in the link.
    pub(crate) fn read(&self, text: &str) -> Option<(Pass, SuspensionId, Principal)> {
        let text = text.rsplit('/').next().unwrap_or(text);
        let pass = Pass::open(text, &self.key, Purpose::Link, self.handle.now())?;
        // A caller holds links to external waits only. Whether it may give an answer is checked with the answer.
        let holder = self.auth.holder(pass.token);
        let holder = holder.filter(|holder| answers(holder) || holder.roles.has(Role::Caller))?;
        Some((pass, pass.only?, holder))
    }
}

fn answers(holder: &Principal) -> bool {
    holder.roles.has(Role::Approver) || holder.roles.has(Role::Admin)
}
