//! The waits of a call in the middle of its code.

use capabilities::journal::{Journal, JournalError};
use domain::json::VALUE_COST;
use domain::{
    Json, Outcome,
    call::Level,
    outcome::{Failure, FailureCode},
};

use super::Guest;
use crate::durable::{Interrupted, Kind, NOT_DURABLE, Replay, RunParts, Unanswered};
use crate::job::RunEnd;

impl Guest {
    /// Waits for a person, an external system or other tools, and returns the answer.
    pub(crate) async fn ask(&mut self, kind: Kind, question: &str) -> wasmtime::Result<Result<Json, Unanswered>> {
        let Self { replay, run, capabilities: states, .. } = self;
        let Some(replay) = replay else { return Ok(Err(Unanswered::NotGranted(NOT_DURABLE.to_owned()))) };
        run.usage.bytes.count_out(question.len());
        let _charge = run.usage.memory.charge(question.len().saturating_mul(VALUE_COST))?;
        let answer = replay.ask(RunParts { run: &mut *run, states }, kind, question).await?;
        if let Ok(json) = &answer {
            run.usage.bytes.count_in(json.size());
        }
        Ok(answer)
    }

    /// Waits for this time.
    pub(crate) async fn sleep(&mut self, millis: u64) -> wasmtime::Result<()> {
        let Self { replay, run, capabilities: states, .. } = self;
        match replay {
            Some(replay) => Ok(replay.sleep(RunParts { run, states }, millis).await?),
            None => Err(Interrupted::Refused(NOT_DURABLE.to_owned()).into()),
        }
    }

    /// Whether the guest still repeats an earlier run.
    pub(crate) fn repeats(&self) -> bool {
        self.replay.as_ref().is_some_and(Replay::repeats)
    }

    /// The end of a run that waits, or that must not continue. The log says what differs from the run before.
    pub(crate) fn early_end<T>(&self, answer: &wasmtime::Result<T>) -> Option<RunEnd> {
        let interrupted = match answer {
            Err(error) => {
                let of_journal = || error.downcast_ref::<JournalError>().cloned().map(Interrupted::Journal);
                error.downcast_ref::<Interrupted>().cloned().or_else(of_journal)
            }
            Ok(_) => self.replay.as_ref().and_then(Replay::unfinished),
        };
        Some(match interrupted? {
            Interrupted::Waits(request) => RunEnd::Waits(*request),
            Interrupted::Refused(message) => Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)).into(),
            too_many @ Interrupted::TooManySteps => {
                Outcome::Failed(Failure::new(FailureCode::LimitExceeded, too_many.to_string())).into()
            }
            Interrupted::Journal(JournalError::Full(what)) => {
                Outcome::Failed(Failure::new(FailureCode::LimitExceeded, format!("the tool {what}"))).into()
            }
            Interrupted::Journal(JournalError::Fault(reason)) => {
                let message = format!("the run could not continue: {reason}");
                RunEnd::Repeating(Failure::new(FailureCode::HostFault, message))
            }
            doubtful @ (Interrupted::Diverged(_)
            | Interrupted::Journal(JournalError::Diverged(_) | JournalError::InDoubt(_))) => {
                self.run.log.mute(false);
                self.run.log.line(Level::Error, &format!("the call ends in doubt: {doubtful}"));
                Outcome::InDoubt.into()
            }
        })
    }

    /// Whether a later run continues the call after this failure. It says nothing about the call if the run repeated an earlier
    /// one, or if the host had no room for a call that has begun.
    pub(crate) fn is_continued_after(&self, failure: &Failure) -> bool {
        let is_busy = failure.code == FailureCode::Busy;
        self.repeats() || (is_busy && self.replay.as_ref().is_some_and(Replay::has_begun))
    }

    /// The journal of a durable call.
    pub(crate) fn journal(&self) -> Option<Journal> {
        self.replay.as_ref().and_then(Replay::journal).cloned()
    }
}

/// The early end of a run. If it waits, everything before the wait is on disk first.
pub(crate) async fn written(journal: Option<Journal>, early: Option<RunEnd>) -> Option<RunEnd> {
    let Some(journal) = journal.filter(|_| matches!(early, Some(RunEnd::Waits(_)))) else { return early };
    match journal.flush().await {
        Ok(()) => early,
        Err(error) => Some(RunEnd::Repeating(lost(&error.to_string()))),
    }
}

/// The failure of a run whose journal cannot be written.
pub(crate) fn lost(reason: &str) -> Failure {
    Failure::new(FailureCode::HostFault, format!("the journal of the call could not be written: {reason}"))
}
