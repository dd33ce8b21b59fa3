//! `/v1/backup`: the host's data as one file.

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream;

use super::{App, NoParams, Params, run_despite_disconnect};
use crate::auth::Admin;
use crate::error::Result;

/// Backs up the host
///
/// The data folder after one commit: turns, large records, the audit and its signed checkpoints, plugins' values, components and
/// the hashes of tokens. It has no keys and no revoked sessions. `toolgate restore` reads it, and refuses it if its end is missing.
/// Writes wait while the host copies its database.
#[utoipa::path(
    get, path = "/v1/backup", operation_id = "read_backup", tag = "host",
    responses(
        (status = 200, description = "The backup", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: the host keeps its turns in memory only"),
        (status = 429, description = "`busy`: another backup is being made"),
        (status = 507, description = "`no-space`: the disk has no room for a copy of the database"),
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    Admin(_by, in_flight): Admin,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let backups = app.ports.backups.clone();
    // A copy that has begun is not left half made.
    let parts = run_despite_disconnect(async move { backups.begin().await }).await??;
    let parts = stream::unfold((parts, in_flight), async |(mut parts, in_flight)| {
        parts.recv().await.map(|part| (part, (parts, in_flight)))
    });
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(parts)).into_response())
}
