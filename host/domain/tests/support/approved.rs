//! The approvals that a call needs before it starts, worked out from the facts, the requested calls and a table of
//! people.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::{
    Digest, Event, Json, PluginName, PrincipalId, Span, Suspension,
    approvers::{Need, Who},
    call::{Pinned, Wait},
    event::CallEvent,
    principal::{Channel, Channels, Role},
    suspension::{Decision, Resolution, SuspensionKind},
    tool::{Approval, Editable, Executor, OnExpiry, Recovery},
};

/// The people, with their groups and roles. The first is the caller.
pub(crate) const PEOPLE: [(&str, &[&str], &[Role]); 8] = [
    ("agent", &["finance", "security"], &[Role::Caller, Role::Approver]),
    ("ann", &["finance"], &[Role::Approver]),
    ("bob", &["finance"], &[Role::Approver]),
    ("cid", &["security"], &[Role::Approver]),
    ("dan", &[], &[Role::Approver]),
    ("eve", &["finance"], &[Role::Caller]),
    ("root", &[], &[Role::Admin]),
    ("gus", &["finance", "security"], &[Role::Approver]),
];

/// A requested call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) arguments: Json,
    pub(crate) declaration: Digest,
    /// The verdict of the policy on edited arguments: who must approve them as well. `None`: they are denied.
    pub(crate) verdicts: BTreeMap<String, Option<Vec<Need>>>,
    pub(crate) needs: Vec<Need>,
    /// Whether a rule asks, and not the tool itself.
    pub(crate) by_rule: bool,
    pub(crate) policy_failed: bool,
    pub(crate) gated: bool,
    /// Whether somebody approved it beforehand.
    pub(crate) beforehand: bool,
    pub(crate) on_expiry: OnExpiry,
    pub(crate) recovery: Recovery,
}

pub(crate) fn parsed(who: &[&str]) -> Arc<[Who]> {
    who.iter().map(|who| who.parse().unwrap()).collect()
}

/// The component and the declaration of a call.
pub(crate) fn pinned(call: &Call) -> Pinned {
    Pinned {
        plugin: PluginName::new("p").unwrap(),
        component: Digest::of("component"),
        declaration: call.declaration,
        executor: Executor::Server,
        approval: if call.gated { Approval::RequiresApproval } else { Approval::Auto },
        streaming: false,
        timeout: Span::from_secs(30),
        recovery: call.recovery,
        durable: false,
        frozen: None,
        wait: Some(Wait {
            expires: Span::from_secs(100),
            on_expiry: call.on_expiry.clone(),
            choices: None,
            data_schema: None,
            result_schema: None,
            editable: Editable::All,
        }),
    }
}

/// Panics if a call started without every needed approval of exactly this call.
pub(crate) fn check(facts: &[Event], calls: &[Call]) {
    let mut ledgers: Vec<Ledger<'_>> = calls.iter().map(Ledger::new).collect();
    for fact in facts {
        let Event::Call { call, event } = fact else { continue };
        if let Some(denied) = ledgers[call.get()].take(event) {
            // A denial of one call denies all identical calls that wait.
            for ledger in ledgers.iter_mut().filter(|ledger| ledger.waits_for == Some(denied)) {
                ledger.denied = true;
            }
        }
    }
}

/// The state of a call.
struct Ledger<'a> {
    call: &'a Call,
    /// The needs of the open suspension.
    needs: Vec<Need>,
    votes: BTreeMap<PrincipalId, (Digest, BTreeSet<usize>, Channel)>,
    delegated: BTreeMap<PrincipalId, PrincipalId>,
    /// When its escalation was last noted, and when it began.
    late: Option<u64>,
    since: u64,
    in_doubt: bool,
    /// The digest that the open suspension asks about.
    waits_for: Option<Digest>,
    arguments: Json,
    /// Whether it was approved since it last started.
    approved: bool,
    denied: bool,
    settled: bool,
    starts: u32,
}

impl<'a> Ledger<'a> {
    fn new(call: &'a Call) -> Self {
        Self {
            call,
            needs: Vec::new(),
            votes: BTreeMap::new(),
            delegated: BTreeMap::new(),
            late: None,
            since: 0,
            in_doubt: false,
            waits_for: None,
            arguments: call.arguments.clone(),
            approved: false,
            denied: false,
            settled: false,
            starts: 0,
        }
    }

