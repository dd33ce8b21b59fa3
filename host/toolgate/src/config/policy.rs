//! The operator's rules as they are written: `[[policy]]` in the configuration, and in the files that `[policies]` names.

mod examples;
mod files;
mod forms;
mod reading;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use domain::{Risk, Rule, Who};
pub use files::TriedRule;
pub(super) use files::read;
pub(super) use forms::json;
pub use forms::{Bound, RiskName, RuleName};
use policy::{CallerPattern, Glob, Pattern, Pointer};
pub(super) use reading::{check_name, need};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ComponentTable, Parsed};

/// Where further rules are.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoliciesTable {
    /// Files that hold `[[policy]]` tables and nothing else. Each rule in them has at least one `match`.
    pub files: Vec<PathBuf>,
    /// Policies that are programs of their own. They are asked about each call, and can only tighten.
    pub component: Vec<ComponentTable>,
}

/// One rule. Where several fit a call, the strictest stands: deny goes over ask, ask over allow; their order means nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTable {
    /// Which tools it is about: a pattern over their names, in which `*` stands for any characters and `?` for one.
    /// Default: "*".
    #[serde(default = "any")]
    #[schemars(with = "Option<String>")]
    pub tools: Parsed<Pattern>,
    /// Of which plugins: a pattern over their names. Default: of every plugin.
    #[schemars(with = "Option<String>")]
    pub plugin: Option<Parsed<Pattern>>,
    /// Called by whom: a pattern over the names of principals. Default: by anybody.
    #[schemars(with = "Option<String>")]
    pub caller: Option<Parsed<CallerPattern>>,
    /// What it says of such calls.
    pub rule: RuleName,
    /// Its name, as approvers and the audit are shown it. Default: its place, such as `policy[3]`.
    pub name: Option<String>,
    /// Why, for people.
    pub reason: Option<String>,
    /// How much is at stake.
    pub risk: Option<RiskName>,
    /// What must hold for the arguments; all of it.
    #[serde(default)]
    pub arguments: Vec<ConditionTable>,
    /// Whether it lifts the approval that the tool itself declares. Only with `rule = "allow"` and with one tool and one
    /// plugin, named in full. It lifts nothing that another rule asks or denies.
    #[serde(default)]
    pub ungate: bool,
    /// Calls that the rule must fit. They are tried when the file is read.
    #[serde(default, rename = "match")]
    pub matches: Vec<ExampleTable>,
    /// Calls that the rule must not fit.
    #[serde(default, rename = "not_match")]
    pub not_matches: Vec<ExampleTable>,
    /// Who must approve such calls, or, where the rule allows, who may answer a question that asks people anyway. All of it
    /// must be met. Default: whoever has the role approver.
    #[serde(default)]
    pub needs: Vec<NeedTable>,
}

/// Something that must hold for one place in the arguments. Exactly one of `equals`, `prefix`, `glob`, `min` with `max`, and
/// `absent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionTable {
    /// Where: a JSON Pointer (RFC 6901), such as "/amount".
    #[schemars(with = "String")]
    pub pointer: Parsed<Pointer>,
    /// It is this value. Numbers are the same if their values are: 1000 is 1e3.
    #[schemars(with = "Option<serde_json::Value>")]
    pub equals: Option<toml::Value>,
    /// It is a text that begins so.
    pub prefix: Option<String>,
    /// It is a text of this form: `*` stands for any characters, `?` for one.
    #[schemars(with = "Option<String>")]
    pub glob: Option<Parsed<Glob>>,
    /// It is a number of at least this. A decimal of more than 15 digits is written as a text: "12345678901234567.89".
    #[schemars(with = "Option<forms::BoundForm>")]
    pub min: Option<Bound>,
    /// It is a number of at most this.
    #[schemars(with = "Option<forms::BoundForm>")]
    pub max: Option<Bound>,
    /// There is no value there.
    #[serde(default)]
    pub absent: bool,
    /// The opposite must hold.
    #[serde(default)]
    pub not: bool,
}

/// A call for trying a rule. What is left out is not looked at, save the arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleTable {
    /// The tool's name.
    pub tool: Option<String>,
    /// The plugin's name.
    pub plugin: Option<String>,
    /// The caller's name.
    pub caller: Option<String>,
    /// What it is called with: a table, or a JSON text, which can say what TOML cannot. Default: `{}`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<toml::Value>,
}

/// Who must agree.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeedTable {
    /// Any of these: "principal:NAME", "group:NAME" or "role:NAME". Default: whoever has the role approver.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub who: Vec<Parsed<Who>>,
    /// How many different ones of them. Default: 1.
    pub quorum: Option<NonZeroU32>,
    /// Who may answer as well, once it has waited for a while.
    pub escalate: Option<EscalateTable>,
}

/// Who may answer as well.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscalateTable {
    /// After so many milliseconds.
    pub after_ms: NonZeroU64,
    /// These, written as in `who`.
    #[schemars(with = "Vec<String>")]
    pub to: Vec<Parsed<Who>>,
}

pub(super) fn any() -> Parsed<Pattern> {
    Parsed(Pattern::any())
}

impl From<RuleName> for Rule {
    fn from(name: RuleName) -> Self {
        match name {
            RuleName::Allow => Self::Allow,
            RuleName::Ask => Self::Ask,
            RuleName::Deny => Self::Deny,
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
