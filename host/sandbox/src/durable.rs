//! A durable call: steps that have ended answer its waits, and its clocks and random numbers are the same in each run.
//!
//! Each run repeats the code before the last step. It either reaches the code after it, or asks for something that differs
//! from the earlier run, and then it ends before it has an effect. `question.rs` reads what a guest asks, `timers.rs` makes
//! timers of steps, `clock.rs` has the virtual clock and the seeded random numbers. `paused.rs` is for instances that are kept
//! during a wait, so that the next run repeats nothing.

mod clock;
mod paused;
mod question;
mod timers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capabilities::journal::{Journal, JournalError, RunTime};
use capabilities::{Grants, States, call_refusal};
use domain::step::{MAX_STEPS, Step, StepEnd, StepRequest, StepWait};
use domain::{Digest, Json, PluginName, Timestamp};

pub(crate) use self::clock::{Seeded, VirtualClock};
pub(crate) use self::paused::{PausedGuest, Waits};
use self::question::Asked;
pub(crate) use self::question::{Kind, redacted};
pub(crate) use self::timers::Timers;
use crate::clock::{GuestClock, Stopwatch};
use crate::job::{Durable, Job};
use crate::report::{Log, Sink};
use crate::run::Run;

/// The reason why a run ended without a result of the guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Interrupted {
    #[error("the call waits")]
    Waits(Box<StepRequest>),
    /// The text names the step.
    #[error("the run differs from the one before it: {0}")]
    Diverged(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The guest asked in a way that it may not.
    #[error("{0}")]
    Refused(String),
    /// The call has [`MAX_STEPS`] steps.
    #[error("the tool waited more than {MAX_STEPS} times in one call")]
    TooManySteps,
}

/// Why a wait has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    Denied(Option<String>),
    Expired,
    Cancelled,
    NotGranted(String),
}

/// The message for a tool that waits and may not.
pub(crate) const NOT_DURABLE: &str =
    "only a durable tool can wait in the middle of a call: declare it with the option `\"durable\": true`";

/// Timers of less than this keep the instance.
const SHORT: Duration = Duration::from_secs(1);

/// The maximum wait for time. A longer one ends there.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The part of a run that repeats an earlier one: its log is dropped, and its time is measured apart.
#[derive(Clone)]
pub(crate) struct RepeatedPart {
    pub(crate) log: Log,
    pub(crate) watch: Stopwatch,
}

impl RepeatedPart {
    fn continues(&self, repeats: bool) {
        self.log.mute(repeats);
        self.watch.repeats(repeats);
    }
}

/// The time of a run, for its journal: the entries move the virtual clock.
struct Moves {
    clock: Arc<VirtualClock>,
    real: Arc<dyn GuestClock>,
    part: RepeatedPart,
}

impl RunTime for Moves {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.real.wall().as_millis()).unwrap_or(u64::MAX))
    }

    fn reached(&self, at: Timestamp, repeats: bool) {
        self.clock.reach(at);
        self.part.continues(repeats);
    }
}

/// The parts of a call that a wait concerns, besides its [`Replay`].
pub(crate) struct RunParts<'a> {
    pub(crate) run: &'a mut Run,
    pub(crate) states: &'a mut States,
}

impl RunParts<'_> {
    /// Ends the run at a wait.
    fn pause(&mut self, request: StepRequest) -> Waits {
        self.run.finish();
        Waits { request, spent: self.run.spent(self.states), wrote: self.states.wrote() }
    }

    /// Begins the run that continues the guest.
    fn continues(&mut self) {
        self.run.restart(self.states);
    }
}

/// The run of a durable call, or the runs that continue the same instance.
pub(crate) struct Replay {
    steps: Arc<[Step]>,
    /// The number of steps that the guest has passed.
    passed: usize,
    /// Without it, no later run repeats this one.
    journal: Option<Journal>,
    plugin: PluginName,
    grants: Arc<Grants>,
    clock: Arc<VirtualClock>,
    real: Arc<dyn GuestClock>,
    part: RepeatedPart,
    sink: Arc<dyn Sink>,
    /// If the instance may be kept while the call waits.
    paused: Option<Arc<PausedGuest>>,
    /// The guest knows that it should stop.
    is_stopping: bool,
    /// How often the guest could have learned that it should stop.
    stop_checks: u64,
    /// The timers that the guest holds, by the number of their pollable: nanoseconds of the virtual clock.
    timers: BTreeMap<u32, u64>,
}

