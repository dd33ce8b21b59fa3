//! What can happen to a turn, what a decision may look at besides the turn, and why it may be refused.

use std::sync::Arc;

use crate::{
    Asked, CallId, CallIndex, ConversationId, Digest, Json, Link, LinkId, Named, Need, Outcome, OwnerId, Plan,
    Principal, PrincipalId, Receipt, Rule, Span, StandingActive, StandingBounds, StandingTerms, StandingUse,
    SuspensionId, Timestamp, TurnId, Verdict, Violation,
};

/// What a denial does to the other calls of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rejection {
    /// Nothing: they finish, and the model sees every result.
    #[default]
    ContinueSiblings,
    /// They end `cancelled_by_sibling`, and the model sees that.
    CancelSiblings,
    /// They end so too, and the turn ends `aborted`: the model is not called.
    AbortTurn,
}

impl Rejection {
    /// Every mode with its name in JSON.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::ContinueSiblings, "continue_siblings"),
        (Self::CancelSiblings, "cancel_siblings"),
        (Self::AbortTurn, "abort_turn"),
    ];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(mode, _)| *mode == self).map_or("continue_siblings", |(_, name)| name)
    }
}

/// What the operator decided for the whole host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Whether a caller may answer for its own calls.
    pub own_calls: bool,
    /// How long a client call waits for a client to attach.
    pub grace: Span,
    /// The longest that a call may wait for a free place to run in, before its own time begins.
    pub queue: Span,
    /// The most calls of one turn.
    pub max_calls: usize,
    /// The most attempts at one call. A guest that takes its host down with it must not do so for ever.
    pub max_attempts: u32,
    /// What an approver may allow beforehand; `None`: nothing.
    pub standing: Option<StandingBounds>,
    /// The most standing approvals that one caller has which can still be used.
    pub standing_active: u32,
    /// The most bytes that their arguments have.
    pub standing_bytes: usize,
    /// How long an identical call is not asked about again after a person denied one.
    pub denied_again: Span,
    /// Whether a turn may be carried out without being written down. What is not written down is not in the audit.
    pub ephemeral: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            own_calls: false,
            grace: Span::from_secs(5),
            queue: Span::from_secs(30),
            max_calls: 128,
            max_attempts: 5,
            standing: Some(StandingBounds { time: Span::from_secs(24 * 60 * 60), uses: 100 }),
            standing_active: 1_000,
            standing_bytes: 16 << 20,
            denied_again: Span::from_secs(10 * 60),
            ephemeral: true,
        }
    }
}

/// What a decision may look at besides the turn.
pub struct Context<'a> {
    /// The time.
    pub now: Timestamp,
    /// The host that decides, and that will run what it starts.
    pub owner: OwnerId,
    /// The operator's rules.
    pub rules: &'a Rules,
    /// Makes the bits of an id that was never used before.
    pub mint: &'a mut dyn FnMut() -> u128,
}

/// A turn as submitted, each call with what shall become of it.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The new turn's id.
    pub turn: TurnId,
    /// Where it belongs.
    pub conversation: ConversationId,
    /// Who submits it.
    pub caller: PrincipalId,
    /// What a denial does to siblings.
    pub rejection: Rejection,
    /// What the caller passes along: a JSON object.
    pub context: Option<Json>,
    /// The calls.
    pub calls: Vec<Requested>,
}

/// One call of a submission.
#[derive(Debug, Clone)]
pub struct Requested {
    /// The caller's id.
    pub id: CallId,
    /// The tool as asked for.
    pub tool: Arc<str>,
    /// The arguments.
    pub arguments: Json,
    /// What shall become of it.
    pub plan: Plan,
    /// What people are asked, where the call will ask them: the tool's template over the arguments.
    pub prompt: Option<String>,
    /// Who asks them, why, and who may answer.
    pub asked: Asked,
    /// The operator's rule or policy that decided about it, where one did.
    pub ruled_by: Option<Arc<str>>,
    /// Members of the provider's call that its result repeats: a JSON object.
    pub origin: Option<Json>,
    /// The standing approval that covers it, where it is gated.
    pub standing: Option<StandingUse>,
    /// What the provider's stream held, for a provider tool.
    pub result: Option<Outcome>,
}

