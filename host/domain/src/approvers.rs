//! Who may approve, and how many approvals are needed: needs, votes, delegations and escalations.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{
    Digest, Json, LinkId, Principal, PrincipalId, Span, Timestamp,
    ids::{Group, InvalidId},
    principal::{Channel, Channels, Role},
};

/// One or several principals. As text: `principal:alice`, `group:finance` or `role:admin`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    Principal(PrincipalId),
    /// The members of a group.
    Group(Group),
    /// The principals with a role.
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

/// A number of approvals from certain people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The people whose approval counts. Empty: any approver.
    pub who: Arc<[Who]>,
    /// How many different people, at least 1.
    pub quorum: u32,
    pub escalate: Option<Escalate>,
    /// The channels through which the approvals must come.
    pub via: Channels,
}

/// The bytes of the names in needs.
pub(crate) fn names(needs: &[Need]) -> usize {
    needs.iter().flat_map(|need| need.who.iter()).map(|who| who.to_string().len()).sum()
}

/// People whose approval also counts after some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Escalate {
    /// The time after the start of the wait.
    pub after: Span,
    pub to: Arc<[Who]>,
}

impl Need {
    /// Whether the principal's approval counts when it comes through the principal's channel. The role that every approver
    /// needs is checked elsewhere.
    #[must_use]
    pub fn fits(&self, principal: &Principal, escalated: bool) -> bool {
        self.via.counts(principal.channel) && self.names(principal, escalated)
    }

    /// Whether the principal's approval counts when it comes through a channel that counts.
    #[must_use]
    pub fn names(&self, principal: &Principal, escalated: bool) -> bool {
        let wider = self.escalate.as_ref().filter(|_| escalated).map_or(&[][..], |escalate| &escalate.to);
        self.who.is_empty() || self.who.iter().chain(wider).any(|who| who.fits(principal))
    }

    /// Whether approvals that meet `other` also meet this one: it names the same people or nobody, needs no more of them,
    /// and counts the channels of `other`.
    pub(crate) fn is_met_by(&self, other: &Self) -> bool {
        let same_people = self.who == other.who && self.escalate == other.escalate;
        (self.who.is_empty() || same_people) && self.quorum <= other.quorum && other.via.is_within(self.via)
    }
}

/// One principal's approval of a call with exactly these arguments. Each principal has one vote. A denial is not a
/// vote: it closes the suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    pub by: PrincipalId,
    /// The digest over the arguments, the component and the declaration.
    pub binding: Digest,
    /// The edited arguments. `None`: the submitted ones.
    pub arguments: Option<Json>,
    /// The positions of the needs that it counts for.
    pub needs: Vec<u16>,
    pub comment: Option<String>,
    /// The one-time link that the principal used, if any.
    pub link: Option<LinkId>,
    /// The channel through which it came. `None`: an older host recorded it.
    pub channel: Option<Channel>,
    pub at: Timestamp,
}

impl Vote {
    /// The channel through which it came, if that is known. Older hosts recorded links only.
    #[must_use]
    pub fn via(&self) -> Option<Channel> {
        self.channel.or(self.link.map(|_| Channel::Link))
    }

    /// Whether it counts for all of these.
    pub(crate) fn covers(&self, needs: &[u16]) -> bool {
        needs.iter().all(|need| self.needs.contains(need))
    }
}

/// A principal delegated its authority to one that had none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// This principal can no longer vote.
    pub from: PrincipalId,
    /// This principal can vote instead.
    pub to: PrincipalId,
    /// The positions of the needs.
    pub needs: Vec<u16>,
    pub comment: Option<String>,
    /// The one-time link that `from` used, if any.
    pub link: Option<LinkId>,
    /// The channel that `from` used. `None`: an older host recorded it.
    pub channel: Option<Channel>,
    pub at: Timestamp,
}

impl Delegation {
    /// The channel that `from` used, as [`Vote::via`].
    #[must_use]
    pub fn via(&self) -> Option<Channel> {
        self.channel.or(self.link.map(|_| Channel::Link))
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
    fn approvers_are_written_as_they_are_read() {
        for text in ["principal:alice@example.com", "group:finance", "role:admin", "principal:a:b"] {
            assert_eq!(text.parse::<Who>().map(|who| who.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "alice", "group:", "group:a b", "role:king", "team:x", "principal:"] {
            assert!(text.parse::<Who>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_need_counts_named_and_later_escalated_people() {
        let who = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Arc<[Who]>>();
        let escalate = Escalate { after: Span::from_secs(1), to: who(&["role:admin"]) };
        let need =
            Need { who: who(&["principal:a", "group:g"]), quorum: 1, escalate: Some(escalate), via: Channels::ANY };
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
        let anybody = Need { who: Arc::new([]), quorum: 2, escalate: None, via: Channels::ANY };
        assert!(anybody.fits(&principal("x", &[], &[]), false));
        assert!(anybody.is_met_by(&Need { quorum: 3, ..anybody.clone() }));
        assert!(!anybody.is_met_by(&Need { quorum: 1, ..anybody.clone() }) && !need.is_met_by(&anybody));
    }

    #[test]
    fn a_need_counts_only_its_channels() {
        use Channel::{Api, Console, Link};
        let need = |via: &[Channel]| Need {
            who: Arc::new(["principal:a".parse().unwrap()]),
            quorum: 1,
            escalate: Some(Escalate { after: Span::from_secs(1), to: Arc::new(["principal:b".parse().unwrap()]) }),
            via: via.iter().copied().collect(),
        };
        for via in [&[][..], &[Api], &[Console], &[Console, Link], &Channel::ALL] {
            for channel in Channel::ALL {
                let counts = via.is_empty() || via.contains(&channel);
                let by = |name| Principal { channel, ..principal(name, &[], &[]) };
                assert_eq!(need(via).fits(&by("a"), false), counts, "{via:?} {channel:?}");
                assert_eq!(need(via).fits(&by("b"), true), counts, "escalated: {via:?} {channel:?}");
                assert!(need(via).names(&by("a"), false) && !need(via).fits(&by("c"), true));
            }
        }
    }

    #[test]
    fn a_need_is_met_only_by_as_narrow_channels() {
        use Channel::{Api, Console, Link};
        for (needed, had, is_met) in [
            (&[][..], &[][..], true),
            (&[], &[Console], true),
            (&[Console], &[], false),
            (&[Console], &[Console], true),
            (&[Console, Link], &[Console], true),
            (&[Console], &[Console, Link], false),
            (&[Console], &[Api], false),
            (&Channel::ALL, &[], false),
        ] {
            let need = |via: &[Channel]| Need {
                who: Arc::new([]),
                quorum: 1,
                escalate: None,
                via: via.iter().copied().collect(),
            };
            assert_eq!(need(needed).is_met_by(&need(had)), is_met, "{needed:?} {had:?}");
        }
    }
}
