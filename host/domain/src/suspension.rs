//! One thing that a call waits for from outside. Every wait of every kind is one of these, and each is closed once.

use std::sync::Arc;

use crate::{
    Delegation, Digest, Editable, Json, LinkId, Need, OnExpiry, Principal, PrincipalId, Risk, Standing, StandingBounds,
    SuspensionId, Timestamp, Vote,
};

/// What is waited for, and so what renders it and who may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A yes or no from a person, before the call goes on.
    Approval,
    /// A person's answer, which is the result.
    Elicitation,
    /// The result of an attached client.
    ClientExec,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Approval, Self::Elicitation, Self::ClientExec];

    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Elicitation => "elicitation",
            Self::ClientExec => "client_exec",
        }
    }
}

/// A wait: what is asked, what may be answered, until when, and to what the answer is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// Minted by the host for this call and this phase.
    pub id: SuspensionId,
    /// What is waited for.
    pub kind: Kind,
    /// What people are asked. The words are the plugin's, over the call's arguments; whoever shows them escapes them.
    pub prompt: Option<String>,
    /// The answers to choose from, where a question limits them.
    pub responses: Option<Arc<[String]>>,
    /// JSON Schema of the data that comes with the answer.
    pub response: Option<Json>,
    /// Which arguments the answer may change.
    pub editable: Editable,
    /// When the wait began.
    pub created_at: Timestamp,
    /// When it ends by itself. Every wait ends.
    pub expires_at: Timestamp,
    /// Until when a client must have attached; `None` once one has.
    pub grace_until: Option<Timestamp>,
    /// What becomes of it when it ends by itself.
    pub on_expiry: OnExpiry,
    /// Digest over the arguments, the component and the declaration: what an answer is an answer to.
    pub digest: Digest,
    /// Set where a host was killed while this attempt ran, and the question is whether to run it again.
    pub in_doubt: Option<u32>,
    /// Who asks, why, and who may answer.
    pub asked: Asked,
    /// When the time of an escalation was last noted.
    pub escalated_at: Option<Timestamp>,
    /// The approvals so far, one for each principal, where it takes more than one.
    pub votes: Vec<Vote>,
    /// Who handed their say on.
    pub delegations: Vec<Delegation>,
}

/// Who asks a question, why, and who may answer it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// Whose words the prompt is.
    pub prompt_by: PromptBy,
    /// What the tool is called by people.
    pub title: Option<String>,
    /// The rule or the policy that asks; `None` where the tool itself declares it.
    pub by: Option<Arc<str>>,
    /// Why it asks.
    pub reason: Option<Arc<str>>,
    /// How bad it would be.
    pub risk: Option<Risk>,
    /// The members of the context that belong to the question; `None`: all.
    pub context_keys: Option<Arc<[String]>>,
    /// Who must approve; all of them. Empty: any one approver. Of a question: who may answer it.
    pub needs: Arc<[Need]>,
    /// What may be allowed beforehand together with the answer.
    pub standing: Option<StandingBounds>,
    /// Whether a policy gave no answer, and a person is asked in its stead: nothing is known then of any other call.
    pub policy_failed: bool,
}

impl Asked {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Digest over why a call has to be approved, and by whom. An approval that was given on other grounds says nothing
    /// about a call.
    #[must_use]
    pub fn ground(&self) -> Digest {
        let risk = self.risk.map_or("", Risk::as_str);
        let said = [self.by.as_deref().unwrap_or_default(), self.reason.as_deref().unwrap_or_default(), risk];
        let mut parts: Vec<String> = said.into_iter().map(str::to_owned).collect();
        for need in self.needs.iter() {
            let names = |who: &[crate::Who]| who.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let wider = need.escalate.as_ref().map(|wider| format!("{} {}", wider.after.millis(), names(&wider.to)));
            parts.push(format!("{} {}", need.quorum, names(&need.who)));
            parts.push(wider.unwrap_or_default());
        }
        Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>())
    }
}

