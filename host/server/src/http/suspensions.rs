//! `/v1/pending` and `/v1/suspensions/{suspension}`: what waits for somebody, and the answers.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use dispatch::ports::Filter;
use dispatch::{Answered, PendingItem};
use domain::{ConversationId, InvalidId, Principal, PrincipalId, Refusal, SuspensionId};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{App, Id, NoParams, Params, Segments, answer, to_the_end};
use crate::auth::By;
use crate::error::{Code, Error, Result};
use crate::{json, wire};

/// A page in which more than this is to be shown to people ends early.
const SHOWN_BYTES: usize = 4 << 20;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneSuspension {
    /// The suspension.
    #[param(value_type = String)]
    suspension: Id<SuspensionId>,
}

/// Which suspensions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// Those that wait.
    #[default]
    Open,
    /// Those that ended.
    Closed,
    /// Both.
    All,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pending {
    /// Only those of this conversation.
    #[param(value_type = Option<String>)]
    conversation: Option<Id<ConversationId>>,
    /// Only those of turns that this principal submitted.
    #[param(value_type = Option<String>)]
    caller: Option<Id<PrincipalId>>,
    /// Only those of calls of this tool.
    tool: Option<String>,
    /// Only those of this kind.
    #[param(inline)]
    kind: Option<wire::Kind>,
    /// Only those that wait (if absent), only those that ended, or all.
    #[serde(default)]
    #[param(inline, required = false)]
    state: Which,
    /// Only those after this one: the `next` of the page before.
    #[param(value_type = Option<String>)]
    after: Option<Id<SuspensionId>>,
    /// At most so many: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// How many to list.
pub(super) fn page(limit: Option<usize>) -> Result<usize> {
    match limit.unwrap_or(100) {
        limit @ 1..=500 => Ok(limit),
        _ => Err(Error::new(Code::BadRequest, "limit is 1 to 500")),
    }
}

/// Lists what waits
///
/// Suspensions that this principal may see, oldest first. What waits for the outside is here and nothing else: a guest
/// that runs is not.
#[utoipa::path(
    get, path = "/v1/pending", operation_id = "list_pending", tag = "suspensions", params(Pending),
    responses(
        (status = 200, description = "A page", body = wire::PendingPage),
        (status = 400, description = "`bad-request`"),
    )
)]
pub(crate) async fn pending(
    State(app): State<App>,
    By(by, _visit): By,
    Params(query): Params<Pending>,
) -> Result<Response> {
    let filter = Filter {
        open: match query.state {
            Which::Open => Some(true),
            Which::Closed => Some(false),
            Which::All => None,
        },
        conversation: query.conversation.map(|id| id.0),
        caller: query.caller.map(|id| id.0),
        tool: query.tool,
        kind: query.kind.map(Into::into),
    };
    let after = query.after.map(|id| id.0);
    let (items, next) = app.doors.handle.suspensions(&by, filter, after, page(query.limit)?).await?;
    answer(StatusCode::OK, &shown(&app, &by, &items, next.map(|id| id.to_string())))
}

/// A page as it leaves. The loop bounds what is exact of it; what is shown can be seven times as long, and ends the page too.
fn shown(app: &App, by: &Principal, items: &[PendingItem], next: Option<String>) -> wire::PendingPage {
    let own_calls = app.doors.handle.own_calls();
    let (mut suspensions, mut bytes) = (Vec::new(), 0);
    for item in items {
        let suspension = wire::Suspension::for_principal(item, by, own_calls);
        bytes += suspension.display.as_ref().map_or(0, wire::Display::len);
        suspensions.push(suspension);
        if bytes > SHOWN_BYTES && suspensions.len() < items.len() {
            let next = suspensions.last().map(|last| last.suspension.clone());
            return wire::PendingPage { suspensions, next };
        }
    }
    wire::PendingPage { suspensions, next }
}

