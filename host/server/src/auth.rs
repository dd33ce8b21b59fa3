//! Who is asking. A principal comes from the `Authorization` header and from nowhere else: not from a body, not from the
//! query (where it would end up in logs), not from a cookie (which other pages could make a browser send).

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use domain::{Principal, Role};

use crate::error::{Code, Error, Result};
use crate::http::App;
use crate::visits::{Kind, Visit};

/// An authenticated principal, and its request as one of those that it may have at once. A door that takes one answers 401
/// to everybody else, before it reads a body.
pub(crate) struct By(pub(crate) Principal, pub(crate) Visit);

/// An authenticated principal with the role `admin`.
pub(crate) struct Admin(pub(crate) Principal, pub(crate) Visit);

/// The token in the header, if there is exactly one of the form `Bearer …` (RFC 6750).
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str> {
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

impl FromRequestParts<App> for By {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let token = bearer(&parts.headers)?;
        let principal = app.doors.auth.principal(token);
        let unknown = || Error::new(Code::Unauthorized, "the bearer token is not known here");
        let principal = principal.ok_or_else(unknown)?;
        let visit = app.visit(&principal, Kind::Request)?;
        Ok(Self(principal, visit))
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let By(principal, visit) = By::from_request_parts(parts, app).await?;
        if !principal.roles.has(Role::Admin) {
            return Err(Error::new(Code::NotAllowed, "only a principal with the role admin may do this"));
        }
        Ok(Self(principal, visit))
    }
}
