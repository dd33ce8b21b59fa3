//! Nested turns, and the calls that submitted them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The call that submitted a nested turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parent {
    /// The conversation of its turn.
    pub conversation: String,
    /// Its turn.
    pub turn: String,
    /// The call, by the caller's id.
    pub call: String,
    /// The plugin of its tool. It chose the tools and the arguments of the nested turn.
    pub plugin: String,
    /// Its tool.
    pub tool: String,
    /// How deep the turn is nested: 1 if a caller submitted the turn of this call.
    pub depth: u32,
}

impl From<&domain::nested::Parent> for Parent {
    fn from(parent: &domain::nested::Parent) -> Self {
        Self {
            conversation: parent.conversation.to_string(),
            turn: parent.turn.to_string(),
            call: parent.call.to_string(),
            plugin: parent.plugin.to_string(),
            tool: parent.tool.to_string(),
            depth: parent.depth,
        }
    }
}

/// A nested turn of a durable call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nested {
    /// Its conversation: `~`, and the conversation that the caller chose.
    pub conversation: String,
    /// The turn. It may not exist yet, because it is submitted after the call waits for it.
    pub turn: String,
    /// The tools that it calls, in their order.
    pub tools: Vec<String>,
    /// Whether the call waits for it now.
    pub open: bool,
}
