//! Submitting turns. A repeated submission of the same calls with the same ids returns the recorded turn.

use std::sync::Arc;

use domain::{
    Json, Principal, PrincipalId, Refusal, StandingId, Turn, TurnId, Violation,
    call::Plan,
    principal::Role,
    refusal::NotAllowed,
    tool::Executor,
    turn::{Requested, Submission},
};
use tokio::task::AbortHandle;

use super::{Handle, run_uncancelled};
use crate::error::{Difference, Error, Forbidden, RequestPart, Resource};
use crate::exact;
use crate::pipeline::{Ancestors, Decided, unfinished};
use crate::ports::{AppendError, Footprint, FoundSubmission, Loaded, StoreFault, Tombstone};
use crate::request::{Bounds, NewNested, Submitted, TurnRequest};
use crate::shared::Shared;
use crate::stop::Calls;
use crate::tracker::Reservation;

impl Handle {
    /// Submits a turn. When this returns, a durable turn is on disk, and its calls without a gate are running. An
    /// ephemeral turn has settled.
    ///
    /// # Errors
    /// [`Error`]; nothing of the turn happens.
    pub async fn submit(&self, by: &Principal, request: TurnRequest) -> Result<Submitted, Error> {
        if !self.may_be_ephemeral(&request) {
            return self.submit_here(by, request).await;
        }
        // The guests of an ephemeral turn run in the task that submits it, so that task belongs where guests run.
        let (handle, by, calls) = (self.clone(), by.clone(), Arc::<Calls>::default());
        let begun = calls.clone();
        let task =
            self.inner.shared.guest_runtime.spawn(async move { handle.submit_stoppable(&by, request, &begun).await });
        let _leave = LeaveOnDrop { task: task.abort_handle(), calls, shared: &self.inner.shared };
        let hangs = self.inner.readers.indexes.hangs(task.id());
        tokio::select! {
            biased;
            submitted = task => submitted
                .unwrap_or_else(|error| Err(unfinished(format!("the task that carried it out ended: {error}")))),
            fault = hangs => Err(fault.into()),
        }
    }

    /// As [`Handle::submit`], and runs the guests of an ephemeral turn in the calling task, for callers that are on the
    /// guests' runtime already. If the future is dropped, its guests are aborted.
    ///
    /// # Errors
    /// [`Error`]; nothing of the turn happens.
    pub async fn submit_here(&self, by: &Principal, request: TurnRequest) -> Result<Submitted, Error> {
        self.submit_stoppable(by, request, &Arc::default()).await
    }

    /// Submits a nested turn. When this returns, it is on disk.
    ///
    /// # Errors
    /// As [`Handle::submit`].
    pub(crate) async fn submit_nested(
        &self,
        by: &Principal,
        request: TurnRequest,
        new: &NewNested,
    ) -> Result<(), Error> {
        self.submit_new(by, request, &Arc::default(), Some(new)).await.map(drop)
    }

    /// As [`Handle::submit_here`]. The calls of an ephemeral turn can be stopped through `running`.
    async fn submit_stoppable(
        &self,
        by: &Principal,
        request: TurnRequest,
        running: &Arc<Calls>,
    ) -> Result<Submitted, Error> {
        if request.conversation.is_of_nested() {
            return Err(Forbidden::Nested.into());
        }
        self.submit_new(by, request, running, None).await
    }

