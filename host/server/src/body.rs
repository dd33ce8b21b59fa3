//! Reads the body of a request, with limits for size and time, and for all bodies of a principal together.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use domain::{Json, PrincipalId};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;

use crate::app::{App, State};
use crate::error::{Code, Error, Result};

/// After each part of this size in bytes, the deadline moves by a millisecond. So the slowest allowed rate is 16 KiB a
/// second.
const SLOWEST: usize = 16;

/// The maximum size of a body.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    bytes: usize,
    /// The key in `[server]` that sets it.
    key: Option<&'static str>,
    /// Whether the request carries a token. Others have less time.
    has_token: bool,
}

impl Limit {
    /// A limit that a key in `[server]` sets.
    pub(crate) const fn of_key(key: &'static str, bytes: usize) -> Self {
        Self { bytes, key: Some(key), has_token: true }
    }

    /// A limit that the operator cannot change.
    pub(crate) const fn fixed(bytes: usize) -> Self {
        Self { bytes, key: None, has_token: true }
    }

    /// For a request that carries no token.
    pub(crate) const fn without_token(self) -> Self {
        Self { has_token: false, ..self }
    }

    fn exceeded(self) -> Error {
        let limit = self.key.map_or_else(|| "a fixed limit".to_owned(), |key| format!("limit `server.{key}`"));
        Error::new(Code::TooLarge, format!("the body is larger than {} bytes ({limit})", self.bytes))
    }
}

/// Reads a body. Its principal, if that is known, is counted for it until it is dropped. A body that is too large or arrives
/// too slowly is refused.
pub(crate) async fn bytes(app: &State, by: Option<&PrincipalId>, mut body: Body, limit: Limit) -> Result<Bytes> {
    let settings = &app.ports.settings;
    let patience = if limit.has_token { settings.body } else { settings.log_in_body };
    if body.size_hint().lower() > limit.bytes as u64 {
        return Err(limit.exceeded());
    }
    let begun = tokio::time::Instant::now();
    let mut received = app.in_flight.received(by.cloned());
    loop {
        let earned = (received.len() / SLOWEST) as u64;
        let until = begun + Duration::from_millis(patience.millis().saturating_add(earned));
        let frame = tokio::time::timeout_at(until, body.frame()).await;
        let too_slow = |_| Error::new(Code::TooSlow, "the body did not arrive in time; send it at once and faster");
        let Some(frame) = frame.map_err(too_slow)? else { return Ok(received.into()) };
        let broken = |_| Error::new(Code::BadRequest, "the body did not arrive completely");
        let Ok(more) = frame.map_err(broken)?.into_data() else { continue };
        if received.len() + more.len() > limit.bytes {
            return Err(limit.exceeded());
        }
        received.extend(&more).inspect_err(|_| app.meters.refused("bodies_bytes"))?;
    }
}

/// Reads a JSON body.
pub(crate) async fn text(
    app: &State,
    by: Option<&PrincipalId>,
    headers: &HeaderMap,
    body: Body,
    limit: Limit,
) -> Result<Bytes> {
    let declared = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if let Some(declared) = declared {
        let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if essence != "application/json" && !essence.ends_with("+json") {
            let detail = "send the body with `content-type: application/json` (curl: `--json`)";
            return Err(Error::new(Code::UnsupportedMediaType, detail));
        }
    }
    bytes(app, by, body, limit).await
}

/// The body of a request that answers or asks something: a JSON object of at most `answer_bytes`. It comes after the
/// extractor of the principal.
pub(crate) struct Object<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Object<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        Ok(Self(api::json::object(&answer(request, app).await?)?))
    }
}

/// The body of a request that sends one JSON value, as [`Object`].
pub(crate) struct Value(pub(crate) Json);

impl FromRequest<App> for Value {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        Ok(Self(api::json::value(&answer(request, app).await?)?))
    }
}

async fn answer(request: Request, app: &App) -> Result<Bytes> {
    let (parts, body) = request.into_parts();
    let Some(by) = parts.extensions.get() else { return Err(Error::fault(&"a body without a principal")) };
    let limit = Limit::of_key("answer_bytes", app.ports.settings.answer_bytes);
    text(app, Some(by), &parts.headers, body, limit).await
}
