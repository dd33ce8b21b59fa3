//! The operator's rules: the tables `[[policy]]` in the configuration and in the files that `[policies]` names.

mod examples;
mod files;
mod forms;
mod reading;

use std::num::{NonZeroU32, NonZeroU64};

use domain::{approvers::Who, gate::RuleEffect, principal::Channel, step::StepKind, tool::Risk};
pub use files::TriedRule;
pub(super) use files::read;
pub(super) use forms::json;
pub use forms::{Bound, ChannelName, RiskName, RuleName, StepName};
use policy::{CallerPattern, Glob, Pattern, PluginPattern, Pointer};
pub(super) use reading::{check_name, needs};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Parsed;

/// One rule. If several match a call, the strictest decides: deny before ask, ask before allow. Their order does not matter.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTable {
    /// The tools: a pattern over their names, in which `*` matches any characters and `?` matches one. Default: "*".
    #[serde(default = "any")]
    #[schemars(with = "Option<String>")]
    pub tools: Parsed<Pattern>,
    /// The plugins: a pattern over their names. `mcp:NAME` is the upstream MCP server NAME. Default: all.
    #[schemars(with = "Option<String>")]
    pub plugin: Option<Parsed<PluginPattern>>,
    /// The callers: a pattern over the names of principals. Default: all.
    #[schemars(with = "Option<String>")]
    pub caller: Option<Parsed<CallerPattern>>,
    /// Only the steps of this kind that a durable tool comes to in the middle of its code. Default: calls, and all their steps.
    pub step: Option<StepName>,
    /// The decision for such calls.
    pub rule: RuleName,
    /// Its name, for approvers and the audit log. Default: its position, such as `policy[3]`.
    pub name: Option<String>,
    /// The reason, for people.
    pub reason: Option<String>,
    /// The risk of such calls.
    pub risk: Option<RiskName>,
    /// Conditions on the arguments. All must hold.
    #[serde(default)]
    pub arguments: Vec<ConditionTable>,
    /// Whether it removes the approval that the tool itself declares. This needs `rule = "allow"` and the full names of one tool
    /// and one plugin. It does not change the decisions of other rules.
    #[serde(default)]
    pub ungate: bool,
    /// Calls that the rule must match. They are tested when the file is read.
    #[serde(default, rename = "match")]
    pub matches: Vec<ExampleTable>,
    /// Calls that the rule must not match.
    #[serde(default, rename = "not_match")]
    pub not_matches: Vec<ExampleTable>,
    /// Who must approve such calls. All needs must be met. If the rule allows, they apply to approvals that the tool or another
    /// rule requires. Default: a principal with the role approver.
    #[serde(default)]
    pub needs: Vec<NeedTable>,
}

/// A condition on one value in the arguments. It has exactly one of `equals`, `prefix`, `glob`, `min` or `max`, and `absent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionTable {
    /// The value: a JSON Pointer (RFC 6901), such as "/amount".
    #[schemars(with = "String")]
    pub pointer: Parsed<Pointer>,
    /// The value equals this one. Numbers are equal by value: 1000 is 1e3.
    #[schemars(with = "Option<serde_json::Value>")]
    pub equals: Option<toml::Value>,
    /// The value is a string with this prefix.
    pub prefix: Option<String>,
    /// The value is a string that matches this pattern: `*` matches any characters, `?` matches one.
    #[schemars(with = "Option<String>")]
    pub glob: Option<Parsed<Glob>>,
    /// The value is a number of at least this. Write a decimal of more than 15 digits as a string: "12345678901234567.89".
    #[schemars(with = "Option<forms::BoundForm>")]
    pub min: Option<Bound>,
    /// The value is a number of at most this.
    #[schemars(with = "Option<forms::BoundForm>")]
    pub max: Option<Bound>,
    /// There is no such value.
    #[serde(default)]
    pub absent: bool,
    /// Reverses the condition.
    #[serde(default)]
    pub not: bool,
}

/// A call that tests a rule. Missing names match every rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleTable {
    /// The tool's name.
    pub tool: Option<String>,
    /// The plugin's name.
    pub plugin: Option<String>,
    /// The caller's name.
    pub caller: Option<String>,
    /// The arguments: a table, or JSON text for values that TOML cannot express. Default: `{}`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<toml::Value>,
    /// The kind of a step of the call. Default: the call as a whole, and for a rule with `step` a step of that kind.
    pub step: Option<StepName>,
}

/// Who must approve.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedTable {
    /// Any of these: "principal:NAME", "group:NAME" or "role:NAME". Default: "role:approver".
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub who: Vec<Parsed<Who>>,
    /// How many different principals must approve. Default: 1.
    pub quorum: Option<NonZeroU32>,
    /// Who can approve as well after some time.
    pub escalate: Option<EscalateTable>,
    /// The channels through which the approvals must come. Default: all.
    pub via: Option<Vec<ChannelName>>,
}

/// Who can approve as well after some time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscalateTable {
    /// The time in milliseconds.
    pub after_ms: NonZeroU64,
    /// The approvers, written as in `who`.
    #[schemars(with = "Vec<String>")]
    pub to: Vec<Parsed<Who>>,
}

pub(super) fn any() -> Parsed<Pattern> {
    Parsed(Pattern::any())
}

impl From<RuleName> for RuleEffect {
    fn from(name: RuleName) -> Self {
        match name {
            RuleName::Allow => Self::Allow,
            RuleName::Ask => Self::Ask,
            RuleName::Deny => Self::Deny,
        }
    }
}

impl From<ChannelName> for Channel {
    fn from(name: ChannelName) -> Self {
        match name {
            ChannelName::Console => Self::Console,
            ChannelName::Api => Self::Api,
            ChannelName::Link => Self::Link,
            ChannelName::McpForm => Self::McpForm,
        }
    }
}

impl From<StepName> for StepKind {
    fn from(name: StepName) -> Self {
        match name {
            StepName::Ask => Self::Ask,
            StepName::Approve => Self::Approve,
            StepName::AwaitExternal => Self::AwaitExternal,
        }
    }
}

impl From<RiskName> for Risk {
    fn from(name: RiskName) -> Self {
        match name {
            RiskName::Low => Self::Low,
            RiskName::Medium => Self::Medium,
            RiskName::High => Self::High,
            RiskName::Critical => Self::Critical,
        }
    }
}
