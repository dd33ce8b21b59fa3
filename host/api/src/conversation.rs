//! Conversations and their owners.

use domain::{ConversationId, PrincipalId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of conversations.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ConversationPage {
    /// The conversations, in the order of their ids.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next
    /// one.
    pub next: Option<String>,
}

/// A conversation and its owner.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    /// The id, as the caller chose it.
    pub conversation: String,
    /// The principal that submitted to it first.
    pub owner: String,
}

impl From<&(ConversationId, PrincipalId)> for Conversation {
    fn from((conversation, owner): &(ConversationId, PrincipalId)) -> Self {
        Self { conversation: conversation.to_string(), owner: owner.to_string() }
    }
}
