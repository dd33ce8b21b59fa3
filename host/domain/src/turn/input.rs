//! The inputs of a turn, and the other values that a decision uses.

use std::sync::Arc;

use crate::{
    Call, CallId, CallIndex, ConversationId, Digest, Json, LinkId, Outcome, OwnerId, Principal, PrincipalId, Receipt,
    Span, SuspensionId, Timestamp, TurnId, Violation,
    approvers::Need,
    call::Plan,
    event::Rejection,
    gate::{RuleEffect, Verdict},
    journal::JournalBounds,
    link::LinkRecord,
    nested::Parent,
    principal::Named,
    standing::{StandingActive, StandingBounds, StandingTerms, StandingUse},
    step::{MAX_STEPS, RunEnd},
    suspension::{Asked, Decision},
};

/// The operator's settings for decisions about turns. They are the same for every turn of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSettings {
    /// Whether a caller may answer for its own calls.
    pub own_calls: bool,
    /// How long a client call waits for a client to attach.
    pub grace: Span,
    /// The maximum time that a call waits for a permit to run. Its own time begins after that.
    pub queue: Span,
    /// The maximum number of calls in a turn.
    pub max_calls: usize,
    /// The maximum bytes of the results of a turn. A call whose result goes beyond them fails.
    pub turn_results: usize,
    /// The maximum number of attempts at a call, for a durable one since it last made progress. It stops a guest that crashes the host
    /// each time.
    pub max_attempts: u32,
    /// The maximum number of steps of a call.
    pub max_steps: usize,
    /// The bytes of all questions, values and answers of the steps of a call.
    pub step_bytes: usize,
    /// How deep turns can be nested in each other.
    pub nesting_depth: u32,
    /// The maximum number of calls in the nested turns of one call, and in all nested turns below a call of a caller.
    pub nested_calls: usize,
    /// The maximum size of the journal of a call.
    pub journal: JournalBounds,
    /// The limits of standing approvals. `None`: standing approvals are not allowed.
    pub standing: Option<StandingBounds>,
    /// The maximum number of active standing approvals of a caller.
    pub standing_active: u32,
    /// The maximum size of their arguments together, in bytes.
    pub standing_bytes: usize,
    /// How long identical calls are denied after a person has denied one.
    pub denied_again: Span,
    /// The maximum size of all denials that are remembered for this, in bytes.
    pub denied_bytes: usize,
    /// Whether a turn may be ephemeral. Such a turn is not in the audit.
    pub ephemeral: bool,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            own_calls: false,
            grace: Span::from_secs(5),
            queue: Span::from_secs(30),
            max_calls: 128,
            turn_results: 32 << 20,
            max_attempts: 5,
            max_steps: MAX_STEPS,
            step_bytes: 4 << 20,
            nesting_depth: 4,
            nested_calls: 100,
            journal: JournalBounds::default(),
            standing: Some(StandingBounds { time: Span::from_secs(24 * 60 * 60), uses: 100 }),
            standing_active: 1_000,
            standing_bytes: 16 << 20,
            denied_again: Span::from_secs(10 * 60),
            denied_bytes: 16 << 20,
            ephemeral: true,
        }
    }
}

/// The inputs of a decision besides the turn.
pub struct Context<'a> {
    pub now: Timestamp,
    /// The host that decides and runs the calls.
    pub owner: OwnerId,
    pub settings: &'a TurnSettings,
    /// Makes the bits of a new id.
    pub mint: &'a mut dyn FnMut() -> u128,
    /// The parts that people see beside a question about a call: title, risk, defaults and the members of the context. `None`: its tool is
    /// not known now.
    pub about: &'a dyn Fn(&Call) -> Option<Asked>,
}

/// A submitted turn, with a plan for each call.
#[derive(Debug, Clone)]
pub struct Submission {
    pub turn: TurnId,
    pub conversation: ConversationId,
    pub caller: PrincipalId,
    pub rejection: Rejection,
    /// The context that the caller passes: a JSON object.
    pub context: Option<Json>,
    /// The call that submits it. `None`: a caller does.
    pub parent: Option<Box<Parent>>,
    pub calls: Vec<Requested>,
}

/// One call of a submission.
#[derive(Debug, Clone)]
pub struct Requested {
    /// The caller's id.
    pub id: CallId,
    /// The name that the caller gave.
    pub tool: Arc<str>,
    pub arguments: Json,
    pub plan: Plan,
    /// The question to people, if the call asks them.
    pub asked: Asked,
    /// The operator's rule or policy that decided about it.
    pub ruled_by: Option<Arc<str>>,
    /// Members of the provider's call that its result repeats: a JSON object.
    pub origin: Option<Json>,
    /// The standing approval that covers it, if it is gated.
    pub standing: Option<StandingUse>,
    /// The result in the provider's stream, for a provider tool.
    pub result: Option<Outcome>,
}

