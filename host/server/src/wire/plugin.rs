//! Plugins, as their operator sees them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every plugin that is live or was refused.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PluginList {
    /// Sorted by name.
    pub plugins: Vec<PluginView>,
}

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginView {
    /// Its name.
    pub name: String,
    /// The digest of the component: of the live one, or of the one that was refused.
    pub digest: String,
    /// The names of its live tools.
    pub tools: Vec<String>,
    /// What became of it.
    pub state: PluginState,
    /// What is wrong with the component that was last found under this name.
    pub findings: Vec<FindingView>,
}

/// What became of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginState {
    /// Its tools are live.
    Live,
    /// It was refused, and nothing is live under its name.
    Rejected,
}

/// One thing that keeps a plugin from being loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// The tool, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The rule that is broken; a stable name.
    pub rule: String,
    /// What is wrong.
    pub message: String,
    /// What to change.
    pub remedy: String,
}

/// That a plugin is no longer live.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    /// The plugin.
    pub removed: String,
}
