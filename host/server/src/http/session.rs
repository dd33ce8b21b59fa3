//! `/v1/session` and one-time links: a browser gets a session.

use api::json;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use domain::{LinkId, Principal, PrincipalId, Refusal, Span, Timestamp, suspension::SuspensionEnd};
use serde::de::DeserializeOwned;

use super::suspensions::OneSuspension;
use super::{App, NoParams, Params, Segments, respond, run_despite_disconnect};
use crate::auth::{Authenticated, By, Credential, Passes, is_same_origin};
use crate::body::{self, Limit};
use crate::cookies;
use crate::error::{Code, Error, Result};
use crate::in_flight::RequestKind;
use crate::links::{Links, NoLink};
use crate::login_throttle::Peer;
use crate::ports::NotRevoked;
use crate::signed::{OpenedBy, Pass, Purpose};

/// The lifetime of a session that a token opened.
const SESSION: Span = Span::from_secs(12 * 60 * 60);

/// The lifetime of a session that a link opened.
const BY_LINK: Span = Span::from_secs(60 * 60);

/// The default lifetime of a link.
const LINK: Span = Span::from_secs(60 * 60);

/// The maximum size of a body, in bytes.
const BODY: Limit = Limit::fixed(4 << 10);

/// A request that opens a session. Its content type must be JSON: otherwise a page of another site could make a browser
/// send it, and log its user in as somebody else.
pub(crate) struct LogIn<T> {
    /// The address that it comes from, if that is known.
    peer: Option<Peer>,
    /// Whether the cookie is for TLS only.
    is_secure: bool,
    body: T,
}

impl<T: DeserializeOwned> FromRequest<App> for LogIn<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        is_same_origin(headers)?;
        if !headers.contains_key(header::CONTENT_TYPE) {
            return Err(Error::new(Code::UnsupportedMediaType, "send the body with `content-type: application/json`"));
        }
        let body = json::object(&body::text(app, None, headers, body, BODY.without_token()).await?)?;
        let is_secure = cookies::is_secure(&parts.uri, headers);
        Ok(Self { peer: parts.extensions.get().copied(), is_secure, body })
    }
}

/// Logs in
///
/// For browsers. The response sets a cookie that scripts cannot read. It is valid for twelve hours or until the token
/// is revoked. A request with the cookie, other than GET and HEAD, carries the `csrf` of this response in the header
/// `x-toolgate-csrf`.
#[utoipa::path(
    post, path = "/v1/session", operation_id = "log_in", tag = "session", security(()),
    request_body = api::LogIn,
    responses(
        (status = 200, description = "The session; with `set-cookie`", body = api::Session),
        (status = 401, description = "`unauthorized`: this host does not know the token"),
        (status = 403, description = "`not-allowed`: a page of another site sent the request"),
        (status = 429, description = "`busy`: too many wrong attempts from this address; with `retry-after`"),
    )
)]
pub(crate) async fn log_in(
    State(app): State<App>,
    Params(NoParams {}): Params<NoParams>,
    LogIn { peer, is_secure, body: api::LogIn { token } }: LogIn<api::LogIn>,
) -> Result<Response> {
    if !app.ports.auth.is_readable() {
        return Err(Error::unreadable());
    }
    let by = app.ports.auth.principal(&token);
    let by =
        by.ok_or_else(|| wrong(&app, peer, Error::new(Code::Unauthorized, "this host does not know the token")))?;
    let _in_flight = app.begin_request(&by, RequestKind::Request)?;
    let (id, token) = (app.ports.handle.mint(), domain::Digest::of(token));
    let pass = Pass { id, token, expires: expires(&app, (token, OpenedBy::LogIn), SESSION), only: None };
    opened(&app, &by, &pass, SESSION, is_secure)
}

/// Reads the principal of the request
#[utoipa::path(
    get, path = "/v1/session", operation_id = "read_session", tag = "session",
    responses(
        (status = 200, description = "The principal", body = api::Session),
        (status = 403, description = "`not-allowed`: a page of another site sent the request"),
    )
)]
pub(crate) async fn read_session(
    State(app): State<App>,
    authenticated: Authenticated,
    Params(NoParams {}): Params<NoParams>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let unread = app.small(&authenticated.by);
    let Credential::Session(pass) = &authenticated.credential else {
        return respond(unread, &session_of(&app, &authenticated.by, None));
    };
    let beside = if pass.only.is_none() { Passes::of(&uri, &headers, &app).by_link() } else { None };
    let link = beside.and_then(|pass| by_link(&app, &pass));
    respond(unread, &api::Session { link, ..session_of(&app, &authenticated.by, Some(pass)) })
}

