//! Submitting turns. The same calls under the same ids are the same turn, however often and from wherever they come.

use std::sync::Arc;

use domain::{
    CallId, Effect, Executor, Input, Json, Plan, Principal, Refusal, Requested, Role, StandingId, Submission, Turn,
    TurnId,
};
use tokio::task::{AbortHandle, JoinSet};

use super::{Handle, to_the_end};
use crate::dispatcher::{Parts, fault};
use crate::error::Error;
use crate::exact;
use crate::feed::{Live, size};
use crate::ledger::Admission;
use crate::ports::{AppendError, Commit, StoreFault};
use crate::request::{Bounds, ProviderResult, Submitted, TurnRequest};
use crate::stop::{Calls, Running, Stop};
use crate::{index, outbox, standing};

impl Handle {
    /// Submits a turn. A durable turn is on disk when this returns, and its ungated calls are running. An ephemeral turn
    /// has settled when this returns.
    ///
    /// # Errors
    /// [`Error`]; nothing of the turn happens.
    pub async fn submit(&self, by: &Principal, request: TurnRequest) -> Result<Submitted, Error> {
        if !self.may_be_ephemeral(&request) {
            return self.submit_here(by, request).await;
        }
        // The guests of an ephemeral turn run in the task that submits it, and so it belongs where guests run.
        let (handle, by, calls) = (self.clone(), by.clone(), Arc::<Calls>::default());
        let begun = calls.clone();
        let task = self.inner.parts.guests.spawn(async move { handle.submit_until(&by, request, &begun).await });
        let _leave = LeaveOnDrop { task: task.abort_handle(), calls, parts: &self.inner.parts };
        task.await.unwrap_or_else(|error| Err(no_end(format!("the task that carried it out ended: {error}"))))
    }

    /// As [`Handle::submit`], and runs the guests of an ephemeral turn in the calling task: for callers that live on the
    /// guests' runtime themselves and want to spare the hop. Its guests end as they stand when the future is dropped.
    ///
    /// # Errors
    /// [`Error`]; nothing of the turn happens.
    pub async fn submit_here(&self, by: &Principal, request: TurnRequest) -> Result<Submitted, Error> {
        self.submit_until(by, request, &Calls::default()).await
    }

    /// As [`Handle::submit_here`]; whoever shares `running` can stop the calls of an ephemeral turn.
    async fn submit_until(&self, by: &Principal, request: TurnRequest, running: &Calls) -> Result<Submitted, Error> {
        self.check(by, &request)?;
        let replayed = |turn| Submitted { turn, replayed: true, ephemeral: false };
        if let Some(turn) = self.recorded(by, &request).await? {
            return Ok(replayed(turn));
        }
        let mut spent = 0;
        loop {
            match self.attempt(by, &request, running, spent < MOST_SPENT).await {
                Ok(Attempt::Submitted(submitted)) => return Ok(submitted),
                // Somebody used or revoked it meanwhile; the calls are planned anew, without it.
                Ok(Attempt::Spent(id)) if spent < MOST_SPENT => self.inner.reread(id).await?,
                Ok(Attempt::Spent(id)) => return Err(fault("submit a turn", &AppendError::StandingSpent(id)).into()),
                // The same turn, submitted twice at once, may be what there is no more room beside.
                Err(Error::Busy(busy)) => {
                    return self.recorded(by, &request).await?.map(replayed).ok_or(Error::Busy(busy));
                }
                Err(error) => return Err(error),
            }
            spent += 1;
        }
    }

    /// Submits a turn that is not recorded yet; whether its calls may go on by standing approvals is `covered`.
    async fn attempt(
        &self,
        by: &Principal,
        request: &TurnRequest,
        running: &Calls,
        covered: bool,
    ) -> Result<Attempt, Error> {
        let ledger = &self.inner.ledger;
        ledger.ready().await?;
        let mut admission = ledger.admit(&by.id, request)?;
        let calls = self.planned(by, request, covered).await?;
        let ephemeral = self.may_be_ephemeral(request) && calls.iter().all(never_waits);
        let submission = Submission {
            turn: TurnId::from_bits((self.inner.parts.mint)()),
            conversation: request.conversation.clone(),
            caller: by.id.clone(),
            rejection: request.rejection,
            context: request.context.clone(),
            calls,
        };
        let (events, turn) = self.inner.with_context(|cx| Turn::submit(submission, cx))?;
        admission.calls(turn.due(self.inner.owner).count())?;
        if ephemeral {
            let turn = self.run_ephemeral(events, turn, admission, running).await?;
            return Ok(Attempt::Submitted(Submitted { turn, replayed: false, ephemeral: true }));
        }
        let index = index::changes(None, &events, &turn);
        let index = outbox::with_deliveries(index, self.inner.parts.subscribers.as_ref(), None, &turn);
        let commit = Commit { turn: turn.id, conversation: turn.conversation.clone(), expected: 0, index, events };
        let (turn, replayed) = match self.begin(commit, turn, admission).await? {
            Begun::Now(turn) => (*turn, false),
            Begun::Spent(id) => return Ok(Attempt::Spent(id)),
            // The same turn was submitted twice at once, and the other was first.
            Begun::Before => match self.recorded(by, request).await? {
                Some(turn) => (turn, true),
                None => return Err(fault("submit a turn", &AppendError::Conflict).into()),
            },
        };
        Ok(Attempt::Submitted(Submitted { turn, replayed, ephemeral: false }))
    }

