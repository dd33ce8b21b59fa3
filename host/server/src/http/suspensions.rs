//! `/v1/pending` and `/v1/suspensions/{suspension}`: suspensions and their answers.

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use dispatch::ports::{Filter, Order};
use dispatch::{SuspensionPage, SuspensionView, Within};
use domain::suspension::SuspensionEnd;
use domain::{
    CallId, ConversationId, Principal, PrincipalId, Refusal, SuspensionId, TurnId, ids::InvalidId, principal::Named,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{App, Id, NoParams, Params, Segments, respond, run_despite_disconnect};
use crate::auth::{Authenticated, By, beyond_the_link};
use crate::body::Object;
use crate::error::{Code, Error, Result};
use crate::in_flight::InFlightRequest;

/// A page ends early when its texts for people exceed this size, in bytes.
const SHOWN_BYTES: usize = 4 << 20;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneSuspension {
    /// The suspension.
    #[param(value_type = String)]
    pub(super) suspension: Id<SuspensionId>,
}

/// The principal of a request about one suspension, the suspension in its path, and the request in flight. A session
/// that a link opened is accepted for the link's suspension only. Such a request has no query.
pub(crate) struct About(Principal, SuspensionId, InFlightRequest);

impl FromRequestParts<App> for About {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let authenticated = Authenticated::from_request_parts(parts, app).await?;
        let Segments(OneSuspension { suspension: Id(suspension) }) = Segments::from_request_parts(parts, app).await?;
        let Params(NoParams {}) = Params::from_request_parts(parts, app).await?;
        if authenticated.only().is_some_and(|only| only != suspension) {
            return Err(beyond_the_link());
        }
        Ok(Self(authenticated.by, suspension, authenticated.in_flight))
    }
}

/// A selection by state.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// Open suspensions.
    Open,
    /// Suspensions that ended.
    Closed,
    /// Both kinds.
    All,
}

