//! The one path of every input to a turn, [`Pipeline::advance`]: a submission, an answer, a cancellation,
//! the passing of time, the end of a guest, a restart of the host.
//!
//! `decide → commit → perform`. A commit has contributors and observers (`committer.rs`).

mod ancestors;
mod ephemeral;
mod perform;

use std::sync::Arc;

use domain::{CallIndex, Event, Principal, PrincipalId, Turn, principal::Role, turn::Input};

use crate::calls_below::CallsBelow;
use crate::committer::{Committer, Storage, TurnChange};
use crate::error::{Error, Resource};
use crate::feed::Feeds;
use crate::ports::{AppendError, Commit, Footprint, Journals, Log, Peers, RowChange, StoreFault};
use crate::run_logs::RunLogs;
use crate::runner::Runner;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::timers::Timers;
use crate::tracker::{QuotaTracker, Reservation};
use crate::turns::{Entered, Slot, Turns};

pub(crate) use ancestors::Ancestors;
pub(crate) use ephemeral::{Ephemeral, unfinished};

/// How often an input is decided again after another host appended first. More conflicts are a fault.
const MAX_CONFLICTS: usize = 16;

/// Decides inputs to turns, commits the events, and performs the effects of the new state.
pub(crate) struct Pipeline {
    pub(crate) shared: Arc<Shared>,
    /// Where turns are loaded from. Only the committer appends.
    pub(crate) log: Arc<dyn Log>,
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) tracker: Arc<QuotaTracker>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) runner: Runner,
    pub(crate) logs: Arc<RunLogs>,
    pub(crate) signals: Signals,
    pub(crate) below: Arc<CallsBelow>,
}

/// Where the commits of a turn go.
pub(crate) enum CommitTo<'a> {
    /// To the store. Each guest runs in its own task, and its end is a new input.
    Store,
    /// To memory only. No call of the turn can wait, so its caller waits for the turn and submits it again if it is
    /// lost.
    Memory(&'a mut Ephemeral),
}

/// The end of an attempt to extend a turn.
enum Extended {
    /// Whether anything changed.
    Done(bool),
    /// Another host appended first, to this turn or to one that it is nested in.
    Conflict,
}

/// A decision that is not committed yet.
pub(crate) struct Decided {
    /// The turn before these events, with the number of its commits. `None`: they begin the turn.
    pub(crate) before: Option<(Turn, u32)>,
    pub(crate) events: Vec<Event>,
    /// The turn after them.
    pub(crate) after: Turn,
}

impl Pipeline {
    /// Feeds an input to a turn. `input` makes it from the current turn; `None` changes nothing. A nested turn that no call
    /// waits for is cancelled first. Returns whether anything changed.
    pub(crate) async fn step(
        self: &Arc<Self>,
        entered: &Entered,
        input: impl Fn(&Turn, &mut Slot) -> Option<Input> + Send,
    ) -> Result<bool, Error> {
        // A refusal must not follow from a state before the input.
        drop(entered.renewed(self.log.as_ref()).await?);
        self.step_from_memory(entered, input).await
    }

    /// As [`Pipeline::step`], with an input that is never refused. If another host has committed, the append conflicts.
    pub(crate) async fn step_from_memory(
        self: &Arc<Self>,
        entered: &Entered,
        input: impl Fn(&Turn, &mut Slot) -> Option<Input> + Send,
    ) -> Result<bool, Error> {
        let parent = {
            let slot = entered.loaded(self.log.as_ref()).await?;
            slot.turn.as_ref().and_then(|(turn, _)| turn.parent.clone())
        };
        let ancestors = self.ancestors(parent.as_deref()).await?;
        let mut cancelled = false;
        for _ in 0..MAX_CONFLICTS {
            let locked = ancestors.awaiting(entered.id()).await?;
            let mut slot = entered.lock().await;
            if locked.is_none() {
                match self.extend(entered, &mut slot, &|_, _| Some(Input::Cancel { by: host() }), Vec::new()).await? {
                    Extended::Conflict => continue,
                    Extended::Done(changed) => cancelled |= changed,
                }
            }
            let unchanged = locked.as_deref().map(Ancestors::unchanged).unwrap_or_default();
            if let Extended::Done(changed) = self.extend(entered, &mut slot, &input, unchanged).await? {
                return Ok(changed || cancelled);
            }
        }
        Err(AppendError::Conflict.into_fault("extend a turn").into())
    }