/// An answer to a suspension.
#[derive(Debug, Clone)]
pub struct CheckedAnswer {
    pub suspension: SuspensionId,
    pub by: Principal,
    pub decision: Decision,
    pub data: Option<Json>,
    /// Edited arguments. `None`: they equal the submitted ones.
    pub arguments: Option<Json>,
    pub comment: Option<String>,
    /// The standing approval that is given with an approval.
    pub standing: Option<StandingTerms>,
    /// The digest that the principal saw.
    pub expect_digest: Option<Digest>,
    pub checked: AnswerChecks,
}

/// Findings about an answer that need a parser and a schema validator, so they are made outside. The domain decides
/// whether they matter, in the order of its checks.
#[derive(Debug, Clone, Default)]
pub struct AnswerChecks {
    /// How the data breaks the schema it must fit.
    pub data: Vec<Violation>,
    /// How the edited arguments break the tool's schema.
    pub arguments: Vec<Violation>,
    /// The members of the arguments object that the edit changes; `None` where either side is not an object.
    pub edited: Option<Vec<String>>,
    /// The policy's rule for the edited arguments.
    pub rule: RuleEffect,
    /// Who must approve them.
    pub needs: Arc<[Need]>,
    /// The faults in the arguments that a standing approval pins.
    pub pin: Vec<Violation>,
    /// The caller's active standing approvals.
    pub standing: StandingActive,
}

/// Something that happens to a turn.
#[derive(Debug, Clone)]
pub enum Input {
    /// A principal answers a suspension.
    Resolve(Box<CheckedAnswer>),
    /// The holder of a link to an external wait sends its result. The link is used up if the answer is accepted.
    ResolveByLink { answer: Box<CheckedAnswer>, link: LinkId },
    /// A principal delegates its authority.
    Delegate { suspension: SuspensionId, by: Principal, to: Named, comment: Option<String> },
    /// These principals were revoked.
    Revoked { principals: Vec<PrincipalId> },
    /// The host makes a link to a suspension.
    MakeLink { suspension: SuspensionId, link: Box<LinkRecord> },
    /// A person uses a link.
    UseLink {
        suspension: SuspensionId,
        link: LinkId,
        /// The principal in whose name the link is used.
        by: PrincipalId,
    },
    /// A run of a guest by this host has ended.
    Finished(Finished),
    /// A nested turn has ended with these results, or could not be submitted.
    Returned { turn: TurnId, results: Json },
    /// A principal cancels the turn.
    Cancel { by: Principal },
    /// Time has passed.
    Tick(Tick),
    /// The last client that could carry out these calls has left.
    ClientsLeft { calls: Vec<CallIndex> },
    /// These runs of hosts have ended. Their guests no longer run.
    HostsEnded(EndedHosts),
}

/// Runs of hosts that have ended, as far as a turn needs them.
#[derive(Debug, Clone, Default)]
pub struct EndedHosts {
    /// Those of them that own a running call of the turn.
    pub owners: Vec<OwnerId>,
    pub recorded: LastRuns,
}

/// The last run of each running call that recorded a result in its journal.
pub type LastRuns = Vec<(CallIndex, u32)>;

/// The end of a run of a guest.
#[derive(Debug, Clone)]
pub struct Finished {
    pub call: CallIndex,
    pub attempt: u32,
    pub ended: RunEnd,
    /// The policy's verdict on the step that the call waits for.
    pub verdict: Verdict,
    /// `None`: the guest never ran.
    pub receipt: Option<Receipt>,
    /// The last run of the call that recorded a result in its journal. It counts if the call could not be continued.
    pub recorded: Option<u32>,
}

impl Finished {
    /// The end of a run without a verdict, a receipt and a journal.
    #[must_use]
    pub fn new(call: CallIndex, attempt: u32, ended: impl Into<RunEnd>) -> Self {
        Self { call, attempt, ended: ended.into(), verdict: Verdict::default(), receipt: None, recorded: None }
    }
}

/// The facts about a turn when time has passed.
#[derive(Debug, Clone)]
pub struct Tick {
    /// The calls that this host runs now.
    pub alive: Vec<CallIndex>,
    /// The client calls for whose tool a client is attached.
    pub attended: Vec<CallIndex>,
    /// Since when clients could attach to this host.
    pub open_since: Timestamp,
    /// The verdicts of the policy rechecks before timeout approvals. A suspension without one continues to wait.
    pub rechecked: Vec<(SuspensionId, Verdict)>,
    pub ended: EndedHosts,
}
