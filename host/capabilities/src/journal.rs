//! The journal of a durable call: each result of a host function is recorded, and a later run gets it from there.
//!
//! A run that repeats an earlier one must call the same functions with the same arguments, in the same order, and come to
//! the same steps in between. Otherwise it ends before it has an effect.
//!
//! A record without an effect is written together with the next one that must be on disk: an effect, or the wait of the
//! call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::doubt::{DecidedRequest, RequestDecision};
use domain::journal::{Entry, JournalBounds, JournalSummary, Record, RefusedForNow, Transferred, ValueChange};
use domain::step::Durable;
use domain::{Digest, Timestamp};

use crate::stop::size;

/// Why a run cannot use its journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The text names the entry.
    #[error("the run differs from the one before it: {0}")]
    Diverged(String),
    /// An effect began in an earlier run, and nobody knows whether it happened. The text names it.
    #[error("{0}")]
    InDoubt(String),
    #[error("{0}")]
    Full(String),
    /// The host failed, or another run has begun.
    #[error("{0}")]
    Fault(String),
}

/// Writes the entries of one run.
#[async_trait]
pub trait JournalWriter: Send + Sync {
    /// Writes entries, and changes of key-value data with them. All of it is on disk when this returns. `false`: nothing is
    /// written, because another host has replaced one of the old values.
    ///
    /// # Errors
    /// The reason. The state may be unknown.
    async fn write(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<bool, String>;

    /// The journal with everything that this run wrote. `None`: nobody knows, so that no instance of the call is kept.
    fn head(&self) -> Option<JournalSummary> {
        None
    }
}

/// Where the run of a call records, and how much.
#[derive(Clone)]
pub struct Recording {
    pub writer: Arc<dyn JournalWriter>,
    pub bounds: JournalBounds,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

/// The time of a run.
pub trait RunTime: Send + Sync {
    fn now(&self) -> Timestamp;
    /// The run comes to an entry of this time. `repeats`: it still repeats an earlier run after it.
    fn reached(&self, at: Timestamp, repeats: bool);
}

/// The journal of one run. Clones share it.
#[derive(Clone)]
pub struct Journal(Arc<Shared>);

struct Shared {
    bounds: JournalBounds,
    /// The decisions about requests that earlier runs left in doubt.
    decided: Arc<[DecidedRequest]>,
    time: Arc<dyn RunTime>,
    state: Mutex<State>,
}

struct State {
    writer: Arc<dyn JournalWriter>,
    /// The entries of earlier runs.
    earlier: Arc<[Entry]>,
    /// The number of them that the run has come to.
    passed: usize,
    /// The number of steps that have ended, and of those that the run has passed.
    steps: u32,
    steps_passed: u32,
    /// Entries of this run that are not written.
    unwritten: Vec<Entry>,
    /// The number of all entries, and their size.
    entries: usize,
    bytes: usize,
}

/// The function and the arguments of a host call.
#[derive(Clone)]
pub(crate) struct HostCall {
    /// For people. It holds no secret and no value.
    name: Arc<str>,
    digest: Digest,
}

impl HostCall {
    pub(crate) fn new(name: impl Into<Arc<str>>, function: &str, arguments: &[&[u8]]) -> Self {
        let mut parts = vec![b"toolgate journal".as_slice(), function.as_bytes()];
        parts.extend(arguments);
        Self { name: name.into(), digest: Digest::of_parts(&parts) }
    }
}

/// An effect of an earlier run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It happened, with this result.
    Done { result: Arc<str>, transferred: Option<Transferred> },
    /// It may have happened. Its first entry has the number `first`, and the last entry that began it the number `last`.
    InDoubt { first: u32, last: u32 },
    /// The server refused it for now, in the entry of the number `last`.
    Refused { first: u32, last: u32, refused: RefusedForNow, transferred: Option<Transferred> },
}

impl Journal {
    /// The journal of a run that repeats the entries and the steps of this call.
    #[must_use]
    pub fn new(durable: &Durable, recording: Recording, time: Arc<dyn RunTime>) -> Self {
        let (earlier, decided) = (Arc::clone(&durable.journal), Arc::clone(&durable.decided));
        let steps = u32::try_from(durable.steps.len()).unwrap_or(u32::MAX);
        let (entries, bytes) = (earlier.len(), earlier.iter().map(Entry::size).sum());
        let Recording { writer, bounds } = recording;
        let state = State { writer, earlier, passed: 0, steps, steps_passed: 0, unwritten: Vec::new(), entries, bytes };
        Self(Arc::new(Shared { bounds, decided, time, state: Mutex::new(state) }))
    }

    /// The journal as the run has written it.
    #[must_use]
    pub fn head(&self) -> Option<JournalSummary> {
        self.state().writer.head()
    }

    /// Forgets the entries of earlier runs. The run has passed all of them, and waits.
    pub fn forget_passed(&self) {
        let mut state = self.state();
        if state.passed == state.earlier.len() {
            (state.earlier, state.passed) = ([].into(), 0);
        }
    }