    /// Feeds an input to a turn that is locked. `unchanged` are rows about other turns.
    async fn extend(
        self: &Arc<Self>,
        entered: &Entered,
        slot: &mut Slot,
        input: &(impl Fn(&Turn, &mut Slot) -> Option<Input> + Send),
        unchanged: Vec<RowChange>,
    ) -> Result<Extended, Error> {
        slot.load(entered.id(), self.log.as_ref()).await?;
        slot.ending = None;
        let Some(decided) = self.decide(slot, input)? else {
            // A superseded run has ended.
            slot.ending.take().and_then(|key| slot.running.remove(&key));
            return Ok(Extended::Done(false));
        };
        match self.advance(&mut CommitTo::Store, slot, decided, unchanged, None).await {
            Ok(()) => Ok(Extended::Done(true)),
            Err(AppendError::Conflict) => Ok(Extended::Conflict),
            Err(error) => Err(error.into_fault("extend a turn").into()),
        }
    }

    /// The number of calls below a call of a caller, with `more` of them.
    pub(crate) async fn calls_below(&self, (turn, call): (&Turn, CallIndex), more: usize) -> Result<usize, Error> {
        let (count, limit) =
            (self.below.count(turn, call, self.log.as_ref()).await?, self.shared.settings.nested_calls);
        if count + more > limit { Err(Error::TooManyNested { limit }) } else { Ok(count + more) }
    }

    /// Loads a turn in memory again after another host has committed to it. Stops runs that the other host superseded.
    pub(crate) async fn renew(self: &Arc<Self>, entered: &Entered) -> Result<(), StoreFault> {
        let mut slot = entered.renewed(self.log.as_ref()).await?;
        let Some((turn, _)) = slot.turn.clone() else { return Ok(()) };
        self.perform(&mut CommitTo::Store, &mut slot, &turn, None);
        drop(slot);
        entered.changed(&turn);
        Ok(())
    }

    /// Begins a turn with its first commit.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        decided: Decided,
        unchanged: Vec<RowChange>,
        reservation: &mut Reservation,
    ) -> Result<Turn, AppendError> {
        let turn = decided.after.clone();
        let entered = self.turns.enter(turn.id);
        let mut slot = entered.lock().await;
        self.advance(&mut CommitTo::Store, &mut slot, decided, unchanged, Some(reservation)).await?;
        Ok(turn)
    }

    /// Decides an input. `None`: nothing changes, and the turn stays in the slot. If it returns events, the turn is no
    /// longer in the slot.
    fn decide(
        &self,
        slot: &mut Slot,
        input: impl FnOnce(&Turn, &mut Slot) -> Option<Input>,
    ) -> Result<Option<Decided>, Error> {
        let (turn, version) = slot.turn.take().ok_or(Error::NotFound(Resource::Turn))?;
        let decided = match input(&turn, slot) {
            Some(input) => self.shared.with_context(|cx| turn.decide(input, cx)).map(Some),
            None => Ok(None),
        };
        match decided {
            Ok(Some((events, after))) if !events.is_empty() => {
                Ok(Some(Decided { before: Some((turn, version)), events, after }))
            }
            unchanged => {
                slot.turn = Some((turn, version));
                unchanged.map(|_| None).map_err(Error::from)
            }
        }
    }

    /// Commits a decision and performs the effects of the new state. Every change of a turn takes this path.
    ///
    /// # Errors
    /// [`AppendError`]: nothing is committed or performed.
    async fn advance(
        self: &Arc<Self>,
        log: &mut CommitTo<'_>,
        slot: &mut Slot,
        decided: Decided,
        unchanged: Vec<RowChange>,
        mut reservation: Option<&mut Reservation>,
    ) -> Result<(), AppendError> {
        let Decided { before, events, after } = decided;
        let (before, version) = before.map_or((None, 0), |(turn, version)| (Some(turn), version));
        let storage = log.storage();
        // The reservation of an ephemeral turn counts for it until it ends.
        let handed_over = reservation.as_deref_mut().filter(|_| storage == Storage::Stored);
        let reserved = handed_over.as_ref().map_or_else(Footprint::default, |reservation| reservation.footprint());
        let commit = Commit::turn(after.id, after.conversation.clone(), version, events).with(unchanged);
        let change = TurnChange { before: before.as_ref(), after: &after, reserved, storage };
        let ending = slot.ending.take();
        self.committer.commit(commit, Some(&change)).await?;
        // Its task ends by itself now. It must not be stopped, and the same call may run again.
        ending.and_then(|key| slot.running.remove(&key));
        if let Some(reservation) = handed_over {
            reservation.hand_over();
        }
        self.perform(log, slot, &after, reservation);
        slot.turn = Some((after, version + 1));
        Ok(())
    }
}

/// The host, which cancels what nobody waits for.
fn host() -> Principal {
    Principal::new(PrincipalId::system(), [Role::Admin])
}

impl CommitTo<'_> {
    fn storage(&mut self) -> Storage {
        match self {
            Self::Store => Storage::Stored,
            Self::Memory(ephemeral) => ephemeral.storage(),
        }
    }
}
