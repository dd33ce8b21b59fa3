//! Tasks (the extension `io.modelcontextprotocol/tasks`): a call that does not end soon, for a client that asks for its state.
//! A task is the turn of its call, so it is on disk before the client learns its id, and survives a kill.

use dispatch::{Error, LatestProgress};
use domain::turn::TurnState;
use domain::{Outcome, Timestamp, Turn, TurnId, rfc3339};
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorCode, ErrorData, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde::Serialize;
use serde_json::Value;

use crate::calls::{Calls, Loaded, NoResult};
use crate::questions::{CanAsk, Given};
use crate::unread::Unsent;
use crate::{questions, results};

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 2_000;

/// The maximum size of the message of a report in the state of a task, in characters.
const MAX_MESSAGE: usize = 200;

/// The task of a call that has not ended.
pub(crate) fn created(calls: &Calls, turn: &Turn) -> CreateTaskResult {
    CreateTaskResult::new(task(calls, turn))
}

/// The turn of a task of this principal, if there is such a task.
pub(crate) async fn exists(calls: &Calls, id: &str) -> Result<Option<TurnId>, NoResult> {
    match find(calls, id).await {
        Ok(turn) => Ok(Some(turn.id)),
        Err(NoResult::Fault(error)) if error.code == ErrorCode::INVALID_PARAMS => Ok(None),
        Err(why) => Err(why),
    }
}

/// The state of a task, with what it asks if the client can ask that. One with a result has its count.
pub(crate) async fn read(calls: &Calls, id: &str, can_ask: CanAsk) -> Result<(DetailedTask, Option<Unsent>), NoResult> {
    let turn = find(calls, id).await?;
    let mut counted = None;
    let payload = match turn.state {
        TurnState::Open => match can_ask.requests(calls, &turn, None) {
            Some(input_requests) => TaskPayload::InputRequired { input_requests },
            None => TaskPayload::Working,
        },
        TurnState::Ended(..) if is_cancelled(&turn) => TaskPayload::Cancelled,
        // Only an error of the protocol is a failure. A call that failed has a result.
        TurnState::Ended(..) => {
            let (result, unsent) = calls.result(&turn)?;
            counted = Some(unsent);
            match result {
                Ok(result) => TaskPayload::Completed { result: object(&result)? },
                Err(error) => TaskPayload::Failed { error: object(&error)? },
            }
        }
    };
    Ok((DetailedTask::new(task(calls, &turn), payload), counted))
}

/// Takes the client's answers to what a task asks.
///
/// # Errors
/// If an answer does not fit its question. The task asks it again.
pub(crate) async fn update(calls: &Calls, id: &str, responses: InputResponses) -> Result<(), NoResult> {
    let turn = find(calls, id).await?;
    match questions::take(calls, &turn, responses).await? {
        Given::Wrong(problem) => Err(ErrorData::invalid_params(problem, None).into()),
        Given::Nothing | Given::Answered | Given::Opened(_) | Given::Declined(_) => Ok(()),
    }
}

/// Cancels the call of a task. A task that has ended does not change.
pub(crate) async fn cancel(calls: &Calls, id: &str) -> Result<(), NoResult> {
    let turn = find(calls, id).await?;
    calls.cancel(&turn).await
}

/// The turn of a task of this principal.
async fn find(calls: &Calls, id: &str) -> Result<Loaded, NoResult> {
    let unknown = || ErrorData::invalid_params("there is no such task", None);
    let id: TurnId = id.parse().map_err(|_| unknown())?;
    calls.of_turn(id).await.map_err(|why| match why {
        NoResult::Refused(Error::NotFound(_) | Error::Removed { .. }) => unknown().into(),
        why => why,
    })
}

fn task(calls: &Calls, turn: &Turn) -> Task {
    let console = calls.shared.parts.console.as_deref();
    let task = Task::new(turn.id.to_string(), TaskStatus::Working, rfc3339(turn.started_at), rfc3339(changed_at(turn)));
    let task = task.with_poll_interval_ms(POLL_INTERVAL);
    let Some(call) = turn.calls.first().filter(|_| !turn.is_ended()) else { return task };
    let mut message = results::state(call, console);
    if let Some(progress) = calls.shared.parts.handle.latest_progress(turn.id) {
        message += &reported(&progress);
    }
    task.with_status_message(message)
}

/// Says what the call last reported. The words are those of the plugin.
fn reported(progress: &LatestProgress) -> String {
    let percent = progress.fraction.map(|fraction| format!(" {:.0} %", fraction * 100.0)).unwrap_or_default();
    match progress.message.as_str() {
        "" => format!(" It last reported{percent}."),
        message => format!(" It last reported{percent}: {}.", escape::quoted(message, MAX_MESSAGE)),
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