    /// The next run continues the guest after one more step, and records here.
    pub fn continues(&self, writer: Arc<dyn JournalWriter>) {
        let mut state = self.state();
        state.writer = writer;
        state.steps += 1;
    }

    /// Whether the run still repeats an earlier one.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.state().repeats()
    }

    /// Passes a step.
    ///
    /// # Errors
    /// [`JournalError::Diverged`] if the run before called a function here.
    pub fn pass_step(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        if let Some(entry) = state.next().filter(|entry| entry.step == state.steps_passed) {
            return Err(state.diverged("it asks for a step at", entry.number));
        }
        state.steps_passed += 1;
        Ok(())
    }

    /// Checks that a run may end here, or wait for a new step.
    ///
    /// # Errors
    /// [`JournalError::Diverged`] if the run before came further.
    pub fn is_passed(&self) -> Result<(), JournalError> {
        let state = self.state();
        state.next().map_or(Ok(()), |entry| Err(state.diverged("it ends before", entry.number)))
    }

    /// Whether a later run repeats this one: it has come to a step, or an entry is written.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        let state = self.state();
        state.steps > 0 || state.entries > state.unwritten.len()
    }

    /// Whether no run has recorded anything, or come to a step.
    pub(crate) fn is_new(&self) -> bool {
        let state = self.state();
        state.entries == 0 && state.steps == 0
    }

    /// The recorded result of a call. `None`: no earlier run came here.
    ///
    /// # Errors
    /// [`JournalError::Diverged`]
    pub(crate) fn recorded(&self, call: &HostCall) -> Result<Option<Arc<str>>, JournalError> {
        let Some(entry) = self.come_to(call)? else { return Ok(None) };
        match entry.record {
            Record::Result(text) => Ok(Some(text)),
            Record::Begun(_) | Record::Refused(_) => {
                Err(self.state().diverged("it asks for something else at", entry.number))
            }
        }
    }

    /// The result of a call that not every run makes here.
    pub(crate) fn recorded_here(&self, call: &HostCall) -> Option<Arc<str>> {
        let is_next = self.state().next().is_some_and(|entry| entry.digest == call.digest);
        if is_next { self.recorded(call).ok().flatten() } else { None }
    }

    /// Whether the guest learns, at its check of this number, that its call should stop. A later run learns it at the same
    /// check, and not again.
    ///
    /// # Errors
    /// [`JournalError::Full`]
    pub fn stops_at(&self, check: u64, is_requested: bool) -> Result<bool, JournalError> {
        let call = HostCall::new("stop requested", "toolgate:plugin/host.stop-requested", &[&check.to_be_bytes()]);
        if self.recorded_here(&call).is_some() {
            return Ok(true);
        }
        let stops = is_requested && !self.repeats();
        if stops {
            self.record(&call, "true".into())?;
        }
        Ok(stops)
    }

    /// The recorded refusal of a request to call tools. `None`: no earlier run was refused here.
    #[must_use]
    pub fn calls_refused(&self, request: Digest) -> Option<Arc<str>> {
        self.recorded_here(&refusal(request))
    }

    /// Records the refusal of a request to call tools. A later grant does not change it.
    ///
    /// # Errors
    /// [`JournalError::Full`]
    pub fn refuse_calls(&self, request: Digest, why: &str) -> Result<(), JournalError> {
        self.record(&refusal(request), why.into())
    }

    /// Records the result of a call, to be written later.
    ///
    /// # Errors
    /// [`JournalError::Full`]
    pub(crate) fn record(&self, call: &HostCall, result: Arc<str>) -> Result<(), JournalError> {
        self.add(call, Record::Result(result), None)
    }

    /// Writes the result of a call, and the changes of key-value data that it made. `false`: another host has replaced one of the
    /// old values. Then nothing is written, and the call has no result yet.
    ///
    /// # Errors
    /// [`JournalError`]
    pub(crate) async fn write(
        &self,
        call: &HostCall,
        result: Arc<str>,
        values: Vec<ValueChange>,
    ) -> Result<bool, JournalError> {
        self.record(call, result)?;
        let (writer, entries) = self.take_unwritten();
        let is_written = writer.write(entries.clone(), values).await.map_err(JournalError::Fault)?;
        if !is_written {
            self.state().take_back(entries)?;
        }
        Ok(is_written)
    }

    /// An effect that has begun in an earlier run. `None`: no earlier run came here.
    ///
    /// # Errors
    /// [`JournalError::Diverged`]
    pub(crate) fn effect(&self, call: &HostCall) -> Result<Option<Effect>, JournalError> {
        let Some(Entry { number: first, mut record, mut transferred, .. }) = self.come_to(call)? else {
            return Ok(None);
        };
        let mut last = first;
        loop {
            match record {
                Record::Result(result) => return Ok(Some(Effect::Done { result, transferred })),
                Record::Refused(refused) => return Ok(Some(Effect::Refused { first, last, refused, transferred })),
                // It may have been begun once more, after a decision.
                Record::Begun(_) => match self.come_to(call)? {
                    Some(next) => (last, record, transferred) = (next.number, next.record, next.transferred),
                    None => return Ok(Some(Effect::InDoubt { first, last })),
                },
            }
        }
    }

    /// The decision about an effect that an entry left in doubt.
    pub(crate) fn decision(&self, entry: u32) -> Option<&RequestDecision> {
        self.0.decided.iter().find(|decided| decided.entry == entry).map(|decided| &decided.decision)
    }

    /// The time of a new entry.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.time.now()
    }

    /// Begins an effect. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError`]
    pub(crate) async fn begin(&self, call: &HostCall) -> Result<(), JournalError> {
        self.add(call, Record::Begun(call.name.clone()), None)?;
        self.flush().await
    }

    /// The number of the next new entry.
    pub(crate) fn length(&self) -> u32 {
        u32::try_from(self.state().entries).unwrap_or(u32::MAX)
    }

    /// The bytes that the journal can still take.
    pub(crate) fn room(&self) -> usize {
        self.0.bounds.bytes.saturating_sub(self.state().bytes)
    }

    /// Adds an entry, to be written later. `transferred`: the bytes of a request.
    ///
    /// # Errors
    /// [`JournalError::Full`]
    pub(crate) fn add(
        &self,
        call: &HostCall,
        record: Record,
        transferred: Option<Transferred>,
    ) -> Result<(), JournalError> {
        let at = self.0.time.now();
        let mut state = self.state();
        let entry = state.new_entry(call, (record, transferred), at, self.0.bounds)?;
        state.unwritten.push(entry);
        drop(state);
        self.0.time.reached(at, false);
        Ok(())
    }

    /// Writes everything that is recorded.
    ///
    /// # Errors
    /// [`JournalError::Fault`]
    pub async fn flush(&self) -> Result<(), JournalError> {
        let (writer, entries) = self.take_unwritten();
        if !entries.is_empty() {
            writer.write(entries, Vec::new()).await.map_err(JournalError::Fault)?;
        }
        Ok(())
    }

    fn take_unwritten(&self) -> (Arc<dyn JournalWriter>, Vec<Entry>) {
        let mut state = self.state();
        (Arc::clone(&state.writer), std::mem::take(&mut state.unwritten))
    }

    /// The recorded entry of a call. The run has come to it.
    fn come_to(&self, call: &HostCall) -> Result<Option<Entry>, JournalError> {
        let mut state = self.state();
        let Some(entry) = state.next() else {
            if state.steps_passed < state.steps {
                let step = state.steps_passed + 1;
                return Err(JournalError::Diverged(format!("it does something new before step {step}")));
            }
            return Ok(None);
        };
        if entry.digest != call.digest || entry.step != state.steps_passed {
            return Err(state.diverged("it asks for something else at", entry.number));
        }
        state.passed += 1;
        let repeats = state.repeats();
        drop(state);
        self.0.time.reached(entry.at, repeats);
        Ok(Some(entry))
    }

    /// No code that holds the lock can panic halfway through a change.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(request: Digest) -> HostCall {
    HostCall::new("call-tools refused", "toolgate:plugin/durable.call-tools", &[request.as_bytes()])
}

