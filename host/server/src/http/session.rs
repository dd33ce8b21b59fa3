//! `/v1/session` and links: how a person's browser comes by a session.

use api::json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use domain::{LinkId, Principal, PrincipalId, Refusal, Span, Timestamp};

use super::suspensions::OneSuspension;
use super::{App, NoParams, Params, Segments, answer, to_the_end};
use crate::auth::{Admin, Asking, Credential, FromPeer, Passes, is_same_origin};
use crate::body;
use crate::cookies;
use crate::doors::NotEnded;
use crate::error::{Code, Error, Result};
use crate::in_flight::Kind;
use crate::links::{Links, NoLink};
use crate::signed::{Pass, Purpose};

/// How long a session lasts that was opened with a token.
const SESSION: Span = Span::from_secs(12 * 60 * 60);

/// How long one lasts that was opened by a link.
const BY_LINK: Span = Span::from_secs(60 * 60);

/// How long a link counts if nobody says otherwise.
const LINK: Span = Span::from_secs(60 * 60);

/// The most bytes of a body here.
const BODY: usize = 4 << 10;

/// Logs in
///
/// For browsers: gives a cookie that no script can read, for twelve hours or until the token is revoked. Requests with the
/// cookie other than GET and HEAD carry the `csrf` of the answer in the header `x-toolgate-csrf`.
#[utoipa::path(
    post, path = "/v1/session", operation_id = "log_in", tag = "session", security(()),
    request_body = api::LogIn,
    responses(
        (status = 200, description = "Who it is; with `set-cookie`", body = api::Session),
        (status = 401, description = "`unauthorized`: the token is not known here"),
        (status = 403, description = "`not-allowed`: a page of another site asks"),
        (status = 429, description = "`busy`: too many wrong attempts from this address; with `retry-after`"),
    )
)]
pub(crate) async fn log_in(
    State(app): State<App>,
    Params(NoParams {}): Params<NoParams>,
    FromPeer(peer): FromPeer,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let api::LogIn { token } = read(&app, &headers, body).await?;
    let now = app.doors.handle.now();
    app.login_throttle.attempt(peer, now)?;
    let by = app.doors.auth.principal(&token);
    let by = by.ok_or_else(|| Error::new(Code::Unauthorized, "the token is not known here"))?;
    app.login_throttle.right(peer);
    let _in_flight = app.begin(&by, Kind::Request)?;
    let (id, token) = (app.doors.handle.mint(), domain::Digest::of(token));
    let pass = Pass { id, token, expires: expires(&app, (token, false), SESSION), only: None };
    opened(&app, &by, &pass, SESSION, cookies::is_secure(&uri, &headers))
}

/// Says who is asking
#[utoipa::path(
    get, path = "/v1/session", operation_id = "read_session", tag = "session",
    responses(
        (status = 200, description = "Who it is", body = api::Session),
        (status = 403, description = "`not-allowed`: a page of another site asks"),
    )
)]
pub(crate) async fn read_session(
    State(app): State<App>,
    asking: Asking,
    Params(NoParams {}): Params<NoParams>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let Credential::Session(pass) = &asking.credential else {
        return answer(StatusCode::OK, &told(&app, &asking.by, None));
    };
    let beside = if pass.only.is_none() { Passes::of(&uri, &headers, &app).by_link() } else { None };
    let link = beside.and_then(|pass| by_link(&app, &pass));
    answer(StatusCode::OK, &api::Session { link, ..told(&app, &asking.by, Some(pass)) })
}

/// Logs out
///
/// The session counts no more, here or wherever its cookie was copied to; neither does one that a link opened in the same browser.
#[utoipa::path(
    delete, path = "/v1/session", operation_id = "log_out", tag = "session",
    responses(
        (status = 200, description = "It has ended", body = api::LoggedOut),
        (status = 400, description = "`bad-request`: a bearer token asks, which is no session"),
        (status = 403, description = "`not-allowed`: without the right `x-toolgate-csrf`, or a page of another site asks"),
    )
)]
pub(crate) async fn log_out(
    State(app): State<App>,
    asking: Asking,
    Params(NoParams {}): Params<NoParams>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let Credential::Session(_) = asking.credential else {
        let detail = "a bearer token is no session; `toolgate token revoke` ends it";
        return Err(Error::new(Code::BadRequest, detail));
    };
    let (ended, now) = (app.doors.sessions.ended.clone(), app.doors.handle.now());
    for pass in Passes::of(&uri, &headers, &app).living {
        let ended = ended.clone();
        to_the_end(async move { ended.end(pass.mark(), now).await }).await??;
    }
    let mut response = answer(StatusCode::OK, &api::LoggedOut { ok: true })?;
    cookies::clear(&mut response, &headers)?;
    Ok(response)
}

