//! Links that open one suspension for one principal, once. Making one needs the key and nothing else; using one is a door.

use std::sync::Arc;

use domain::{Principal, PrincipalId, Role, Span, SuspensionId, Timestamp};

use crate::doors::Authenticate;
use crate::sealed::{Pass, Purpose, SigningKey};

/// The longest that a link may count.
pub(crate) const LONGEST: Span = Span::from_secs(7 * 24 * 60 * 60);

/// What makes links.
#[derive(Clone)]
pub struct Links {
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
}

impl Links {
    /// Links under this key, for those who hold tokens here.
    #[must_use]
    pub fn new(key: SigningKey, auth: Arc<dyn Authenticate>) -> Self {
        Self { key, auth }
    }

    /// A link that lets `principal` read and answer `suspension` within `ttl`. What they may do is what they may do when they
    /// use it; when their token is revoked, the link is worth nothing. `id` was never used before.
    ///
    /// # Errors
    /// [`NoLink`].
    pub fn make(
        &self,
        id: u128,
        suspension: SuspensionId,
        principal: &PrincipalId,
        ttl: Span,
        now: Timestamp,
    ) -> Result<Link, NoLink> {
        if ttl.millis() == 0 || ttl > LONGEST {
            return Err(NoLink::Time);
        }
        let (holder, token) = self.auth.named(principal).ok_or_else(|| NoLink::Unknown(principal.clone()))?;
        if !answers(&holder) {
            return Err(NoLink::NoApprover(principal.clone()));
        }
        let expires = now + ttl;
        let pass = Pass { id, token, expires, only: Some(suspension) };
        Ok(Link { path: format!("/link/{}", pass.seal(&self.key, Purpose::Link)), expires })
    }

    /// What a link says, if it counts, and for whom it speaks. A path or an address that ends in the link is taken for it.
    pub(crate) fn read(&self, text: &str, now: Timestamp) -> Option<(Pass, SuspensionId, Principal)> {
        let text = text.rsplit('/').next().unwrap_or(text);
        let pass = Pass::open(text, &self.key, Purpose::Link, now)?;
        let holder = self.auth.holder(pass.token).filter(answers)?;
        Some((pass, pass.only?, holder))
    }
}

fn answers(holder: &Principal) -> bool {
    holder.roles.has(Role::Approver) || holder.roles.has(Role::Admin)
}
