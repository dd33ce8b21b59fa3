//! The principals who may answer a suspension. Suspensions with the same audience are counted together, so that a
//! principal's share of a long inbox is a sum over few audiences.

use crate::{
    Principal, PrincipalId, Suspension,
    approvers::{Need, Who},
    suspension::{SuspensionBody, SuspensionKind},
};

/// The principals who may answer a suspension, if they also have the role for its kind. Whose call it is does not matter
/// here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Audience {
    pub kind: SuspensionKind,
    /// The people of each need, with those of an escalation that has happened. An empty list means any approver. Sorted,
    /// each once.
    pub needs: Vec<Vec<Who>>,
    /// Principals who delegated their authority and can no longer answer.
    pub without: Vec<PrincipalId>,
    /// Principals who got authority by a delegation.
    pub delegates: Vec<PrincipalId>,
}

impl Audience {
    /// Whether an answer of this principal counts when it comes through a channel that counts.
    #[must_use]
    pub fn includes(&self, by: &Principal) -> bool {
        let fits = |who: &Vec<Who>| who.is_empty() || who.iter().any(|who| who.fits(by));
        match self.kind {
            SuspensionKind::ClientExec => true,
            SuspensionKind::Timer | SuspensionKind::External | SuspensionKind::Nested | SuspensionKind::RateLimit => {
                false
            }
            SuspensionKind::Elicitation => self.needs.iter().all(fits),
            SuspensionKind::Approval => {
                !self.without.contains(&by.id) && (self.needs.iter().any(fits) || self.delegates.contains(&by.id))
            }
        }
    }
}

impl Suspension {
    /// The principals whose answer counts now: those for whom [`Suspension::authority_of`] succeeds. People see what waits
    /// for them, also where they must answer through another channel.
    #[must_use]
    pub fn audience(&self) -> Audience {
        let people = |need: &Need| {
            let wider = need.escalate.as_ref().filter(|_| self.has_escalated(need)).map_or(&[][..], |wider| &wider.to);
            // If the need names nobody, an escalation makes it no narrower.
            let wider = if need.who.is_empty() { &[] } else { wider };
            sorted(need.who.iter().chain(wider).cloned().collect())
        };
        let (mut without, mut delegates) = (Vec::new(), Vec::new());
        if let SuspensionBody::Approval(approval) = &self.body {
            for (n, delegated) in approval.delegations.iter().enumerate() {
                without.push(delegated.from.clone());
                // The first delegation to a principal is the one that counts.
                let is_first = !approval.delegations.iter().take(n).any(|earlier| earlier.to == delegated.to);
                delegates.extend((is_first && !delegated.needs.is_empty()).then(|| delegated.to.clone()));
            }
        }
        Audience {
            kind: self.kind(),
            needs: sorted(self.needs().iter().map(people).collect()),
            without: sorted(without),
            delegates: sorted(delegates),
        }
    }
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items.dedup();
    items
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::approvers::{Delegation, Escalate};
    use crate::principal::{Channels, Role};
    use crate::suspension::{ApprovalRequest, Asked, ClientExec, Elicitation};
    use crate::{Digest, Span, SuspensionId, Timestamp};

    fn need(who: &[&str], escalate: &[&str]) -> Need {
        let people = |who: &[&str]| who.iter().map(|who| who.parse().unwrap()).collect::<Arc<[Who]>>();
        let wider = || Escalate { after: Span::from_secs(1), to: people(escalate) };
        Need { who: people(who), quorum: 1, escalate: (!escalate.is_empty()).then(wider), via: Channels::ANY }
    }

    fn delegation(from: &str, to: &str, needs: &[u16]) -> Delegation {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        Delegation {
            from,
            to,
            needs: needs.to_vec(),
            comment: None,
            link: None,
            channel: None,
            at: Timestamp::from_millis(1),
        }
    }

    /// Suspensions of every kind with each of these needs, with and without an escalation and delegations.
    fn suspensions() -> Vec<Suspension> {
        let needs = [
            vec![],
            vec![need(&["principal:ann"], &[])],
            vec![need(&["group:g"], &["role:admin"]), need(&["principal:ben", "principal:ann"], &[])],
            vec![need(&[], &["group:g"]), need(&["group:h"], &[])],
        ];
        let delegations = [
            vec![],
            vec![delegation("ann", "cid", &[0])],
            vec![delegation("ann", "cid", &[]), delegation("ben", "cid", &[0])],
        ];
        let mut all = Vec::new();
        for needs in &needs {
            for escalated_at in [None, Some(Timestamp::from_millis(2_000))] {
                let asked = Asked { needs: needs.clone().into(), ..Asked::default() };
                for delegations in delegations.clone() {
                    let approval = ApprovalRequest { delegations, escalated_at, ..ApprovalRequest::new(asked.clone()) };
                    all.push(SuspensionBody::Approval(approval));
                }
                all.push(SuspensionBody::Elicitation(Elicitation { asked, escalated_at, ..Elicitation::default() }));
            }
        }
        all.push(SuspensionBody::ClientExec(ClientExec::default()));
        let (id, created_at) = (SuspensionId::from_bits(1), Timestamp::from_millis(0));
        let expires_at = Timestamp::from_millis(9_000);
        let digest = Digest::of("binding");
        all.into_iter().map(|body| Suspension { id, created_at, expires_at, digest, step: None, body }).collect()
    }

    #[test]
    fn audience_includes_exactly_those_whose_answer_counts() {
        let (mut included, mut excluded) = (0, 0);
        for name in ["ann", "ben", "cid", "dan"] {
            for groups in [vec![], vec!["g"], vec!["h"], vec!["g", "h"]] {
                for role in [Role::Approver, Role::Admin] {
                    let mut by = Principal::new(name.parse().unwrap(), [role]);
                    by.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
                    for suspension in suspensions() {
                        let counts = suspension.authority_of(&by).is_ok();
                        assert_eq!(suspension.audience().includes(&by), counts, "{by:?} {suspension:?}");
                        if counts { included += 1 } else { excluded += 1 }
                    }
                }
            }
        }
        assert!(included > 100 && excluded > 100, "{included} {excluded}");
    }
}
