//! Authentication. A principal comes from one of two headers only. It never comes from a body, or from the query, which
//! logs would contain.
//!
//! Programs send `authorization: Bearer <token>`. Browsers must not keep a token where a script could read it, so they
//! log in with one once and then send the cookie of a session ([`crate::signed`] makes it). A browser sends its cookies
//! with requests of any page, so a cookie alone changes nothing. A request other than GET and HEAD must also carry the
//! header `x-toolgate-csrf`, whose value only a page of this host can read. It is refused if the browser says that it comes
//! from another site or port. With an `authorization` header, the cookie is ignored.
//!
//! A host may also accept access tokens of an authorization server. They open no session, because nobody revokes them
//! here: each is valid until it expires ([`crate::access`]).
//!
//! A session represents the token that opened it. Each request looks up the roles of the token's holder, and revoking
//! the token ends the session. A session that a link opened covers one suspension, and only routes with
//! [`Authenticated`] accept it. It has its own cookie and does not replace a log-in: [`Passes`].

use axum::extract::{self, FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use dispatch::Forbidden;
use domain::{
    LinkId, Principal, SuspensionId,
    principal::{Channel, Role},
};

use crate::access::Expiry;
use crate::app::{App, State};
use crate::cookies;
use crate::error::{Code, Error, Result};
use crate::in_flight::{InFlightRequest, RequestKind};
use crate::paths::RESOURCE_METADATA;
use crate::ports::{AccessToken, TokenRefusal};
use crate::serve::ConnectionHandle;
use crate::signed::{OpenedBy, Pass, Purpose};

/// The header with the CSRF token of a session.
pub(crate) const CSRF: &str = "x-toolgate-csrf";

/// An authenticated principal and its request in flight. A route with this extractor answers 401 without a valid
/// credential, and 403 to a session that a link opened, before it reads a body.
pub(crate) struct By(pub(crate) Principal, pub(crate) InFlightRequest);

/// An authenticated principal with the role `admin`.
pub(crate) struct Admin(pub(crate) Principal, pub(crate) InFlightRequest);

/// An authenticated principal with its credential, for routes that also accept a session that a link opened. They check
/// [`Authenticated::only`].
pub(crate) struct Authenticated {
    pub(crate) by: Principal,
    pub(crate) credential: Credential,
    pub(crate) in_flight: InFlightRequest,
}

/// The same without sessions of links, for streams, which check the credential again.
pub(crate) struct Full(pub(crate) Authenticated);

/// The credential of a request.
#[derive(Clone)]
pub(crate) enum Credential {
    Bearer(String),
    /// An access token of the authorization server, which was checked when the request began.
    Access(Box<AccessToken>),
    /// A session, which represents a token.
    Session(Pass),
}

impl Credential {
    /// The credential of a request.
    async fn of(uri: &Uri, headers: &HeaderMap, app: &State) -> Result<Self> {
        if headers.contains_key(header::AUTHORIZATION) {
            return Self::of_token(bearer(headers)?, app).await;
        }
        Passes::of(uri, headers, app).meant(uri, headers, app).map(Self::Session)
    }

    /// The credential of a token. Tokens of the host have no dot, and access tokens have two.
    async fn of_token(token: &str, app: &State) -> Result<Self> {
        let access_tokens = app.ports.access_tokens.as_ref().filter(|_| token.matches('.').count() == 2);
        let Some(access_tokens) = access_tokens else { return Ok(Self::Bearer(token.to_owned())) };
        let verified = access_tokens.verify(token, app.ports.handle.now()).await;
        verified.map(|token| Self::Access(Box::new(token))).map_err(|refusal| match refusal {
            TokenRefusal::Invalid(detail) => Error::new(Code::Unauthorized, detail),
            TokenRefusal::Unchecked(detail) => Error::unchecked(detail),
        })
    }

    /// The principal of this credential, while it is valid, with the channel that the credential proves.
    pub(crate) fn principal(&self, app: &State) -> Option<Principal> {
        match self {
            Self::Bearer(token) => Some(Principal { channel: Channel::Api, ..app.ports.auth.principal(token)? }),
            Self::Access(token) => {
                let is_valid = app.ports.handle.now() < token.expires;
                is_valid.then(|| Principal { channel: Channel::Api, ..token.principal.clone() })
            }
            Self::Session(pass) => {
                let holder = holder(pass, app)?;
                let link = pass.only.map(|_| LinkId::from_bits(pass.id));
                let channel = if link.is_some() { Channel::Link } else { Channel::Console };
                Some(Principal { link, channel, ..holder })
            }
        }
    }

    /// Whether it is still valid for this principal with the same roles.
    pub(crate) fn authenticates(&self, by: &Principal, app: &State) -> bool {
        self.principal(app).is_some_and(|principal| principal == *by)
    }

    /// Refuses a request that a page of another site could have caused, and a request of a page whose session has
    /// ended: it must not read under another session of the browser.
    fn is_meant(&self, method: &Method, headers: &HeaderMap, app: &State) -> Result<()> {
        let Self::Session(pass) = self else { return Ok(()) };
        is_same_origin(headers)?;
        let knows = word(headers).map(|word| pass.is_csrf(word, &app.ports.sessions.key));
        match (knows, matches!(*method, Method::GET | Method::HEAD)) {
            (Some(true), _) | (None, true) => return Ok(()),
            (Some(false), true) => return Err(another()),
            (Some(false) | None, false) => {}
        }
        let detail = format!("with a session, send the header `{CSRF}` with the `csrf` that `GET /v1/session` gives");
        Err(Error::new(Code::NotAllowed, detail))
    }
}

/// The routes that need no tokens. A host that cannot read them is alive, and not ready.
const PUBLIC: [&str; 4] = ["/healthz", "/openapi.json", RESOURCE_METADATA[0], RESOURCE_METADATA[1]];

/// Learns of new and of revoked tokens before a request. Public routes and pages, which have no route, do not wait for it.
pub(crate) async fn refresh(extract::State(app): extract::State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let authenticates = route.is_some_and(|route| !PUBLIC.contains(&route.as_str()));
    if authenticates {
        app.refresh().await;
    }
    next.run(request).await
}

/// The principal of a session, while it is valid.
fn holder(pass: &Pass, app: &State) -> Option<Principal> {
    let counts = app.ports.handle.now() < pass.expires && !app.ports.sessions.revoked.has(&pass.mark());
    counts.then(|| app.ports.auth.holder(pass.token)).flatten()
}

/// The sessions of a browser: one of a log-in, and one that a link opened.
pub(crate) struct Passes {
    pub(crate) living: Vec<Pass>,
    /// Sessions that this host opened and that are no longer valid.
    dead: Vec<Pass>,
    had_any: bool,
}

impl Passes {
    /// The sessions in the cookies of a request. Cookies that this host did not sign are ignored: a page of another
    /// port can set them, and must not log anybody out.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap, app: &State) -> Self {
        let mut passes = Self { living: Vec::new(), dead: Vec::new(), had_any: false };
        for (name, opened_by) in [(cookies::SESSION, OpenedBy::LogIn), (cookies::LINK, OpenedBy::Link)] {
            for text in cookies::read(name, uri, headers) {
                passes.had_any = true;
                let Some(pass) = Pass::written(text, &app.ports.sessions.key, Purpose::Session) else { continue };
                // A session made from a link is never accepted as a full session, whichever cookie it arrives in.
                if pass.opened_by() != opened_by {
                    continue;
                }
                let known = if holder(&pass, app).is_some() { &mut passes.living } else { &mut passes.dead };
                if !known.contains(&pass) {
                    known.push(pass);
                }
            }
        }
        passes
    }

    /// The session that a link opened, if there is one.
    pub(crate) fn by_link(&self) -> Option<Pass> {
        one(self.living.iter().filter(|pass| pass.opened_by() == OpenedBy::Link)).ok().flatten()
    }

    /// The session that a request belongs to: the one whose CSRF token it carries. Without a CSRF token, a request
    /// about the suspension of a link belongs to that link's session, and any other request to the log-in's, or to the
    /// link's if it is the only one. [`Credential::is_meant`] refuses a CSRF token that belongs to none of them.
    fn meant(&self, uri: &Uri, headers: &HeaderMap, app: &State) -> Result<Pass> {
        let knows = |pass: &&Pass| word(headers).is_some_and(|word| pass.is_csrf(word, &app.ports.sessions.key));
        if let Some(pass) = self.living.iter().find(knows) {
            return Ok(*pass);
        }
        if !self.living.is_empty() && self.dead.iter().any(|pass| knows(&pass)) {
            return Err(another());
        }
        let asked = suspension(uri);
        let about_it = |pass: &Pass| pass.only.is_some() && pass.only == asked;
        let of_log_in = |pass: &Pass| pass.only.is_none();
        let ranks: [&dyn Fn(&Pass) -> bool; 3] = [&about_it, &of_log_in, &|_| true];
        for is_of in ranks {
            if let Some(pass) = one(self.living.iter().filter(|pass| is_of(pass)))? {
                return Ok(pass);
            }
        }
        let missing = "send the header `authorization: Bearer <token>`, or log in";
        Err(if self.had_any { over() } else { Error::new(Code::Unauthorized, missing) })
    }
}

