//! Tools in toolgate's own format.

use dispatch::ports::KnownTool;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Approval, Editable, Executor, OnExpiry, Rule, Verbatim};

/// Every live tool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    /// Sorted by name.
    pub tools: Vec<Tool>,
}

/// A live tool. Its schemas are the plugin's own texts.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    /// Unique across the host.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Verbatim,
    /// JSON Schema of the result.
    pub result: Option<Verbatim>,
    /// Who produces the result.
    pub executor: Executor,
    /// Whether a person must approve a call first, according to the declaration and the operator's policy.
    pub approval: Approval,
    /// The decision of the operator's policy about the tool.
    pub rule: Rule,
    /// Whether it reports progress.
    pub streaming: bool,
    /// The decisions that a person may choose from.
    pub responses: Option<Vec<String>>,
    /// JSON Schema of the data that comes with a decision.
    pub response: Option<Verbatim>,
    /// The arguments that an approver may edit.
    pub editable: Editable,
    /// The effect when a suspension expires.
    pub on_expiry: OnExpiry,
    /// How long a result is worth keeping in a model's context.
    pub retention: Option<Retention>,
    /// The tool's statements about its effects.
    pub hints: Option<Hints>,
    /// The plugin that offers it. `mcp:NAME` is the upstream MCP server NAME.
    pub plugin: String,
    /// Whether it runs in the sandbox, if the host runs it. The tools of upstream MCP servers do not.
    #[serde(default = "crate::words::yes")]
    pub sandboxed: bool,
    /// The digest of the component.
    pub component: String,
    /// The digest of the declaration.
    pub declaration: String,
}

/// How long a result is worth keeping. A hint for the program that manages the context; the host
/// acts on `max_age_days` only.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retention {
    /// Drop results that are older than this many turns.
    pub max_age_turns: Option<u32>,
    /// Keep at most this many results.
    pub max_count: Option<u32>,
    /// Never drop one.
    pub never_evict: bool,
    /// The days after which the host can remove a turn with a call of the tool, if its operator allows that.
    pub max_age_days: Option<u32>,
}

/// A tool's statements about its effects. The host decides nothing by them.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It can destroy data.
    pub destructive: Option<bool>,
    /// A repeated call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// It accesses systems outside the host.
    pub open_world: Option<bool>,
}

impl From<&KnownTool> for Tool {
    fn from(live: &KnownTool) -> Self {
        let (tool, options) = (&live.tool, &live.tool.options);
        Self {
            name: tool.name.to_string(),
            title: options.title.clone(),
            description: tool.description.clone(),
            parameters: (&tool.parameters).into(),
            result: options.result.as_ref().map(Verbatim::from),
            executor: (&tool.executor).into(),
            approval: (&live.pinned.approval).into(),
            rule: (&live.effect).into(),
            streaming: tool.streaming,
            responses: options.responses.as_ref().map(|responses| responses.to_vec()),
            response: options.response.as_ref().map(Verbatim::from),
            editable: (&options.editable).into(),
            on_expiry: (&options.on_expiry).into(),
            retention: options.retention.map(|retention| Retention {
                max_age_turns: retention.max_age_turns,
                max_count: retention.max_count,
                never_evict: retention.never_evict,
                max_age_days: retention.max_age_days,
            }),
            hints: hints(options.hints),
            plugin: tool.plugin.to_string(),
            sandboxed: !tool.plugin.is_upstream(),
            component: tool.component.to_string(),
            declaration: tool.declaration.to_string(),
        }
    }
}

fn hints(hints: domain::tool::Hints) -> Option<Hints> {
    let domain::tool::Hints { read_only, destructive, idempotent, open_world } = hints;
    (hints != domain::tool::Hints::default()).then_some(Hints { read_only, destructive, idempotent, open_world })
}
