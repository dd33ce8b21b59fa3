//! `/.well-known/oauth-protected-resource`: the metadata of the host as a protected resource (RFC 9728).

use api::json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{App, verbatim};
use crate::error::{Code, Error, Result};

/// Reads the metadata. It is for clients that have no token yet.
pub(super) async fn read(State(app): State<App>) -> Result<Response> {
    let Some(tokens) = &app.ports.access_tokens else {
        return Err(Error::new(Code::NotFound, "this host accepts no access tokens of an authorization server"));
    };
    Ok(verbatim(StatusCode::OK, json::write(tokens.resource())?))
}
