//! Plugins, for operators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::LoadRule;

/// All plugins that are live, are being loaded or were rejected.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PluginList {
    /// Sorted by name.
    pub plugins: Vec<PluginView>,
}

/// A plugin that is live, is being loaded or was rejected.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginView {
    /// The name of the plugin, from its file.
    pub name: String,
    /// The digest of the live or rejected component. Absent while the first component under this name is being loaded.
    pub digest: Option<String>,
    /// Whether its tools run in the sandbox. Those of an upstream MCP server (`mcp:NAME`) do not.
    #[serde(default = "crate::words::yes")]
    pub sandboxed: bool,
    /// The origin of an upstream MCP server that the host reaches by a URL.
    pub origin: Option<String>,
    /// The version of the interface that this component was built against, such as `toolgate:plugin@0.1.1`. Absent if
    /// the component is unreadable.
    pub built_against: Option<String>,
    /// The names of its live tools.
    pub tools: Vec<String>,
    /// Whether it is live. A live plugin stays live while another component is loaded under its name.
    pub state: PluginState,
    /// The errors of the newest component under this name.
    pub findings: Vec<FindingView>,
    /// The parts of the live component's declaration that this host reduces. They keep no plugin from being live.
    pub notes: Vec<NoteView>,
    /// Whether the operator must review the newest component under this name before it gets the plugin's grants.
    pub needs_review: bool,
    /// The component's requests, grants and accesses. Absent if the component is unreadable.
    pub access: Option<AccessView>,
}

/// A component may use what the operator's configuration grants and the component requests. No request to this API
/// changes a grant.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessView {
    /// The component's requests. Absent if it has no manifest: then it may use everything that it is granted.
    pub requested: Option<Vec<RequestedView>>,
    /// The grants of the plugin's name.
    pub granted: Vec<String>,
    /// The digests of the components that have these grants. `any` means each component with the name.
    pub granted_to: Vec<String>,
    /// The accesses that this component has.
    pub effective: Vec<String>,
    /// Whether a journal could replay its calls. It could not if the component may use folders, because their contents
    /// change without the host's knowledge.
    pub replayable: bool,
}

/// One access that a component requests.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedView {
    /// The requested access, in the words of the configuration.
    pub what: String,
    /// The plugin's reason. Escape it before you show it.
    pub why: String,
    /// How much of it is granted.
    pub state: RequestState,
    /// Why no grant can give it (`impossible`).
    pub refusal: Option<String>,
}

/// How much of a request is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// All of it.
    Granted,
    /// A part of it.
    #[serde(rename = "in part")]
    InPart,
    /// None of it.
    Missing,
    /// No grant can give it.
    Impossible,
}

/// Whether a plugin is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginState {
    /// Its tools are live.
    Live,
    /// A component is being examined and compiled, or waits for it, and no tool is live under its name.
    Loading,
    /// It was rejected, and no tool is live under its name.
    Rejected,
}

/// One reason why a plugin is not loaded.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// The tool, if the finding is about one.
    pub tool: Option<String>,
    /// The rule that the plugin breaks.
    pub rule: LoadRule,
    /// The error in the plugin.
    pub message: String,
    /// How the plugin's author can correct it.
    pub remedy: String,
}

/// A part of a tool's declaration that this host reduces, such as a `timeout_ms` above the operator's limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoteView {
    /// The tool.
    pub tool: String,
    /// The declared value, and its effect.
    pub message: String,
}

/// The response to the removal of a plugin.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    /// The name of the removed plugin.
    pub removed: String,
}