/// The order of a list.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum First {
    Oldest,
    Newest,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pending {
    /// Only suspensions of this conversation and of its nested turns.
    #[param(value_type = Option<String>)]
    conversation: Option<Id<ConversationId>>,
    /// Only suspensions of turns that this principal submitted.
    #[param(value_type = Option<String>)]
    caller: Option<Id<PrincipalId>>,
    /// Only suspensions of calls of this tool.
    tool: Option<String>,
    /// Only suspensions of this kind. If absent: those that people or clients are asked about, and with `turn` or `call` all.
    #[param(inline)]
    kind: Option<api::Kind>,
    /// Only suspensions of the call with this id. The parameter `conversation` is needed with it.
    #[param(value_type = Option<String>)]
    call: Option<Id<CallId>>,
    /// Only suspensions of this turn.
    #[param(value_type = Option<String>)]
    turn: Option<Id<TurnId>>,
    /// Only open suspensions, only those that ended, or all. If absent: `closed` with `decision` or `by`, otherwise
    /// `open`.
    #[param(inline)]
    state: Option<Which>,
    /// Only suspensions that ended so: `approve`, `deny` or another decision, `expired` or `withdrawn`. With another filter
    /// beside it, a page may be empty and still have a next one.
    decision: Option<String>,
    /// Only suspensions that this principal ended, or gave one of the approvals that ended it. With another filter beside
    /// it, a page may be empty and still have a next one.
    #[param(value_type = Option<String>)]
    by: Option<Id<PrincipalId>>,
    /// Only suspensions that this principal may answer now. A page may be empty and still have a next one.
    #[serde(default)]
    #[param(required = false)]
    mine: bool,
    /// Which suspensions come first. If absent: `oldest`.
    #[param(inline)]
    order: Option<First>,
    /// Only suspensions after this one: the `next` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<Id<SuspensionId>>,
    /// The size of the page: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// The size of a page.
pub(super) fn page(limit: Option<usize>) -> Result<usize> {
    match limit.unwrap_or(100) {
        limit @ 1..=500 => Ok(limit),
        limit => {
            let detail = format!("the parameter `limit` is {limit}, and it must be from 1 to 500");
            Err(Error::new(Code::BadRequest, detail))
        }
    }
}

/// Lists suspensions
///
/// The suspensions that this principal may see, by the time when they were opened. A running guest has no suspension.
#[utoipa::path(
    get, path = "/v1/pending", operation_id = "list_pending", tag = "suspensions", params(Pending),
    responses(
        (status = 200, description = "A page", body = api::PendingPage),
        (status = 422, description = "`invalid`: `decision` is `approved` or `denied`"),
    ),
)]
pub(crate) async fn pending(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(query): Params<Pending>,
) -> Result<Response> {
    // A filter by a misspelt decision would find nothing, as if there were none.
    let decisions = [("approved", "approve"), ("denied", "deny")];
    if let Some((given, decision)) = decisions.into_iter().find(|(given, _)| query.decision.as_deref() == Some(given)) {
        let detail = format!("the parameter `decision` is `{given}`: try `{decision}`");
        return Err(Error::new(Code::Invalid, detail));
    }
    let of_end = query.decision.is_some() || query.by.is_some();
    let filter = Filter {
        open: match query.state.unwrap_or(if of_end { Which::Closed } else { Which::Open }) {
            Which::Open => Some(true),
            Which::Closed => Some(false),
            Which::All => None,
        },
        conversation: query.conversation.map(|id| id.0),
        caller: query.caller.map(|id| id.0),
        tool: query.tool,
        kind: query.kind.map(Into::into),
        ended: query.decision.as_deref().map(SuspensionEnd::from),
        ended_by: query.by.map(|id| id.0),
        order: match query.order.unwrap_or(First::Oldest) {
            First::Oldest => Order::OldestFirst,
            First::Newest => Order::NewestFirst,
        },
    };
    let (after, limit) = (query.after.map(|id| id.0), page(query.limit)?);
    let (handle, unread) = (&app.ports.handle, app.read(&by).await?);
    let order = filter.order;
    let conversation = filter.conversation.clone();
    let call = query.call.as_ref().map(|call| &call.0);
    let within = match (query.turn, call, &conversation) {
        (None, None, _) => None,
        (Some(Id(turn)), call, _) => Some(Within::Turn(turn, call)),
        (None, Some(call), Some(conversation)) => Some(Within::Call(conversation, call)),
        (None, Some(_), None) => {
            let detail = "a call id is unique in its conversation only: send the parameter conversation too";
            return Err(Error::new(Code::BadRequest, detail));
        }
    };
    let mut page = match within {
        None if query.mine => handle.answerable(&by, filter, after, limit).await?,
        None => handle.suspensions(&by, filter, after, limit).await?,
        Some(within) => handle.suspensions_within(&by, within, filter, after, limit).await?,
    };
    page.items.retain(|item| !query.mine || handle.may_answer(&by, item));
    respond(unread, &shown(&page, order, &by, &app))
}

/// A page for the response. The loop limits the size of the exact texts. The texts for people can be seven times as
/// long, so they have a limit of their own.
fn shown(page: &SuspensionPage, order: Order, by: &Principal, app: &App) -> api::PendingPage {
    let (mut suspensions, mut bytes, mut next) = (Vec::new(), 0, page.next);
    for item in &page.items {
        let suspension = app.shown(item, by);
        bytes += suspension.shown_bytes();
        suspensions.push(suspension);
        if bytes > SHOWN_BYTES && suspensions.len() < page.items.len() {
            next = Some(item.suspension.id);
            break;
        }
    }
    // Those after `next` are on the next page.
    let unreadable = page.unreadable.iter().filter(|(id, _)| next.is_none_or(|next| !order.is_after(*id, next)));
    let unreadable = unreadable.map(|(id, turn)| api::UnreadableSuspension {
        suspension: id.to_string(),
        turn: turn.as_ref().map(ToString::to_string),
    });
    api::PendingPage { suspensions, next: next.map(|id| id.to_string()), unreadable: unreadable.collect() }
}

