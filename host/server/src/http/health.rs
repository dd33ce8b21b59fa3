//! `/healthz`, `/metrics` and `/openapi.json`: information about the server.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, NoParams, Params, respond, verbatim};
use crate::auth::Admin;
use crate::error::{Error, Result};

/// The server is running.
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, or `disk-low` while the disk has so little free space that the host takes no new turns, or
    /// `damaged-records` after the host found and set aside damaged records. Everything else goes on, so the server
    /// stays healthy.
    status: String,
}

/// Checks that the server is running and can store changes
///
/// Needs no token. The response says nothing else about the host.
#[utoipa::path(
    get, path = "/healthz", operation_id = "read_health", tag = "host", security(()),
    responses((status = 200, description = "It is running", body = Health))
)]
pub(crate) async fn health(State(app): State<App>, Params(NoParams {}): Params<NoParams>) -> Result<Response> {
    if let Some(error) = app.doors.handle.store_failure().as_ref().and_then(Error::of_disk) {
        return Err(error);
    }
    let handle = &app.doors.handle;
    let status = match (handle.is_disk_low(), handle.damaged_records()) {
        (true, _) => "disk-low",
        (false, 0) => "ok",
        (false, _) => "damaged-records",
    };
    respond(StatusCode::OK, &Health { status: status.to_owned() })
}

/// Reads the metrics in the text format of Prometheus
///
/// For admins, because metrics show how much is called and when. A scraper sends a token like any other client.
#[utoipa::path(
    get, path = "/metrics", operation_id = "read_metrics", tag = "host",
    responses(
        (status = 200, description = "Prometheus text", content_type = "text/plain", body = String),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn metrics(State(app): State<App>, _by: Admin, Params(NoParams {}): Params<NoParams>) -> Response {
    let text = app.meters.render(&app.doors.handle);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// This document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "read_openapi", tag = "host", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = serde_json::Value)),
)]
pub(crate) async fn openapi(State(app): State<App>, Params(NoParams {}): Params<NoParams>) -> Response {
    verbatim(StatusCode::OK, app.document.clone())
}
