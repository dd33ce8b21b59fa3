//! Facts about one call. They are an enum of their own, so that a match over them names every one.

use std::sync::Arc;

use crate::{
    CallId, Digest, Json, LinkId, Outcome, PrincipalId, Receipt, Suspension, SuspensionId, Timestamp,
    approvers::{Delegation, Vote},
    call::{Pinned, Running},
    link::LinkRecord,
    standing::StandingUse,
    suspension::Resolution,
};

/// A fact about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEvent {
    /// The turn asked for the call. Calls are requested in the order of their positions.
    Requested {
        id: CallId,
        /// The name that the caller gave. There may be no such tool.
        tool: Arc<str>,
        /// The arguments as submitted.
        arguments: Json,
        /// `None` where the call ends at once.
        pinned: Option<Arc<Pinned>>,
        /// The operator's rule or policy that decided about the call.
        ruled_by: Option<Arc<str>>,
        /// Members of the provider's call that its result repeats: a JSON object. The host does not interpret it.
        origin: Option<Json>,
    },
    /// A standing approval covers a gated call, which continues. Nobody was asked.
    Covered {
        standing: StandingUse,
        /// The binding that is approved.
        approved: Digest,
        at: Timestamp,
    },
    /// A principal approved. The call needs more approvals.
    Voted { suspension: SuspensionId, vote: Box<Vote> },
    /// A principal delegated its authority.
    Delegated { suspension: SuspensionId, delegation: Box<Delegation> },
    /// A link was made, or an existing link was made valid for longer.
    LinkMade { suspension: SuspensionId, link: Box<LinkRecord>, at: Timestamp },
    /// A person used a link.
    LinkUsed {
        suspension: SuspensionId,
        link: LinkId,
        /// The principal in whose name the link was used.
        by: PrincipalId,
        at: Timestamp,
    },
    /// A principal was revoked. Its votes and delegations no longer count, and neither do the votes that others gave with
    /// its authority.
    AuthorityRevoked { suspension: SuspensionId, principal: PrincipalId, at: Timestamp },
    /// More principals can answer from this time.
    Escalated { suspension: SuspensionId, at: Timestamp },
    /// The call waits for this suspension.
    Suspended { suspension: Box<Suspension> },
    /// The time until which a client must attach has changed. `None`: a client has attached.
    ClientAwaited { grace_until: Option<Timestamp> },
    /// A principal answered the suspension.
    Resolved {
        suspension: SuspensionId,
        resolution: Box<Resolution>,
        /// The binding that an approval approves.
        approved: Option<Digest>,
        by: PrincipalId,
        at: Timestamp,
    },
    /// Nobody answered in time. The next event of the call says what follows.
    Expired {
        suspension: SuspensionId,
        /// The binding that a timeout approval approves.
        approved: Option<Digest>,
        at: Timestamp,
    },
    /// A host is about to run the guest.
    Started { running: Running, at: Timestamp },
    /// A step of the guest's code has ended, and a host is about to run the guest again.
    Resumed { running: Running, at: Timestamp },
    /// The host that runs the guest is still running it.
    LeaseExtended { lease_end: Timestamp },
    /// The call ended. An open suspension of the call is withdrawn.
    Settled {
        outcome: Outcome,
        /// `None` where no guest ran to its end.
        receipt: Option<Receipt>,
        at: Timestamp,
    },
}
