//! One call: its arguments, what it is pinned to, and its state.

use std::sync::Arc;

use crate::gate::{self, Phase};
use crate::{
    CallId, Digest, Json, Limits, ObservableLimits, Outcome, OwnerId, PluginName, PrincipalId, Receipt, Span,
    StandingId, Suspension, SuspensionId, Timestamp,
    approvers::Need,
    doubt::{DecidedRequest, DoubtfulRequests},
    link::SentLink,
    nested::{self, NestedTurn},
    outcome::Status,
    principal::Channel,
    step::{Step, StepEnd},
    suspension::{Asked, Closed, Decision},
    tool::{Approval, Editable, Executor, OnExpiry, Recovery},
};

/// The component and the declaration that a submitted call is bound to. A plugin that is loaded later does not change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    pub plugin: PluginName,
    /// Exactly these bytes will run.
    pub component: Digest,
    pub declaration: Digest,
    pub executor: Executor,
    /// The gate: the declaration, tightened by the operator's policy.
    pub approval: Approval,
    pub streaming: bool,
    pub timeout: Span,
    pub recovery: Recovery,
    /// Whether its code may wait in the middle.
    pub durable: bool,
    /// The surroundings of each run of a durable call. `None`: the call is not durable, or an older host accepted it. Then the
    /// limits of today apply to each run.
    pub frozen: Option<Frozen>,
    /// The terms of its waits. `None` for a call that never waits.
    pub wait: Option<Wait>,
}

/// The surroundings of a durable call, which stay the same for all of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// The version of the clocks, random numbers and journal that its guest sees.
    pub version: u32,
    pub limits: ObservableLimits,
}

impl Frozen {
    /// The version of this host. A change of what a guest sees in a later run makes another one.
    pub const VERSION: u32 = 1;

    /// For a call that is accepted now.
    #[must_use]
    pub const fn now(limits: &Limits) -> Self {
        Self { version: Self::VERSION, limits: limits.observable() }
    }
}

/// The terms of a call's waits, as its tool declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The maximum time of each wait.
    pub expires: Span,
    pub on_expiry: OnExpiry,
    /// The answers that a person may choose from.
    pub choices: Option<Arc<[String]>>,
    /// JSON Schema of the data in a person's answer.
    pub data_schema: Option<Json>,
    /// JSON Schema of a client's result.
    pub result_schema: Option<Json>,
    /// Which arguments an approver may change.
    pub editable: Editable,
}

impl Pinned {
    /// The phases of the call. Loading refuses the illegal cells of the matrix. A record with one has no phases and
    /// never runs.
    #[must_use]
    pub fn phases(&self) -> &'static [Phase] {
        gate::phases(self.executor, self.approval).unwrap_or(&[])
    }

    /// Whether a standing approval can cover this call. It cannot if a policy could not be asked, because its verdict
    /// is unknown. It cannot if named people are asked again after a kill, because they are then asked first as well.
    #[must_use]
    pub fn may_be_covered(&self, asked: &Asked) -> bool {
        !asked.policy_failed && !self.asks_again(asked)
    }

    /// Whether people whom a rule names are asked again after a kill.
    pub(crate) fn asks_again(&self, asked: &Asked) -> bool {
        self.recovery == Recovery::Ask && !asked.needs.is_empty()
    }

    /// Digest over the arguments, the component and the declaration. An approval is bound to it.
    #[must_use]
    pub fn binding(&self, arguments: &Json) -> Digest {
        Digest::of_parts(&[arguments.as_str().as_bytes(), self.component.as_bytes(), self.declaration.as_bytes()])
    }

    /// As [`Pinned::binding`], for a step of the guest's code and the value that people are asked about.
    #[must_use]
    pub fn binding_of_step(&self, step: Digest, subject: Option<&Json>) -> Digest {
        let subject = subject.map_or("", Json::as_str).as_bytes();
        Digest::of_parts(&[b"step", step.as_bytes(), subject, self.component.as_bytes(), self.declaration.as_bytes()])
    }
}

/// The plan for a requested call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It ends at once: its tool is unknown, its arguments break the schema, or a rule denies it.
    Settle(Outcome),
    /// It goes through its phases.
    Go(Arc<Pinned>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// It waits for its last suspension.
    Awaiting,
    Running(Running),
    Settled(Outcome),
}

