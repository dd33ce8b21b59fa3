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
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginView {
    /// Its name.
    pub name: String,
    /// The digest of the component: of the live one, or of the one that was refused.
    pub digest: String,
    /// The version of the interface that this component was built against, such as `toolgate:plugin@0.1.1`. Absent where
    /// nothing of it could be read.
    pub built_against: Option<String>,
    /// The names of its live tools.
    pub tools: Vec<String>,
    /// What became of it.
    pub state: PluginState,
    /// What is wrong with the component that was last found under this name.
    pub findings: Vec<FindingView>,
    /// Whether what was found last under this name has to be looked at by the operator before it gets what the plugin is
    /// granted.
    pub needs_review: bool,
    /// What the component may use, and why not more. Absent where nothing of it could be read.
    pub access: Option<AccessView>,
}

/// What a component may use: what the operator's configuration grants, and it wants. Nothing that can be sent to this API
/// changes what is granted.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessView {
    /// What the component says that it wants. Absent where it does not say: then it gets what it is granted.
    pub wanted: Option<Vec<WantedView>>,
    /// What is granted under the plugin's name, one grant each.
    pub granted: Vec<String>,
    /// The digests of the components that it is granted to; `any` for whatever bears the name.
    pub granted_to: Vec<String>,
    /// What this component may use.
    pub effective: Vec<String>,
    /// Whether its calls could be replayed from a journal. Those of a component that may use folders could not: what is in
    /// them changes without anybody being told.
    pub replayable: bool,
}

/// One thing that a component wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WantedView {
    /// What.
    pub what: String,
    /// Why, in the plugin's words: escape them where they are shown.
    pub why: String,
    /// `granted`, `in part` or `missing`.
    pub standing: String,
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
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// The tool, where it is about one.
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