/// Whose words a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PromptBy {
    /// The plugin's, over the arguments of the model.
    #[default]
    Plugin,
    /// The host's.
    Host,
}

impl PromptBy {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Host => "host",
        }
    }
}

impl Suspension {
    /// The decisions that are allowed, as texts.
    #[must_use]
    pub fn allowed(&self) -> Vec<&str> {
        match (self.kind, &self.responses) {
            (Kind::Approval, _) => vec!["approve", "deny"],
            (Kind::ClientExec, _) => vec!["result", "error"],
            (Kind::Elicitation, None) => vec!["answer"],
            (Kind::Elicitation, Some(responses)) => responses.iter().map(String::as_str).collect(),
        }
    }

    /// The decision that a text means here, if it is allowed.
    #[must_use]
    pub fn parse(&self, decision: &str) -> Option<Decision> {
        if !self.allowed().contains(&decision) {
            return None;
        }
        Some(match (self.kind, decision) {
            (Kind::Approval, "approve") => Decision::Approve,
            (Kind::Approval, _) => Decision::Deny,
            (Kind::ClientExec, "result") => Decision::Result,
            (Kind::ClientExec, _) => Decision::Error,
            (Kind::Elicitation, choice) => Decision::Answer(choice.into()),
        })
    }
}

/// What an approval needs where nobody says: any one approver.
static ANYBODY: std::sync::LazyLock<[Need; 1]> =
    std::sync::LazyLock::new(|| [Need { who: Arc::new([]), quorum: 1, escalate: None }]);

impl Suspension {
    /// What it needs; at least one thing.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        if self.asked.needs.is_empty() { ANYBODY.as_slice() } else { &self.asked.needs }
    }

    /// Whether a need of it has been widened.
    #[must_use]
    pub fn has_escalated(&self, need: &Need) -> bool {
        let widened = |noted| need.escalate.as_ref().is_some_and(|wider| self.created_at + wider.after <= noted);
        self.escalated_at.is_some_and(widened)
    }

    /// When a need of it is widened next.
    #[must_use]
    pub fn next_escalation(&self) -> Option<Timestamp> {
        let waiting = self.asked.needs.iter().filter(|need| !self.has_escalated(need));
        let times = waiting.filter_map(|need| Some(self.created_at + need.escalate.as_ref()?.after));
        times.filter(|at| *at < self.expires_at).min()
    }

    /// When it next needs attention by itself.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        [self.grace_until, self.next_escalation()].into_iter().flatten().fold(self.expires_at, Timestamp::min)
    }

    /// Whether it is an approval that silence gives, unless the policy has become stricter meanwhile.
    #[must_use]
    pub fn silence_approves(&self) -> bool {
        self.on_expiry == OnExpiry::Approve && self.in_doubt.is_none()
    }

    /// The needs that what this principal says counts for, by their positions: those that name it, and those for which
    /// somebody handed it their say.
    ///
    /// # Errors
    /// The sentence for one whose word counts for nothing here.
    pub fn counts_for(&self, by: &Principal) -> Result<Vec<u16>, String> {
        if let Some(handed) = self.delegations.iter().find(|handed| handed.from == by.id) {
            return Err(format!("you handed your say in this to {}", handed.to));
        }
        let named = |(position, need): (u16, &Need)| need.fits(by, self.has_escalated(need)).then_some(position);
        let mut needs: Vec<u16> = (0..).zip(self.needs()).filter_map(named).collect();
        if needs.is_empty() {
            // Who has a say of their own has that one and no second: two people stay two.
            let handed = self.delegations.iter().find(|handed| handed.to == by.id);
            needs.extend(handed.into_iter().flat_map(|handed| &handed.needs));
        }
        // Of several, an approval needs all, and each approver meets some; one who answers a question must meet all.
        let enough = match self.kind {
            Kind::Approval => !needs.is_empty(),
            Kind::Elicitation => needs.len() == self.needs().len(),
            Kind::ClientExec => true,
        };
        if enough { Ok(needs) } else { Err("the operator names others who may answer this".to_owned()) }
    }

    /// Whether somebody who has voted would by now be counted for more than their vote is, since they were asked as well meanwhile.
    #[must_use]
    pub fn counts_again(&self, by: &Principal) -> bool {
        let Some(vote) = self.votes.iter().find(|vote| vote.by == by.id) else { return false };
        self.counts_for(by).is_ok_and(|needs| !vote.covers(&needs))
    }

    /// How many approvals are missing for what this digest stands for, were these votes all there are.
    #[must_use]
    pub fn missing<'a>(&self, binding: Digest, votes: impl Iterator<Item = &'a Vote> + Clone) -> u32 {
        let of = |position: u16| {
            votes.clone().filter(move |vote| vote.binding == binding && vote.needs.contains(&position)).count()
        };
        let missing = |(position, need): (u16, &Need)| {
            need.quorum.max(1).saturating_sub(u32::try_from(of(position)).unwrap_or(u32::MAX))
        };
        (0..).zip(self.needs()).map(missing).max().unwrap_or(0)
    }

    /// How many approvals are missing at least.
    #[must_use]
    pub fn votes_missing(&self) -> u32 {
        let bindings = self.votes.iter().map(|vote| vote.binding).chain([self.digest]);
        bindings.map(|binding| self.missing(binding, self.votes.iter())).min().unwrap_or(0)
    }
}