/// A run of a guest, committed before the guest starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Starts at 1. Each dispatch after a kill adds one.
    pub attempt: u32,
    /// The host that runs it.
    pub owner: OwnerId,
    /// From then on the host no longer runs it, unless it extends the lease.
    pub lease_end: Timestamp,
}

/// A call of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The caller's id.
    pub id: CallId,
    /// The name that the caller gave. There may be no such tool.
    pub tool: Arc<str>,
    /// The arguments as submitted. A repeated submission is compared with them.
    pub submitted: Json,
    /// The arguments that will run. An approver may have edited them.
    pub arguments: Json,
    /// `None`: the call ended before it was pinned.
    pub pinned: Option<Arc<Pinned>>,
    pub state: CallState,
    /// Oldest first. The last one may be open.
    pub suspensions: Vec<(Suspension, Option<Closed>)>,
    /// Links to its suspensions, oldest first.
    pub links: Vec<SentLink>,
    /// The binding that was approved.
    pub approved: Option<Digest>,
    pub approver: Option<PrincipalId>,
    /// The standing approval that let it continue.
    pub standing: Option<StandingId>,
    /// The operator's rule or policy that decided about it.
    pub ruled_by: Option<Arc<str>>,
    /// Members of the provider's call that its result repeats: a JSON object.
    pub origin: Option<Json>,
    pub attempts: u32,
    /// The attempts before the one that was the last when a step of its code ended, or when somebody decided about its requests.
    pub attempts_before_progress: u32,
    /// When its guest first began to run.
    pub started_at: Option<Timestamp>,
    /// The usage of its guest, if one ran to its end.
    pub receipt: Option<Receipt>,
}

impl Call {
    /// The host that runs it.
    #[must_use]
    pub fn owner(&self) -> Option<OwnerId> {
        match &self.state {
            CallState::Running(running) => Some(running.owner),
            CallState::Awaiting | CallState::Settled(_) => None,
        }
    }

    #[must_use]
    pub fn open(&self) -> Option<&Suspension> {
        match (&self.state, self.suspensions.last()) {
            (CallState::Awaiting, Some((suspension, None))) => Some(suspension),
            _ => None,
        }
    }

    /// Whether an approval of this call may cover later calls: one person decides, and all people were asked who have to
    /// be.
    pub(crate) fn may_have_standing(&self, asked: &Asked) -> bool {
        let one_decides = matches!(asked.needs.as_ref(), [] | [Need { quorum: 1, .. }]);
        one_decides && self.pinned.as_ref().is_some_and(|pinned| pinned.may_be_covered(asked))
    }

    /// The number of a suspension among those of the call, from 1. The numbers never change.
    #[must_use]
    pub fn number_of(&self, id: SuspensionId) -> u32 {
        (1..).zip(&self.suspensions).find_map(|(number, (each, _))| (each.id == id).then_some(number)).unwrap_or(1)
    }

    /// The number of a step of its code, from 1. `None`: the suspension is not a step.
    #[must_use]
    pub fn step_number(&self, id: SuspensionId) -> Option<u32> {
        let steps = self.suspensions.iter().map(|(suspension, _)| suspension).filter(|each| each.step.is_some());
        (1..).zip(steps).find_map(|(number, each)| (each.id == id).then_some(number))
    }

    /// A suspension of this call, open or closed.
    #[must_use]
    pub fn suspension(&self, id: SuspensionId) -> Option<&(Suspension, Option<Closed>)> {
        self.suspensions.iter().find(|(suspension, _)| suspension.id == id)
    }

    /// The binding that an approval of this suspension has if it edits the value to `edited`.
    #[must_use]
    pub(crate) fn binding(&self, suspension: &Suspension, edited: Option<&Json>) -> Digest {
        let Some(pinned) = &self.pinned else { return suspension.digest };
        let of_step = suspension.step.as_ref().map(|step| step.digest);
        match of_step.or_else(|| suspension.doubtful_requests().map(DoubtfulRequests::digest)) {
            None => pinned.binding(edited.unwrap_or(&self.arguments)),
            Some(digest) => pinned.binding_of_step(digest, edited.or(suspension.subject())),
        }
    }

