//! Tasks (the extension `io.modelcontextprotocol/tasks`): a call that does not end soon, for a client that asks for its state.
//! A task is the turn of its call, so it is on disk before the client learns its id, and survives a kill.

use domain::turn::TurnState;
use domain::{Outcome, Timestamp, Turn, TurnId, rfc3339};
use rmcp::model::{CreateTaskResult, DetailedTask, ErrorData, JsonObject, Task, TaskPayload, TaskStatus};
use serde::Serialize;
use serde_json::Value;

use crate::calls::{NoResult, of_one_call};
use crate::connection::Connection;
use crate::results;

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 2_000;

/// The task of a turn that has not ended.
pub(crate) fn created(turn: &Turn, console: Option<&str>) -> CreateTaskResult {
    CreateTaskResult::new(task(turn, console))
}

impl Connection {
    /// The task of this id.
    pub(crate) async fn task(&self, id: &str) -> Result<DetailedTask, NoResult> {
        let turn = self.turn_of_task(id).await?;
        let payload = match turn.state {
            TurnState::Open => TaskPayload::Working,
            TurnState::Ended(..) if is_cancelled(&turn) => TaskPayload::Cancelled,
            // Only an error of the protocol is a failure. A call that failed has a result.
            TurnState::Ended(..) => match self.result(&turn) {
                Ok(result) => TaskPayload::Completed { result: object(&result)? },
                Err(error) => TaskPayload::Failed { error: object(&error)? },
            },
        };
        Ok(DetailedTask::new(task(&turn, self.console()), payload))
    }

    /// Cancels the call of a task. A task that has ended does not change.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), NoResult> {
        let turn = self.turn_of_task(id).await?;
        self.shared.parts.handle.cancel(&self.by, &turn.conversation, turn.id).await?;
        Ok(())
    }

    /// The turn of a task of this principal.
    pub(crate) async fn turn_of_task(&self, id: &str) -> Result<Turn, NoResult> {
        let unknown = || ErrorData::invalid_params("there is no such task", None);
        let id: TurnId = id.parse().map_err(|_| unknown())?;
        match self.shared.parts.handle.turn(&self.by, &self.conversation()?, id).await.and_then(of_one_call) {
            Err(dispatch::Error::NotFound(_) | dispatch::Error::Removed { .. }) => Err(unknown().into()),
            turn => Ok(turn?),
        }
    }
}

fn task(turn: &Turn, console: Option<&str>) -> Task {
    let task = Task::new(turn.id.to_string(), TaskStatus::Working, rfc3339(turn.started_at), rfc3339(changed_at(turn)));
    let task = task.with_poll_interval_ms(POLL_INTERVAL);
    match turn.calls.first().filter(|_| !turn.is_ended()) {
        Some(call) => task.with_status_message(results::state(call, console)),
        None => task,
    }
}

/// When the call last began or ended a wait, or ended.
fn changed_at(turn: &Turn) -> Timestamp {
    if let TurnState::Ended(_, at) = turn.state {
        return at;
    }
    let suspensions = turn.calls.iter().flat_map(|call| &call.suspensions);
    let changes =
        suspensions.map(|(suspension, closed)| closed.as_ref().map_or(suspension.created_at, |closed| closed.at));
    changes.max().map_or(turn.started_at, |at| at.max(turn.started_at))
}

fn is_cancelled(turn: &Turn) -> bool {
    turn.calls.iter().any(|call| matches!(call.outcome(), Some(Outcome::Cancelled)))
}

fn object(value: &impl Serialize) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(ErrorData::internal_error("the host failed", None)),
    }
}
