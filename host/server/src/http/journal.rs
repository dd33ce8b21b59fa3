//! `/v1/conversations/{conversation}/calls/{call}/journal`: the journal of a durable call.

use axum::extract::State;
use axum::response::Response;
use domain::journal::Entry;
use serde::Deserialize;
use utoipa::IntoParams;

use super::suspensions::{self, OneCall};
use super::{App, Params, Segments, respond};
use crate::auth::By;
use crate::error::{Code, Error, Result};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Only entries after the one with this number: the `next` of the previous page.
    after: Option<u32>,
    /// The maximum number of entries: 1 to 500, 100 if absent. A page with large results ends earlier.
    limit: Option<usize>,
}

/// Reads the journal of a call
///
/// The host functions that the runs of a durable call called, in their order, and on the first page the steps of the call.
/// A principal who may read the log of a call may read its journal. It shows no arguments, values or bodies. Secrets of the host
/// are redacted. The journal is removed with the turn. A call that is not durable has no entries.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}/calls/{call}/journal", operation_id = "read_call_journal", tag = "turns", params(OneCall, Page),
    responses(
        (status = 200, description = "A page of the journal", body = api::CallJournal),
        (status = 404, description = "`not-found`: no such call, or another principal owns the conversation"),
        (status = 410, description = "`removed`: retention removed the turn; with `at` and `rule`"),
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneCall { conversation, call }): Segments<OneCall>,
    Params(Page { after, limit }): Params<Page>,
) -> Result<Response> {
    let limit = suspensions::page(limit)?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let mut unread = app.read(&by).await?;
    let (turn, index, page, salt) = app.ports.handle.call_journal(&by, &conversation.0, &call.0, from, limit).await?;
    app.charge(&mut unread, page.entries.iter().map(Entry::size).sum())?;
    let call = turn.calls.get(index.get()).ok_or_else(|| Error::new(Code::NotFound, "there is no such call"))?;
    respond(unread, &api::CallJournal::new(&turn, call, &page, salt.as_ref()))
}