    /// Who approved it, in the order of their approvals. Several, if several were needed.
    #[must_use]
    pub fn approvers(&self) -> Vec<&PrincipalId> {
        // Who approved something in the middle of its code did not approve the call.
        let of_call = self.suspensions.iter().rev().filter(|(suspension, _)| !suspension.is_inside());
        let closed = of_call.filter_map(|(suspension, closed)| Some((suspension, closed.as_ref()?)));
        let mut approvers = closed.map(|(suspension, closed)| self.approvers_of(suspension, closed));
        // A standing approval or a timeout approves without an answer.
        approvers.find(|approvers| !approvers.is_empty()).unwrap_or_else(|| self.approver.iter().collect())
    }

    /// Who approved what this suspension asked about, in the order of their approvals. Empty, unless people approved it.
    #[must_use]
    pub fn approvers_of<'a>(&self, suspension: &'a Suspension, closed: &'a Closed) -> Vec<&'a PrincipalId> {
        let answer = closed.resolution().filter(|answer| answer.decision == Decision::Approve);
        let (Some(approval), Some(answer)) = (suspension.approval(), answer) else { return Vec::new() };
        let mut approvers = Vec::new();
        if !approval.votes.is_empty() {
            let arguments = answer.arguments.as_ref().unwrap_or_else(|| self.asked_about(suspension.id));
            let binding = self.binding(suspension, Some(arguments));
            let of_others = approval.votes.iter().filter(|vote| vote.binding == binding && vote.by != closed.by);
            approvers.extend(of_others.map(|vote| &vote.by));
        }
        approvers.push(&closed.by);
        approvers
    }

    /// The value that a suspension asks about. A step of the guest's code brings its own. Otherwise it is the arguments:
    /// the submitted ones, or the last edit of an approval before it.
    #[must_use]
    pub fn asked_about(&self, id: SuspensionId) -> &Json {
        self.subject_of(id).unwrap_or_else(|| self.arguments_before(id))
    }

    /// The submitted arguments, if a suspension asks about those that an approval before it edited.
    #[must_use]
    pub fn edited_before(&self, id: SuspensionId) -> Option<&Json> {
        let is_edited = self.subject_of(id).is_none() && *self.arguments_before(id) != self.submitted;
        is_edited.then_some(&self.submitted)
    }

    fn subject_of(&self, id: SuspensionId) -> Option<&Json> {
        self.suspension(id)?.0.subject()
    }

    /// The arguments when a suspension was opened.
    fn arguments_before(&self, id: SuspensionId) -> &Json {
        let before = self.suspensions.iter().take_while(|(suspension, _)| suspension.id != id);
        // The edit of a step is about its value.
        let of_call = before.filter(|(suspension, _)| !suspension.is_inside());
        let edits = of_call.filter_map(|(_, closed)| closed.as_ref()?.resolution()?.arguments.as_ref());
        edits.last().unwrap_or(&self.submitted)
    }

    /// The bytes of the questions, values and answers of its steps.
    #[must_use]
    pub fn step_bytes(&self) -> usize {
        let steps = self.suspensions.iter().filter(|(suspension, _)| suspension.step.is_some());
        steps.map(|(suspension, closed)| suspension.step_bytes() + closed.as_ref().map_or(0, Closed::size)).sum()
    }

    /// The usage of the runs that ended with a step.
    pub(crate) fn receipts_of_steps(&self) -> impl Iterator<Item = Receipt> {
        self.suspensions.iter().filter_map(|(suspension, _)| suspension.step.as_ref()?.receipt)
    }

