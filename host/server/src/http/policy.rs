//! `/v1/policy/explain`: how the rules and policies would decide a call. The call is not made.

use axum::extract::State;
use axum::response::Response;
use dispatch::ports::PolicyQuery;
use domain::{ConversationId, Json, PrincipalId};

use super::{App, NoParams, Params, respond};
use crate::auth::Admin;
use crate::body::Object;
use crate::error::{Code, Error, Result};

/// The conversation if the request names no other.
const NOWHERE: &str = "explain";

/// Explains how a call would be decided
///
/// Lists every rule and dynamic policy, whether it matches and why, which one decides, and the effect together with the
/// tool's declaration. Nothing runs, nobody is asked, and nothing is stored.
#[utoipa::path(
    post, path = "/v1/policy/explain", operation_id = "explain_policy", tag = "policy",
    request_body = api::Explain,
    responses(
        (status = 200, description = "The decision", body = api::Explanation),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: there is no such tool"),
    )
)]
pub(crate) async fn explain(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(NoParams {}): Params<NoParams>,
    Object(asked): Object<api::Explain>,
) -> Result<Response> {
    let unread = app.read(&by).await?;
    let live = app.ports.handle.tools().into_iter().find(|live| live.tool.name.as_str() == asked.tool);
    let unknown = || Error::new(Code::NotFound, format!("there is no tool {}", escape::quoted(&asked.tool, 64)));
    let live = live.ok_or_else(unknown)?;
    let caller = asked.caller.as_deref().map(str::parse::<PrincipalId>).transpose();
    let conversation = ConversationId::new(asked.conversation.as_deref().unwrap_or(NOWHERE));
    let arguments = object("/arguments", asked.arguments)?;
    let violations = live.checks.arguments(&arguments);
    let question = PolicyQuery {
        known: live,
        caller: caller.map_err(|error| Error::invalid_at("/caller", error.to_string()))?.unwrap_or(by.id),
        conversation: conversation.map_err(|error| Error::invalid_at("/conversation", error.to_string()))?,
        via: None,
        context: asked.context.map(|context| object("/context", context)).transpose()?,
        arguments,
        step: asked.step.map(Into::into),
    };
    let explained = app.ports.policy.explain(question).await;
    let invalid = violations.iter().map(ToString::to_string).collect();
    respond(unread, &api::Explanation { invalid, ..explained })
}

fn object(pointer: &str, value: api::Verbatim) -> Result<Json> {
    if value.0.as_str().starts_with('{') { Ok(value.0) } else { Err(Error::invalid_at(pointer, "expected an object")) }
}
