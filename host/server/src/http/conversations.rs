//! `/v1/conversations`: lists the conversations.

use axum::extract::State;
use axum::response::Response;
use domain::ConversationId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, Params, respond, suspensions};
use crate::auth::By;
use crate::error::Result;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only conversations after this one: the `next` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<Id<ConversationId>>,
    /// The size of the page: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// Lists conversations
///
/// The conversations that this principal may see, in the order of their ids. A page may be empty and still have a next
/// one.
#[utoipa::path(
    get, path = "/v1/conversations", operation_id = "list_conversations", tag = "turns", params(List),
    responses(
        (status = 200, description = "A page", body = api::ConversationPage),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(query): Params<List>,
) -> Result<Response> {
    let limit = suspensions::page(query.limit)?;
    let unread = app.read(&by).await?;
    let (seen, next) = app.ports.handle.conversations(&by, query.after.map(|id| id.0), limit).await?;
    let conversations = seen.iter().map(api::Conversation::from).collect();
    let next = next.map(|next| next.to_string());
    respond(unread, &api::ConversationPage { conversations, next })
}
