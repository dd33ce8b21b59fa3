//! One rule of the operator: the calls that it applies to, and its decision.

use std::fmt;
use std::sync::{Arc, OnceLock};

use dispatch::ports::PolicyQuery;
use domain::json::Value;
use domain::{
    Json,
    approvers::Need,
    gate::{RuleEffect, Verdict},
    step::StepKind,
    tool::Risk,
};

use crate::condition::{Condition, Truth};
use crate::pattern::{CallerPattern, Pattern};

/// A rule of the operator.
#[derive(Debug, Clone)]
pub struct OperatorRule {
    /// Unique among the rules. Approvers and the audit see it.
    pub name: Arc<str>,
    /// The position in the configuration, as `file:line:column`.
    pub place: Option<Arc<str>>,
    /// The tools that it applies to.
    pub tools: Pattern,
    /// The plugins that it applies to. If `None`, all.
    pub plugin: Option<Pattern>,
    /// The callers that it applies to. If `None`, all.
    pub caller: Option<CallerPattern>,
    /// The steps of durable calls that it applies to, and then it applies to no call as a whole. If `None`, it applies to
    /// calls and to all their steps.
    pub step: Option<StepKind>,
    /// Conditions on the arguments. All must hold.
    pub conditions: Vec<Condition>,
    pub rule: RuleEffect,
    /// Whether it lifts the approval that the tool declares. Allowed only with [`RuleEffect::Allow`] and a single tool of a
    /// single plugin.
    pub ungate: bool,
    /// The reason, for people.
    pub reason: Option<Arc<str>>,
    /// The risk that approvers see.
    pub risk: Option<Risk>,
    /// The required approvals. If empty, any principal with the role approver may approve.
    pub needs: Vec<Need>,
}

/// The arguments of a call, parsed only if a rule needs them.
#[derive(Debug)]
pub struct Arguments {
    text: Json,
    value: OnceLock<Option<Arc<Value>>>,
}

impl Arguments {
    #[must_use]
    pub fn new(text: Json) -> Self {
        Self { text, value: OnceLock::new() }
    }

    /// The value. `None` if the text has duplicate keys, is nested too deeply, or is not JSON.
    fn value(&self) -> Option<&Value> {
        self.value.get_or_init(|| self.text.value().ok()).as_deref()
    }
}

/// A call, as rules see it. In the examples of a rule, fields that are `None` are not compared.
#[derive(Debug)]
pub struct Subject<'a> {
    pub tool: Option<&'a str>,
    pub plugin: Option<&'a str>,
    pub caller: Option<&'a str>,
    pub moment: Option<Moment>,
    pub arguments: Arguments,
}

/// The moment of a call at which the rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It is about to wait for an approval or to run.
    Call,
    /// It comes to a step of its code.
    Step(StepKind),
}

impl<'a> Subject<'a> {
    /// The step that it is about.
    pub(crate) const fn step(&self) -> Option<StepKind> {
        match self.moment {
            Some(Moment::Step(step)) => Some(step),
            Some(Moment::Call) | None => None,
        }
    }

    /// The call of a question.
    #[must_use]
    pub fn of(question: &'a PolicyQuery) -> Self {
        Self {
            tool: Some(question.known.tool.name.as_str()),
            plugin: Some(question.known.tool.plugin.as_str()),
            caller: Some(question.caller.as_str()),
            moment: Some(question.step.map_or(Moment::Call, Moment::Step)),
            arguments: Arguments::new(question.arguments.clone()),
        }
    }
}

/// Whether a rule applies to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    pub fits: bool,
    /// The reason, for people.
    pub why: String,
}

impl OperatorRule {
    /// A rule over tools only.
    #[must_use]
    pub fn new(name: &str, tools: Pattern, rule: RuleEffect) -> Self {
        Self {
            name: name.into(),
            place: None,
            tools,
            plugin: None,
            caller: None,
            step: None,
            conditions: Vec::new(),
            rule,
            ungate: false,
            reason: None,
            risk: None,
            needs: Vec::new(),
        }
    }

    /// Whether it can apply to a tool, with some caller and arguments.
    #[must_use]
    pub fn concerns(&self, plugin: Option<&str>, tool: &str) -> bool {
        let of_plugin = |pattern: &Pattern| plugin.is_some_and(|plugin| pattern.matches(plugin));
        self.tools.matches(tool) && self.plugin.as_ref().is_none_or(of_plugin)
    }