/// What somebody decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call may go on.
    Approve,
    /// It may not.
    Deny,
    /// This answer to a question, one of its responses.
    Answer(Arc<str>),
    /// The client carried it out.
    Result,
    /// The client could not.
    Error,
}

impl Decision {
    /// The text that means it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Answer(choice) => choice,
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// The answer to a suspension, as it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What was decided.
    pub decision: Decision,
    /// What came with it.
    pub data: Option<Json>,
    /// The arguments that the approver put in the place of the submitted ones.
    pub arguments: Option<Json>,
    /// Why, in the words of whoever decided.
    pub comment: Option<String>,
    /// What was allowed beforehand together with it.
    pub standing: Option<Standing>,
    /// The link by which whoever decided came, if they came by one.
    pub link: Option<LinkId>,
}

/// How a suspension ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedAs {
    /// Somebody answered.
    Resolved(Resolution),
    /// Nobody did.
    Expired,
    /// The call ended for another reason, and the question with it.
    Withdrawn,
}

/// That a suspension ended, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// How.
    pub how: ClosedAs,
    /// By whom; `system` for an expiry.
    pub by: PrincipalId,
    /// When.
    pub at: Timestamp,
}

impl Closed {
    /// The state that a late answer is told of: a decision, `expired` or `withdrawn`.
    #[must_use]
    pub fn state(&self) -> &str {
        match &self.how {
            ClosedAs::Resolved(resolution) => resolution.decision.as_str(),
            ClosedAs::Expired => "expired",
            ClosedAs::Withdrawn => "withdrawn",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_ask_has_a_ground_of_its_own() {
        let need = |who: &str| Need { who: Arc::new([who.parse().unwrap()]), quorum: 1, escalate: None };
        let asked = [
            Asked::default(),
            Asked { by: Some("a".into()), ..Asked::default() },
            Asked { by: Some("a, b".into()), ..Asked::default() },
            Asked { by: Some("a".into()), reason: Some("over 1000".into()), ..Asked::default() },
            Asked { by: Some("a".into()), reason: Some("in production".into()), ..Asked::default() },
            Asked { by: Some("a".into()), risk: Some(Risk::High), ..Asked::default() },
            Asked { by: Some("a".into()), risk: Some(Risk::Critical), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:x")]), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:y")]), ..Asked::default() },
            Asked { by: Some("a".into()), needs: Arc::new([need("group:x"), need("group:y")]), ..Asked::default() },
        ];
        let grounds: std::collections::HashSet<_> = asked.iter().map(Asked::ground).collect();
        assert_eq!(grounds.len(), asked.len());
    }
}