/// The only session. Several sessions are ambiguous: somebody else, who can log in as well, may have set one of them.
/// Several of one token are the same session, as after a log-in with and without TLS.
fn one<'a>(mut passes: impl Iterator<Item = &'a Pass>) -> Result<Option<Pass>> {
    match passes.next() {
        None => Ok(None),
        Some(first) if passes.all(|pass| (pass.token, pass.only) == (first.token, first.only)) => Ok(Some(*first)),
        Some(_) => {
            let detail = "the browser sends several sessions, and one of them may be somebody else's: remove its cookies of this \
                          host, and log in";
            Err(Error::new(Code::Unauthorized, detail))
        }
    }
}

fn another() -> Error {
    let detail = "the session of this page has ended, and this browser has another session: reload the page";
    Error::new(Code::Unauthorized, detail)
}

fn over() -> Error {
    Error::new(Code::Unauthorized, "the session has ended; log in again")
}

/// The suspension that a path names.
fn suspension(uri: &Uri) -> Option<SuspensionId> {
    uri.path().strip_prefix("/v1/suspensions/")?.split('/').next()?.parse().ok()
}

/// The CSRF token of a request, if there is exactly one.
fn word(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CSRF).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

impl Authenticated {
    /// The only suspension that a session of a link gives access to.
    pub(crate) fn only(&self) -> Option<SuspensionId> {
        match &self.credential {
            Credential::Bearer(_) | Credential::Access(_) => None,
            Credential::Session(pass) => pass.only,
        }
    }
}