/// Logs out
///
/// Revokes the session, and a session that a link opened in the same browser. Copies of their cookies are invalid too.
#[utoipa::path(
    delete, path = "/v1/session", operation_id = "log_out", tag = "session",
    responses(
        (status = 200, description = "The session has ended", body = api::LoggedOut),
        (status = 400, description = "`bad-request`: the request has a bearer token, not a session"),
        (status = 403, description = "`not-allowed`: without the right `x-toolgate-csrf`, or a page of another site sent the request"),
    )
)]
pub(crate) async fn log_out(
    State(app): State<App>,
    authenticated: Authenticated,
    Params(NoParams {}): Params<NoParams>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let Credential::Session(_) = authenticated.credential else {
        let detail = "a bearer token is not a session; revoke it with `toolgate token revoke`";
        return Err(Error::new(Code::BadRequest, detail));
    };
    let (revoked, now) = (app.ports.sessions.revoked.clone(), app.ports.handle.now());
    for pass in Passes::of(&uri, &headers, &app).living {
        let revoked = revoked.clone();
        run_despite_disconnect(async move { revoked.revoke(pass.mark(), now).await }).await??;
    }
    let mut response = respond(app.small(&authenticated.by), &api::LoggedOut { ok: true })?;
    cookies::clear(&mut response, &headers)?;
    Ok(response)
}

/// Makes a link to one suspension
///
/// The link is for one principal and one use. It opens a session that may only read and answer this suspension. The
/// requesting program must send it to the right person. Only an admin makes it, except for an external wait, whose caller
/// may make one too, in its own name. The link of an external wait takes the result with `POST` and needs no session.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/links", operation_id = "make_link", tag = "session", params(OneSuspension),
    request_body = api::MakeLink,
    responses(
        (status = 200, description = "The link; it cannot be read again", body = api::Link),
        (status = 403, description = "`not-allowed`; a suspension has at most a hundred links"),
        (status = 404, description = "`not-found`"),
        (status = 409, description = "`stale`: no longer open; with `state`, `by` and `at`"),
        (status = 422, description = "`invalid`: with `errors`; no principal of this name may answer"),
    )
)]
pub(crate) async fn make_link(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(OneSuspension { suspension }): Segments<OneSuspension>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let body = body::text(&app, Some(&by.id), &headers, body, BODY).await?;
    let api::MakeLink { principal, ttl_ms } = json::object(&body)?;
    let principal = principal.map(|name| name.parse()).transpose();
    let principal: Option<PrincipalId> =
        principal.map_err(|error: domain::ids::InvalidId| Error::invalid_at("/principal", error.to_string()))?;
    let principal = principal.unwrap_or_else(|| by.id.clone());
    let item = super::suspensions::found(&app, &by, suspension.0).await?;
    if let Some(closed) = &item.closed {
        return Err(item.suspension.stale(closed).into());
    }
    let ttl = ttl_ms.map_or(LINK, Span::from_millis);
    let (links, unread) = (links(&app), app.small(&by));
    let made = run_despite_disconnect(async move { links.make(&by, suspension.0, &principal, ttl).await }).await?;
    let link = made.map_err(|error| match error {
        NoLink::NotMade(error) => error.into(),
        NoLink::Time => Error::invalid_at("/ttl_ms", error.to_string()),
        NoLink::Unknown(_) | NoLink::NoApprover(_) => Error::invalid_at("/principal", error.to_string()),
    })?;
    let link = api::Link { url: link.path, expires_at: api::rfc3339(link.expires) };
    respond(unread, &link)
}

