//! One-time links to suspensions. Whoever has a link may read and answer one suspension in one principal's name; these are
//! the facts that one was made and used. What is in the link itself, the domain does not know.

use std::sync::Arc;

use crate::{LinkId, PrincipalId, SuspensionId, Timestamp};

/// The most links to one suspension.
pub const MOST_LINKS: usize = 100;

/// A link that was made, or made again to count for longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id, which is no secret and opens nothing.
    pub id: LinkId,
    /// In whose name its holder answers.
    pub to: PrincipalId,
    /// Who had it made; `system` where a webhook is sent it.
    pub by: PrincipalId,
    /// The webhook that is sent it.
    pub webhook: Option<Arc<str>>,
    /// From then on it counts no more.
    pub expires_at: Timestamp,
}

/// A link as its call knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentLink {
    /// To what.
    pub suspension: SuspensionId,
    /// The link, as it was made last.
    pub link: Link,
    /// When it was used; it is good for one use.
    pub used_at: Option<Timestamp>,
}
