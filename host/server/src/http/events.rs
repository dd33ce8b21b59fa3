//! `/v1/conversations/{conversation}/events` and `/v1/events`: streams of events.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use dispatch::ports::Position;
use domain::{Principal, ToolName};
use serde::Deserialize;
use utoipa::IntoParams;

use super::turns::InConversation;
use super::{App, Id, Params, Segments};
use crate::auth::{Authenticated, Credential, Full};
use crate::error::{Code, Error, Result};
use crate::events::{Cursor, OpenStream, Stream, Waiting};
use crate::recheck::{Events, TokenRecheck};
use crate::serve::Closing;

/// The maximum number of tools of one client. A stream reads the open calls of each of them.
const MAX_CLIENT_TOOLS: usize = 128;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Follow {
    /// Attach as the client that runs these tools, at most 128. Separate their names by commas.
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
#[derive(Clone, Copy)]
enum From {
    Cursor(Cursor),
    Now,
}

impl From {
    /// The cursor, and the position after which to read. Nothing before it is read. The reader of a stream from now gets its
    /// position, so that it can resume there if the connection breaks before the first event.
    async fn position(self, slot: &mut OpenStream) -> Result<(Cursor, Position)> {
        Ok(match self {
            Self::Cursor(cursor) => (cursor, cursor.after()),
            Self::Now => {
                let now = slot.app().ports.handle.last_position().await?;
                slot.push_position(now);
                (Cursor::START, now)
            }
        })
    }
}

/// The requested beginning of a stream.
fn asked(headers: &HeaderMap, after: Option<&str>) -> Result<Option<From>> {
    if let Some(last) = headers.get("last-event-id") {
        let cursor = last.to_str().unwrap_or_default().parse();
        let wrong = |error: String| Error::new(Code::BadRequest, format!("the header `last-event-id`: {error}"));
        return Ok(Some(From::Cursor(cursor.map_err(wrong)?)));
    }
    match after {
        None => Ok(None),
        Some("now") => Ok(Some(From::Now)),
        Some(after) => {
            let wrong = |error: String| {
                Error::new(Code::BadRequest, format!("the parameter `after` is {after:?}: {error}, or `now`"))
            };
            Ok(Some(From::Cursor(after.parse().map_err(wrong)?)))
        }
    }
}

/// Follows a conversation
///
/// Each stored event has an `id`. A stream that reconnects with it as `last-event-id` continues exactly there.
/// `call.progress`, `call.log` and the events of ephemeral turns are not stored and have no id. By default, the stream
/// begins with the first event of the conversation. A stream after `now` first sends the `id` of its begin, without data.
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
    Full(Authenticated { by, credential, in_flight: _in_flight }): Full,
    Segments(InConversation { conversation: Id(conversation) }): Segments<InConversation>,
    Params(query): Params<Follow>,
    closing: Closing,
    headers: HeaderMap,
) -> Result<Response> {
    let tools = query.client.as_deref().map(tool_names).transpose()?;
    let begin = match (asked(&headers, query.after.as_deref())?, &tools) {
        (Some(begin), _) => begin,
        // A client acts on events, so it must not get old ones.
        (None, Some(_)) => From::Now,
        (None, None) => From::Cursor(Cursor::START),
    };
    let mut slot = OpenStream::new(&app, &by)?;
    let handle = &app.ports.handle;
    let (cursor, after) = begin.position(&mut slot).await?;
    let follower = handle.follow(&by, &conversation, after).await?;
    let attached = match &tools {
        Some(tools) => Some(handle.attach(&by, &conversation, tools.clone()).await?),
        None => None,
    };
    let mut stream = Stream::new(slot, by.clone(), Some(conversation.clone()), follower, cursor);
    if let (Some(attached), Some(tools)) = (attached, tools) {
        stream.attach(attached, Waiting::new(conversation, tools));
    }
    Ok(sent(&app, stream, (by, credential), closing))
}

/// Follows the host
///
/// `turn.settled` of each stored turn that this principal may see, with its conversation and caller; for admins also the
/// events of plugins: `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`. Each event has an `id`, and a stream that
/// reconnects with it as `last-event-id` continues exactly there. Retention removes the events of the turns that it
/// removes. Ephemeral turns are not among them.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "follow_host", tag = "events", params(FollowHost),
    responses(
        (status = 200, description = "Events; each `data` is an Event", content_type = "text/event-stream", body = api::Event),
        (status = 403, description = "`not-allowed`: the session is from a link"),
    )
)]
pub(crate) async fn host(
    State(app): State<App>,
    Full(Authenticated { by, credential, in_flight: _in_flight }): Full,
    Params(query): Params<FollowHost>,
    closing: Closing,
    headers: HeaderMap,
) -> Result<Response> {
    let begin = asked(&headers, query.after.as_deref())?.unwrap_or(From::Cursor(Cursor::START));
    let mut slot = OpenStream::new(&app, &by)?;
    let (cursor, after) = begin.position(&mut slot).await?;
    let follower = app.ports.handle.follow_host(&by, after);
    let stream = Stream::new(slot, by.clone(), None, follower, cursor);
    Ok(sent(&app, stream, (by, credential), closing))
}

fn tool_names(text: &str) -> Result<Vec<ToolName>> {
    let wrong = |error: String| Error::new(Code::BadRequest, format!("the parameter `client`: {error}"));
    if text.split(',').count() > MAX_CLIENT_TOOLS {
        return Err(wrong(format!("it names more than {MAX_CLIENT_TOOLS} tools")));
    }
    let names = text.split(',').map(|name| ToolName::new(name.trim()));
    names.collect::<std::result::Result<_, _>>().map_err(|error| wrong(error.to_string()))
}

/// Answers with a stream.
pub(super) fn sent(
    app: &App,
    events: impl Events<Item = sse::Event> + 'static,
    asking: (Principal, Credential),
    closing: Closing,
) -> Response {
    let stream = TokenRecheck::new(app, asking, closing).stream(events);
    let alive = KeepAlive::new().interval(Duration::from_millis(app.ports.settings.keep_alive.millis().max(1)));
    Sse::new(stream).keep_alive(alive).into_response()
}