    /// Applies a fact. Returns the digest of the call that a person denied with it.
    fn take(&mut self, event: &CallEvent) -> Option<Digest> {
        match event {
            CallEvent::Suspended { suspension } => self.suspended(suspension),
            CallEvent::Escalated { at, .. } => self.late = Some(at.millis() - self.since),
            CallEvent::Delegated { delegation, .. } => {
                let (from, to) = (&delegation.from, &delegation.to);
                assert_ne!(to.as_str(), PEOPLE[0].0, "nothing is delegated to the caller");
                assert!(is_approver(to), "{to} could not use it");
                let authority = self.counting(from, &self.needs);
                assert!(!authority.is_empty(), "{from} has no authority to delegate");
                let channel = delegation.channel.unwrap();
                assert!(
                    authority.iter().all(|n| takes(&self.needs[*n], channel)),
                    "not through this channel: {channel:?}"
                );
                assert!(self.counting(to, &self.needs).is_empty(), "{to} has authority already");
                self.votes.remove(from);
                self.delegated.insert(from.clone(), to.clone());
            }
            CallEvent::AuthorityRevoked { principal, .. } => self.revoked(principal),
            CallEvent::Voted { vote, .. } => self.voted(&vote.by, vote.binding, vote.channel),
            CallEvent::Resolved { resolution, by, .. } => return self.resolved(resolution, by),
            CallEvent::Expired { approved, .. } => {
                self.waits_for = None;
                if approved.is_some() {
                    let timeout_approves = self.call.on_expiry == OnExpiry::Approve;
                    assert!(timeout_approves && !self.in_doubt, "a timeout approves only if the tool declares it");
                    assert!(!self.call.by_rule && self.call.needs.is_empty(), "and no rule asks");
                    self.approved = true;
                }
            }
            CallEvent::Covered { .. } => {
                assert!(self.call.beforehand, "nobody allowed it beforehand");
                assert!(!self.call.policy_failed, "nobody could, because the policy's verdict is unknown");
                let asked_again = self.call.recovery == Recovery::Ask && !self.call.needs.is_empty();
                assert!(!asked_again, "after a kill anybody could answer");
                self.approved = true;
            }
            CallEvent::Started { .. } => self.started(),
            CallEvent::Settled { .. } => self.settled = true,
            CallEvent::Requested { .. }
            | CallEvent::LinkMade { .. }
            | CallEvent::LinkUsed { .. }
            | CallEvent::ClientAwaited { .. }
            | CallEvent::Resumed { .. }
            | CallEvent::LeaseExtended { .. } => {}
        }
        None
    }

    fn suspended(&mut self, suspension: &Suspension) {
        // A client runs the call at once.
        if suspension.kind() == SuspensionKind::ClientExec {
            return self.started();
        }
        let anybody = || vec![Need { who: Arc::new([]), quorum: 1, escalate: None, via: Channels::ANY }];
        self.needs = if self.call.needs.is_empty() { anybody() } else { self.call.needs.clone() };
        (self.votes, self.delegated) = Default::default();
        (self.late, self.since) = (None, suspension.created_at.millis());
        self.in_doubt = suspension.doubt().is_some();
        self.waits_for = Some(suspension.digest).filter(|_| !self.in_doubt);
        self.approved = false;
    }

    fn revoked(&mut self, principal: &PrincipalId) {
        self.votes.remove(principal);
        if let Some(delegate) = self.delegated.remove(principal) {
            self.votes.remove(&delegate);
        }
        self.delegated.retain(|_, to| to != principal);
    }

    fn voted(&mut self, by: &PrincipalId, binding: Digest, channel: Option<Channel>) {
        let channel = channel.unwrap();
        assert_ne!(channel, Channel::McpForm, "a form approves nothing");
        assert!(!self.delegated.contains_key(by), "a principal who delegated its authority has none");
        assert!(is_approver(by) && by.as_str() != PEOPLE[0].0, "{by} has no vote");
        let mut counts = self.counting(by, &self.needs);
        counts.retain(|n| takes(&self.needs[*n], channel));
        assert!(!counts.is_empty(), "{by} answers for nobody, or through another channel: {channel:?}");
        self.votes.insert(by.clone(), (binding, counts, channel));
    }

