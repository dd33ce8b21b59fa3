//! The waits of a call in the middle of its code.

use domain::json::VALUE_COST;
use domain::{
    Json, Outcome,
    call::Level,
    outcome::{Failure, FailureCode},
};

use super::Guest;
use crate::durable::{Interrupted, Kind, NOT_DURABLE, Replay, Unanswered};
use crate::job::RunEnd;

impl Guest {
    /// Asks a person, and returns the answer.
    pub(crate) fn ask(&mut self, kind: Kind, question: &str) -> wasmtime::Result<Result<Json, Unanswered>> {
        let Some(replay) = &mut self.replay else { return Ok(Err(Unanswered::NotGranted(NOT_DURABLE))) };
        self.usage.bytes.count_out(question.len());
        let _charge = self.usage.memory.charge(question.len().saturating_mul(VALUE_COST))?;
        let answer = replay.ask(kind, question)?;
        if let Ok(json) = &answer {
            self.usage.bytes.count_in(json.size());
        }
        Ok(answer)
    }

    /// Waits for this time.
    pub(crate) async fn sleep(&mut self, millis: u64) -> wasmtime::Result<()> {
        match &mut self.replay {
            Some(replay) => Ok(replay.sleep(millis).await?),
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
            Err(error) => error.downcast_ref::<Interrupted>().cloned(),
            Ok(_) => self.replay.as_ref().and_then(Replay::unfinished),
        };
        Some(match interrupted? {
            Interrupted::Waits(request) => RunEnd::Waits(*request),
            Interrupted::Refused(message) => Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)).into(),
            too_many @ Interrupted::TooManySteps => {
                Outcome::Failed(Failure::new(FailureCode::LimitExceeded, too_many.to_string())).into()
            }
            diverged @ Interrupted::Diverged(_) => {
                self.log.mute(false);
                self.log.line(Level::Error, &format!("the call ends in doubt: {diverged}"));
                Outcome::InDoubt.into()
            }
        })
    }
}
