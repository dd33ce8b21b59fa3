//! The operator's rules and the dynamic policies as one. A dynamic policy only tightens: its verdict is combined with what
//! the rules say, and the stricter stands.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::{Policy, Question};
use domain::{Approval, Executor, Rule, Tool, Verdict};
use futures::future::join_all;

use crate::rule::Subject;
use crate::rules::{Rules, Step, strictest};

/// A policy that judges each call separately.
#[async_trait]
pub trait Dynamic: Send + Sync {
    /// Its name, as the operator gave it.
    fn name(&self) -> &str;

    /// Whether it is to be asked about this call.
    fn concerns(&self, question: &Question) -> bool;

    /// What it says of the call. Never panics and never hangs; one that cannot be asked is an `Ask` with the reason.
    async fn judge(&self, question: &Question) -> Verdict;
}

/// The rules and every dynamic policy.
#[derive(Clone, Default)]
pub struct Combined {
    rules: Rules,
    dynamic: Vec<Arc<dyn Dynamic>>,
}

/// What would become of a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What all of them together say.
    pub verdict: Verdict,
    /// What the tool declares.
    pub declared: Approval,
    /// What follows from both.
    pub effect: Effect,
    /// Each rule, then each dynamic policy.
    pub steps: Vec<Step>,
}

/// What becomes of a call in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It goes on without a person.
    Run,
    /// A person is asked: for an approval, or for the answer itself.
    Ask,
    /// It ends denied.
    Deny,
}

impl Effect {
    /// What a verdict means for a call of a tool.
    #[must_use]
    pub fn of(verdict: &Verdict, tool: &Tool) -> Self {
        let declared = tool.approval == Approval::RequiresApproval && !verdict.ungated;
        match verdict.rule {
            Rule::Deny => Self::Deny,
            Rule::Ask => Self::Ask,
            Rule::Allow if declared || tool.executor == Executor::Human => Self::Ask,
            Rule::Allow => Self::Run,
        }
    }

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Explanation {
    /// What rules alone make of a call of a tool.
    #[must_use]
    pub fn of_rules(rules: &Rules, subject: &Subject<'_>, tool: &Tool) -> Self {
        Self::new(rules.verdict(subject), tool, rules.explain(subject))
    }

    fn new(verdict: Verdict, tool: &Tool, steps: Vec<Step>) -> Self {
        let effect = Effect::of(&verdict, tool);
        Self { verdict, declared: tool.approval, effect, steps }
    }
}

impl Combined {
    /// These rules with these policies.
    #[must_use]
    pub fn new(rules: Rules, dynamic: Vec<Arc<dyn Dynamic>>) -> Self {
        Self { rules, dynamic }
    }

    /// What would become of a call, with what each rule and policy has to do with it. Changes nothing.
    pub async fn explain(&self, question: &Question) -> Explanation {
        let subject = Subject::of(question);
        let mut steps = self.rules.explain(&subject);
        let (verdict, said) = self.ask(question).await;
        for (policy, said) in self.dynamic.iter().zip(said) {
            steps.push(step(policy.as_ref(), said));
        }
        Explanation::new(verdict, &question.live.tool, steps)
    }

    /// The verdict of all, and what each dynamic policy said; `None` where it was not asked.
    async fn ask(&self, question: &Question) -> (Verdict, Vec<Option<Verdict>>) {
        let rules = self.rules.verdict(&Subject::of(question));
        let executor = question.live.tool.executor;
        // A denied call needs no further opinion, and a provider's call has happened already.
        let nobody = rules.rule == Rule::Deny || executor == Executor::Provider;
        let said = join_all(self.dynamic.iter().map(async |policy| {
            if nobody || !policy.concerns(question) {
                return None;
            }
            Some(tightening(policy.as_ref(), policy.judge(question).await, executor))
        }))
        .await;
        let all = said.iter().flatten().cloned().chain([rules]).collect();
        (strictest(all), said)
    }
}

#[async_trait]
impl Policy for Combined {
    async fn judge(&self, question: Question) -> Verdict {
        self.ask(&question).await.0
    }
}

/// What may be heard of a dynamic policy: never that a gate is lifted, and of a question to a person only that it is denied,
/// since approving a question is circular.
fn tightening(policy: &dyn Dynamic, verdict: Verdict, executor: Executor) -> Verdict {
    let by = verdict.by.or_else(|| Some(policy.name().into()));
    match verdict.rule {
        Rule::Deny => Verdict { by, ungated: false, needs: Arc::new([]), ..verdict },
        Rule::Ask if executor != Executor::Human => Verdict { by, ungated: false, ..verdict },
        Rule::Ask | Rule::Allow => Verdict::default(),
    }
}

fn step(policy: &dyn Dynamic, said: Option<Verdict>) -> Step {
    let name: Arc<str> = policy.name().into();
    let Some(said) = said else {
        let why = "it is not asked about this call".to_owned();
        return Step { name, matched: false, rule: Rule::Allow, why };
    };
    let why = match (said.rule, &said.reason) {
        (Rule::Allow, _) => "it lets the call proceed".to_owned(),
        (_, Some(reason)) => text::line(reason).into_owned(),
        (_, None) => "it gave no reason".to_owned(),
    };
    Step { name, matched: said.rule != Rule::Allow, rule: said.rule, why }
}