/// Uses a link
///
/// Uses the link up. The response sets a cookie that is valid for an hour and may only read and answer the link's
/// suspension. It does not replace the session of a log-in in the same browser. Opening the page of a link does not use
/// it up, because programs that scan mail open links.
#[utoipa::path(
    post, path = "/v1/session/link", operation_id = "use_link", tag = "session", security(()),
    request_body = api::UseLink,
    responses(
        (status = 200, description = "The session, with its suspension in `only`; with `set-cookie`", body = api::Session),
        (status = 401, description = "`unauthorized`: another host made the link, it has expired, or it was revoked with its token"),
        (status = 403, description = "`not-allowed`: a page of another site sent the request"),
        (status = 409, description = "`link-used`: it was used before. `stale`: the suspension has ended; with `state`, `by` and `at`"),
        (status = 429, description = "`busy`: too many wrong attempts from this address; with `retry-after`"),
    )
)]
pub(crate) async fn use_link(
    State(app): State<App>,
    Params(NoParams {}): Params<NoParams>,
    LogIn { peer, is_secure, body: api::UseLink { link } }: LogIn<api::UseLink>,
) -> Result<Response> {
    let (link, suspension, by) = links(&app).read(&link).ok_or_else(|| wrong(&app, peer, no_link()))?;
    let _in_flight = app.begin_request(&by, RequestKind::Request)?;
    let (handle, name) = (app.ports.handle.clone(), by.id.clone());
    let used =
        run_despite_disconnect(async move { handle.use_link(&name, suspension, LinkId::from_bits(link.id)).await })
            .await?;
    used.map_err(|error| match error {
        dispatch::Error::Refused(Refusal::Unknown) => no_link(),
        dispatch::Error::Refused(refusal @ Refusal::Stale { .. }) => answered_already(refusal),
        error => error.into(),
    })?;
    let pass = Pass { expires: expires(&app, (link.token, OpenedBy::Link), BY_LINK), ..link };
    opened(&app, &by, &pass, BY_LINK, is_secure)
}

/// When a new session expires. It must be later than the sessions of its token that were revoked together, or it would
/// be revoked too. This matters only if the clock was set back.
fn expires(app: &App, (token, opened_by): (domain::Digest, OpenedBy), lasts: Span) -> Timestamp {
    let expires = app.ports.handle.now() + lasts;
    let until = app.ports.sessions.revoked.revoked_until(token, opened_by);
    until.map_or(expires, |until| expires.max(until + Span::from_millis(1)))
}

/// The error if the suspension of a link has ended. The session would have nothing to show.
fn answered_already(refusal: Refusal) -> Error {
    let Refusal::Stale { kind, ended, by, .. } = &refusal else { return refusal.into() };
    let detail = match ended {
        SuspensionEnd::Expired => "nobody answered this in time, so the link is no longer valid".to_owned(),
        SuspensionEnd::Withdrawn => format!("this {} was withdrawn, so the link is no longer valid", kind.noun()),
        SuspensionEnd::Decided(decision) => {
            let decision = decision.as_str();
            format!("this was already answered ({decision}, by {by}), so the link is no longer valid")
        }
    };
    Error::from(refusal).with_detail(detail)
}

/// The error for a wrong token or link, or `busy` after too many from this network.
pub(super) fn wrong(app: &App, peer: Option<Peer>, error: Error) -> Error {
    app.login_throttle.wrong(peer, app.ports.handle.now()).err().unwrap_or(error)
}

/// The error for a link that this host does not accept.
pub(super) fn no_link() -> Error {
    Error::new(Code::Unauthorized, "this link is invalid or has expired; ask for another one")
}

pub(super) fn links(app: &App) -> Links {
    Links::new(app.ports.handle.clone(), app.ports.sessions.key.clone(), app.ports.auth.clone())
}

fn session_of(app: &App, by: &Principal, pass: Option<&Pass>) -> api::Session {
    api::Session {
        principal: by.id.to_string(),
        roles: by.roles.iter().map(|role| (&role).into()).collect(),
        groups: by.groups.iter().map(ToString::to_string).collect(),
        conversation: by.conversation.as_ref().map(ToString::to_string),
        csrf: pass.map(|pass| pass.csrf(&app.ports.sessions.key)),
        expires_at: pass.map(|pass| api::rfc3339(pass.expires)),
        only: pass.and_then(|pass| pass.only).map(|only| only.to_string()),
        link: None,
    }
}

/// The session that a link opened beside the session of a log-in.
fn by_link(app: &App, pass: &Pass) -> Option<api::LinkSession> {
    Some(api::LinkSession {
        principal: app.ports.auth.holder(pass.token)?.id.to_string(),
        only: pass.only?.to_string(),
        csrf: pass.csrf(&app.ports.sessions.key),
        expires_at: api::rfc3339(pass.expires),
    })
}

fn opened(app: &App, by: &Principal, pass: &Pass, lasts: Span, secure: bool) -> Result<Response> {
    let mut response = respond(app.small(by), &session_of(app, by, Some(pass)))?;
    let name = if pass.only.is_some() { cookies::LINK } else { cookies::SESSION };
    cookies::set(&mut response, name, &pass.sign(&app.ports.sessions.key, Purpose::Session), lasts, secure)?;
    Ok(response)
}

impl From<NotRevoked> for Error {
    fn from(error: NotRevoked) -> Self {
        Self::fault(&error)
    }
}