/// Makes a link to one suspension
///
/// For one principal, good for one use: it opens a session that may read and answer this suspension and do nothing else.
/// Sending it to the right person is up to whoever asks for it.
#[utoipa::path(
    post, path = "/v1/suspensions/{suspension}/links", operation_id = "make_link", tag = "session", params(OneSuspension),
    request_body = api::MakeLink,
    responses(
        (status = 200, description = "The link; nobody can look it up again", body = api::Link),
        (status = 403, description = "`not-allowed`; a hundred links to one suspension are made and no more"),
        (status = 404, description = "`not-found`"),
        (status = 409, description = "`stale`: no longer open; with `state`, `by` and `at`"),
        (status = 422, description = "`invalid`: with `errors`; nobody of that name answers"),
    )
)]
pub(crate) async fn make_link(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Segments(OneSuspension { suspension }): Segments<OneSuspension>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let settings = &app.doors.settings;
    let body = body::text(&headers, body, BODY, settings.body).await?;
    let api::MakeLink { principal, ttl_ms } = json::object(&body)?;
    let principal: PrincipalId =
        principal.parse().map_err(|error: domain::InvalidId| Error::invalid_at("/principal", error.to_string()))?;
    let item = super::suspensions::found(&app, &by, suspension.0).await?;
    if let Some(closed) = &item.closed {
        let (state, at) = (closed.state().to_owned(), Some(closed.at));
        return Err(Refusal::Stale { state, by: Some(closed.by.clone()), at }.into());
    }
    let ttl = ttl_ms.map_or(LINK, Span::from_millis);
    let links = links(&app);
    let made = to_the_end(async move { links.make(&by, suspension.0, &principal, ttl).await }).await?;
    let link = made.map_err(|error| match error {
        NoLink::NotMade(error) => error.into(),
        NoLink::Time => Error::invalid_at("/ttl_ms", error.to_string()),
        NoLink::Unknown(_) | NoLink::NoApprover(_) => Error::invalid_at("/principal", error.to_string()),
    })?;
    let link = api::Link { url: link.path, expires_at: api::rfc3339(link.expires) };
    answer(StatusCode::OK, &link)
}

/// Uses a link
///
/// Uses it up, and gives a cookie that may read and answer the link's suspension and do nothing else, for an hour. It is a cookie
/// of its own: a session of a log-in in the same browser goes on beside it. Looking at the page of a link uses nothing up:
/// programs that scan mail do that.
#[utoipa::path(
    post, path = "/v1/session/link", operation_id = "use_link", tag = "session", security(()),
    request_body = api::UseLink,
    responses(
        (status = 200, description = "Who it is, and `only` which suspension; with `set-cookie`", body = api::Session),
        (status = 401, description = "`unauthorized`: the link was not made here, has expired, or was revoked with its token"),
        (status = 403, description = "`not-allowed`: a page of another site asks"),
        (status = 409, description = "`link-used`: somebody has used it. `stale`: the question has ended; with `state`, `by` and `at`"),
        (status = 429, description = "`busy`: too many wrong attempts from this address; with `retry-after`"),
    )
)]
pub(crate) async fn use_link(
    State(app): State<App>,
    Params(NoParams {}): Params<NoParams>,
    FromPeer(peer): FromPeer,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let api::UseLink { link } = read(&app, &headers, body).await?;
    let now = app.doors.handle.now();
    app.login_throttle.attempt(peer, now)?;
    let wrong = || Error::new(Code::Unauthorized, "the link does not count, or counts no more; ask for another");
    let (link, suspension, by) = links(&app).read(&link).ok_or_else(wrong)?;
    app.login_throttle.right(peer);
    let _in_flight = app.begin(&by, Kind::Request)?;
    let (handle, name) = (app.doors.handle.clone(), by.id.clone());
    let used = to_the_end(async move { handle.use_link(&name, suspension, LinkId::from_bits(link.id)).await }).await?;
    let used = used.map_err(|error| match error {
        dispatch::Error::Refused(Refusal::Stale { by: None, .. }) => wrong(),
        dispatch::Error::Refused(refusal @ Refusal::Stale { .. }) => answered_already(refusal),
        error => error.into(),
    })?;
    if !used {
        let detail = "somebody has used this link; if that was not you, tell whoever sent it, and ask for another";
        return Err(Error::new(Code::LinkUsed, detail));
    }
    let pass = Pass { expires: expires(&app, (link.token, true), BY_LINK), ..link };
    opened(&app, &by, &pass, BY_LINK, cookies::is_secure(&uri, &headers))
}

