//! What the operator decided about plugins and their tools.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use domain::{Executor, Limits, PluginName, Rule, Span, ToolName};
use sandbox::Grants;

use crate::finding::Findings;
use crate::{Finding, Holder, LoadRule};

mod pattern;

pub use pattern::{InvalidPattern, Pattern};

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
    /// What gates tools beyond their declarations. Where several patterns fit, the strictest rule stands.
    pub rules: Vec<(Pattern, Rule)>,
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
            rules: Vec::new(),
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

    /// The strictest rule for a tool.
    #[must_use]
    pub fn rule(&self, tool: &str) -> Rule {
        self.rules.iter().filter(|(pattern, _)| pattern.matches(tool)).map(|(_, rule)| *rule).max().unwrap_or_default()
    }

    /// What is wrong with the settings themselves and with what they would do to these tools: a policy must not gate a
    /// tool that cannot be gated. Called when a configuration is read, and again for each plugin that is loaded.
    pub fn check<'a>(&self, tools: impl IntoIterator<Item = (&'a str, Executor)>) -> Vec<Finding> {
        let mut findings = Findings::default();
        for name in &self.approve_on_expiry {
            if self.rule(name.as_str()) == Rule::Deny {
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
        for (position, (name, executor)) in tools.into_iter().enumerate() {
            findings.about(position, name);
            self.check_policy(name, executor, &mut findings);
        }
        findings.into_vec()
    }

    /// Whether the policy would gate a tool that cannot be gated.
    pub(crate) fn check_policy(&self, name: &str, executor: Executor, findings: &mut Findings) {
        let Err(cell) = self.rule(name).check(executor) else { return };
        let rule = if executor == Executor::Provider { LoadRule::PolicyProvider } else { LoadRule::PolicyHuman };
        let pattern = self.rules.iter().find(|(pattern, rule)| *rule == Rule::Ask && pattern.matches(name));
        let pattern = pattern.map_or(name, |(pattern, _)| pattern.as_str());
        findings.add(
            rule,
            format!("the operator's rule for `{pattern}` asks for an approval, and {cell}"),
            "narrow the rule in the configuration, or deny the tool with it",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rules: &[(&str, Rule)]) -> Settings {
        let mut settings = Settings::new("unused");
        settings.rules = rules.iter().map(|(text, rule)| (Pattern::new(text).expect("a pattern"), *rule)).collect();
        settings
    }

    #[test]
    fn the_strictest_rule_that_fits_stands() {
        let settings = settings(&[("*", Rule::Allow), ("pay*", Rule::Ask), ("pay_all", Rule::Deny)]);
        assert_eq!(settings.rule("read"), Rule::Allow);
        assert_eq!(settings.rule("pay_one"), Rule::Ask);
        assert_eq!(settings.rule("pay_all"), Rule::Deny);
    }

    #[test]
    fn a_policy_that_gates_a_question_is_a_finding_when_the_configuration_is_read() {
        let settings = settings(&[("as*", Rule::Ask)]);
        let found = settings.check([("ask", Executor::Human), ("assess", Executor::Server), ("read", Executor::Human)]);
        let found: Vec<_> = found.iter().map(|finding| (finding.rule.as_str(), finding.to_string())).collect();
        let expected = "tool ask: the operator's rule for `as*` asks for an approval, and a human tool cannot be \
                        requires-approval: approving a question is circular; narrow the rule in the configuration, or deny \
                        the tool with it";
        assert_eq!(found, [("policy-human", expected.to_owned())]);
    }

    #[test]
    fn settings_that_contradict_themselves_are_findings() {
        let mut settings = settings(&[("pay", Rule::Deny)]);
        settings.approve_on_expiry.insert(ToolName::new("pay").expect("a name"));
        settings.default_expires = Span::ZERO;
        assert_eq!(settings.check([]).len(), 2);
    }
}
