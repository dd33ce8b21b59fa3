//! Approvals by certain people or by several: needs, votes and delegations.

use dispatch::SuspensionView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Role, Verbatim, Via, rfc3339};

/// A number of approvals that a call needs from certain people.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Need {
    /// The people: `principal:NAME`, `group:NAME`, `role:NAME`. Empty means any approver.
    pub who: Vec<String>,
    /// The required number of different approvers.
    pub quorum: u32,
    /// The number of votes so far. If votes differ in their `binding`, only the most frequent one is counted.
    pub votes: u32,
    /// When the need escalates to more people.
    pub escalates_at: Option<String>,
    /// The people who may also approve after the escalation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates_to: Vec<String>,
    /// Whether the need has escalated.
    pub escalated: bool,
    /// The channels through which the approvals must come. Empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Via>,
}

/// The names of principals, if there are several.
#[must_use]
pub fn several<'a>(principals: impl ExactSizeIterator<Item = &'a domain::PrincipalId>) -> Vec<String> {
    if principals.len() > 1 { principals.map(ToString::to_string).collect() } else { Vec::new() }
}

impl Need {
    /// The needs of a suspension. If people approved it, each need has its votes: the last one is not stored as a vote.
    pub(super) fn of(suspension: &domain::Suspension, is_approved: bool) -> Vec<Self> {
        let needs = suspension.asked().map_or(&[][..], |asked| &asked.needs);
        let met = |need: Self| Self { votes: need.votes.max(if is_approved { need.quorum } else { 0 }), ..need };
        needs.iter().enumerate().map(|need| met(Self::new(need, suspension))).collect()
    }

    fn new((position, need): (usize, &domain::approvers::Need), suspension: &domain::Suspension) -> Self {
        let names = |who: &[domain::approvers::Who]| who.iter().map(ToString::to_string).collect();
        let position = u16::try_from(position).unwrap_or(u16::MAX);
        let of = |binding| {
            let fits = |vote: &&domain::approvers::Vote| vote.binding == binding && vote.needs.contains(&position);
            suspension.votes().iter().filter(fits).count()
        };
        let votes = suspension.votes().iter().map(|vote| of(vote.binding)).max().unwrap_or(0);
        let wider = need.escalate.as_ref();
        Self {
            who: names(&need.who),
            quorum: need.quorum,
            votes: u32::try_from(votes).unwrap_or(u32::MAX),
            escalates_at: wider.map(|wider| rfc3339(suspension.created_at + wider.after)),
            escalates_to: wider.map(|wider| names(&wider.to)).unwrap_or_default(),
            escalated: suspension.has_escalated(need),
            via: need.via.iter().map(Via).collect(),
        }
    }
}

/// One principal's approval where several are needed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Vote {
    /// The principal who voted.
    pub by: String,
    /// Digest over the approved arguments, the component and the declaration. Only votes with the same digest are added
    /// up.
    pub binding: String,
    /// The positions of the needs that it counts for, in the `needs` of the suspension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<u16>,
    /// The approved arguments, if the voter edited them.
    pub arguments: Option<Verbatim>,
    /// The edited arguments for people: a JSON text on one line, escaped as in the suspension's `display`, with the
    /// same value. An answer with this text is a vote for the same arguments. Absent from turns and events.
    pub display: Option<String>,
    /// The schema's defaults for what the edited arguments leave out, in the form of the suspension's. Absent if no default
    /// applies, and from turns and events.
    pub defaults: Option<Verbatim>,
    /// True if nobody knows these defaults: the component of the call is no longer loaded.
    pub defaults_unknown: Option<bool>,
    /// The defaults for people, in the form of `display`.
    pub defaults_display: Option<String>,
    /// The comment of the principal.
    pub comment: Option<String>,
    /// The channel through which the principal voted. Absent if an older host recorded the vote.
    pub via: Option<Via>,
    /// When the principal voted.
    pub at: String,
}

impl Vote {
    /// Adds the texts for people.
    pub(super) fn for_people(self) -> Self {
        let line = |json: &Verbatim| escape::json_line(json.0.as_str());
        let (display, defaults_display) = (self.arguments.as_ref().map(line), self.defaults.as_ref().map(line));
        Self { display, defaults_display, ..self }
    }
}

impl From<&domain::approvers::Vote> for Vote {
    fn from(vote: &domain::approvers::Vote) -> Self {
        Self {
            by: vote.by.to_string(),
            binding: vote.binding.to_string(),
            needs: vote.needs.clone(),
            arguments: vote.arguments.as_ref().map(Verbatim::from),
            display: None,
            defaults: None,
            defaults_unknown: None,
            defaults_display: None,
            comment: vote.comment.clone(),
            via: vote.via().map(Via),
            at: rfc3339(vote.at),
        }
    }
}

/// A delegation of authority in one suspension.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Delegation {
    /// The principal who delegated.
    pub from: String,
    /// The principal who decides instead.
    pub to: String,
    /// The comment of the principal.
    pub comment: Option<String>,
    /// The channel through which the principal delegated. Absent if an older host recorded it.
    pub via: Option<Via>,
    /// When the authority was delegated.
    pub at: String,
}

impl From<&domain::approvers::Delegation> for Delegation {
    fn from(delegation: &domain::approvers::Delegation) -> Self {
        Self {
            from: delegation.from.to_string(),
            to: delegation.to.to_string(),
            comment: delegation.comment.clone(),
            via: delegation.via().map(Via),
            at: rfc3339(delegation.at),
        }
    }
}

/// The response to a delegation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Delegated {
    /// Always true. A refused delegation is a problem.
    pub ok: bool,
    /// The suspension whose approval was delegated.
    pub suspension: String,
    /// The principal who received the authority.
    pub to: String,
}

/// A delegation of one's authority to approve.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegate {
    /// The principal who decides instead. It must not have authority in this suspension yet.
    pub to: String,
    /// The comment of the principal.
    pub comment: Option<String>,
}

/// The reading principal's rights in a suspension.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct You {
    /// Whether this principal may answer now.
    pub may_answer: bool,
    /// Why the principal may not answer.
    pub why_not: Option<String>,
    /// The role that the principal lacks, if that is the reason.
    #[schema(value_type = Option<String>)]
    pub role: Option<Role>,
    /// Whether the principal has voted. The call still waits.
    pub voted: bool,
    /// The `binding` of the principal's vote. A vote with another `binding` replaces it.
    pub binding: Option<String>,
    /// Whether the principal's authority has grown since the vote, so that a second vote would count for more.
    pub counts_again: bool,
    /// Whether the principal has authority here that it can delegate.
    #[serde(default)]
    pub may_delegate: bool,
}

impl You {
    pub(super) fn new(item: &SuspensionView, by: &domain::Principal, own_calls: bool) -> Self {
        let suspension = &item.suspension;
        let (why_not, role) = if item.closed.is_some() {
            (Some("it is no longer open".to_owned()), None)
        } else {
            let may = by.may_answer(suspension.kind(), &item.caller, own_calls);
            let refused = may.and_then(|()| suspension.counts_for(by).map(drop)).err();
            (refused.as_ref().map(ToString::to_string), refused.and_then(|refused| refused.role()))
        };
        let vote = suspension.votes().iter().find(|vote| vote.by == by.id);
        Self {
            may_answer: why_not.is_none(),
            voted: vote.is_some(),
            binding: vote.map(|vote| vote.binding.to_string()),
            counts_again: why_not.is_none() && suspension.counts_again(by),
            may_delegate: why_not.is_none() && suspension.may_delegate(by),
            why_not,
            role: role.as_ref().map(Role::from),
        }
    }
}
