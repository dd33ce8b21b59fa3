//! Decisions of people that later calls rely on.

use async_trait::async_trait;
use domain::{ConversationId, Digest, StandingId, Timestamp, standing::StandingRow};

use super::commit::Denial;
use super::fault::StoreFault;

/// Reads standing approvals and denials.
///
/// Law: the commit that uses a standing approval counts the use, and no commit uses more than are left.
#[async_trait]
pub trait StandingApprovals: Send + Sync {
    /// A standing approval with its uses so far.
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault>;

    /// Standing approvals, usable or not, in the order of their ids: those after the given one. A page with fewer than
    /// `limit` is the last.
    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault>;

    /// When a person last denied a call with this digest in this conversation.
    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault>;

    /// Denials in an order of the store's choice: those after the given one, at most `limit`.
    async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault>;
}
