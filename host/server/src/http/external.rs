//! Results of external waits: an external system sends one to a link, or the caller sends one as a signal. The body is the
//! result.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use domain::{ConversationId, LinkId, Refusal, SignalName, SuspensionId, suspension::Decision};
use serde::Deserialize;
use utoipa::IntoParams;

use super::session::{links, no_link, wrong};
use super::suspensions::resolve_one;
use super::{App, Id, NoParams, Params, Segments, respond, run_despite_disconnect};
use crate::auth::By;
use crate::body::{self, Limit, Value};
use crate::error::{Error, Result};
use crate::in_flight::RequestKind;
use crate::login_throttle::Peer;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneLink {
    /// The link: the part of its path after `/v1/links/`.
    link: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OneSignal {
    /// The conversation.
    #[param(value_type = String)]
    conversation: Id<ConversationId>,
    /// The name of the signal, which the tool chose.
    #[param(value_type = String)]
    name: Id<SignalName>,
}

/// Sends the result of an external wait to its link
///
/// For external systems, which need no token. The body is the result: one JSON value that fits the `response_schema` of the
/// suspension. The link is used up exactly if the result is accepted. The same result sent again is `ok` with `replayed`.
#[utoipa::path(
    post, path = "/v1/links/{link}", operation_id = "send_result", tag = "suspensions", params(OneLink), security(()),
    request_body = api::Verbatim,
    responses(
        (status = 200, description = "The result is accepted", body = api::Resolved),
        (status = 401, description = "`unauthorized`: another host made the link, it has expired, or it was revoked with its token"),
        (status = 403, description = "`not-allowed`"),
        (status = 409, description = "`link-used`: it was used before. `stale`: the suspension has ended; with `state`, `by` and `at`"),
        (status = 422, description = "`invalid`: with `errors`; the result does not fit, or the suspension is not an external wait"),
        (status = 429, description = "`busy`: too many wrong attempts from this address; with `retry-after`"),
    )
)]
pub(crate) async fn send_result(
    State(app): State<App>,
    Segments(OneLink { link }): Segments<OneLink>,
    Params(NoParams {}): Params<NoParams>,
    extensions: Extensions,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let peer: Option<Peer> = extensions.get().copied();
    let (link, suspension, by) = links(&app).read(&link).ok_or_else(|| wrong(&app, peer, no_link()))?;
    let _in_flight = app.begin_request(&by, RequestKind::Request)?;
    let limit = Limit::of_key("answer_bytes", app.ports.settings.answer_bytes).without_token();
    let result = api::json::value(&body::text(&app, Some(&by.id), &headers, body, limit).await?)?;
    let answer = resolve(result).answer(suspension)?;
    let (handle, unread) = (app.ports.handle.clone(), app.small(&by));
    let link = LinkId::from_bits(link.id);
    let answered = run_despite_disconnect(async move { handle.resolve_by_link(&by, link, answer).await }).await?;
    let answered = answered.map_err(|error| match error {
        dispatch::Error::Refused(Refusal::Unknown) => no_link(),
        error => Error::from(error),
    })?;
    app.meters.answered(if answered.replayed { "replayed" } else { "new" });
    respond(unread, &api::Resolved::new(&answered))
}

/// Sends a signal
///
/// Sends the result of the open external wait that has this name. No two open waits of a conversation have the same name. The
/// body is the result: one JSON value that fits the `response_schema` of the suspension. Only the caller of the turn and an
/// admin may send it. A signal that nothing waits for is not kept.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation}/signals/{name}", operation_id = "send_signal", tag = "suspensions", params(OneSignal),
    request_body = api::Verbatim,
    responses(
        (status = 200, description = "The result is accepted", body = api::Resolved),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: nothing waits for the signal, and none of the last 500 waits that ended had its name, or another principal owns the conversation"),
        (status = 409, description = "`stale`: the last wait for the signal has ended; with `state`, `by` and `at`"),
    )
)]
pub(crate) async fn send_signal(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneSignal { conversation, name }): Segments<OneSignal>,
    Params(NoParams {}): Params<NoParams>,
    Value(result): Value,
) -> Result<Response> {
    let suspension: SuspensionId = app.ports.handle.suspension_of_signal(&by, &conversation.0, &name.0).await?;
    let resolved = resolve_one(&app, &by, suspension, resolve(result)).await?;
    respond(app.small(&by), &resolved)
}

/// The answer that consists of a result.
fn resolve(result: domain::Json) -> api::Resolve {
    api::Resolve { data: Some(api::Verbatim(result)), ..api::Resolve::new(Decision::Result) }
}