pub(crate) fn beyond_the_link() -> Error {
    Error::new(Code::NotAllowed, "a link opened this session, and it gives access to one suspension only")
}

/// Refuses a request that, as the browser says, a page of another site or another port made.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> Result<()> {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return Ok(());
    }
    let detail =
        "a page of another site made this request; it needs a token of its own, and its origin in `[server] origins`";
    Err(Error::new(Code::NotAllowed, detail))
}

/// The token in the header, if there is exactly one of the form `Bearer …` (RFC 6750).
fn bearer(headers: &HeaderMap) -> Result<&str> {
    let missing = || Error::new(Code::Unauthorized, "send the header `authorization: Bearer <token>`");
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(missing()) };
    let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(missing());
    }
    Ok(token)
}

impl FromRequestParts<App> for Authenticated {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let is_readable = app.ports.auth.is_readable();
        let credential = Credential::of(&parts.uri, &parts.headers, app).await;
        let credential = credential.map_err(|refusal| if is_readable { refusal } else { Error::unreadable() })?;
        let unknown = || match &credential {
            Credential::Bearer(_) => Error::new(Code::Unauthorized, "the bearer token is not known here"),
            Credential::Access(_) => Error::new(Code::Unauthorized, "the access token has expired"),
            Credential::Session(_) => over(),
        };
        let refused = || if is_readable { unknown() } else { Error::unreadable() };
        let by = credential.principal(app).ok_or_else(refused)?;
        credential.is_meant(&parts.method, &parts.headers, app)?;
        if let (Credential::Access(token), Some(expiry)) = (&credential, parts.extensions.get::<Expiry>()) {
            expiry.set(token.expires);
        }
        // A router without a server has no connections.
        if let Some(connection) = parts.extensions.get::<ConnectionHandle>() {
            connection.set_authenticated();
        }
        let in_flight = app.begin_request(&by, RequestKind::Request)?;
        // The extractor of the body counts for this principal.
        parts.extensions.insert(by.id.clone());
        Ok(Self { by, credential, in_flight })
    }
}

impl FromRequestParts<App> for Full {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let authenticated = Authenticated::from_request_parts(parts, app).await?;
        if authenticated.only().is_some() {
            return Err(beyond_the_link());
        }
        Ok(Self(authenticated))
    }
}

impl FromRequestParts<App> for By {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Full(authenticated) = Full::from_request_parts(parts, app).await?;
        Ok(Self(authenticated.by, authenticated.in_flight))
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let By(principal, in_flight) = By::from_request_parts(parts, app).await?;
        // A token for one conversation sees nothing else.
        if !principal.roles.has(Role::Admin) || principal.conversation.is_some() {
            return Err(dispatch::Error::from(Forbidden::Admin).into());
        }
        Ok(Self(principal, in_flight))
    }
}
