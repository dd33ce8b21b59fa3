//! `/v1/conversations/{conversation}/calls/{call}/log`: the log of a call.

use axum::extract::State;
use axum::response::Response;
use dispatch::ports::RunLog;

use super::suspensions::OneCall;
use super::{App, NoParams, Params, Segments, respond};
use crate::auth::By;
use crate::error::{Code, Error, Result};

/// Reads the log of a call
///
/// The last lines that the guest logged or printed, for each run of the call. A principal who may read the turn may read the logs of
/// its calls. A log can hold what the arguments and the results of the call hold. Secrets of the host are redacted. The log is
/// removed with the turn. A call that ran in an ephemeral turn has no log.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}/calls/{call}/log", operation_id = "read_call_log", tag = "turns", params(OneCall),
    responses(
        (status = 200, description = "The log. Calls that did not run have no lines", body = api::CallLog),
        (status = 404, description = "`not-found`: no such call, or another principal owns the conversation"),
        (status = 410, description = "`removed`: retention removed the turn; with `at` and `rule`"),
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneCall { conversation, call }): Segments<OneCall>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let mut unread = app.read(&by).await?;
    let (turn, index, runs) = app.ports.handle.call_log(&by, &conversation.0, &call.0).await?;
    app.charge(&mut unread, size(&runs))?;
    let call = turn.calls.get(index.get()).ok_or_else(|| Error::new(Code::NotFound, "there is no such call"))?;
    respond(unread, &api::CallLog::new(&turn, call, &runs))
}

/// About the size of logs, in bytes.
pub(super) fn size(runs: &[RunLog]) -> usize {
    runs.iter().flat_map(|run| &run.lines).map(|line| line.text.len()).sum()
}
