//! `/v1/pending/…`: counts and events of open suspensions, and several answers in one request. The list is in
//! `suspensions`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dispatch::ports::Filter;
use domain::{ConversationId, PrincipalId, SuspensionId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, NoParams, Params, respond, suspensions};
use crate::auth::{Authenticated, By};
use crate::body::Object;
use crate::error::{Error, Result};
use crate::events::OpenStream;
use crate::inbox::Inbox;
use crate::serve::Closing;

/// The maximum number of answers in one request.
const MAX_ANSWERS: usize = 100;

/// The maximum size of a text that is no id in the response to several answers, in bytes.
const MAX_NO_ID: usize = 32;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counted {
    /// Only suspensions of this conversation and of its nested turns.
    #[param(value_type = Option<String>)]
    conversation: Option<Id<ConversationId>>,
    /// Only suspensions of turns that this principal submitted.
    #[param(value_type = Option<String>)]
    caller: Option<Id<PrincipalId>>,
    /// Only suspensions of calls of this tool.
    tool: Option<String>,
    /// Only suspensions of this kind.
    #[param(inline)]
    kind: Option<api::Kind>,
    /// Only suspensions that this principal may answer now.
    #[serde(default)]
    #[param(required = false)]
    mine: bool,
}

/// Counts open suspensions
///
/// Counts those that this principal may see.
#[utoipa::path(
    get, path = "/v1/pending/counts", operation_id = "count_pending", tag = "suspensions", params(Counted),
    responses(
        (status = 200, description = "How many", body = api::PendingCounts),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn counts(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(query): Params<Counted>,
) -> Result<Response> {
    let filter = Filter {
        open: Some(true),
        conversation: query.conversation.map(|id| id.0),
        caller: query.caller.map(|id| id.0),
        tool: query.tool,
        kind: query.kind.map(Into::into),
        ..Filter::default()
    };
    let open = app.ports.handle.count_open(&by, filter, query.mine).await?;
    let [approval, elicitation, client_exec] = [open.approvals, open.elicitations, open.client_execs]
        .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let by_kind = api::KindCounts { approval, elicitation, client_exec };
    let counts = api::PendingCounts { open: approval + elicitation + client_exec, by_kind, complete: open.complete };
    respond(app.small(&by), &counts)
}

/// Follows open suspensions
///
/// Live events of all suspensions that this principal may see. `pending.opened` and `pending.changed` hold the
/// suspension as in the list. `pending.closed` is sent once for each suspension that ends, in any way. The first event
/// is `pending.ready`: read the list after it, not before. `pending.reset` means that the stream missed events: read
/// the list again. The events have no ids, and a client that reconnects does not get the events that it missed.
#[utoipa::path(
    get, path = "/v1/pending/events", operation_id = "follow_pending", tag = "events",
    responses(
        (status = 200, description = "Events; `data` is a Suspension, or a PendingClosed for `pending.closed`", content_type = "text/event-stream", body = api::PendingClosed),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn events(
    State(app): State<App>,
    authenticated: Authenticated,
    Params(NoParams {}): Params<NoParams>,
    closing: Closing,
) -> Result<Response> {
    let slot = OpenStream::new(&app, &authenticated.by)?;
    let follower = app.ports.handle.follow_inbox(&authenticated.by, authenticated.only());
    let stream = Inbox::new(slot, authenticated.by.clone(), follower);
    Ok(super::events::sent(&app, stream, (authenticated.by, authenticated.credential), closing))
}

/// Answers several suspensions
///
/// The host processes the answers one after the other. A refused answer has no effect on the others. The status of the
/// response is 200 even if all answers are refused; each answer has its own status. If the principal has too many bytes
/// unread, the host refuses the request as `busy` before it processes any answer.
#[utoipa::path(
    post, path = "/v1/pending/resolve", operation_id = "resolve_several", tag = "suspensions",
    request_body = api::ResolveSeveral,
    responses(
        (status = 200, description = "The result of each answer", body = api::ResolvedSeveral),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn resolve_many(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(NoParams {}): Params<NoParams>,
    Object(api::ResolveSeveral { answers }): Object<api::ResolveSeveral>,
) -> Result<Response> {
    if answers.is_empty() || answers.len() > MAX_ANSWERS {
        return Err(Error::invalid_at("/answers", format!("send 1 to {MAX_ANSWERS} answers")));
    }
    let mut unread = app.read(&by).await?;
    // The answers may take long. They must not keep other reads of their principal waiting.
    unread.count(0);
    let mut resolved = Vec::with_capacity(answers.len());
    for given in answers {
        let (mut suspension, given) = given.split();
        let done = match suspension.parse::<SuspensionId>() {
            Ok(id) => suspensions::resolve_one(&app, &by, id, given).await,
            Err(error) => {
                suspension.truncate(suspension.floor_char_boundary(MAX_NO_ID));
                Err(Error::invalid_at("/suspension", error.to_string()))
            }
        };
        let (status, ok, problem) = match done {
            Ok(resolved) => (StatusCode::OK.as_u16(), Some(resolved), None),
            Err(error) => {
                let problem = error.into_problem().brief();
                (problem.status, None, Some(problem))
            }
        };
        resolved.push(api::ResolvedOne { suspension, status, ok, problem });
    }
    respond(unread, &api::ResolvedSeveral { answers: resolved })
}