/// When a session ends that is opened now: after all those of its token that were ended together, or it would be one of them. Where
/// the clock was set back, that is later than otherwise.
fn expires(app: &App, (token, by_link): (domain::Digest, bool), lasts: Span) -> Timestamp {
    let expires = app.doors.handle.now() + lasts;
    let ended = app.doors.sessions.ended.all_until(token, by_link);
    ended.map_or(expires, |until| expires.max(until + Span::from_millis(1)))
}

/// To whoever comes too late there is nothing left to be shown.
fn answered_already(refusal: Refusal) -> Error {
    let Refusal::Stale { state, by: Some(by), .. } = &refusal else { return refusal.into() };
    let detail = match state.as_str() {
        "expired" => "nobody answered this in time, and the link opens nothing any more".to_owned(),
        "withdrawn" => "this is asked no more, and the link opens nothing any more".to_owned(),
        state => format!("this was answered already ({state}, by {by}), and the link opens nothing any more"),
    };
    Error::from(refusal).with_detail(detail)
}

fn links(app: &App) -> Links {
    Links::new(app.doors.handle.clone(), app.doors.sessions.key.clone(), app.doors.auth.clone())
}

/// A body that opens a session. Whoever could make a browser send one would have it act in a name that is not its user's.
async fn read<T: serde::de::DeserializeOwned>(app: &App, headers: &HeaderMap, body: Body) -> Result<T> {
    is_same_origin(headers)?;
    if !headers.contains_key(header::CONTENT_TYPE) {
        return Err(Error::new(Code::UnsupportedMediaType, "send the body with `content-type: application/json`"));
    }
    Ok(json::object(&body::text(headers, body, BODY, app.doors.settings.log_in_body).await?)?)
}

fn told(app: &App, by: &Principal, pass: Option<&Pass>) -> api::Session {
    api::Session {
        principal: by.id.to_string(),
        roles: by.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        groups: by.groups.iter().map(ToString::to_string).collect(),
        conversation: by.conversation.as_ref().map(ToString::to_string),
        csrf: pass.map(|pass| pass.csrf(&app.doors.sessions.key)),
        expires_at: pass.map(|pass| api::rfc3339(pass.expires)),
        only: pass.and_then(|pass| pass.only).map(|only| only.to_string()),
        link: None,
    }
}

/// What a link opened beside the session of a log-in.
fn by_link(app: &App, pass: &Pass) -> Option<api::LinkSession> {
    Some(api::LinkSession {
        principal: app.doors.auth.holder(pass.token)?.id.to_string(),
        only: pass.only?.to_string(),
        csrf: pass.csrf(&app.doors.sessions.key),
        expires_at: api::rfc3339(pass.expires),
    })
}

fn opened(app: &App, by: &Principal, pass: &Pass, lasts: Span, secure: bool) -> Result<Response> {
    let mut response = answer(StatusCode::OK, &told(app, by, Some(pass)))?;
    let name = if pass.only.is_some() { cookies::LINK } else { cookies::SESSION };
    cookies::set(&mut response, name, &pass.sign(&app.doors.sessions.key, Purpose::Session), lasts, secure)?;
    Ok(response)
}

impl From<NotEnded> for Error {
    fn from(error: NotEnded) -> Self {
        Self::fault(&error)
    }
}
