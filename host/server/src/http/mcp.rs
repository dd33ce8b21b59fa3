//! `/mcp`: the messages of MCP clients. The port answers them; this file checks who sends them, and from where.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, Response, header};
use domain::principal::Role;
use futures::TryStreamExt as _;
use http_body_util::BodyExt as _;

use super::App;
use crate::auth::{Authenticated, Credential};
use crate::body::{self, Limit};
use crate::error::{Code, Error, Result};
use crate::in_flight::{InFlightRequest, RequestKind};
use crate::mcp_unread::AnswerUnread;
use crate::ports::McpBody;
use crate::recheck::{Events, TokenRecheck};
use crate::serve::Closing;

/// Answers one message. Only a token authenticates: a browser sends a cookie with requests that its user did not make.
pub(super) async fn exchange(State(app): State<App>, closing: Closing, request: Request) -> Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    is_from_allowed_origin(&parts.headers, &app.ports.settings.origins)?;
    let Some(clients) = app.ports.mcp_clients.clone() else {
        return Err(Error::new(Code::NotFound, "this host does not answer MCP clients"));
    };
    let Authenticated { by, credential, in_flight } = Authenticated::from_request_parts(&mut parts, &app).await?;
    match &credential {
        Credential::Bearer(_) => {}
        // Its client can get a token with another scope, and learns here of which.
        Credential::Access(token) if !token.principal.roles.has(Role::Caller) => {
            let detail = "no scope of the access token gives the role `caller`";
            return Err(Error::not_allowed(detail, Some(Role::Caller)));
        }
        Credential::Access(_) => {}
        Credential::Session(_) => {
            return Err(Error::new(Code::Unauthorized, "send the header `authorization: Bearer <token>`"));
        }
    }
    // It may wait for a call, or be a stream.
    let long = app.begin_request(&by, RequestKind::Wait)?;
    let unread = AnswerUnread::new(&app, &by)?;
    let limit = Limit::of_key("turn_bytes", app.ports.settings.turn_bytes);
    let text = body::text(&app, Some(&by.id), &parts.headers, body, limit).await?;
    let mut recheck = TokenRecheck::new(&app, (by.clone(), credential), closing);
    let answered = clients.answer(by, Request::from_parts(parts, text), Arc::new(unread.clone()));
    let Some(answered) = recheck.during(answered).await else {
        let detail = "the token is no longer valid, or the host stops; the host keeps a call that the request has made, so read the \
                      outcome later with a valid token";
        return Err(Error::busy(detail, 1));
    };
    let (mut head, body) = answered.into_parts();
    let body = if let Some(length) = body.size_hint().exact() {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
        // HTTP takes it later, unless the client has left.
        Body::from_stream(body.into_data_stream().map_ok(move |bytes| unread.frame(bytes)))
    } else {
        let frames = Frames { body, unread, _open: [in_flight, long] };
        Body::from_stream(recheck.stream(frames))
    };
    Ok(Response::from_parts(head, body))
}

/// The frames of an answer that is a stream. It is a long request to its end.
struct Frames {
    body: McpBody,
    unread: AnswerUnread,
    _open: [InFlightRequest; 2],
}

impl Events for Frames {
    type Item = Bytes;

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let frame = self.body.frame().await?.unwrap_or_else(|never| match never {});
            if let Ok(bytes) = frame.into_data() {
                return Some(self.unread.frame(bytes));
            }
        }
    }
}

/// Refuses a page of an origin that the operator has not named. Programs send no `Origin`.
fn is_from_allowed_origin(headers: &HeaderMap, origins: &[String]) -> Result<()> {
    let is_allowed = |origin: &[u8]| origins.iter().any(|allowed| allowed.as_bytes() == origin);
    if headers.get_all(header::ORIGIN).iter().all(|origin| is_allowed(origin.as_bytes())) {
        return Ok(());
    }
    let detail = "a page of this origin may not use this host; its operator can add the origin to `[server] origins`";
    Err(Error::new(Code::NotAllowed, detail))
}
