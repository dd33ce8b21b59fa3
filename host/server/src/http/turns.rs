//! `/v1/conversations/{conversation}/turns`: submits, reads and cancels turns.

use api::formats::{self, OwnMembers, TurnFormat};
use api::json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use dispatch::ports::Position;
use dispatch::{Submitted, TurnRequest, Until};
use domain::{Call, ConversationId, Outcome, Principal, Span, Turn, TurnId, tool::Executor, turn::TurnState};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{App, Id, NoParams, Params, Segments, logs, respond, run_despite_disconnect, suspensions, verbatim};
use crate::auth::By;
use crate::body::{self, Limit};
use crate::error::{Code, Error, Result};
use crate::in_flight::{RequestKind, Unread};
use crate::serve::Closing;

/// The detail if the results of an ephemeral turn cannot be given.
const RESULTS_DROPPED: &str = "the calls of this ephemeral turn have run, and its results were dropped, because too many \
    responses are unread (`unread_bytes` in `[server]`); read them first, or submit turns that are stored";

/// The detail if a cancelled turn cannot be given.
const CANCELLED_UNREAD: &str = "the turn has ended, and only its response is refused, because too many responses are \
    unread (`unread_bytes` in `[server]`); read them first, and then read the turn";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InConversation {
    /// The conversation. The caller chooses its id.
    #[param(value_type = String)]
    pub(super) conversation: Id<ConversationId>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneTurn {
    /// The conversation.
    #[param(value_type = String)]
    conversation: Id<ConversationId>,
    /// The turn.
    #[param(value_type = String)]
    turn: Id<TurnId>,
}

/// The end of a wait.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum WaitUntil {
    /// Every call has its outcome.
    Settled,
    /// No guest of the turn runs: the turn has ended, or all its open calls wait for people or clients.
    Quiet,
}

