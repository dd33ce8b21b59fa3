//! All rules of the operator together. The strictest rule that fits decides; their order does not matter.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Policy, Question};
use domain::{Need, Rule, Verdict};

use crate::rule::{OperatorRule, Subject};

/// The rules of the operator.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<[OperatorRule]>);

/// What one rule or one dynamic policy has to do with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it fits the call.
    pub matched: bool,
    /// What it says of calls that it fits.
    pub rule: Rule,
    /// Why it fits, or why not.
    pub why: String,
}

impl Rules {
    /// These rules. Their order means nothing.
    #[must_use]
    pub fn new(rules: Vec<OperatorRule>) -> Self {
        Self(rules.into())
    }

    /// Each of them, as they were written.
    pub fn iter(&self) -> impl Iterator<Item = &OperatorRule> {
        self.0.iter()
    }

    /// What they say of a call.
    #[must_use]
    pub fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        strictest(self.iter().filter(|rule| rule.fits(subject)).map(OperatorRule::verdict).collect())
    }

    /// Each rule with whether and why it fits a call.
    #[must_use]
    pub fn explain(&self, subject: &Subject<'_>) -> Vec<Step> {
        let step = |rule: &OperatorRule| {
            let fit = rule.fit(subject);
            Step { name: rule.name.clone(), matched: fit.fits, rule: rule.rule, why: fit.why }
        };
        self.iter().map(step).collect()
    }

    /// The verdict on every call of a tool, for any caller and any arguments: the strictest of the rules that look at
    /// neither. Without a plugin, rules about plugins do not count.
    #[must_use]
    pub fn always(&self, plugin: Option<&str>, tool: &str) -> Rule {
        let fitting = self.iter().filter(|rule| rule.is_unconditional() && rule.concerns(plugin, tool));
        fitting.map(|rule| rule.rule).max().unwrap_or_default()
    }

    /// A rule that would ask for an approval of some calls of a tool, unless all of them are denied.
    #[must_use]
    pub fn asks(&self, plugin: &str, tool: &str) -> Option<&OperatorRule> {
        if self.always(Some(plugin), tool) == Rule::Deny {
            return None;
        }
        self.iter().find(|rule| rule.rule == Rule::Ask && rule.concerns(Some(plugin), tool))
    }

    /// A rule that names this tool in full and wants several people, without asking for an approval of it itself. Of a rule over
    /// a pattern that is no mistake: it may be about other tools, too.
    #[must_use]
    pub fn wants_several(&self, plugin: &str, tool: &str) -> Option<&OperatorRule> {
        let several = |rule: &OperatorRule| rule.needs.iter().any(|need| need.quorum > 1);
        let names = |rule: &OperatorRule| rule.tools.is_exact() && rule.concerns(Some(plugin), tool);
        self.iter().find(|rule| rule.rule == Rule::Allow && several(rule) && names(rule))
    }
}

#[async_trait]
impl Policy for Rules {
    async fn judge(&self, question: Question) -> Verdict {
        self.verdict(&Subject::of(&question))
    }
}

/// What follows from several verdicts on one call: the strictest stands, with the reasons of all that say the same; the needs
/// of all that do not deny must be met; the highest risk counts. Their order means nothing.
#[must_use]
pub(crate) fn strictest(mut verdicts: Vec<Verdict>) -> Verdict {
    verdicts.sort_by(|one, other| {
        let key = |verdict: &Verdict| (Reverse((verdict.rule, verdict.ungated, verdict.risk)), verdict.by.clone());
        key(one).cmp(&key(other)).then_with(|| one.reason.cmp(&other.reason))
    });
    let Some(first) = verdicts.first() else { return Verdict::default() };
    let (rule, ungated) = (first.rule, first.ungated && first.rule == Rule::Allow);
    let risk = verdicts.iter().filter_map(|verdict| verdict.risk).max();
    // An allowing rule decides nothing: what happens is what the tool declares, unless the rule lifts that.
    let deciding = verdicts.iter().filter(|each| each.rule == rule && (rule != Rule::Allow || each.ungated));
    // All that decide are named: an approval that one of them asked for says nothing of what another asks for.
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
    // Who could not be asked may have had more to say than all the others.
    let policy_failed = verdicts.iter().any(|verdict| verdict.policy_failed);
    let reason = (!reasons.is_empty()).then(|| reasons.join("; ").into());
    let mut needs: Vec<Need> = Vec::new();
    for need in verdicts.iter().filter(|_| rule != Rule::Deny).flat_map(|verdict| verdict.needs.iter()) {
        if !needs.contains(need) {
            needs.push(need.clone());
        }
    }
    Verdict { rule, ungated, by, reason, risk, needs: needs.into(), policy_failed }
}
