//! What the operator's rules and policies say of a call that nobody has made.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Approval, Rule, Verbatim};

/// A call to be explained.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: Verbatim,
    /// Who would make the call. Whoever asks, if absent.
    pub caller: Option<String>,
    /// In which conversation. One that holds nothing, if absent.
    pub conversation: Option<String>,
    /// What the caller would pass along with the turn: an object.
    pub context: Option<Verbatim>,
}

/// What would become of a call, and why.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The strictest of what fits: rules and policies.
    pub rule: Rule,
    /// The rule or policy that decides. Absent where none does and the tool's declaration stands.
    pub by: Option<String>,
    /// Why, in the words of whoever decides.
    pub reason: Option<String>,
    /// How much is at stake: `low`, `medium`, `high` or `critical`.
    pub risk: Option<String>,
    /// Who would have to approve; all of it. Empty: any one approver.
    pub needs: Vec<RequiredApproval>,
    /// What the tool itself declares.
    pub declared: Approval,
    /// What follows from all of it.
    pub effective: Effect,
    /// Each rule, then each dynamic policy.
    pub steps: Vec<ExplainedStep>,
    /// How the arguments break the tool's schema. If they do, a call with them fails before any rule is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

/// What becomes of a call in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It goes on without a person.
    Run,
    /// A person is asked: for an approval, or for the answer itself.
    Ask,
    /// It ends denied.
    Deny,
}

/// One rule or dynamic policy.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExplainedStep {
    /// Its name.
    pub name: String,
    /// Whether it fits the call.
    pub matched: bool,
    /// What it says of calls that it fits.
    pub rule: Rule,
    /// Why it fits, or why not. Values are quoted harmlessly, and only their beginning.
    pub why: String,
}

/// People who have to approve.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RequiredApproval {
    /// Any of these: `principal:NAME`, `group:NAME`, `role:NAME`. Empty: whoever has the role approver.
    pub who: Vec<String>,
    /// How many different ones.
    pub quorum: u32,
    /// Who may answer as well after a while.
    pub escalate: Option<Escalation>,
}

/// Who may answer as well after a while.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Escalation {
    /// After so many milliseconds.
    pub after_ms: u64,
    /// These, as in `who`.
    pub to: Vec<String>,
}

impl From<&domain::Need> for RequiredApproval {
    fn from(need: &domain::Need) -> Self {
        let words = |who: &[domain::Who]| who.iter().map(ToString::to_string).collect();
        let escalate = need.escalate.as_ref();
        Self {
            who: words(&need.who),
            quorum: need.quorum,
            escalate: escalate.map(|later| Escalation { after_ms: later.after.millis(), to: words(&later.to) }),
        }
    }
}
