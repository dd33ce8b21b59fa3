//! One-time links to suspensions. The holder of a link may read and answer one suspension in the name of one principal.
//! The domain records that links are made and used; it does not know what is in a link.

use std::sync::Arc;

use crate::{LinkId, PrincipalId, SuspensionId, Timestamp};

/// The maximum number of links to one suspension.
pub const MAX_LINKS: usize = 100;

/// A link that was made, or made valid for longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecord {
    /// The id is not secret and opens nothing.
    pub id: LinkId,
    /// The principal in whose name the holder answers.
    pub to: PrincipalId,
    /// Who made it. `system` for a webhook's link.
    pub by: PrincipalId,
    /// The webhook that receives it.
    pub webhook: Option<Arc<str>>,
    /// From then on it is invalid.
    pub expires_at: Timestamp,
}

/// A link as its call knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentLink {
    pub suspension: SuspensionId,
    /// The link, as it was last made.
    pub link: LinkRecord,
    /// A link is used once.
    pub used_at: Option<Timestamp>,
}