    /// Whether it applies to all calls of its tools.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.is_about_calls() && self.caller.is_none() && self.conditions.is_empty()
    }

    /// Whether it applies to calls as a whole.
    pub(crate) fn is_about_calls(&self) -> bool {
        self.step.is_none()
    }

    /// Whether it applies to a call.
    #[must_use]
    pub fn fits(&self, subject: &Subject<'_>) -> bool {
        self.misfit(subject).is_none() && self.holds(&subject.arguments)
    }

    /// Whether it applies to a call, with the reason.
    #[must_use]
    pub fn fit(&self, subject: &Subject<'_>) -> Fit {
        if let Some(why) = self.misfit(subject) {
            return Fit { fits: false, why };
        }
        if self.conditions.is_empty() {
            return Fit { fits: true, why: self.scope() };
        }
        let fits = self.holds(&subject.arguments);
        let Some(arguments) = subject.arguments.value() else {
            let why =
                "the arguments cannot be evaluated: they are not JSON, are nested too deeply, or have duplicate keys";
            return Fit { fits, why: format!("{why}; {}", self.benefit()) };
        };
        let evaluated: Vec<_> = self.conditions.iter().map(|each| (each, each.evaluate(arguments))).collect();
        if let Some((condition, _)) = evaluated.iter().find(|(_, truth)| *truth == Truth::No) {
            return Fit { fits, why: condition.why(arguments) };
        }
        let doubtful: Vec<_> = evaluated.iter().filter(|(_, truth)| *truth == Truth::Unclear).collect();
        let why = |(condition, _): &(&Condition, Truth)| condition.why(arguments);
        let why = match (fits, doubtful.as_slice()) {
            // If unclear conditions alone decided, only they are shown.
            (false, doubtful) => format!("{}; {}", words(doubtful.iter().map(|each| why(each))), self.benefit()),
            (true, []) => words(evaluated.iter().map(why)),
            (true, _) => format!("{}; {}", words(evaluated.iter().map(why)), self.benefit()),
        };
        Fit { fits, why }
    }

    /// Its verdict on a call that it applies to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict {
            rule: self.rule,
            ungated: self.ungate,
            by: Some(self.name.clone()),
            reason: self.reason.clone(),
            risk: self.risk,
            needs: self.needs.as_slice().into(),
            policy_failed: false,
        }
    }

    fn misfit(&self, subject: &Subject<'_>) -> Option<String> {
        let other =
            |what: &str, name: &str, pattern: &str| format!("the {what} {} is not `{pattern}`", escape::line(name));
        if let Some(tool) = subject.tool.filter(|tool| !self.tools.matches(tool)) {
            return Some(other("tool", tool, self.tools.as_str()));
        }
        if let (Some(pattern), Some(plugin)) = (&self.plugin, subject.plugin)
            && !pattern.matches(plugin)
        {
            return Some(other("plugin", plugin, pattern.as_str()));
        }
        if let (Some(pattern), Some(caller)) = (&self.caller, subject.caller)
            && !pattern.matches(caller)
        {
            return Some(other("caller", caller, pattern.as_str()));
        }
        if let (Some(step), Some(moment)) = (self.step, subject.moment)
            && moment != Moment::Step(step)
        {
            return Some(format!("it is only about steps of the kind `{}`", step.as_str()));
        }
        None
    }

    /// Whether its conditions hold. If they are unclear, a rule that asks or denies applies, and a rule that allows
    /// does not.
    fn holds(&self, arguments: &Arguments) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let truth = arguments.value().map_or(Truth::Unclear, |arguments| {
            Truth::all(self.conditions.iter().map(|condition| condition.evaluate(arguments)))
        });
        match truth {
            Truth::Yes => true,
            Truth::No => false,
            Truth::Unclear => self.rule != RuleEffect::Allow,
        }
    }

    fn benefit(&self) -> &'static str {
        match self.rule {
            RuleEffect::Allow => "in doubt, a rule that allows does not fit",
            RuleEffect::Ask => "in doubt, a rule that asks fits",
            RuleEffect::Deny => "in doubt, a rule that denies fits",
        }
    }

    /// Its scope without conditions, as text.
    fn scope(&self) -> String {
        let mut parts = vec![format!("the tool is `{}`", self.tools)];
        parts.extend(self.plugin.as_ref().map(|pattern| format!("the plugin is `{pattern}`")));
        parts.extend(self.caller.as_ref().map(|pattern| format!("the caller is `{pattern}`")));
        parts.extend(self.step.map(|step| format!("the step is `{}`", step.as_str())));
        words(parts)
    }
}

impl fmt::Display for OperatorRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.name, self.rule.as_str(), self.tools)?;
        if let Some(plugin) = &self.plugin {
            write!(f, " of {plugin}")?;
        }
        if let Some(caller) = &self.caller {
            write!(f, " by {caller}")?;
        }
        if let Some(step) = self.step {
            write!(f, " at `{}`", step.as_str())?;
        }
        match self.conditions.len() {
            0 => {}
            1 => f.write_str(", on one condition")?,
            several => write!(f, ", on {several} conditions")?,
        }
        f.write_str(if self.ungate { ", and lifts the declared approval" } else { "" })
    }
}

fn words(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("; ")
}