/// Reads a suspension
#[utoipa::path(
    get, path = "/v1/suspensions/{suspension}", operation_id = "read_suspension", tag = "suspensions", params(OneSuspension),
    responses(
        (status = 200, description = "The suspension, open or ended", body = api::Suspension),
        (status = 403, description = "`not-allowed`: the session is from a link to another suspension"),
        (status = 404, description = "`not-found`"),
    )
)]
pub(crate) async fn read(State(app): State<App>, About(by, suspension, _in_flight): About) -> Result<Response> {
    let unread = app.read(&by).await?;
    let item = found(&app, &by, suspension).await?;
    let deliveries = app.ports.handle.deliveries(&by, suspension).await?;
    let deliveries = deliveries.iter().map(api::Delivery::from).collect();
    respond(unread, &api::Suspension { deliveries, ..app.shown(&item, &by) })
}

/// One suspension. An answer to an unknown suspension is `stale`; reading one is `not-found`.
pub(crate) async fn found(app: &App, by: &Principal, id: SuspensionId) -> Result<SuspensionView> {
    app.ports.handle.suspension(by, id).await.map_err(not_found)
}

fn not_found(error: dispatch::Error) -> Error {
    match error {
        dispatch::Error::Refused(Refusal::Unknown) => dispatch::Error::NotFound(dispatch::Resource::Suspension).into(),
        error => error.into(),
    }
}

/// Answers a suspension
///
/// At the time of the response, the answer is on disk. The call continues, and the response does not wait for it. The
/// first answer is accepted. If the same principal sends the same answer again, the response is `ok` with `replayed`. A
/// refused answer has no effect.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/resolve", operation_id = "resolve_suspension", tag = "suspensions", params(OneSuspension),
    request_body = api::Resolve,
    responses(
        (status = 200, description = "The answer is accepted", body = api::Resolved),
        (status = 403, description = "`not-allowed`"),
        (status = 409, description = "`stale`: no longer open, or unknown; with `state`, `by` and `at`. `digest-mismatch`: with the current `digest`"),
    )
)]
pub(crate) async fn resolve(
    State(app): State<App>,
    About(by, suspension, _in_flight): About,
    Object(given): Object<api::Resolve>,
) -> Result<Response> {
    let resolved = resolve_one(&app, &by, suspension, given).await?;
    respond(app.small(&by), &resolved)
}

/// Finds the defaults of an edit
///
/// The schema's defaults for what edited arguments of an approval leave out. An approver needs them before approving the edit,
/// because the tool applies them. Nothing changes.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/defaults", operation_id = "edit_defaults", tag = "suspensions", params(OneSuspension),
    request_body = api::Edit,
    responses(
        (status = 200, description = "The defaults that apply to these arguments", body = api::EditDefaults),
        (status = 403, description = "`not-allowed`: the session is from a link to another suspension"),
        (status = 404, description = "`not-found`"),
    )
)]
pub(crate) async fn defaults(
    State(app): State<App>,
    About(by, suspension, _in_flight): About,
    Object(api::Edit { arguments }): Object<api::Edit>,
) -> Result<Response> {
    let unread = app.read(&by).await?;
    let found = app.ports.handle.edit_defaults(&by, suspension, arguments.0).await.map_err(not_found)?;
    respond(unread, &api::EditDefaults::from(found))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneCall {
    /// The conversation.
    #[param(value_type = String)]
    pub(super) conversation: Id<ConversationId>,
    /// The call, by the caller's id.
    #[param(value_type = String)]
    pub(super) call: Id<CallId>,
}

/// Answers a call
///
/// Answers a suspension of the call by the ids that the caller chose. A call can have several suspensions, one after the
/// other: an approval and then a client's result, or a second approval after a kill. `number` says which is answered, and
/// it is the first if `number` is absent, whichever is open now. So an answer that is sent again is `replayed` or `stale`,
/// and never answers the next suspension.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation}/calls/{call}/resolve", operation_id = "resolve_call", tag = "suspensions", params(OneCall),
    request_body = api::ResolveCall,
    responses(
        (status = 200, description = "The answer is accepted", body = api::Resolved),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: no such call, or another principal owns the conversation"),
        (status = 409, description = "`stale`: no longer open, or no suspension has this number; with `state`, `by` and `at`. `digest-mismatch`: with the current `digest`"),
        (status = 410, description = "`removed`: retention removed the turn; with `at` and `rule`"),
    )
)]
pub(crate) async fn resolve_call(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneCall { conversation, call }): Segments<OneCall>,
    Params(NoParams {}): Params<NoParams>,
    Object(given): Object<api::ResolveCall>,
) -> Result<Response> {
    let (number, given) = given.split();
    let suspension = app.ports.handle.suspension_of_call(&by, &conversation.0, &call.0, number).await?;
    let resolved = resolve_one(&app, &by, suspension, given).await?;
    respond(app.small(&by), &resolved)
}