/// Reads a suspension
#[utoipa::path(
    get, path = "/v1/suspensions/{suspension}", operation_id = "read_suspension", tag = "suspensions", params(OneSuspension),
    responses(
        (status = 200, description = "The suspension, open or ended", body = wire::Suspension),
        (status = 400, description = "`bad-request`"),
        (status = 404, description = "`not-found`"),
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    By(by, _visit): By,
    Segments(OneSuspension { suspension }): Segments<OneSuspension>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let item = app.doors.handle.suspension(&by, suspension.0).await.map_err(|error| match error {
        // To one who answers, a question that does not exist is stale; to one who reads, it is not there.
        dispatch::Error::Refused(Refusal::Stale { .. }) => dispatch::Error::NotFound("suspension"),
        error => error,
    })?;
    let own_calls = app.doors.handle.own_calls();
    let deliveries = app.doors.handle.deliveries(&by, suspension.0).await?;
    let deliveries = deliveries.iter().map(wire::Delivery::from).collect();
    let read = wire::Suspension::for_principal(&item, &by, own_calls);
    answer(StatusCode::OK, &wire::Suspension { deliveries, ..read })
}

/// Answers a suspension
///
/// When the reply comes, the answer is on disk and the call goes on; the reply never waits for that. The first answer
/// stands; the same one again by the same principal is `ok` with `replayed`. A refused answer changes nothing.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/resolve", operation_id = "resolve_suspension", tag = "suspensions", params(OneSuspension),
    request_body = wire::Resolve,
    responses(
        (status = 200, description = "The answer stands", body = wire::Resolved),
        (status = 400, description = "`bad-json`, `bad-request`"),
        (status = 403, description = "`not-allowed`"),
        (status = 408, description = "`too-slow`: the body did not arrive in time"),
        (status = 409, description = "`stale`: no longer open, or unknown; with `state`, `by` and `at`. `digest-mismatch`: with the `digest` as it is"),
        (status = 413, description = "`too-large`"),
        (status = 415, description = "`unsupported-media-type`"),
        (status = 422, description = "`invalid`: with `errors`"),
    )
)]
pub(crate) async fn resolve(
    State(app): State<App>,
    By(by, _visit): By,
    Segments(OneSuspension { suspension }): Segments<OneSuspension>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let settings = &app.doors.settings;
    let body = json::text(&headers, body, settings.answer_bytes, settings.body).await?;
    let given = json::object::<wire::Resolve>(&body)?.answer(suspension.0)?;
    let handle = app.doors.handle.clone();
    let answered = to_the_end(async move { handle.resolve(&by, given).await }).await??;
    app.meters.answered(if answered.replayed { "replayed" } else { "new" });
    let Answered { replayed, state, votes_missing } = answered;
    let suspension = suspension.0.to_string();
    answer(StatusCode::OK, &wire::Resolved { ok: true, replayed, suspension, state, votes_missing })
}

/// Hands an approval on
///
/// One who may approve hands that on to another principal, who may not yet; from then on the other decides and the first no
/// longer. Where every approver may answer anyway there is nothing to hand on.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/delegate", operation_id = "delegate_suspension", tag = "suspensions", params(OneSuspension),
    request_body = wire::Delegate,
    responses(
        (status = 200, description = "It was handed on", body = wire::Delegated),
        (status = 400, description = "`bad-json`, `bad-request`"),
        (status = 403, description = "`not-allowed`"),
        (status = 408, description = "`too-slow`: the body did not arrive in time"),
        (status = 409, description = "`stale`: no longer open, or unknown"),
        (status = 413, description = "`too-large`"),
        (status = 415, description = "`unsupported-media-type`"),
        (status = 422, description = "`invalid`: with `errors`"),
    )
)]
pub(crate) async fn delegate(
    State(app): State<App>,
    By(by, _visit): By,
    Segments(OneSuspension { suspension }): Segments<OneSuspension>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let settings = &app.doors.settings;
    let body = json::text(&headers, body, settings.answer_bytes, settings.body).await?;
    let wire::Delegate { to, comment } = json::object(&body)?;
    let name: PrincipalId = to.parse().map_err(|error: InvalidId| Error::invalid_at("/to", error.to_string()))?;
    let handle = app.doors.handle.clone();
    to_the_end(async move { handle.delegate(&by, suspension.0, name, comment).await }).await??;
    answer(StatusCode::OK, &wire::Delegated { ok: true, suspension: suspension.0.to_string(), to })
}
