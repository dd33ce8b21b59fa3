//! The matrix of executor and approval: which combinations are legal, and the phases of a call of each.
//!
//! This is the only such table. Load-time checks, the life of a call and the documentation of tools read it.

use std::sync::Arc;

use crate::{
    approvers::Need,
    tool::{Approval, Executor, Risk},
};

/// One phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A person confirms. One suspension.
    Approve,
    /// The guest runs.
    Run,
    /// A person answers a question. One suspension.
    Question,
    /// The attached client carries it out. One suspension.
    Client,
    /// The result came with the submission.
    Record,
}

impl Phase {
    /// Whether the call waits for a person or a client in this phase.
    #[must_use]
    pub const fn suspends(self) -> bool {
        matches!(self, Self::Approve | Self::Question | Self::Client)
    }
}

/// A combination that is not legal, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {} tool cannot be {}: {reason}", .executor.as_str(), .approval.as_str())]
pub struct IllegalCombination {
    pub executor: Executor,
    pub approval: Approval,
    pub reason: &'static str,
}

/// The phases of a call of such a tool, in order.
///
/// # Errors
/// [`IllegalCombination`] for the two combinations that have no meaning.
pub const fn phases(executor: Executor, approval: Approval) -> Result<&'static [Phase], IllegalCombination> {
    use Approval::{Auto, RequiresApproval};
    use Executor::{Client, Human, Provider, Server};
    match (executor, approval) {
        (Server, Auto) => Ok(&[Phase::Run]),
        (Server, RequiresApproval) => Ok(&[Phase::Approve, Phase::Run]),
        (Client, Auto) => Ok(&[Phase::Client]),
        (Client, RequiresApproval) => Ok(&[Phase::Approve, Phase::Client]),
        (Human, Auto) => Ok(&[Phase::Question]),
        (Human, RequiresApproval) => {
            Err(IllegalCombination { executor, approval, reason: "approving a question is circular" })
        }
        (Provider, Auto) => Ok(&[Phase::Record]),
        (Provider, RequiresApproval) => Err(IllegalCombination {
            executor,
            approval,
            reason: "the provider executes inside its own stream, so there is no moment before execution to stop at",
        }),
    }
}

crate::names! {
    /// The effect of the operator's policy on a tool, from the loosest to the strictest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum RuleEffect {
        /// The tool's own declaration applies.
        #[default]
        Allow = "allow",
        /// A person must approve, even where the tool declares `auto`.
        Ask = "ask",
        /// Its calls end as `denied`.
        Deny = "deny",
    }
}

impl RuleEffect {
    /// The approval that a call of a tool with this declaration needs. A rule only tightens.
    #[must_use]
    pub const fn tighten(self, approval: Approval) -> Approval {
        match self {
            Self::Allow => approval,
            Self::Ask | Self::Deny => Approval::RequiresApproval,
        }
    }

    /// Whether the rule can apply to tools of this executor.
    ///
    /// # Errors
    /// [`IllegalCombination`] when it would gate a tool that cannot be gated.
    pub fn check(self, executor: Executor) -> Result<(), IllegalCombination> {
        match self {
            Self::Ask => phases(executor, Approval::RequiresApproval).map(drop),
            Self::Allow | Self::Deny => Ok(()),
        }
    }
}

/// The combined verdict of the operator's rules and policies on one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The strictest of them.
    pub rule: RuleEffect,
    /// Whether the operator explicitly lifts the approval that the tool declares. An approval that a rule asks for
    /// stays.
    pub ungated: bool,
    /// The rule or the policy that decided.
    pub by: Option<Arc<str>>,
    /// Why, for the person who is asked, or for the model that is denied.
    pub reason: Option<Arc<str>>,
    /// The harm if the call goes wrong.
    pub risk: Option<Risk>,
    /// Who must approve; all of them. Empty: any one approver.
    pub needs: Arc<[Need]>,
    /// Whether a policy gave no answer. A person is asked instead.
    pub policy_failed: bool,
}

impl Verdict {
    /// A verdict that denies the call, with the reason.
    #[must_use]
    pub fn deny(reason: impl Into<Arc<str>>) -> Self {
        Self { rule: RuleEffect::Deny, reason: Some(reason.into()), ..Self::default() }
    }

    /// The approval that a call of a tool with this declaration needs.
    #[must_use]
    pub const fn gates(&self, approval: Approval) -> Approval {
        match (self.rule, self.ungated) {
            (RuleEffect::Allow, true) => Approval::Auto,
            (rule, _) => rule.tighten(approval),
        }
    }

    /// Why it denies a call, in words for a model.
    #[must_use]
    pub fn denial(&self) -> String {
        self.reason.as_deref().unwrap_or("the operator's policy denies this call").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_the_one_in_the_design() {
        let table: String = Executor::ALL
            .into_iter()
            .flat_map(|executor| Approval::ALL.map(|approval| (executor, approval)))
            .map(|(executor, approval)| {
                let cell = match phases(executor, approval) {
                    Ok(phases) => format!("{phases:?}"),
                    Err(_) => "illegal".to_owned(),
                };
                format!("{} {}: {cell}\n", executor.as_str(), approval.as_str())
            })
            .collect();
        let expected = "\
server auto: [Run]
server requires-approval: [Approve, Run]
human auto: [Question]
human requires-approval: illegal
client auto: [Client]
client requires-approval: [Approve, Client]
provider auto: [Record]
provider requires-approval: illegal
";
        assert_eq!(table, expected);
    }

    #[test]
    fn only_an_explicit_rule_lifts_a_declared_approval() {
        let verdict = |rule, ungated| Verdict { rule, ungated, ..Verdict::default() };
        for (rule, ungated, declared, gated) in [
            (RuleEffect::Allow, false, Approval::Auto, false),
            (RuleEffect::Allow, false, Approval::RequiresApproval, true),
            (RuleEffect::Allow, true, Approval::RequiresApproval, false),
            (RuleEffect::Ask, true, Approval::Auto, true),
            (RuleEffect::Ask, true, Approval::RequiresApproval, true),
            (RuleEffect::Deny, true, Approval::Auto, true),
        ] {
            let gates = verdict(rule, ungated).gates(declared);
            assert_eq!(gates == Approval::RequiresApproval, gated, "{rule:?} {ungated} {declared:?}");
        }
    }

    #[test]
    fn a_rule_only_tightens_and_never_gates_what_cannot_be_gated() {
        for approval in Approval::ALL {
            assert_eq!(RuleEffect::Allow.tighten(approval), approval);
            assert_eq!(RuleEffect::Ask.tighten(approval), Approval::RequiresApproval);
        }
        for executor in Executor::ALL {
            let gateable = matches!(executor, Executor::Server | Executor::Client);
            assert_eq!(RuleEffect::Ask.check(executor).is_ok(), gateable, "{executor:?}");
            assert!(RuleEffect::Deny.check(executor).is_ok());
        }
    }
}