    /// The steps of its code that have ended, oldest first.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.suspensions.iter().filter_map(|(suspension, closed)| {
            let (step, closed) = (suspension.step.as_ref()?, closed.as_ref()?);
            let end = StepEnd::of(suspension, closed)?;
            Some(Step { digest: step.digest, ended_at: closed.at, end })
        })
    }

    /// The decisions about its requests that were in doubt, oldest first.
    pub fn decided_requests(&self) -> impl Iterator<Item = DecidedRequest> {
        let answers = self.suspensions.iter().filter_map(|(suspension, closed)| {
            let answer = closed.as_ref()?.resolution()?;
            suspension.doubtful_requests()?.decided(answer.arguments.as_ref()).ok()
        });
        answers.flatten()
    }

    /// The number of the last run, from 1. A call runs again after a kill of the host, and after each step of a durable
    /// call and each decision about its requests.
    #[must_use]
    pub fn run(&self) -> u32 {
        let is_continued = |(suspension, closed): &&(Suspension, Option<Closed>)| {
            suspension.doubtful_requests().is_some() && closed.is_some()
        };
        let continued = self.steps().count() + self.suspensions.iter().filter(is_continued).count();
        self.attempts.saturating_add(u32::try_from(continued).unwrap_or(u32::MAX))
    }

    /// The number of attempts since the last step of its code ended, with the one in which it ended. So a call that waits for weeks
    /// does not end because the host was killed a few times meanwhile.
    #[must_use]
    pub const fn tries(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before_progress)
    }

    /// The same since its last progress: a step, or the last run that recorded a result in its journal. The size of a journal is
    /// limited, so this has an end.
    #[must_use]
    pub fn tries_since(&self, recorded: Option<u32>) -> u32 {
        let since_result = recorded.map_or(u32::MAX, |run| self.run().saturating_sub(run).saturating_add(1));
        self.tries().min(since_result)
    }

    /// Whether an external system sent it a result, or a program of the caller answered a question in the middle of its code,
    /// directly or to a call of its nested turns.
    pub(crate) fn has_received(&self) -> bool {
        let by_client = |(suspension, closed): &(Suspension, Option<Closed>)| {
            let answer = closed.as_ref().and_then(Closed::resolution).filter(|_| suspension.is_inside());
            answer.is_some_and(|answer| answer.channel == Some(Channel::McpForm))
        };
        self.suspensions.iter().any(by_client)
            || self.steps().any(|step| match step.end {
                StepEnd::Received(_) => true,
                StepEnd::Returned(results) => !nested::is_trusted(&results),
                StepEnd::Answered(_)
                | StepEnd::Approved(_)
                | StepEnd::Denied(_)
                | StepEnd::Expired
                | StepEnd::Elapsed => false,
            })
    }

    /// Whether a client or a provider carries it out. The host controls neither its result nor its failure.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pinned| match pinned.executor {
            Executor::Client | Executor::Provider => true,
            Executor::Server | Executor::Human => false,
        })
    }

    /// The nested turns that it has asked for, oldest first.
    pub fn nested(&self) -> impl Iterator<Item = &NestedTurn> {
        self.suspensions.iter().filter_map(|(suspension, _)| suspension.nested())
    }

    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            CallState::Settled(outcome) => Some(outcome),
            CallState::Awaiting | CallState::Running(_) => None,
        }
    }

    /// Its progress as the caller sees it.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.state {
            CallState::Awaiting => Status::Awaiting,
            CallState::Running(_) => Status::Running,
            CallState::Settled(Outcome::Ok { .. }) => Status::Resolved,
            CallState::Settled(_) => Status::Errored,
        }
    }

    /// Whether a guest began to run, or a client was asked to carry it out. From then on it may have taken effect.
    #[must_use]
    pub fn has_started(&self) -> bool {
        let is_with_client = self.pinned.as_ref().is_some_and(|pinned| {
            let is_approved = pinned.approval == Approval::Auto || self.approved.is_some();
            is_approved && pinned.phases().contains(&Phase::Client)
        });
        self.attempts > 0 || is_with_client
    }

    /// Whether the gate lets it run now. Either it is not gated, or a committed approval has the digest of exactly
    /// these arguments, this component and this declaration.
    pub(crate) fn may_run(&self) -> bool {
        match &self.pinned {
            None => false,
            Some(pinned) if pinned.approval == Approval::Auto => true,
            Some(pinned) => self.approved == Some(pinned.binding(&self.arguments)),
        }
    }
}

crate::names! {
    /// The level of a line of a guest's log.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        /// For the author of the plugin.
        Debug = "debug",
        /// Also the guest's standard output.
        Info = "info",
        /// Also the guest's standard error.
        Warn = "warn",
        /// The call will have no result.
        Error = "error",
    }
}
