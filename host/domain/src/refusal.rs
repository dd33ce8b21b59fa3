//! Why the domain refuses an input. A refusal changes nothing.

use crate::{
    CallId, Digest, Outcome, PrincipalId, Timestamp, Violation,
    link::MAX_LINKS,
    outcome::Failure,
    principal::{Channel, Channels, Role},
    suspension::{SuspensionEnd, SuspensionKind},
};

/// Why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The submission has no calls. A model's answer without calls is meant for people.
    #[error("this answer has no calls; give it to the user")]
    NoCalls,
    /// The submission has too many calls.
    #[error("a turn has at most {max} calls, not {got}")]
    TooManyCalls { got: usize, max: usize },
    /// Two calls of the submission have the same id.
    #[error("two calls of the turn have the id {0}; every call needs its own")]
    RepeatedId(CallId),
    /// A provider call has no result.
    #[error("call {0} is of a provider tool and has no result: submit it with the result from the provider's stream")]
    ResultMissing(CallId),
    /// A call that the host runs has a result.
    #[error("call {0} is not of a provider tool, so its result cannot be submitted")]
    ResultGiven(CallId),
    /// The suspension does not exist, or this principal may not see it.
    #[error("there is no such suspension, or you may not see it")]
    Unknown,
    /// The suspension has ended.
    #[error("this {} is no longer open: {}", kind.noun(), ended.of(*kind))]
    Stale { kind: SuspensionKind, ended: SuspensionEnd, by: PrincipalId, at: Timestamp },
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("the answer is not valid")]
    Invalid(Vec<Violation>),
    /// A link is used once.
    #[error("this link was used before; if you did not use it, tell the sender and ask for another one")]
    LinkUsed,
    /// The answer is about another digest than the suspension has.
    #[error("the call differs from the one that was shown: its digest is {actual}; read it again")]
    DigestMismatch { actual: Digest },
    /// The same principal gave the same answer before. That answer is in force.
    #[error("this answer was already given")]
    Replayed,
}

impl Refusal {
    /// Checks the number of the calls of a turn.
    ///
    /// # Errors
    /// [`Refusal::NoCalls`] and [`Refusal::TooManyCalls`].
    pub const fn of_count(got: usize, max: usize) -> Result<(), Self> {
        match got {
            0 => Err(Self::NoCalls),
            got if got > max => Err(Self::TooManyCalls { got, max }),
            _ => Ok(()),
        }
    }
}

/// Why a principal may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("your token was revoked while the host processed this request")]
    Revoked,
    #[error("only a principal with the role approver answers approvals and questions")]
    NotApprover,
    #[error("only a principal with the role client carries out client tools")]
    NotClient,
    #[error("only the caller of the turn, an admin, or the holder of a link sends the result that this call waits for")]
    NotCaller,
    #[error("a caller cannot answer for its own call unless the operator allows it (approve_own_calls)")]
    OwnCall,
    /// The principal delegated its authority to this one.
    #[error("you delegated your authority over this to {0}")]
    Delegated(PrincipalId),
    #[error("you are not among the approvers that the operator's rule names")]
    OthersAnswer,
    /// The principal has authority, but not through this channel.
    #[error("{}", other_channel(*.used, *.counts))]
    OtherChannel {
        used: Channel,
        /// The channels through which its answer counts.
        counts: Channels,
    },
    #[error("the call waits for a time, and nobody can end that wait; cancel its turn to stop it")]
    Timer,
    #[error(
        "the call waits for the calls of a nested turn, and nobody can end that wait; answer or cancel those calls"
    )]
    Nested,
    #[error("the policy denies the call with these arguments")]
    PolicyDenies,
    #[error("the policy check failed, so this call can only be denied: {0}")]
    NoRecheck(#[from] NoRecheck),
    /// The policy names other approvers for the edited arguments.
    #[error(
        "other people must approve a call with these arguments; deny this one, and have it submitted again with them"
    )]
    EditNeedsOthers,
    #[error("only its caller or an admin cancels a turn")]
    NotYourTurn,
    #[error("{max} links to this suspension exist, which is the limit", max = MAX_LINKS)]
    TooManyLinks,
    #[error(transparent)]
    Standing(#[from] NoStanding),
    #[error(transparent)]
    Delegation(#[from] NoDelegation),
}

impl NotAllowed {
    /// The role that the principal lacks, if that is the reason.
    #[must_use]
    pub const fn role(&self) -> Option<Role> {
        match self {
            Self::NotApprover => Some(Role::Approver),
            Self::NotClient => Some(Role::Client),
            Self::Revoked
            | Self::NotCaller
            | Self::OwnCall
            | Self::Delegated(_)
            | Self::OthersAnswer
            | Self::OtherChannel { .. }
            | Self::Timer
            | Self::Nested
            | Self::PolicyDenies
            | Self::NoRecheck(_)
            | Self::EditNeedsOthers
            | Self::NotYourTurn
            | Self::TooManyLinks
            | Self::Standing(_)
            | Self::Delegation(_) => None,
        }
    }
}

/// Why the policy cannot be asked again about a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRecheck {
    /// The component of its tool is not in the store.
    #[error("the component that this call is pinned to was removed")]
    Removed,
    /// The component of its tool cannot be loaded.
    #[error("{}", .0.message)]
    Failed(Failure),
}