/// An answer to a suspension.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// Which.
    pub suspension: SuspensionId,
    /// Who answers.
    pub by: Principal,
    /// What: one of the suspension's allowed decisions.
    pub decision: String,
    /// What comes with it.
    pub data: Option<Json>,
    /// Other arguments than the submitted ones; `None` where they are the same value.
    pub arguments: Option<Json>,
    /// Why.
    pub comment: Option<String>,
    /// What shall be allowed beforehand together with an approval.
    pub standing: Option<StandingTerms>,
    /// What the answerer believes to answer to.
    pub expect_digest: Option<Digest>,
    /// What the checks found that need a parser.
    pub checked: Checked,
}

/// Findings about an answer that were made outside, because they need a parser and a schema validator. They are
/// findings, not decisions: whether they matter is decided here, in the order of the rules.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// How the data breaks the schema it must fit.
    pub data: Vec<Violation>,
    /// How the edited arguments break the tool's schema.
    pub arguments: Vec<Violation>,
    /// The members of the arguments object that the edit changes; `None` where either side is not an object.
    pub edited: Option<Vec<String>>,
    /// What the policy says of the edited arguments.
    pub rule: Rule,
    /// Who must approve them.
    pub needs: Arc<[Need]>,
    /// What is wrong with the arguments that a standing approval is to pin.
    pub pin: Vec<Violation>,
    /// The standing approvals of the caller that can still be used.
    pub standing: StandingActive,
}

/// Something that happens to a turn.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody answers.
    Resolve(Box<Resolve>),
    /// Somebody hands their say on.
    Delegate {
        /// In which suspension.
        suspension: SuspensionId,
        /// Who.
        by: Principal,
        /// To whom.
        to: Named,
        /// Why.
        comment: Option<String>,
    },
    /// A link to a suspension is wanted.
    MakeLink {
        /// To which.
        suspension: SuspensionId,
        /// The link as it shall be.
        link: Box<Link>,
    },
    /// Somebody uses a link.
    UseLink {
        /// To which suspension.
        suspension: SuspensionId,
        /// Which.
        link: LinkId,
        /// In whose name.
        by: PrincipalId,
    },
    /// A guest that this host ran has ended.
    Finished {
        /// Which call.
        call: CallIndex,
        /// Which attempt at it.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// What the guest spent; `None` where it never ran.
        receipt: Option<Receipt>,
    },
    /// Somebody cancels the turn.
    Cancel {
        /// Who.
        by: Principal,
    },
    /// Time has passed.
    Tick {
        /// The calls that this host is running at this moment.
        alive: Vec<CallIndex>,
        /// The client calls for whose tool a client is attached.
        attended: Vec<CallIndex>,
        /// Since when clients could attach to this host.
        open_since: Timestamp,
        /// What the policy makes by now of the calls that silence would approve, by what they wait for. One that is missing goes on
        /// waiting.
        silent: Vec<(SuspensionId, Verdict)>,
    },
    /// The last client that could carry out these calls has gone.
    ClientsLeft {
        /// The calls.
        calls: Vec<CallIndex>,
    },
    /// The host was started anew: whatever another owner was running is no longer running.
    Restarted,
}

/// Why an input was refused. A refusal changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The submission has no calls, or too many.
    #[error("a turn has 1 to {max} calls, not {got}")]
    CallCount {
        /// How many it has.
        got: usize,
        /// How many it may have.
        max: usize,
    },
    /// Two calls of the submission have one id.
    #[error("two calls of the turn have the id {0}; every call needs its own")]
    RepeatedId(CallId),
    /// A provider call came without its result.
    #[error("call {0} is of a provider tool and has no result: submit it with the result from the provider's stream")]
    ResultMissing(CallId),
    /// A call that the host carries out came with a result.
    #[error("call {0} is not of a provider tool, so its result cannot be submitted")]
    ResultGiven(CallId),
    /// The suspension is not open, or does not exist for the one who asks.
    #[error("this question is no longer open: {state}")]
    Stale {
        /// How it ended.
        state: String,
        /// Who ended it, if it existed.
        by: Option<PrincipalId>,
        /// When.
        at: Option<Timestamp>,
    },
    /// The principal may not do this.
    #[error("{0}")]
    NotAllowed(String),
    /// The answer is not a valid one.
    #[error("the answer is not valid")]
    Invalid(Vec<Violation>),
    /// What would be answered is not what the answerer saw.
    #[error("the call is not the one that was shown: its digest is {actual}")]
    DigestMismatch {
        /// What it is.
        actual: Digest,
    },
    /// The same principal gave the same answer before; it stands.
    #[error("this answer was already given")]
    Replayed,
}