    async fn submit_new(
        &self,
        by: &Principal,
        request: TurnRequest,
        running: &Arc<Calls>,
        nested: Option<&NewNested>,
    ) -> Result<Submitted, Error> {
        self.check(by, &request)?;
        // A call that runs may still need its nested turns.
        if nested.is_none() {
            self.check_open()?;
        }
        let replayed = |turn| Submitted { turn, replayed: true, ephemeral: false };
        let keeper = (!self.may_be_ephemeral(&request)).then_some(&by.id);
        let found = self.find(&request, keeper).await?;
        let mut count = Count { is_done: false, kept_bytes: found.kept_bytes, open_turns: found.open_turns };
        if let Some(turn) = self.recorded(by, &request, found).await? {
            return Ok(replayed(turn));
        }
        if self.is_disk_low() {
            return Err(Error::DiskLow);
        }
        self.check_loaded(&request)?;
        let mut used_up = 0;
        loop {
            match self.submit_once(by, &request, (running, nested), used_up < MAX_USED_UP, &mut count).await {
                Ok(SubmitResult::Submitted(submitted)) => return Ok(submitted),
                // Somebody used or revoked it meanwhile. The calls are planned again, without it.
                Ok(SubmitResult::StandingUsedUp(id)) if used_up < MAX_USED_UP => self.inner.reread(id).await?,
                Ok(SubmitResult::StandingUsedUp(id)) => {
                    return Err(AppendError::StandingSpent(id).into_fault("submit a turn").into());
                }
                // The same turn may have been submitted twice at once, and the other has taken the last of the quota.
                Err(Error::Busy(busy)) => {
                    let found = self.find(&request, None).await?;
                    return self.recorded(by, &request, found).await?.map(replayed).ok_or(Error::Busy(busy));
                }
                Err(error) => return Err(error),
            }
            used_up += 1;
        }
    }

    /// Submits a turn that is not recorded yet. Standing approvals count only with `use_standing`.
    async fn submit_once(
        &self,
        by: &Principal,
        request: &TurnRequest,
        (running, nested): (&Arc<Calls>, Option<&NewNested>),
        use_standing: bool,
        count: &mut Count,
    ) -> Result<SubmitResult, Error> {
        let pipeline = &self.inner.pipeline;
        let tracker = &pipeline.tracker;
        tracker.ready().await?;
        let stored = match count.open_turns.take() {
            Some(open) => open,
            None => pipeline.peers.open_turns(Some(&by.id)).await?.unwrap_or_default(),
        };
        let mut reservation = tracker.reserve(&by.id, request, stored)?;
        if !self.may_be_ephemeral(request) {
            self.count_new(by, request, count).await?;
        }
        let texts = request.calls.iter().flat_map(|call| [call.arguments.size(), call.result_size()]).collect();
        let memory = tracker.values(&by.id, texts).await;
        let (calls, standing_used) =
            self.plan_calls(by, request, nested.map(|new| new.parent.clone()), use_standing).await?;
        drop(memory);
        let ephemeral = self.may_be_ephemeral(request) && calls.iter().all(never_waits);
        if !ephemeral {
            self.count_new(by, request, count).await?;
        }
        let submission = Submission {
            turn: nested.map_or_else(|| TurnId::from_bits((self.inner.shared.mint)()), |new| new.turn),
            conversation: request.conversation.clone(),
            caller: by.id.clone(),
            rejection: request.rejection,
            context: request.context.clone(),
            parent: nested.map(|new| new.parent.clone()),
            calls,
        };
        // The policy may have taken long to answer.
        self.inner.shared.principals.refresh().await;
        if self.is_revoked(by) {
            return Err(Refusal::NotAllowed(NotAllowed::Revoked).into());
        }
        let principals = self.inner.shared.principals.as_ref();
        if let Some(ended) = standing_used.iter().find(|used| !used.counts(principals)) {
            return Ok(SubmitResult::StandingUsedUp(ended.id));
        }
        let (events, after) = self.inner.shared.with_context(|cx| Turn::submit(submission, cx))?;
        reservation.calls(after.effects(self.inner.shared.owner).count())?;
        let decided = Decided { before: None, events, after };
        if ephemeral {
            let turn = pipeline.run_ephemeral(decided, reservation, running.clone()).await?;
            return Ok(SubmitResult::Submitted(Submitted { turn, replayed: false, ephemeral: true }));
        }
        let (turn, replayed) = match self.begin(decided, reservation).await? {
            Begun::Now(turn) => (*turn, false),
            Begun::StandingUsedUp(id) => return Ok(SubmitResult::StandingUsedUp(id)),
            // The same turn was submitted twice at once, and the other was first.
            Begun::Before => match self.recorded(by, request, self.find(request, None).await?).await? {
                Some(turn) => (turn, true),
                None => return Err(AppendError::Conflict.into_fault("submit a turn").into()),
            },
        };
        Ok(SubmitResult::Submitted(Submitted { turn, replayed, ephemeral: false }))
    }