impl From<WaitUntil> for Until {
    fn from(until: WaitUntil) -> Self {
        match until {
            WaitUntil::Settled => Self::Ended,
            WaitUntil::Quiet => Self::Quiet,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// The maximum wait in milliseconds. 0 if absent. The host limits it (60 s by default).
    wait_ms: Option<u64>,
    /// The end of the wait. `settled` if absent.
    #[param(inline)]
    until: Option<WaitUntil>,
    /// The format of the response.
    #[serde(default)]
    #[param(inline, required = false)]
    format: TurnFormat,
    /// Whether each call has its log. Only in toolgate's own format. `false` if absent.
    #[serde(default)]
    log: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submit {
    /// The maximum wait in milliseconds. 0 if absent. The host limits it (60 s by default).
    wait_ms: Option<u64>,
    /// The end of the wait. `quiet` if absent.
    #[param(inline)]
    until: Option<WaitUntil>,
    /// The format of the response. The host recognises the format of the body by its members.
    #[serde(default)]
    #[param(inline, required = false)]
    format: TurnFormat,
    /// For a body in a provider's format: a JSON object for tools and people.
    context: Option<String>,
    /// For a body in a provider's format: the effect of a denial on the other calls.
    #[param(inline)]
    rejection: Option<api::Rejection>,
    /// For a body in a provider's format: whether the turn is stored only when something in it waits.
    ephemeral: Option<bool>,
}

/// Submits a turn
///
/// The body holds the calls of one model answer, in toolgate's own format or exactly as the model's provider returned
/// them, in any of the formats that `format` names. A call that the provider carried out comes with its result. A call
/// of an unknown tool or with invalid arguments fails, and the turn continues.
///
/// Each answer is a turn of its own, also one that Anthropic paused and the answer that continues it. Submit both as they
/// came: an answer that is joined from them repeats the calls of the first, and is refused as `call-id-taken`.
///
/// A repeated submission of the same calls with the same ids is the same turn. Its status is 200 instead of 201. At the
/// time of the response, the turn is on disk.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation}/turns", operation_id = "submit_turn", tag = "turns", params(InConversation, Submit),
    request_body(content = api::Submit, description = "Or a model's answer in its provider's format."),
    responses(
        (status = 201, description = "The turn, new", body = api::TurnInFormat),
        (status = 200, description = "The turn, recorded before", body = api::TurnInFormat),
        (status = 202, description = "With a provider's `format`: submitted, and not ended yet. The turn in toolgate's own format; read it at `location`", body = api::Turn),
        (status = 403, description = "`not-allowed`: without the role `caller`"),
        (status = 404, description = "`not-found`: another principal owns the conversation"),
        (status = 409, description = "`call-id-taken`: a call id was submitted before with another content or in another turn"),
        (status = 410, description = "`removed`: a call id belongs to a turn that retention removed; with `call`, `at` and `rule`"),
        (status = 422, description = "`invalid`: with the wrong members"),
        (status = 429, description = "`busy`: the principal has used up its quota; the request had no effect, unless the turn is ephemeral and `detail` says that its calls have run. With `retry-after`"),
        (status = 503, description = "`loading`: a call names a tool that is not live, and plugins are still being loaded; nothing was recorded, so submit the same calls again"),
    )
)]
pub(crate) async fn submit(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(InConversation { conversation }): Segments<InConversation>,
    Params(query): Params<Submit>,
    closing: Closing,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let limit = Limit::of_key("turn_bytes", app.ports.settings.turn_bytes);
    let text = body::text(&app, Some(&by.id), &headers, body, limit).await?;
    let request = request(&app, conversation.0, &query, &text)?;
    // The request may wait long.
    drop(text);
    // Before anything happens, because a refusal has no effect.
    let is_long = request.ephemeral || query.wait_ms.unwrap_or(0) > 0;
    let _long = is_long.then(|| app.begin_request(&by, RequestKind::Wait)).transpose()?;
    let mut unread = app.unread(&by, expected(&request))?;
    let submitted = submit_to_end(&app, &by, request).await?;
    app.meters.submitted(match &submitted {
        Submitted { replayed: true, .. } => "replayed",
        Submitted { ephemeral: true, .. } => "ephemeral",
        _ => "new",
    });
    let Submitted { turn, replayed, ephemeral } = submitted;
    if replayed || ephemeral {
        // Nothing happened for a turn that was recorded before. Results of an ephemeral turn are lost as if its caller had left.
        let charged = app.charge(&mut unread, size(&turn));
        charged.map_err(|error| if ephemeral { error.with_detail(RESULTS_DROPPED) } else { error })?;
    }
    let until = query.until.map_or(Until::Quiet, Until::from);
    let turn = waited(&app, &by, turn, &mut unread, until, query.wait_ms, closing).await?;
    let (status, format) = match query.format {
        format if !format.is_own() && !turn.is_ended() => (StatusCode::ACCEPTED, TurnFormat::OWN),
        format => (if replayed { StatusCode::OK } else { StatusCode::CREATED }, format),
    };
    let text = formats::results(format, &turn, replayed, ephemeral)?;
    let mut response = verbatim(status, unread.body(text));
    if !ephemeral {
        let location = format!("/v1/conversations/{}/turns/{}", turn.conversation, turn.id);
        response.headers_mut().extend(HeaderValue::try_from(location).ok().map(|value| (header::LOCATION, value)));
    }
    Ok(stated(response, &turn))
}

/// The request from a body and a query.
fn request(app: &App, conversation: ConversationId, query: &Submit, body: &[u8]) -> Result<TurnRequest> {
    let is_provider = |name: &str| {
        let tools = app.ports.handle.tools();
        tools.iter().any(|live| live.tool.name.as_str() == name && live.tool.executor == Executor::Provider)
    };
    let submitted = formats::submitted(body, &is_provider)?;
    let beside = query.context.is_some() || query.rejection.is_some() || query.ephemeral.is_some();
    let own = match submitted.own {
        Some(_) if beside => {
            let detail = "with this format, context, rejection and ephemeral are members of the body, not parameters of the query";
            return Err(Error::new(Code::BadRequest, detail));
        }
        Some(own) => own,
        None => {
            let context = query.context.as_deref().map(|text| {
                json::embedded(text).ok_or_else(|| Error::new(Code::BadRequest, "the parameter context is not JSON"))
            });
            let ephemeral = query.ephemeral.unwrap_or_default();
            OwnMembers { context: context.transpose()?, rejection: query.rejection, ephemeral }
        }
    };
    if own.context.as_ref().is_some_and(|context| !context.as_str().trim_start().starts_with('{')) {
        return Err(Error::invalid_at("/context", "the context must be a JSON object"));
    }
    Ok(TurnRequest {
        conversation,
        calls: submitted.calls,
        context: own.context,
        rejection: own.rejection.map(Into::into).unwrap_or_default(),
        ephemeral: own.ephemeral,
    })
}

/// Submits to the end, even if the caller disconnects. An ephemeral turn ends with the connection, because nobody else
/// can read its results.
async fn submit_to_end(app: &App, by: &Principal, request: TurnRequest) -> Result<Submitted> {
    if request.ephemeral {
        return Ok(app.ports.handle.submit(by, request).await?);
    }
    let (handle, by) = (app.ports.handle.clone(), by.clone());
    Ok(run_despite_disconnect(async move { handle.submit(&by, request).await }).await??)
}

/// Waits until the turn has reached this state, the time has ended, or the server closes, and then until the principal has
/// read enough to get it. Returns the turn. While it waits, it keeps nothing of the turn in memory. A turn that ends stays in memory
/// until it is read, unless the read has to wait.
async fn waited(
    app: &App,
    by: &Principal,
    turn: Turn,
    unread: &mut Unread,
    until: Until,
    wait_ms: Option<u64>,
    mut closing: Closing,
) -> Result<Turn> {
    let at_most = wait_ms.unwrap_or(0).min(app.ports.settings.max_wait.millis());
    if at_most == 0 || turn.is_ended() {
        return Ok(turn);
    }
    let handle = &app.ports.handle;
    let (conversation, id) = (turn.conversation.clone(), turn.id);
    drop(turn);
    let deadline = handle.now() + Span::from_millis(at_most);
    let waited = async {
        let mut waiting = handle.begin_wait(id, until, deadline - handle.now());
        // Each time that it reads the turn, it is one of the few reads of the principal.
        unread.count(0);
        if !waiting.is_needed() {
            waiting = match unread.reserve_with(waiting).await {
                Some(waiting) => waiting,
                None => handle.begin_wait(id, until, deadline - handle.now()),
            };
            let turn = handle.turn(by, &conversation, id).await?;
            if waiting.is_over(&turn) {
                return Ok(turn);
            }
            drop(turn);
            unread.count(0);
        }
        let _kept = unread.reserve_with(waiting.ends().await).await;
        handle.turn(by, &conversation, id).await
    };
    tokio::select! {
        turn = waited => Ok(turn?),
        () = closing.wait() => Ok(handle.turn(by, &conversation, id).await?),
    }
}

/// About the size of the response to a new turn, in bytes: a call that waits is in it twice, and may show the context.
fn expected(request: &TurnRequest) -> usize {
    let context = request.context.as_ref().map_or(0, |context| context.size());
    request.calls.iter().map(|call| context + 2 * call.arguments.size() + call.result_size()).sum()
}

/// About the size of a turn in a response, in bytes.
fn size(turn: &Turn) -> usize {
    let result = |call: &Call| call.outcome().map_or(0, Outcome::size);
    turn.calls.iter().map(|call| call.arguments.size() + result(call)).sum()
}

/// Adds headers with the turn's id and state. Providers' formats have no member for them, and the caller must not send
/// the results of an aborted turn to the model.
fn stated(mut response: Response, turn: &Turn) -> Response {
    let state = api::TurnState::from(&turn.state).to_string();
    for (name, value) in [("toolgate-turn-state", state), ("toolgate-turn", turn.id.to_string())] {
        let value = HeaderValue::try_from(value).ok();
        response.headers_mut().extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    response
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only turns in this state.
    #[param(inline)]
    state: Option<api::TurnState>,
    /// Only turns before this one: the `next` of the previous page.
    after: Option<u64>,
    /// The size of the page: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// Lists turns
///
/// The turns of a conversation, newest first, without arguments and results. A page may be empty and still have a next
/// one. Ephemeral turns are not stored, so they are not listed.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}/turns", operation_id = "list_turns", tag = "turns", params(InConversation, List),
    responses(
        (status = 200, description = "A page", body = api::TurnPage),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: nothing was submitted to the conversation, or another principal owns it"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(InConversation { conversation }): Segments<InConversation>,
    Params(query): Params<List>,
) -> Result<Response> {
    let limit = suspensions::page(query.limit)?;
    let has_state = |state: &TurnState| query.state.is_none_or(|filter| filter == state.into());
    let unread = app.read(&by).await?;
    let (turns, next) =
        app.ports.handle.turns(&by, &conversation.0, has_state, query.after.map(Position), limit).await?;
    let turns = turns.iter().map(api::TurnSummary::from).collect();
    respond(unread, &api::TurnPage { turns, next: next.map(|next| next.0) })
}

/// Reads a turn
///
/// In a provider's format, the response holds the messages to append for the model. It leaves out calls that the
/// provider carried out, because the provider has their results. If none are left, the response is `[]`, or `null` in
/// Anthropic's format.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}/turns/{turn}", operation_id = "read_turn", tag = "turns", params(OneTurn, Read),
    responses(
        (status = 200, description = "The turn, or its results for the model", body = api::TurnInFormat),
        (status = 404, description = "`not-found`"),
        (status = 410, description = "`removed`: retention removed the turn; with `at` and `rule`"),
        (status = 409, description = "`not-settled`: in a provider's format, a turn can be read when it has ended"),
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneTurn { conversation, turn }): Segments<OneTurn>,
    Params(query): Params<Read>,
    closing: Closing,
) -> Result<Response> {
    if query.log && !query.format.is_own() {
        let detail = "a provider's format has no place for logs; leave out `format` or `log`";
        return Err(Error::new(Code::BadRequest, detail));
    }
    let mut unread = app.read(&by).await?;
    let turn = app.ports.handle.turn(&by, &conversation.0, turn.0).await?;
    let until = query.until.map_or(Until::Ended, Until::from);
    let is_long = !turn.is_ended() && query.wait_ms.unwrap_or(0) > 0;
    let _long = is_long.then(|| app.begin_request(&by, RequestKind::Wait)).transpose()?;
    let turn = waited(&app, &by, turn, &mut unread, until, query.wait_ms, closing).await?;
    if !query.format.is_own() && !turn.is_ended() {
        let detail = "the results are complete when the turn has ended; wait for it with wait_ms";
        return Err(Error::new(Code::NotSettled, detail));
    }
    let logs = if query.log { app.ports.handle.call_logs(&turn).await? } else { Vec::new() };
    app.charge(&mut unread, size(&turn) + logs.iter().map(|runs| logs::size(runs)).sum::<usize>())?;
    let text = if query.format.is_own() {
        let deliveries = app.ports.handle.turn_deliveries(&by, turn.id).await?;
        let deliveries = deliveries.iter().map(api::Delivery::from).collect();
        json::write(&api::Turn { deliveries, ..api::Turn::from(&turn).with_logs(&logs) })?
    } else {
        formats::results(query.format, &turn, false, false)?
    };
    Ok(stated(verbatim(StatusCode::OK, unread.body(text)), &turn))
}

/// Cancels a turn
///
/// Every open call of the turn ends `cancelled`. A turn that has ended does not change.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation}/turns/{turn}/cancel", operation_id = "cancel_turn", tag = "turns", params(OneTurn),
    responses(
        (status = 200, description = "The turn", body = api::Turn),
        (status = 403, description = "`not-allowed`: the principal is neither its caller nor an admin"),
        (status = 404, description = "`not-found`"),
        (status = 410, description = "`removed`: retention removed the turn; with `at` and `rule`"),
        (status = 429, description = "`busy`: the principal has too many requests, or it has too many bytes unread. In the second case `detail` says that the turn has ended, and only its response is refused. With `retry-after`"),
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneTurn { conversation, turn }): Segments<OneTurn>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let (handle, unread) = (app.ports.handle.clone(), app.in_flight.read_if_full(&by.id).await);
    let cancelled = async move { (handle.cancel(&by, &conversation.0, turn.0).await, unread) };
    let (turn, mut unread) = run_despite_disconnect(cancelled).await?;
    let turn = turn?;
    app.charge(&mut unread, size(&turn)).map_err(|error| error.with_detail(CANCELLED_UNREAD))?;
    respond(unread, &api::Turn::from(&turn))
}
