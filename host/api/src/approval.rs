//! Approvals that take certain people, or several: who must, who did, and who handed it on.

use dispatch::PendingItem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Verbatim, rfc3339};

/// Something that an approval needs: so many of these people.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Need {
    /// Who counts: `principal:NAME`, `group:NAME`, `role:NAME`. Empty: any approver.
    pub who: Vec<String>,
    /// How many different ones.
    pub quorum: u32,
    /// How many there are, of the votes for what most voted for.
    pub votes: u32,
    /// When others count as well.
    pub escalates_at: Option<String>,
    /// Who they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates_to: Vec<String>,
    /// Whether they do by now.
    pub escalated: bool,
}

impl Need {
    pub(super) fn new((position, need): (usize, &domain::Need), suspension: &domain::Suspension) -> Self {
        let names = |who: &[domain::Who]| who.iter().map(ToString::to_string).collect();
        let position = u16::try_from(position).unwrap_or(u16::MAX);
        let of = |binding| {
            let fits = |vote: &&domain::Vote| vote.binding == binding && vote.needs.contains(&position);
            suspension.votes.iter().filter(fits).count()
        };
        let votes = suspension.votes.iter().map(|vote| of(vote.binding)).max().unwrap_or(0);
        let wider = need.escalate.as_ref();
        Self {
            who: names(&need.who),
            quorum: need.quorum,
            votes: u32::try_from(votes).unwrap_or(u32::MAX),
            escalates_at: wider.map(|wider| rfc3339(suspension.created_at + wider.after)),
            escalates_to: wider.map(|wider| names(&wider.to)).unwrap_or_default(),
            escalated: suspension.has_escalated(need),
        }
    }
}

/// One principal's approval, where it takes more than one.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Vote {
    /// Whose.
    pub by: String,
    /// Digest over the arguments, the component and the declaration that it approves. Votes count together where this is the
    /// same.
    pub binding: String,
    /// The arguments that it approves, where they are not the submitted ones.
    pub arguments: Option<Verbatim>,
    /// Those arguments for people: a JSON text on one line, escaped as in the suspension's `display` and equal to the exact
    /// ones. An answer with this text is a vote for the same. Absent from turns and events.
    pub display: Option<String>,
    /// Why.
    pub comment: Option<String>,
    /// `link`, where whoever it is came by a link.
    pub via: Option<String>,
    /// When.
    pub at: String,
}

impl Vote {
    /// The same with what people are shown.
    pub(super) fn for_people(self) -> Self {
        let display = self.arguments.as_ref().map(|arguments| text::json_line(arguments.0.as_str()));
        Self { display, ..self }
    }
}

impl From<&domain::Vote> for Vote {
    fn from(vote: &domain::Vote) -> Self {
        Self {
            by: vote.by.to_string(),
            binding: vote.binding.to_string(),
            arguments: vote.arguments.as_ref().map(Verbatim::from),
            display: None,
            comment: vote.comment.clone(),
            via: super::via(vote.link),
            at: rfc3339(vote.at),
        }
    }
}

/// That somebody handed their say on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Delegation {
    /// Who no longer decides.
    pub from: String,
    /// Who decides instead.
    pub to: String,
    /// Why.
    pub comment: Option<String>,
    /// `link`, where whoever handed it on came by a link.
    pub via: Option<String>,
    /// When.
    pub at: String,
}

impl From<&domain::Delegation> for Delegation {
    fn from(handed: &domain::Delegation) -> Self {
        Self {
            from: handed.from.to_string(),
            to: handed.to.to_string(),
            comment: handed.comment.clone(),
            via: super::via(handed.link),
            at: rfc3339(handed.at),
        }
    }
}

/// What a suspension is to whoever asks for it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct You {
    /// Whether an answer of theirs would be taken now.
    pub may_answer: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// Whether they have approved it already, and it takes others as well.
    pub voted: bool,
    /// The `binding` of that vote. A vote for another one takes its place.
    pub binding: Option<String>,
    /// Whether the same approval would count for more than that vote does: they have voted, and were asked for more since then.
    pub counts_again: bool,
}

impl You {
    pub(super) fn new(item: &PendingItem, by: &domain::Principal, own_calls: bool) -> Self {
        let suspension = &item.suspension;
        let why_not = if item.closed.is_some() {
            Some("it is no longer open".to_owned())
        } else {
            let may = by.may_answer(suspension.kind, &item.caller, own_calls).map_err(str::to_owned);
            may.and_then(|()| suspension.counts_for(by).map(drop)).err()
        };
        let vote = suspension.votes.iter().find(|vote| vote.by == by.id);
        Self {
            may_answer: why_not.is_none(),
            voted: vote.is_some(),
            binding: vote.map(|vote| vote.binding.to_string()),
            counts_again: why_not.is_none() && suspension.counts_again(by),
            why_not,
        }
    }
}