    /// Checks that its caller may keep one more turn, and counts the turn against its rates, once.
    async fn count_new(&self, by: &Principal, request: &TurnRequest, count: &mut Count) -> Result<(), Error> {
        if count.is_done {
            return Ok(());
        }
        let kept = match count.kept_bytes {
            Some(kept) => kept,
            None => self.inner.readers.indexes.kept_bytes(&by.id).await?,
        };
        self.inner.pipeline.tracker.count_new(&by.id, request, kept, self.inner.shared.clock.now())?;
        count.is_done = true;
        Ok(())
    }

    /// Whether a turn may be ephemeral: its caller asks for that, and the operator allows it.
    fn may_be_ephemeral(&self, request: &TurnRequest) -> bool {
        request.ephemeral && self.inner.shared.settings.ephemeral
    }

    /// Commits a new turn and performs its effects.
    async fn begin(&self, decided: Decided, mut reservation: Reservation) -> Result<Begun, Error> {
        let pipeline = self.inner.pipeline.clone();
        run_uncancelled("submit a turn", async move {
            let ancestors = pipeline.ancestors(decided.after.parent.as_deref()).await?;
            // Held until the turn is committed.
            let Some(locked) = ancestors.awaiting(decided.after.id).await? else {
                return Err(Error::NotFound(Resource::Call));
            };
            let below = match ancestors.outermost(&locked, decided.after.id) {
                Some(outermost) => Some((outermost, pipeline.calls_below(outermost, decided.after.calls.len()).await?)),
                None => None,
            };
            let unchanged = Ancestors::unchanged(&locked);
            match pipeline.begin(decided, unchanged, &mut reservation).await {
                Ok(turn) => {
                    if let Some(((outermost, call), count)) = below {
                        pipeline.below.set(outermost.id, call, count);
                    }
                    Ok(Begun::Now(Box::new(turn)))
                }
                Err(AppendError::CallExists(_)) => Ok(Begun::Before),
                Err(AppendError::StandingSpent(id)) => Ok(Begun::StandingUsedUp(id)),
                Err(AppendError::NotOwner) => Err(Error::NotFound(Resource::Conversation)),
                Err(error) => Err(error.into_fault("submit a turn").into()),
            }
        })
        .await
    }

    fn check(&self, by: &Principal, request: &TurnRequest) -> Result<(), Error> {
        if !by.roles.has(Role::Caller) && !by.roles.has(Role::Admin) {
            return Err(Forbidden::Submit.into());
        }
        if by.conversation.as_ref().is_some_and(|only| *only != request.conversation) {
            return Err(Error::NotFound(Resource::Conversation));
        }
        // Before anything is looked up, so that a refused request costs nothing.
        Refusal::of_count(request.calls.len(), self.inner.shared.settings.max_calls)?;
        let bounds = &self.inner.shared.bounds;
        let context = request.context.as_ref().map_or(0, |context| context.size());
        Bounds::check(RequestPart::TurnContext, context, bounds.context)?;
        sound("/context", request.context.as_ref())?;
        for call in &request.calls {
            Bounds::check(RequestPart::ToolName, call.tool.len(), bounds.name)?;
            Bounds::check(RequestPart::CallArguments, call.arguments.size(), bounds.arguments)?;
            Bounds::check(RequestPart::CallResult, call.result_size(), bounds.arguments)?;
            if let Some(origin) = &call.origin {
                Bounds::check(RequestPart::CallOrigin, origin.members.size(), bounds.context)?;
            }
        }
        Ok(())
    }

    /// Refuses a turn with a tool that a plugin may have which is being loaded. An outcome is final, so such a call must
    /// not end as a call to an unknown tool.
    fn check_loaded(&self, request: &TurnRequest) -> Result<(), Error> {
        let tools = self.inner.shared.tools.as_ref();
        let Some(call) = request.calls.iter().find(|call| call.ended().is_none() && tools.find(&call.tool).is_err())
        else {
            return Ok(());
        };
        // In this order: if the plugin became live in between, the call is planned with its tool.
        match tools.loading() {
            0 => Ok(()),
            plugins => Err(Error::Loading { tool: call.tool.clone(), plugins }),
        }
    }