    /// Whether a turn may be carried out without being written down: its caller asks for that, and the operator allows it.
    fn may_be_ephemeral(&self, request: &TurnRequest) -> bool {
        request.ephemeral && self.inner.parts.rules.ephemeral
    }

    /// Commits a new turn and performs what it owes.
    async fn begin(&self, commit: Commit, turn: Turn, mut admission: Admission) -> Result<Begun, Error> {
        let inner = self.inner.clone();
        to_the_end("submit a turn", async move {
            let entered = inner.turns.enter(turn.id);
            let mut slot = entered.lock().await;
            let owes = outbox::owes(&commit.index);
            let uses = standing::of(&commit.index);
            match inner.parts.store.append(commit).await {
                Ok(_) => {
                    if owes {
                        inner.parts.subscribers.owed();
                    }
                    inner.standings.committed(&uses);
                    inner.ledger.began(&mut admission, &turn);
                    inner.inbox.moved(None, &turn);
                    inner.committed(&entered, &mut slot, turn.clone(), 1, Some(&mut admission));
                    Ok(Begun::Now(Box::new(turn)))
                }
                Err(AppendError::CallExists(_)) => Ok(Begun::Before),
                Err(AppendError::NotOwner) => Err(Error::NotFound("conversation")),
                Err(AppendError::Fault(fault)) => Err(fault.into()),
                Err(AppendError::StandingSpent(id)) => Ok(Begun::Spent(id)),
                Err(error @ AppendError::Conflict) => Err(fault("submit a turn", &error).into()),
            }
        })
        .await
    }

    fn check(&self, by: &Principal, request: &TurnRequest) -> Result<(), Error> {
        if !by.roles.has(Role::Caller) && !by.roles.has(Role::Admin) {
            return Err(Error::NotAllowed("only a principal with the role caller submits turns".into()));
        }
        if by.conversation.as_ref().is_some_and(|only| *only != request.conversation) {
            return Err(Error::NotFound("conversation"));
        }
        // Before anything is looked up or checked, so that what is refused anyway costs nothing.
        let (got, max) = (request.calls.len(), self.inner.parts.rules.max_calls);
        if got == 0 || got > max {
            return Err(Refusal::CallCount { got, max }.into());
        }
        let bounds = &self.inner.parts.bounds;
        let context = request.context.as_ref().map_or(0, |context| context.size());
        Bounds::check("the context", context, bounds.context)?;
        for call in &request.calls {
            Bounds::check("a tool's name", call.tool.len(), bounds.name)?;
            Bounds::check("the arguments of a call", call.arguments.size(), bounds.arguments)?;
            let result = match &call.result {
                None => 0,
                Some(ProviderResult::Value(value)) => value.size(),
                Some(ProviderResult::Error(message)) => message.len(),
            };
            Bounds::check("a submitted result", result, bounds.arguments)?;
            if let Some(origin) = &call.origin {
                Bounds::check("the origin of a call", origin.members.size(), bounds.context)?;
            }
        }
        Ok(())
    }

    /// The turn that was submitted with these call ids, if any of them was.
    async fn recorded(&self, by: &Principal, request: &TurnRequest) -> Result<Option<Turn>, Error> {
        let store = &self.inner.parts.store;
        // A conversation without an owner has no calls, and most turns of a conversation are new.
        match store.owner(&request.conversation).await? {
            None => return Ok(None),
            Some(owner) if owner != by.id => return Err(Error::NotFound("conversation")),
            Some(_) => {}
        }
        let mut found: Option<(TurnId, &CallId)> = None;
        for call in &request.calls {
            if let Some(turn) = store.find_call(&request.conversation, &call.id).await? {
                found = Some((turn, &call.id));
                break;
            }
        }
        let Some((id, call)) = found else { return Ok(None) };
        let entered = self.inner.turns.enter(id);
        let turn = self.inner.read(&entered, id).await?.ok_or(Error::NotFound("turn"))?;
        match difference(&turn, request) {
            None => Ok(Some(turn)),
            Some(difference) => Err(Error::CallIdTaken { call: call.clone(), difference }),
        }
    }