/// The outcome is that of a call whose tool cannot be recalled.
impl From<Outcome> for NoRecheck {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Failed(failure) => Self::Failed(failure),
            Outcome::Ok { .. }
            | Outcome::Denied(_)
            | Outcome::Expired
            | Outcome::Cancelled
            | Outcome::CancelledBySibling
            | Outcome::Unavailable
            | Outcome::Invalidated
            | Outcome::InDoubt => Self::Removed,
        }
    }
}

/// What to do instead, and why.
fn other_channel(used: Channel, counts: Channels) -> String {
    let why = match used {
        Channel::McpForm => format!("answers {} do not count here", used.phrase()),
        Channel::Console | Channel::Api | Channel::Link => {
            format!("the operator's rule does not count answers {}", used.phrase())
        }
    };
    let places: Vec<&str> = counts.iter().map(Channel::phrase).collect();
    match places.as_slice() {
        [] => "the operator's rules demand different channels, so no answer counts; cancel the turn, or ask the operator to \
               change a rule"
            .to_owned(),
        [only] => format!("answer it {only}: {why}"),
        [others @ .., last] => format!("answer it {} or {last}: {why}", others.join(", ")),
    }
}

/// Why an approval cannot cover later calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoStanding {
    #[error("an approval to repeat an interrupted run cannot also approve later calls")]
    InDoubt,
    #[error(
        "a policy could not be asked about this call, so its verdict on later calls is unknown: this approval covers \
         this call only"
    )]
    PolicyFailed,
    #[error(
        "a standing approval cannot cover this tool: an interrupted run needs a new approval, and a rule names the approvers"
    )]
    AskedAgain,
    #[error("several people must approve this call, so one of them cannot approve later calls")]
    SeveralApprovers,
    #[error("a link may only answer its suspension; log in to give a standing approval")]
    ByLink,
    #[error("a principal who sees a single conversation cannot approve calls beyond it")]
    OneConversation,
    /// The approver's authority was delegated, or came with an escalation.
    #[error("authority from a delegation or an escalation covers this call only")]
    BorrowedAuthority,
    #[error(
        "the caller has {active} active standing approvals, and may have {max} (approvals.standing_max_active): \
         approve without one, or revoke others"
    )]
    TooMany { active: u32, max: u32 },
    #[error(
        "the arguments of the caller's active standing approvals would have {bytes} bytes, and may have {max} \
         (approvals.standing_max_bytes): approve without one, or revoke others"
    )]
    TooLarge { bytes: usize, max: usize },
    /// The operator allows no standing approvals.
    #[error("an approval of this call cannot cover later calls")]
    Never,
}

/// Why an approver cannot delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoDelegation {
    #[error("only the authority over an approval can be delegated")]
    NotAnApproval,
    #[error("you can delegate to others, but neither to the caller nor to yourself")]
    ToCallerOrSelf,
    #[error("that principal has voted here, or a delegation here names it")]
    Involved,
    #[error("authority that was delegated to you cannot be delegated again")]
    Twice,
    #[error("a delegation is not needed: every approver may answer this")]
    Everybody,
    #[error("that principal answers no approvals of this conversation: it needs the role approver")]
    CannotAnswer,
    #[error("that principal has authority over this already")]
    HasAuthority,
    #[error("that principal will get its own authority by escalation, and could then not use yours")]
    Escalation,
}