    /// Looks up a submission. With a `keeper`, also the size of what this principal keeps.
    async fn find(&self, request: &TurnRequest, keeper: Option<&PrincipalId>) -> Result<FoundSubmission, StoreFault> {
        let calls = request.calls.iter().map(|call| call.id.clone()).collect();
        self.inner.readers.indexes.find_submission(&request.conversation, calls, keeper).await
    }

    /// The turn that was submitted with these call ids, if any of them was.
    async fn recorded(
        &self,
        by: &Principal,
        request: &TurnRequest,
        found: FoundSubmission,
    ) -> Result<Option<Turn>, Error> {
        if found.owner.is_some_and(|owner| owner != by.id) {
            return Err(Error::NotFound(Resource::Conversation));
        }
        let Some((call, id)) = found.call else { return Ok(None) };
        let _permit = self.inner.loads.permit(&by.id).await;
        let entered = self.inner.pipeline.turns.enter(id);
        let turn = match entered.read(self.inner.pipeline.log.as_ref()).await? {
            Loaded::Found(turn) => turn,
            Loaded::Removed(Tombstone { at, rule, .. }) => {
                return Err(Error::CallRemoved { call, at, rule });
            }
            Loaded::Absent => return Err(Error::NotFound(Resource::Turn)),
        };
        match difference(&turn, request) {
            None => Ok(Some(turn)),
            Some(difference) => Err(Error::CallIdTaken { call, difference }),
        }
    }
}

/// Refuses JSON that tools and people could read in several ways, or not at all.
fn sound(pointer: &str, json: Option<&Json>) -> Result<(), Refusal> {
    let Err(malformed) = json.map_or(Ok(()), Json::check) else { return Ok(()) };
    Err(Refusal::Invalid(vec![Violation {
        pointer: pointer.to_owned(),
        message: Violation::from(malformed).to_string(),
    }]))
}

/// How often standing approvals may turn out to be spent before people are asked instead. Each time somebody else has
/// used or revoked one, so the limit is high enough for many submissions at once.
const MAX_USED_UP: usize = 100;

/// Whether a turn was counted against the rates of its caller.
struct Count {
    is_done: bool,
    /// The kept bytes of the caller, if they were read.
    kept_bytes: Option<u64>,
    /// Its open turns at all hosts, if they were read just now.
    open_turns: Option<Footprint>,
}

enum SubmitResult {
    Submitted(Submitted),
    /// A call relied on this standing approval, which has no use left.
    StandingUsedUp(StandingId),
}

enum Begun {
    Now(Box<Turn>),
    /// A call of it was submitted before.
    Before,
    /// A call relied on this standing approval, which has no use left.
    StandingUsedUp(StandingId),
}

/// Whether a call cannot wait, so that a turn of such calls need not be stored.
fn never_waits(requested: &Requested) -> bool {
    match &requested.plan {
        Plan::Settle(_) => true,
        Plan::Go(pinned) => {
            pinned.executor == Executor::Server
                && !pinned.durable
                && !pinned.phases().iter().any(|phase| phase.suspends())
        }
    }
}

/// How a submission differs from the turn that is recorded under its ids.
fn difference(turn: &Turn, request: &TurnRequest) -> Option<Difference> {
    if turn.calls.len() != request.calls.len() {
        return Some(Difference::Calls);
    }
    for (recorded, asked) in turn.calls.iter().zip(&request.calls) {
        if recorded.id != asked.id {
            return Some(Difference::Calls);
        }
        if *recorded.tool != *asked.tool {
            return Some(Difference::Tool);
        }
        if !exact::same(&recorded.submitted, &asked.arguments) {
            return Some(Difference::Arguments);
        }
        let origin = asked.origin.as_ref().map(|origin| origin.members.as_str());
        if recorded.origin.as_ref().map(Json::as_str) != origin {
            return Some(Difference::Origin);
        }
    }
    None
}

/// Stops an ephemeral turn when its caller leaves. Does nothing once the turn has ended.
struct LeaveOnDrop<'a> {
    task: AbortHandle,
    calls: Arc<Calls>,
    shared: &'a Shared,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        // Once its calls run, the calls are stopped and not the task, which ends with the last of them.
        if !self.task.is_finished() && !self.calls.leave(self.shared) {
            self.task.abort();
        }
    }
}
