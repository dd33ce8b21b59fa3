//! Explains how the operator's rules and policies would decide a call. Nothing runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Approval, Risk, Rule, StepKind, Verbatim, Via};

/// A call to explain.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: Verbatim,
    /// The principal that would make the call. The requesting principal, if absent.
    pub caller: Option<String>,
    /// The conversation. An empty one, if absent.
    pub conversation: Option<String>,
    /// The context that the caller would submit with the turn: an object.
    pub context: Option<Verbatim>,
    /// The kind of a step of the call. The call as a whole, if absent.
    pub step: Option<StepKind>,
}

/// The decision about a call, and the reasons.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The strictest of the matching rules and policies.
    pub rule: Rule,
    /// The rule or policy that decides. Absent if none matches: then the tool's declaration decides.
    pub by: Option<String>,
    /// The reason of the rule or policy.
    pub reason: Option<String>,
    /// The damage that a wrong call could do.
    pub risk: Option<Risk>,
    /// The approvals that would be needed, all of them. Empty means one approval by any approver.
    pub needs: Vec<RequiredApproval>,
    /// The tool's own declaration.
    pub declared: Approval,
    /// The effect on the call, or on the step.
    pub effective: Effect,
    /// Each rule, then each dynamic policy.
    pub steps: Vec<ExplainedStep>,
    /// The violations of the tool's schema. A call with a violation fails before any rule is evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

/// The effect on a call or a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It runs without a person.
    Run,
    /// A person is asked: for an approval, or for the answer itself.
    Ask,
    /// It is denied.
    Deny,
}

/// One rule or dynamic policy.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExplainedStep {
    /// The name of the rule or the policy.
    pub name: String,
    /// Whether it matches the call.
    pub matched: bool,
    /// Its decision about calls that it matches.
    pub rule: Rule,
    /// Why it matches or does not match. Values are escaped and shortened.
    pub why: String,
}

/// A number of approvals that a call needs from certain people.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RequiredApproval {
    /// The people: `principal:NAME`, `group:NAME`, `role:NAME`. Empty means any approver.
    pub who: Vec<String>,
    /// The required number of different approvers.
    pub quorum: u32,
    /// The people who may also answer after some time.
    pub escalate: Option<Escalation>,
    /// The channels through which the approvals must come. Empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Via>,
}

/// The people who may also answer after some time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Escalation {
    /// The time in milliseconds.
    pub after_ms: u64,
    /// The people, written as in `who`.
    pub to: Vec<String>,
}

impl From<&domain::approvers::Need> for RequiredApproval {
    fn from(need: &domain::approvers::Need) -> Self {
        let words = |who: &[domain::approvers::Who]| who.iter().map(ToString::to_string).collect();
        let escalate = need.escalate.as_ref();
        Self {
            who: words(&need.who),
            quorum: need.quorum,
            escalate: escalate.map(|later| Escalation { after_ms: later.after.millis(), to: words(&later.to) }),
            via: need.via.iter().map(Via).collect(),
        }
    }
}
