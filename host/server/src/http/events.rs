//! `/v1/conversations/{conversation}/events` and `/v1/events`: streams of events.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use domain::{ConversationId, ToolName};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, Params, Segments};
use crate::auth::{Admin, By, Credential};
use crate::error::{Code, Error, Result};
use crate::events::{Cursor, Open, Stream, Waiting};
use crate::serve::Closing;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InConversation {
    /// The conversation.
    #[param(value_type = String)]
    conversation: Id<ConversationId>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Follow {
    /// Attach as the client that runs these tools. Separate their names by commas.
    client: Option<String>,
    /// The id of the event after which to begin, or `now`. The header `last-event-id` takes precedence.
    after: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowHost {
    /// The id of the event after which to begin, or `now`. The header `last-event-id` takes precedence.
    after: Option<String>,
}

/// Where a stream begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Cursor(Cursor),
    Now,
}

/// The requested beginning of a stream.
fn asked(headers: &HeaderMap, after: Option<&str>) -> Result<Option<From>> {
    let wrong = |error: String| Error::new(Code::BadRequest, error);
    if let Some(last) = headers.get("last-event-id") {
        let cursor = last.to_str().unwrap_or_default().parse().map_err(wrong)?;
        return Ok(Some(From::Cursor(cursor)));
    }
    match after {
        None => Ok(None),
        Some("now") => Ok(Some(From::Now)),
        Some(after) => Ok(Some(From::Cursor(after.parse().map_err(wrong)?))),
    }
}

/// Follows a conversation
///
/// Each stored event has an `id`. A stream that reconnects with it as `last-event-id` continues exactly there.
/// `call.progress`, `call.log` and the events of ephemeral turns are not stored and have no id. By default, the stream
/// begins with the first event of the conversation.
///
/// With `client=`, the connection is a client that runs these tools while it is open. It first gets the suspensions
/// that wait for it, as `call.suspended` with `"snapshot":true`, and then all new events. A client that reconnects gets
/// the open suspensions again, and recognises by their ids which it has already accepted.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}/events", operation_id = "follow_conversation", tag = "events", params(InConversation, Follow),
    responses(
        (status = 200, description = "Events; each `data` is an Event", content_type = "text/event-stream", body = api::Event),
        (status = 403, description = "`not-allowed`: a client without the role `client`"),
        (status = 404, description = "`not-found`: another principal owns the conversation"),
    )
)]
pub(crate) async fn conversation(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(InConversation { conversation: Id(conversation) }): Segments<InConversation>,
    Params(query): Params<Follow>,
    closing: Option<Extension<Closing>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let tools = query.client.as_deref().map(tool_names).transpose()?;
    let begin = match (asked(&headers, query.after.as_deref())?, &tools) {
        (Some(begin), _) => begin,
        // A client acts on events, so it must not get old ones.
        (None, Some(_)) => From::Now,
        (None, None) => From::Cursor(Cursor::START),
    };
    let cursor = cursor(begin);
    let asking = (by.clone(), Credential::of(&uri, &headers, &app)?);
    let slot = Open::new(&app, &by)?;
    let handle = &app.doors.handle;
    let follower = handle.follow(&by, &conversation, cursor.after()).await?;
    let attached = match &tools {
        Some(tools) => Some(handle.attach(&by, &conversation, tools.clone()).await?),
        None => None,
    };
    let closing = closing.map_or_else(Closing::never, |Extension(closing)| closing);
    let mut stream = Stream::new(slot, asking, Some(conversation.clone()), follower, cursor, closing);
    if begin == From::Now {
        stream.skip_past().await?;
    }
    if let (Some(attached), Some(tools)) = (attached, tools) {
        stream.tell_open(attached, Waiting::new(conversation, tools)).await?;
    }
    Ok(sent(&app, stream))
}

/// Follows the host
///
/// The events of plugins: `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "follow_host", tag = "events", params(FollowHost),
    responses(
        (status = 200, description = "Events; each `data` is an Event", content_type = "text/event-stream", body = api::Event),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn host(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(query): Params<FollowHost>,
    closing: Option<Extension<Closing>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let begin = asked(&headers, query.after.as_deref())?.unwrap_or(From::Cursor(Cursor::START));
    let cursor = cursor(begin);
    let asking = (by.clone(), Credential::of(&uri, &headers, &app)?);
    let slot = Open::new(&app, &by)?;
    let follower = app.doors.handle.follow_host(&by, cursor.after())?;
    let closing = closing.map_or_else(Closing::never, |Extension(closing)| closing);
    let mut stream = Stream::new(slot, asking, None, follower, cursor, closing);
    if begin == From::Now {
        stream.skip_past().await?;
    }
    Ok(sent(&app, stream))
}

fn cursor(begin: From) -> Cursor {
    match begin {
        From::Cursor(cursor) => cursor,
        From::Now => Cursor::START,
    }
}

fn tool_names(text: &str) -> Result<Vec<ToolName>> {
    let names = text.split(',').map(|name| ToolName::new(name.trim()));
    names.collect::<std::result::Result<_, _>>().map_err(|error| Error::new(Code::BadRequest, error.to_string()))
}

fn sent(app: &App, stream: Stream) -> Response {
    let alive = KeepAlive::new().interval(Duration::from_millis(app.doors.settings.keep_alive.millis().max(1)));
    Sse::new(stream.into_events()).keep_alive(alive).into_response()
}
