//! Who may approve, and how many of them it takes: needs, votes, delegations, and the widening of a need before a wait
//! runs out.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Digest, Group, InvalidId, Json, LinkId, Principal, PrincipalId, Role, Span, Timestamp};

/// One or several principals, by a name of theirs. As a text `principal:alice`, `group:finance` or `role:admin`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// This one.
    Principal(PrincipalId),
    /// Whoever belongs to this group.
    Group(Group),
    /// Whoever has this role.
    Role(Role),
}

impl Who {
    /// Whether the principal is one of them.
    #[must_use]
    pub fn fits(&self, principal: &Principal) -> bool {
        match self {
            Self::Principal(id) => principal.id == *id,
            Self::Group(group) => principal.groups.contains(group),
            Self::Role(role) => principal.roles.has(*role),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(id) => write!(f, "principal:{id}"),
            Self::Group(group) => write!(f, "group:{group}"),
            Self::Role(role) => write!(f, "role:{}", role.as_str()),
        }
    }
}

impl FromStr for Who {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text.split_once(':') {
            Some(("principal", name)) => name.parse().map(Self::Principal),
            Some(("group", name)) => name.parse().map(Self::Group),
            Some(("role", name)) => name.parse().map(Self::Role),
            _ => Err(InvalidId::of("approver", "principal:NAME, group:NAME or role:NAME", text)),
        }
    }
}

/// Something that an approval needs: so many of these people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// Who counts. Empty: whoever may approve at all.
    pub who: Arc<[Who]>,
    /// How many different ones, at least 1.
    pub quorum: u32,
    /// Who else counts after a while.
    pub escalate: Option<Escalate>,
}

/// The widening of a need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Escalate {
    /// How long after the wait began.
    pub after: Span,
    /// Who counts from then on as well.
    pub to: Arc<[Who]>,
}

impl Need {
    /// Whether the principal counts, without regard to roles that every approver needs.
    #[must_use]
    pub fn fits(&self, principal: &Principal, escalated: bool) -> bool {
        let wider = self.escalate.as_ref().filter(|_| escalated).map_or(&[][..], |escalate| &escalate.to);
        self.who.is_empty() || self.who.iter().chain(wider).any(|who| who.fits(principal))
    }

    /// Whether whatever meets `other` meets this one as well: the same people, or anybody, and no more of them.
    #[must_use]
    pub fn is_met_by(&self, other: &Self) -> bool {
        let same_people = self.who == other.who && self.escalate == other.escalate;
        (self.who.is_empty() || same_people) && self.quorum <= other.quorum
    }
}

/// One principal's yes to a call with exactly these arguments. Each has one vote; a no is no vote but the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Whose.
    pub by: PrincipalId,
    /// For what: the digest over the arguments, the component and the declaration.
    pub binding: Digest,
    /// The arguments, where they are not the submitted ones.
    pub arguments: Option<Json>,
    /// The needs that it counts for, by their positions.
    pub needs: Vec<u16>,
    /// Why.
    pub comment: Option<String>,
    /// The link by which they came, if they came by one.
    pub link: Option<LinkId>,
    /// When.
    pub at: Timestamp,
}

impl Vote {
    /// Whether it counts for all of these.
    pub(crate) fn covers(&self, needs: &[u16]) -> bool {
        needs.iter().all(|need| self.needs.contains(need))
    }
}

/// That one who may vote hands that on to one who may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// Who may no longer vote.
    pub from: PrincipalId,
    /// Who may instead.
    pub to: PrincipalId,
    /// For which needs, by their positions.
    pub needs: Vec<u16>,
    /// Why.
    pub comment: Option<String>,
    /// The link by which whoever handed it on came, if they came by one.
    pub link: Option<LinkId>,
    /// When.
    pub at: Timestamp,
}

/// How bad it would be if a call went wrong, in the words of whoever asked for its approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Nothing to speak of.
    Low,
    /// It can be put right.
    Medium,
    /// It can hardly be put right.
    High,
    /// It must not go wrong.
    Critical,
}

impl Risk {
    /// Every level, from the lowest.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The name in JSON and in configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl FromStr for Risk {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let found = Self::ALL.into_iter().find(|risk| risk.as_str() == text);
        found.ok_or_else(|| InvalidId::of("risk", "low, medium, high or critical", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(name: &str, groups: &[&str], roles: &[Role]) -> Principal {
        let mut principal = Principal::new(name.parse().unwrap(), roles.iter().copied());
        principal.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
        principal
    }

    #[test]
    fn who_is_written_as_it_is_read() {
        for text in ["principal:alice@example.com", "group:finance", "role:admin", "principal:a:b"] {
            assert_eq!(text.parse::<Who>().map(|who| who.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "alice", "group:", "group:a b", "role:king", "team:x", "principal:"] {
            assert!(text.parse::<Who>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_need_counts_whom_it_names_and_after_its_time_whom_it_is_widened_to() {
        let who = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Arc<[Who]>>();
        let escalate = Escalate { after: Span::from_secs(1), to: who(&["role:admin"]) };
        let need = Need { who: who(&["principal:a", "group:g"]), quorum: 1, escalate: Some(escalate) };
        let everybody = [
            (principal("a", &[], &[]), false, true),
            (principal("b", &["g"], &[]), false, true),
            (principal("b", &["h"], &[Role::Approver]), true, false),
            (principal("c", &[], &[Role::Admin]), false, false),
            (principal("c", &[], &[Role::Admin]), true, true),
        ];
        for (principal, escalated, fits) in everybody {
            assert_eq!(need.fits(&principal, escalated), fits, "{principal:?} {escalated}");
        }
        let anybody = Need { who: Arc::new([]), quorum: 2, escalate: None };
        assert!(anybody.fits(&principal("x", &[], &[]), false));
        assert!(anybody.is_met_by(&Need { quorum: 3, ..anybody.clone() }));
        assert!(!anybody.is_met_by(&Need { quorum: 1, ..anybody.clone() }) && !need.is_met_by(&anybody));
    }
}