/// Answers one suspension.
pub(super) async fn resolve_one(
    app: &App,
    by: &Principal,
    suspension: SuspensionId,
    given: api::Resolve,
) -> Result<api::Resolved> {
    let given = given.answer(suspension)?;
    let (handle, by) = (app.ports.handle.clone(), by.clone());
    let answered = run_despite_disconnect(async move { handle.resolve(&by, given).await }).await??;
    app.meters.answered(if answered.replayed { "replayed" } else { "new" });
    Ok(api::Resolved::new(&answered))
}

/// Delegates an approval
///
/// An approver delegates the authority to another principal, who must not have it yet. Then the other principal decides
/// and the approver no longer does. An approval that any approver may give cannot be delegated.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/delegate", operation_id = "delegate_suspension", tag = "suspensions", params(OneSuspension),
    request_body = api::Delegate,
    responses(
        (status = 200, description = "It was delegated", body = api::Delegated),
        (status = 403, description = "`not-allowed`"),
        (status = 409, description = "`stale`: no longer open, or unknown"),
    )
)]
pub(crate) async fn delegate(
    State(app): State<App>,
    About(by, suspension, _in_flight): About,
    Object(api::Delegate { to, comment }): Object<api::Delegate>,
) -> Result<Response> {
    let name: PrincipalId = to.parse().map_err(|error: InvalidId| Error::invalid_at("/to", error.to_string()))?;
    let known = app.ports.auth.named(&name).map(|(principal, _)| principal);
    let whom = known.map_or(Named::Nobody(name), Named::Somebody);
    let (handle, unread) = (app.ports.handle.clone(), app.small(&by));
    run_despite_disconnect(async move { handle.delegate(&by, suspension, whom, comment).await }).await??;
    respond(unread, &api::Delegated { ok: true, suspension: suspension.to_string(), to })
}

/// Reports the progress of a client's call
///
/// A client that carries out a call of a streaming tool reports how far it is. Those who follow the conversation get
/// `call.progress`. A report is not stored, and it does not extend the time of the call. The operator's limits
/// `progress_updates` and `progress_bytes` apply to each suspension.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/progress", operation_id = "report_progress", tag = "suspensions", params(OneSuspension),
    request_body = api::ReportProgress,
    responses(
        (status = 200, description = "The report was sent, or dropped", body = api::ProgressReported),
        (status = 403, description = "`not-allowed`"),
        (status = 409, description = "`stale`: no longer open, or unknown; with `state`, `by` and `at`"),
    )
)]
pub(crate) async fn progress(
    State(app): State<App>,
    About(by, suspension, _in_flight): About,
    Object(report): Object<api::ReportProgress>,
) -> Result<Response> {
    let sent = app.ports.handle.report_progress(&by, suspension, report.into()).await?;
    respond(app.small(&by), &api::ProgressReported { ok: true, dropped: !sent })
}
