//! `/v1/audit`: who decided what, in order.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dispatch::ports::Position;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Params, answer, suspensions};
use crate::auth::Admin;
use crate::error::Result;
use crate::wire;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only those after this position: the `next` of the page before.
    after: Option<u64>,
    /// At most so many: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// Reads the audit
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "read_audit", tag = "audit", params(List),
    responses(
        (status = 200, description = "A page, oldest first", body = wire::AuditPage),
        (status = 400, description = "`bad-request`"),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Admin(by, _visit): Admin,
    Params(query): Params<List>,
) -> Result<Response> {
    let limit = suspensions::page(query.limit)?;
    let after = Position(query.after.unwrap_or(0));
    let entries = app.doors.handle.audit(&by, after, limit).await?;
    let next = entries.last().filter(|_| entries.len() == limit).map(|(position, _)| position.0);
    answer(StatusCode::OK, &wire::AuditPage { entries: entries.iter().map(wire::AuditEntry::from).collect(), next })
}
