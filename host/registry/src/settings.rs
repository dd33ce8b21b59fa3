//! What the operator decided about plugins and their tools.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use capabilities::Grants;
use domain::{Executor, Limits, PluginName, Rule, Span, ToolName};
use policy::{OperatorRule, Rules};

use crate::finding::Findings;
use crate::{Finding, Holder, LoadRule};

/// The operator's decisions. Nothing is granted to a plugin that is not named here.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The watched folder. `None`: plugins come only from [`crate::Registry::load`].
    pub folder: Option<PathBuf>,
    /// The host's own folder, in which the components are kept.
    pub data: PathBuf,
    /// What a call may spend.
    pub limits: Limits,
    /// What differs for single plugins.
    pub plugins: HashMap<PluginName, PluginSettings>,
    /// What gates calls beyond the declarations of their tools.
    pub rules: Rules,
    /// The tools whose approval may be taken as given when nobody answers.
    pub approve_on_expiry: BTreeSet<ToolName>,
    /// The longest that a wait may take where the tool does not say.
    pub default_expires: Span,
    /// The longest that a call may wait for a free place to run in.
    pub queue: Span,
    /// Whether a component has to carry its declaration in a section, so that nothing of it runs before it is judged.
    pub require_declaration: bool,
}

/// What the operator decided about one plugin.
#[derive(Debug, Clone, Default)]
pub struct PluginSettings {
    /// What it may use.
    pub grants: Arc<Grants>,
    /// The components that this is granted to. Limits are not bound to a component.
    pub holder: Holder,
    /// What a call of it may spend, where that differs from the others.
    pub limits: Option<Limits>,
}

impl Settings {
    /// The settings of a host that grants nothing and gates only what is declared so.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            folder: None,
            data: data.into(),
            limits: Limits::default(),
            plugins: HashMap::new(),
            rules: Rules::default(),
            approve_on_expiry: BTreeSet::new(),
            default_expires: Span::from_secs(24 * 60 * 60),
            queue: Span::from_secs(30),
            require_declaration: false,
        }
    }

    /// What is granted under a plugin's name: to the components that [`Settings::holder`] names.
    #[must_use]
    pub fn grants(&self, plugin: &PluginName) -> Arc<Grants> {
        self.plugins.get(plugin).map(|settings| settings.grants.clone()).unwrap_or_default()
    }

    /// The components that a plugin's grants are for.
    #[must_use]
    pub fn holder(&self, plugin: &PluginName) -> Holder {
        self.plugins.get(plugin).map(|settings| settings.holder.clone()).unwrap_or_default()
    }

    /// What a call of a plugin may spend.
    #[must_use]
    pub fn limits(&self, plugin: &PluginName) -> Limits {
        self.plugins.get(plugin).and_then(|settings| settings.limits).unwrap_or(self.limits)
    }

    /// The verdict of the rules on every call of a tool, for any caller and any arguments.
    #[must_use]
    pub fn rule(&self, plugin: &PluginName, tool: &str) -> Rule {
        self.rules.always(Some(plugin.as_str()), tool)
    }

    /// What is wrong with the settings themselves, found when a configuration is read.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        for name in &self.approve_on_expiry {
            if self.rules.always(None, name.as_str()) == Rule::Deny {
                findings.add(
                    LoadRule::Settings,
                    format!("silence approves calls of {name}, and a rule denies them all"),
                    "remove one of the two from the configuration",
                );
            }
        }
        if self.default_expires == Span::ZERO {
            findings.add(LoadRule::Settings, "waits would end as they begin", "let them take a millisecond or more");
        }
        findings.into_vec()
    }

    /// Whether a rule would gate a tool that cannot be gated. What the rule asks of callers and arguments is no excuse: the
    /// first call that it fits could neither be asked about nor made.
    pub(crate) fn check_policy(&self, plugin: &PluginName, name: &str, executor: Executor, findings: &mut Findings) {
        let Err(cell) = Rule::Ask.check(executor) else { return };
        let kind = if executor == Executor::Provider { LoadRule::PolicyProvider } else { LoadRule::PolicyHuman };
        if let Some(rule) = self.rules.asks(plugin.as_str(), name) {
            findings.add(
                kind,
                format!("{} asks for an approval, and {cell}", written(rule)),
                "narrow the rule in the configuration, or deny the tool with it",
            );
        }
        if let Some(rule) = self.rules.wants_several(plugin.as_str(), name) {
            let what = match executor {
                Executor::Provider => "nobody is asked about what a provider does",
                _ => "the first answer to a question is its result",
            };
            findings.add(
                kind,
                format!("{} wants several people (`quorum`), and {what}", written(rule)),
                "remove `quorum` from the rule, or name another tool",
            );
        }
    }
}

/// A rule, and where it is written.
fn written(rule: &OperatorRule) -> String {
    let place = rule.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    format!("the operator's rule {}{place}, for `{}`,", rule.name, rule.tools)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rules;

    fn settings(rows: &[(&str, Rule)]) -> Settings {
        Settings { rules: rules(rows), ..Settings::new("unused") }
    }

    #[test]
    fn the_strictest_rule_that_fits_stands() {
        let settings = settings(&[("*", Rule::Allow), ("pay*", Rule::Ask), ("pay_all", Rule::Deny)]);
        let rule = |tool| settings.rule(&crate::testing::plugin("bank"), tool);
        assert_eq!(rule("read"), Rule::Allow);
        assert_eq!(rule("pay_one"), Rule::Ask);
        assert_eq!(rule("pay_all"), Rule::Deny);
    }

    #[test]
    fn settings_that_contradict_themselves_are_findings() {
        let mut settings = settings(&[("pay", Rule::Deny)]);
        settings.approve_on_expiry.insert(ToolName::new("pay").expect("a name"));
        settings.default_expires = Span::ZERO;
        assert_eq!(settings.check().len(), 2);
    }
}
