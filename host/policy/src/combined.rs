//! Combines the operator's rules with the dynamic policies. The strictest verdict counts, so a dynamic policy can only
//! tighten.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Policy, PolicyQuery};
use domain::{
    Tool,
    gate::{RuleEffect, Verdict},
    step::StepKind,
    tool::{Approval, Executor},
};
use futures::future::join_all;

use crate::rule::Subject;
use crate::rules::{OperatorRules, Step, strictest};

/// A policy that decides each call separately.
#[async_trait]
pub trait Dynamic: Send + Sync {
    /// The name that the operator gave it.
    fn name(&self) -> &str;

    /// Whether it decides this call.
    fn concerns(&self, question: &PolicyQuery) -> bool;

    /// Its verdict on the call. It never panics and never hangs. If the policy fails, the verdict is `Ask` with the
    /// reason.
    async fn decide(&self, question: &PolicyQuery) -> Verdict;
}

/// The rules and all dynamic policies.
#[derive(Clone, Default)]
pub struct Combined {
    rules: OperatorRules,
    dynamic: Vec<Arc<dyn Dynamic>>,
}

/// The result for a call, and its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The combined verdict.
    pub verdict: Verdict,
    /// The approval that the tool declares.
    pub declared: Approval,
    /// The effect of the verdict and the declaration on the call.
    pub effect: CallEffect,
    /// The result of each rule, then of each dynamic policy.
    pub steps: Vec<Step>,
}

domain::names! {
    /// The effect on a call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CallEffect {
        /// The call runs without a person.
        Run = "run",
        /// A person is asked: for an approval, or for an answer.
        Ask = "ask",
        /// The call is denied.
        Deny = "deny",
    }
}

impl CallEffect {
    /// The effect of a verdict on a call of this tool, or on a step of it.
    #[must_use]
    pub fn of(verdict: &Verdict, tool: &Tool, step: Option<StepKind>) -> Self {
        if let Some(step) = step {
            // A rule neither makes a person part of a step nor takes one away.
            return match (verdict.rule, step) {
                (RuleEffect::Deny, _) => Self::Deny,
                (_, StepKind::Ask | StepKind::Approve) => Self::Ask,
                (_, StepKind::AwaitExternal) => Self::Run,
            };
        }
        let declared = tool.approval == Approval::RequiresApproval && !verdict.ungated;
        match verdict.rule {
            RuleEffect::Deny => Self::Deny,
            RuleEffect::Ask => Self::Ask,
            RuleEffect::Allow if declared || tool.executor == Executor::Human => Self::Ask,
            RuleEffect::Allow => Self::Run,
        }
    }
}

impl Explanation {
    /// The effect of rules alone on a call of a tool.
    #[must_use]
    pub fn of_rules(rules: &OperatorRules, subject: &Subject<'_>, tool: &Tool) -> Self {
        Self::new(rules.verdict(subject), tool, subject.step(), rules.explain(subject))
    }

    fn new(verdict: Verdict, tool: &Tool, step: Option<StepKind>, steps: Vec<Step>) -> Self {
        let effect = CallEffect::of(&verdict, tool, step);
        Self { verdict, declared: tool.approval, effect, steps }
    }
}

impl Combined {
    #[must_use]
    pub fn new(rules: OperatorRules, dynamic: Vec<Arc<dyn Dynamic>>) -> Self {
        Self { rules, dynamic }
    }

    /// Explains the effect on a call, with the result of each rule and policy. Changes nothing.
    pub async fn explain(&self, question: &PolicyQuery) -> Explanation {
        let subject = Subject::of(question);
        let mut steps = self.rules.explain(&subject);
        let (verdict, answers) = self.ask(question).await;
        for (policy, answer) in self.dynamic.iter().zip(answers) {
            steps.push(step(policy.as_ref(), answer));
        }
        Explanation::new(verdict, &question.known.tool, question.step, steps)
    }

    /// The combined verdict, and the verdict of each dynamic policy. `None` for a policy that was not asked.
    async fn ask(&self, question: &PolicyQuery) -> (Verdict, Vec<Option<Verdict>>) {
        let rules = self.rules.verdict(&Subject::of(question));
        let executor = question.known.tool.executor;
        // A denied call needs no other verdict, and a provider has already run its call.
        let nobody = rules.rule == RuleEffect::Deny || executor == Executor::Provider;
        let answers = join_all(self.dynamic.iter().map(async |policy| {
            if nobody || !policy.concerns(question) {
                return None;
            }
            Some(tightening(policy.as_ref(), policy.decide(question).await, executor))
        }))
        .await;
        let all = answers.iter().flatten().cloned().chain([rules]).collect();
        (strictest(all), answers)
    }
}

#[async_trait]
impl Policy for Combined {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        self.ask(&question).await.0
    }
}

/// Reduces a verdict to what a dynamic policy may do. It never lifts a gate. A question to a person can only be denied,
/// because approving a question would be circular.
fn tightening(policy: &dyn Dynamic, verdict: Verdict, executor: Executor) -> Verdict {
    let by = verdict.by.or_else(|| Some(policy.name().into()));
    match verdict.rule {
        RuleEffect::Deny => Verdict { by, ungated: false, needs: Arc::new([]), ..verdict },
        RuleEffect::Ask if executor != Executor::Human => Verdict { by, ungated: false, ..verdict },
        RuleEffect::Ask | RuleEffect::Allow => Verdict::default(),
    }
}

fn step(policy: &dyn Dynamic, answer: Option<Verdict>) -> Step {
    let name: Arc<str> = policy.name().into();
    let Some(answer) = answer else {
        let why = "it is not asked about this call".to_owned();
        return Step { name, matched: false, rule: RuleEffect::Allow, why };
    };
    let why = match (answer.rule, &answer.reason) {
        (RuleEffect::Allow, _) => "it lets the call proceed".to_owned(),
        (_, Some(reason)) => escape::line(reason).into_owned(),
        (_, None) => "it gave no reason".to_owned(),
    };
    Step { name, matched: answer.rule != RuleEffect::Allow, rule: answer.rule, why }
}
