//! All rules of the operator. The strictest rule that applies decides. The order of rules does not matter.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Policy, PolicyQuery};
use domain::{
    approvers::Need,
    gate::{RuleEffect, Verdict},
};

use crate::rule::{OperatorRule, Subject};

/// The rules of the operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorRules(Arc<[OperatorRule]>);

/// The result of one rule or one dynamic policy for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: Arc<str>,
    /// Whether it applies to the call.
    pub matched: bool,
    /// Its decision on calls that it applies to.
    pub rule: RuleEffect,
    /// Why it applies, or why not.
    pub why: String,
}

impl OperatorRules {
    /// Combines these rules. Their order does not matter.
    #[must_use]
    pub fn new(rules: Vec<OperatorRule>) -> Self {
        Self(rules.into())
    }

    /// The rules in their original order.
    pub fn iter(&self) -> impl Iterator<Item = &OperatorRule> {
        self.0.iter()
    }

    /// The combined verdict on a call.
    #[must_use]
    pub fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        strictest(self.iter().filter(|rule| rule.fits(subject)).map(OperatorRule::verdict).collect())
    }

    /// The result of each rule for a call, with the reason.
    #[must_use]
    pub fn explain(&self, subject: &Subject<'_>) -> Vec<Step> {
        let step = |rule: &OperatorRule| {
            let fit = rule.fit(subject);
            Step { name: rule.name.clone(), matched: fit.fits, rule: rule.rule, why: fit.why }
        };
        self.iter().map(step).collect()
    }

    /// The verdict on every call of a tool: the strictest rule that depends on neither caller nor arguments. Without a
    /// plugin, rules that name a plugin are ignored.
    #[must_use]
    pub fn always(&self, plugin: Option<&str>, tool: &str) -> RuleEffect {
        let fitting = self.iter().filter(|rule| rule.is_unconditional() && rule.concerns(plugin, tool));
        fitting.map(|rule| rule.rule).max().unwrap_or_default()
    }

    /// A rule that asks for an approval of some calls of a tool. `None` if all its calls are denied.
    #[must_use]
    pub fn asks(&self, plugin: &str, tool: &str) -> Option<&OperatorRule> {
        if self.always(Some(plugin), tool) == RuleEffect::Deny {
            return None;
        }
        let asks = |rule: &&OperatorRule| rule.rule == RuleEffect::Ask && rule.is_about_calls();
        self.iter().filter(asks).find(|rule| rule.concerns(Some(plugin), tool))
    }

    /// A rule that names exactly this tool and requires several people, but does not ask for an approval. A rule over a
    /// pattern may do this, because it can be meant for other tools.
    #[must_use]
    pub fn requires_several(&self, plugin: &str, tool: &str) -> Option<&OperatorRule> {
        let several = |rule: &OperatorRule| rule.needs.iter().any(|need| need.quorum > 1);
        let names =
            |rule: &OperatorRule| rule.is_about_calls() && rule.tools.is_exact() && rule.concerns(Some(plugin), tool);
        self.iter().find(|rule| rule.rule == RuleEffect::Allow && several(rule) && names(rule))
    }
}

#[async_trait]
impl Policy for OperatorRules {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        self.verdict(&Subject::of(&question))
    }
}

/// Combines verdicts on one call. The strictest decision counts, with the reasons of all verdicts that made it. Unless
/// it is a denial, the needs of all verdicts must be met. The highest risk counts. The order does not matter.
#[must_use]
pub(crate) fn strictest(mut verdicts: Vec<Verdict>) -> Verdict {
    verdicts.sort_by(|one, other| {
        let key = |verdict: &Verdict| (Reverse((verdict.rule, verdict.ungated, verdict.risk)), verdict.by.clone());
        key(one).cmp(&key(other)).then_with(|| one.reason.cmp(&other.reason))
    });
    let Some(first) = verdicts.first() else { return Verdict::default() };
    let (rule, ungated) = (first.rule, first.ungated && first.rule == RuleEffect::Allow);
    let risk = verdicts.iter().filter_map(|verdict| verdict.risk).max();
    // An allowing rule changes nothing, unless it lifts the declared approval.
    let deciding = verdicts.iter().filter(|each| each.rule == rule && (rule != RuleEffect::Allow || each.ungated));
    // All deciding verdicts are named, because approval of one need does not satisfy another.
    let mut names: Vec<&str> = deciding.clone().filter_map(|verdict| verdict.by.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let by = (!names.is_empty()).then(|| names.join(", ").into());
    let mut reasons: Vec<&str> = Vec::new();
    for reason in deciding.filter_map(|verdict| verdict.reason.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    // A failed policy could have been stricter than all others.
    let policy_failed = verdicts.iter().any(|verdict| verdict.policy_failed);
    let reason = (!reasons.is_empty()).then(|| reasons.join("; ").into());
    let mut needs: Vec<Need> = Vec::new();
    for need in verdicts.iter().filter(|_| rule != RuleEffect::Deny).flat_map(|verdict| verdict.needs.iter()) {
        if !needs.contains(need) {
            needs.push(need.clone());
        }
    }
    Verdict { rule, ungated, by, reason, risk, needs: needs.into(), policy_failed }
}