    /// Carries an ephemeral turn out in this task. Nothing is written, except that what its guests wrote to their own
    /// stores is made durable before a result is told.
    async fn run_ephemeral(
        &self,
        events: Vec<domain::Event>,
        mut turn: Turn,
        mut admission: Admission,
        running: &Calls,
    ) -> Result<Turn, Error> {
        let inner = &self.inner;
        let followed = inner.feeds.is_followed(&turn.conversation);
        let tell = |turn: &Turn, mut events: Vec<domain::Event>| {
            // The live plane keeps what it is told for slow followers, so what is large is not told: the caller gets it.
            events.retain(|event| size(event) <= MOST_TOLD);
            if followed {
                inner.publish(turn, Live::Ephemeral { turn: turn.id, events: events.into() });
            }
        };
        let due = turn.due(inner.owner).filter_map(|Effect::Run { call, attempt }| {
            let stop = Arc::<Stop>::default();
            let (run, ticket) = (inner.run_of(&turn, call, attempt, &stop)?, admission.ticket()?);
            let beside = inner.clone();
            let placed = async move {
                let _place = ticket.place().await;
                (call, attempt, beside.run(run, None).await)
            };
            Some(Running::new(stop, placed))
        });
        let (calls, mut runs): (Vec<_>, Vec<_>) = due.unzip();
        if !running.begin(calls) {
            return Err(no_end("its caller left"));
        }
        tell(&turn, events);
        // The last one runs here, and so does the only one; its siblings compute beside it.
        let here = runs.pop();
        let mut siblings = JoinSet::new();
        for run in runs {
            siblings.spawn_on(run, &inner.parts.guests);
        }
        let mut ends = Vec::with_capacity(siblings.len() + 1);
        if let Some(run) = here {
            ends.push(run.await);
        }
        // A call that did not stop in time was ended; what its siblings still have of theirs is not taken from them.
        let mut ended = false;
        loop {
            for end in ends.drain(..) {
                let Ok((call, attempt, end)) = end else {
                    ended = true;
                    continue;
                };
                if end.wrote {
                    inner.parts.store.sync().await?;
                }
                let finished = Input::Finished { call, attempt, outcome: end.outcome, receipt: end.receipt };
                let (events, next) = inner.with_context(|cx| turn.decide(finished, cx))?;
                turn = next;
                tell(&turn, events);
            }
            match siblings.join_next().await {
                None if ended => return Err(no_end("its caller left")),
                None => {
                    inner.ledger.ended_ephemeral(&turn);
                    return Ok(turn);
                }
                Some(Ok(end)) => ends.push(end),
                Some(Err(error)) => return Err(no_end(format!("a task ended: {error}"))),
            }
        }
    }
}

/// An ephemeral turn that has not been carried out to its end.
fn no_end(reason: impl Into<String>) -> Error {
    StoreFault { attempted: "carry out an ephemeral turn", reason: reason.into() }.into()
}

/// How often standing approvals may turn out to be spent before people are asked instead. Each time somebody else used or revoked
/// one, so that many that are submitted at once do not give up too early.
const MOST_SPENT: usize = 100;

/// What became of an attempt to submit a turn.
enum Attempt {
    Submitted(Submitted),
    /// This standing approval, on which a call of it relied, has no use left.
    Spent(StandingId),
}

/// What became of a commit that begins a turn.
enum Begun {
    /// It began.
    Now(Box<Turn>),
    /// A call of it had been submitted before.
    Before,
    /// This standing approval, on which a call of it relied, has no use left.
    Spent(StandingId),
}

/// The largest arguments or result of an ephemeral turn that its followers are told of, in bytes.
const MOST_TOLD: usize = 16 << 10;

/// Whether nothing of a call can wait, so that a turn of such calls need not be written down.
fn never_waits(requested: &Requested) -> bool {
    match &requested.plan {
        Plan::Settle(_) => true,
        Plan::Go(pinned) => {
            pinned.executor == Executor::Server && !pinned.phases().iter().any(|phase| phase.suspends())
        }
    }
}

/// What is different between a recorded turn and one that is submitted under ids of it.
fn difference(turn: &Turn, request: &TurnRequest) -> Option<&'static str> {
    if turn.calls.len() != request.calls.len() {
        return Some("among other calls");
    }
    for (recorded, asked) in turn.calls.iter().zip(&request.calls) {
        if recorded.id != asked.id {
            return Some("among other calls");
        }
        if *recorded.tool != *asked.tool {
            return Some("of another tool");
        }
        if !exact::same(recorded.submitted.as_str(), asked.arguments.as_str()) {
            return Some("with other arguments");
        }
        let origin = asked.origin.as_ref().map(|origin| origin.members.as_str());
        if recorded.origin.as_ref().map(Json::as_str) != origin {
            return Some("from another origin");
        }
    }
    None
}

/// Stops a turn whose result nobody waits for any more. One that has ended does not mind.
struct LeaveOnDrop<'a> {
    task: AbortHandle,
    calls: Arc<Calls>,
    parts: &'a Parts,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        // Once its calls run, they are stopped and not the task: it ends with the last of them.
        if !self.task.is_finished() && !self.calls.leave(self.parts) {
            self.task.abort();
        }
    }
}