impl Replay {
    pub(crate) fn new(
        durable: &Durable,
        job: &Job,
        clock: Arc<VirtualClock>,
        real: Arc<dyn GuestClock>,
        part: RepeatedPart,
        (sink, paused): (Arc<dyn Sink>, Option<Arc<PausedGuest>>),
    ) -> Self {
        let time = Arc::new(Moves { clock: Arc::clone(&clock), real: Arc::clone(&real), part: part.clone() });
        let recording = job.recording.clone();
        let journal = recording.map(|recording| Journal::new(durable, recording, time));
        let replay = Self {
            steps: Arc::clone(&durable.steps),
            passed: 0,
            journal,
            plugin: job.plugin.clone(),
            grants: Arc::clone(&job.grants),
            clock,
            real,
            part,
            sink,
            paused,
            is_stopping: false,
            stop_checks: 0,
            timers: BTreeMap::new(),
        };
        replay.part.continues(replay.repeats());
        replay
    }

    /// Whether the guest still repeats what an earlier run did.
    pub(crate) fn repeats(&self) -> bool {
        self.passed < self.steps.len() || self.journal.as_ref().is_some_and(Journal::repeats)
    }

    /// Whether a later run repeats this one.
    pub(crate) fn has_begun(&self) -> bool {
        !self.steps.is_empty() || self.journal.as_ref().is_some_and(Journal::has_begun)
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Whether the guest sees that its call should stop. From then on the call waits no more. The journal has the point at
    /// which the guest sees it first, so that a run after a kill sees the same.
    ///
    /// # Errors
    /// [`Interrupted`] if the journal is full.
    pub(crate) fn stop_requested(&mut self, requested: bool) -> Result<bool, Interrupted> {
        if !self.is_stopping {
            self.stop_checks += 1;
            self.is_stopping = match &self.journal {
                Some(journal) => journal.stops_at(self.stop_checks, requested)?,
                None => requested && !self.repeats(),
            };
        }
        Ok(self.is_stopping)
    }

    /// Waits for a person, an external system or other tools, and returns the answer.
    ///
    /// # Errors
    /// [`Interrupted`]
    pub(crate) async fn ask(
        &mut self,
        parts: RunParts<'_>,
        kind: Kind,
        question: &str,
    ) -> Result<Result<Json, Unanswered>, Interrupted> {
        let asked = Asked::read(kind, question);
        if let Some(why) = self.refusal(&asked)? {
            return Ok(Err(Unanswered::NotGranted(why)));
        }
        let Asked { digest, wait } = asked;
        let Some(end) = self.pass(parts, digest, |_| wait.map_err(Interrupted::Refused)).await? else {
            return Ok(Err(Unanswered::Cancelled));
        };
        Ok(match (kind, end) {
            (Kind::Answer, StepEnd::Answered(json))
            | (Kind::Approval, StepEnd::Approved(json))
            | (Kind::External, StepEnd::Received(json))
            | (Kind::Calls, StepEnd::Returned(json)) => Ok(json),
            (_, StepEnd::Denied(comment)) => Err(Unanswered::Denied(comment)),
            (_, StepEnd::Expired) => Err(Unanswered::Expired),
            (
                _,
                StepEnd::Answered(_)
                | StepEnd::Approved(_)
                | StepEnd::Received(_)
                | StepEnd::Returned(_)
                | StepEnd::Elapsed,
            ) => {
                return Err(self.diverged("it asks a person at", self.passed));
            }
        })
    }

    /// Why the guest may not call these tools. A run that repeats an earlier one gets the same answer as that one.
    fn refusal(&mut self, asked: &Asked) -> Result<Option<String>, Interrupted> {
        if let Some(why) = self.journal.as_ref().and_then(|journal| journal.calls_refused(asked.digest)) {
            return Ok(Some(why.as_ref().to_owned()));
        }
        let Ok(StepWait::Calls(requested)) = &asked.wait else { return Ok(None) };
        if self.repeats() {
            return Ok(None);
        }
        let why = call_refusal(&self.plugin, self.grants.as_ref(), requested.iter().map(|call| &*call.tool));
        if let (Some(why), Some(journal)) = (&why, &self.journal) {
            journal.refuse_calls(asked.digest, why)?;
        }
        Ok(why)
    }

    /// Waits for this time.
    ///
    /// # Errors
    /// [`Interrupted`]
    pub(crate) async fn sleep(&mut self, parts: RunParts<'_>, millis: u64) -> Result<(), Interrupted> {
        let digest = Digest::of_parts(&[b"toolgate:plugin/durable.sleep", &millis.to_be_bytes()]);
        let span = Duration::from_millis(millis).min(MAX_WAIT);
        let deadline = self.clock.now().saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        self.until(parts, digest, deadline).await
    }

    /// The divergence of a run that ends with a result before it has passed all steps.
    pub(crate) fn unfinished(&self) -> Option<Interrupted> {
        if self.passed < self.steps.len() {
            return Some(self.diverged("it ends before", self.passed + 1));
        }
        self.journal.as_ref()?.is_passed().err().map(Interrupted::Journal)
    }

    /// Passes the next step. `None` if the call is being cancelled.
    ///
    /// # Errors
    /// [`Interrupted`] if the step has not ended and the instance is not kept, or if it is another step.
    async fn pass(
        &mut self,
        mut parts: RunParts<'_>,
        digest: Digest,
        wait: impl FnOnce(&Self) -> Result<StepWait, Interrupted>,
    ) -> Result<Option<StepEnd>, Interrupted> {
        if self.steps.len() <= self.passed {
            let stop_checks = self.stop_checks;
            if !self.may_wait()? {
                return Ok(None);
            }
            let request = StepRequest { digest, wait: wait(self)? };
            let Some(paused) = self.paused.clone() else { return Err(Interrupted::Waits(Box::new(request))) };
            self.steps = paused.until_continued(parts.pause(request)).await;
            parts.continues();
            // A run that repeats the code before this step does not check here.
            self.stop_checks = stop_checks;
        }
        let Some(step) = self.steps.get(self.passed).filter(|step| step.digest == digest) else {
            return Err(self.diverged("it asks for something else at", self.passed + 1));
        };
        if let Some(journal) = &self.journal {
            journal.pass_step()?;
        }
        let end = step.end.clone();
        self.clock.reach(step.ended_at);
        self.passed += 1;
        self.part.continues(self.repeats());
        Ok(Some(end))
    }

    /// Whether the call may wait for a new step. If not, it is being cancelled.
    ///
    /// # Errors
    /// [`Interrupted`] if the run before came further, or if there are too many steps.
    fn may_wait(&mut self) -> Result<bool, Interrupted> {
        let requested = self.sink.stop_requested();
        let stops = self.stop_requested(requested)?;
        if let Some(journal) = &self.journal {
            journal.is_passed()?;
        }
        if !stops && self.passed >= MAX_STEPS {
            return Err(Interrupted::TooManySteps);
        }
        Ok(!stops)
    }

    /// The error of a run that does something else than the one before it.
    fn diverged(&self, what: &str, step: usize) -> Interrupted {
        Interrupted::Diverged(format!("{what} step {step} of {}", self.steps.len()))
    }

    /// Waits until the time that servers asked for, unless the call is being stopped.
    async fn wait_for_servers(&mut self, parts: RunParts<'_>, until: Timestamp) -> Result<(), Interrupted> {
        let digest = Digest::of_parts(&[b"wasi:http rate limit", &until.millis().to_be_bytes()]);
        let ended = self.pass(parts, digest, |_| Ok(StepWait::RateLimit(until))).await?;
        if ended.is_some_and(|end| end != StepEnd::Elapsed) {
            return Err(self.diverged("it waits for a server at", self.passed));
        }
        Ok(())
    }

    /// Waits until a time of the virtual clock, in nanoseconds. The instance stays for a short time. A run that repeats an
    /// earlier one does not wait, because that one did.
    async fn until(&mut self, parts: RunParts<'_>, digest: Digest, deadline: u64) -> Result<(), Interrupted> {
        let left = Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
        if left >= SHORT {
            let wait = |replay: &Self| Ok(StepWait::Time(replay.real_time_in(left.min(MAX_WAIT))));
            let ended = self.pass(parts, digest, wait).await?;
            if ended.is_some_and(|end| end != StepEnd::Elapsed) {
                return Err(self.diverged("it waits for a time at", self.passed));
            }
        } else if !self.repeats() {
            crate::clock::pause(left).await;
        }
        self.clock.reach_nanos(deadline);
        Ok(())
    }

    /// The time after this span. The virtual clock is behind the real one while the guest computes, and a wait must not be
    /// shorter than requested.
    fn real_time_in(&self, span: Duration) -> Timestamp {
        let at = self.real.wall().saturating_add(span).as_nanos().div_ceil(1_000_000);
        Timestamp::from_millis(u64::try_from(at).unwrap_or(u64::MAX))
    }
}