    fn resolved(&mut self, resolution: &Resolution, by: &PrincipalId) -> Option<Digest> {
        let waited_for = self.waits_for.take();
        match resolution.decision {
            Decision::Approve => {}
            Decision::Deny => {
                self.denied = true;
                return waited_for;
            }
            _ => return None,
        }
        if let Some(arguments) = &resolution.arguments {
            self.arguments = arguments.clone();
        }
        let binding = pinned(self.call).binding(&self.arguments);
        self.voted(by, binding, resolution.channel);
        for (n, need) in self.needs.iter().enumerate() {
            let votes = self.votes.values().filter(|(other, counts, _)| *other == binding && counts.contains(&n));
            assert!(votes.count() >= need.quorum as usize, "{need:?} is not met by {:?}", self.votes);
        }
        if resolution.arguments.is_some() {
            let verdict = &self.call.verdicts[self.arguments.as_str()];
            let Some(needed) = verdict else { panic!("the policy denies the edited arguments") };
            for need in needed {
                let voters = self.votes.iter().filter(|(_, (other, ..))| *other == binding);
                let counts = |(name, (.., channel)): &(&PrincipalId, &(Digest, BTreeSet<usize>, Channel))| {
                    takes(need, *channel) && !self.counting(name, std::slice::from_ref(need)).is_empty()
                };
                assert!(voters.filter(counts).count() >= need.quorum as usize, "others must approve: {need:?}");
            }
        }
        if resolution.standing.is_some() {
            let one = matches!(self.needs.as_slice(), [Need { quorum: 1, .. }]);
            assert!(one && !self.in_doubt && !self.call.policy_failed, "{by} decides for others");
            assert!(!fitting(by, &self.needs, None).is_empty(), "{by} lends on what was lent");
            let again = self.call.recovery == Recovery::Ask && !self.call.needs.is_empty();
            assert!(!again, "it would never be used");
        }
        self.approved = true;
        None
    }

    fn started(&mut self) {
        assert!(!self.denied, "a denied call does not run");
        assert!(!self.settled, "nor one that has ended");
        let verdict = &self.call.verdicts[self.arguments.as_str()];
        assert!(verdict.is_some(), "the policy forbids {}", self.arguments);
        self.starts += 1;
        let needed = match (self.starts, self.call.recovery) {
            (1, _) => self.call.gated,
            (_, Recovery::Retry) => false,
            (_, Recovery::Ask) => true,
            (_, Recovery::Fail) => panic!("it must not run twice"),
        };
        assert!(self.approved || !needed, "only an approved call runs");
        self.approved = false;
    }

    /// The needs among these that a person's vote counts for, through the right channel.
    fn counting(&self, name: &PrincipalId, needs: &[Need]) -> BTreeSet<usize> {
        let own = fitting(name, needs, self.late);
        if !own.is_empty() {
            return own;
        }
        let lent = self.delegated.iter().filter(|(_, to)| *to == name);
        lent.flat_map(|(from, _)| fitting(from, needs, self.late)).collect()
    }
}

fn takes(need: &Need, channel: Channel) -> bool {
    need.via == Channels::ANY || need.via.iter().any(|each| each == channel)
}

fn is_approver(name: &PrincipalId) -> bool {
    let known = PEOPLE.iter().find(|(known, ..)| *known == name.as_str());
    known.is_some_and(|(.., roles)| roles.contains(&Role::Approver) || roles.contains(&Role::Admin))
}

/// Which needs name a person, from the table, when the wait has lasted so long in milliseconds.
fn fitting(name: &PrincipalId, needs: &[Need], late: Option<u64>) -> BTreeSet<usize> {
    let (_, groups, roles) = PEOPLE.iter().find(|(known, ..)| *known == name.as_str()).unwrap();
    let is = |who: &Who| match who.to_string().split_once(':').unwrap() {
        ("principal", other) => other == name.as_str(),
        ("group", group) => groups.contains(&group),
        (_, role) => roles.iter().any(|has| has.as_str() == role),
    };
    let fits = |need: &Need| {
        let wider = need.escalate.as_ref().filter(|wider| late.is_some_and(|late| late >= wider.after.millis()));
        need.who.is_empty() || need.who.iter().any(is) || wider.is_some_and(|wider| wider.to.iter().any(is))
    };
    (0..needs.len()).filter(|n| fits(&needs[*n])).collect()
}
