//! The operator's decisions about plugins and their tools.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use capabilities::Grants;
use domain::{CatalogLimits, Digest, Limits, PluginName, Span, ToolName, gate::RuleEffect, tool::Executor};
use policy::{OperatorRule, OperatorRules};

use crate::finding::Findings;
use crate::{Finding, LoadRule};

/// The operator's decisions. A plugin that is not named here has no grants.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The watched folder. If `None`, plugins come only from [`crate::Registry::load`].
    pub folder: Option<PathBuf>,
    /// The data folder, which contains the components.
    pub data: PathBuf,
    /// The limits of each call.
    pub limits: Limits,
    /// The limits on the declaration of each plugin.
    pub catalog: CatalogLimits,
    /// Decisions about single plugins.
    pub plugins: HashMap<PluginName, PluginSettings>,
    /// The rules that gate or deny calls.
    pub rules: OperatorRules,
    /// The tools whose calls a timeout may approve.
    pub approve_on_expiry: BTreeSet<ToolName>,
    /// The maximum wait of a tool that declares none.
    pub default_expires: Span,
    /// The maximum time that a call waits for a permit.
    pub queue: Span,
    /// Whether a component must have its declaration in a section, so that it does not run before the declaration is
    /// checked.
    pub require_declaration: bool,
    /// The upstream MCP servers. No component can have a tool whose name begins with the name of one and `__`.
    pub upstreams: BTreeSet<String>,
}

/// The operator's decisions about one plugin.
#[derive(Debug, Clone, Default)]
pub struct PluginSettings {
    pub grants: Arc<Grants>,
    /// The components that the grants are for. Limits apply to every component of the plugin.
    pub holder: GrantHolder,
    /// The limits of its calls, if they differ from the others.
    pub limits: Option<Limits>,
}

/// The components that a plugin's grants are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantHolder {
    /// Every component under the plugin's name.
    AnyComponent,
    /// Only these. The operator must review any other component first.
    Components(BTreeSet<Digest>),
}

impl Default for GrantHolder {
    fn default() -> Self {
        Self::Components(BTreeSet::new())
    }
}

impl GrantHolder {
    /// Whether the grants are for this component.
    #[must_use]
    pub fn covers(&self, component: Digest) -> bool {
        match self {
            Self::AnyComponent => true,
            Self::Components(components) => components.contains(&component),
        }
    }
}

impl RegistrySettings {
    /// Settings without grants and without rules.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            folder: None,
            data: data.into(),
            limits: Limits::default(),
            catalog: CatalogLimits::default(),
            plugins: HashMap::new(),
            rules: OperatorRules::default(),
            approve_on_expiry: BTreeSet::new(),
            default_expires: Span::from_secs(24 * 60 * 60),
            queue: Span::from_secs(30),
            require_declaration: false,
            upstreams: BTreeSet::new(),
        }
    }

    /// The grants under a plugin's name. They are for the components that [`RegistrySettings::holder`] returns.
    #[must_use]
    pub fn grants(&self, plugin: &PluginName) -> Arc<Grants> {
        self.plugins.get(plugin).map(|settings| settings.grants.clone()).unwrap_or_default()
    }

    /// The components that a plugin's grants are for.
    #[must_use]
    pub fn holder(&self, plugin: &PluginName) -> GrantHolder {
        self.plugins.get(plugin).map(|settings| settings.holder.clone()).unwrap_or_default()
    }

    /// The limits of a plugin's calls.
    #[must_use]
    pub fn limits(&self, plugin: &PluginName) -> Limits {
        self.plugins.get(plugin).and_then(|settings| settings.limits).unwrap_or(self.limits)
    }

    /// The effect of the rules on every call of a tool, for any caller and any arguments.
    #[must_use]
    pub fn effect(&self, plugin: &PluginName, tool: &str) -> RuleEffect {
        self.rules.always(Some(plugin.as_str()), tool)
    }

    /// The upstream MCP server whose tools have names that begin like this one.
    pub(crate) fn upstream_of(&self, tool: &str) -> Option<&str> {
        let (upstream, _) = tool.split_once("__")?;
        self.upstreams.get(upstream).map(String::as_str)
    }

    /// Finds contradictions in the settings.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        for name in &self.approve_on_expiry {
            if self.rules.always(None, name.as_str()) == RuleEffect::Deny {
                findings.add(
                    LoadRule::Settings,
                    format!("`approve_on_expiry` names {name}, but a rule denies all its calls"),
                    "remove one of the two from the configuration",
                );
            }
        }
        if self.default_expires == Span::ZERO {
            let message = "`default_expires` is 0, so every wait would expire at once";
            findings.add(LoadRule::Settings, message, "set it to a millisecond or more");
        }
        findings.into_vec()
    }

    /// Finds rules that gate a tool that cannot be gated. A rule that fits only some callers or arguments counts too,
    /// because the first call that it fits could never run.
    pub(crate) fn check_policy(&self, plugin: &PluginName, name: &str, executor: Executor, findings: &mut Findings) {
        let Err(cell) = RuleEffect::Ask.check(executor) else { return };
        let kind = if executor == Executor::Provider { LoadRule::PolicyProvider } else { LoadRule::PolicyHuman };
        if let Some(rule) = self.rules.asks(plugin.as_str(), name) {
            findings.add(
                kind,
                format!("{} asks for an approval, and {cell}", written(rule)),
                "narrow the rule in the configuration, or deny the tool with it",
            );
        }
        if let Some(rule) = self.rules.requires_several(plugin.as_str(), name) {
            let what = match executor {
                Executor::Provider => "calls of provider tools are never approved",
                _ => "the first answer to a question is its result",
            };
            findings.add(
                kind,
                format!("{} requires several approvers (`quorum`), and {what}", written(rule)),
                "remove `quorum` from the rule, or name another tool",
            );
        }
    }
}

/// A rule, and where the configuration contains it.
fn written(rule: &OperatorRule) -> String {
    let place = rule.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    format!("the operator's rule {}{place}, for `{}`,", rule.name, rule.tools)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rules;

    fn settings(rows: &[(&str, RuleEffect)]) -> RegistrySettings {
        RegistrySettings { rules: rules(rows), ..RegistrySettings::new("unused") }
    }

    #[test]
    fn strictest_matching_rule_applies() {
        let settings = settings(&[("*", RuleEffect::Allow), ("pay*", RuleEffect::Ask), ("pay_all", RuleEffect::Deny)]);
        let rule = |tool| settings.effect(&crate::testing::plugin("bank"), tool);
        assert_eq!(rule("read"), RuleEffect::Allow);
        assert_eq!(rule("pay_one"), RuleEffect::Ask);
        assert_eq!(rule("pay_all"), RuleEffect::Deny);
    }

    #[test]
    fn settings_that_contradict_themselves_are_findings() {
        let mut settings = settings(&[("pay", RuleEffect::Deny)]);
        settings.approve_on_expiry.insert(ToolName::new("pay").expect("a name"));
        settings.default_expires = Span::ZERO;
        assert_eq!(settings.check().len(), 2);
    }
}