impl State {
    fn repeats(&self) -> bool {
        self.passed < self.earlier.len() || self.steps_passed < self.steps
    }

    /// These entries were not written, and the last of them is no result.
    fn take_back(&mut self, mut entries: Vec<Entry>) -> Result<(), JournalError> {
        let last = entries.pop().map_or(0, |entry| entry.size());
        if !self.unwritten.is_empty() {
            // Its number follows on that of the last one.
            return Err(JournalError::Fault("a result was recorded while another one was written".to_owned()));
        }
        (self.entries, self.bytes) = (self.entries - 1, self.bytes - last);
        self.unwritten = entries;
        Ok(())
    }

    fn next(&self) -> Option<Entry> {
        self.earlier.get(self.passed).cloned()
    }

    fn diverged(&self, what: &str, number: u32) -> JournalError {
        JournalError::Diverged(format!("{what} entry {number} of its journal"))
    }

    fn new_entry(
        &mut self,
        call: &HostCall,
        (record, transferred): (Record, Option<Transferred>),
        at: Timestamp,
        bounds: JournalBounds,
    ) -> Result<Entry, JournalError> {
        let number = u32::try_from(self.entries).unwrap_or(u32::MAX);
        let HostCall { name, digest } = call.clone();
        let (step, function) = (self.steps_passed, Some(name));
        // The run and the salt are added when it is stored.
        let entry = Entry { number, step, run: None, function, digest, at, salt: None, transferred, record };
        if self.entries >= bounds.entries {
            let max = bounds.entries;
            let message = format!("called more than {max} host functions that are recorded (`journal_entries`)");
            return Err(JournalError::Full(message));
        }
        let bytes = self.bytes.saturating_add(entry.size());
        if bytes > bounds.bytes {
            let max = size(bounds.bytes);
            let message = format!("got more than {max} of results that are recorded (`journal_bytes`)");
            return Err(JournalError::Full(message));
        }
        (self.entries, self.bytes) = (self.entries + 1, bytes);
        Ok(entry)
    }
}

#[cfg(test)]
pub(crate) mod tests;
