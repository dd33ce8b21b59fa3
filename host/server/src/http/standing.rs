//! `/v1/standing-approvals`: lists and revokes standing approvals.

use axum::extract::State;
use axum::response::Response;
use domain::StandingId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, NoParams, Params, Segments, respond, run_despite_disconnect};
use crate::auth::By;
use crate::error::Result;

/// The detail if a revoked standing approval cannot be given.
const REVOKED_UNREAD: &str = "the standing approval is revoked, and only its response is refused, because too many \
    responses are unread (`unread_bytes` in `[server]`); read them first, and then send the request again";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only standing approvals after this one: the `next` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<Id<StandingId>>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct One {
    /// The standing approval.
    #[param(value_type = String)]
    standing: Id<StandingId>,
}

/// Lists standing approvals
///
/// Approvers see all of them. Callers see those for their own calls. An approver makes one with an answer: see its
/// member `standing`.
#[utoipa::path(
    get, path = "/v1/standing-approvals", operation_id = "list_standing_approvals", tag = "suspensions", params(Which),
    responses(
        (status = 200, description = "A page", body = api::StandingApprovals),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(Which { after }): Params<Which>,
) -> Result<Response> {
    let (handle, unread) = (&app.ports.handle, app.read(&by).await?);
    let (rows, next) = handle.standing_approvals(&by, after.map(|after| after.0)).await?;
    let now = handle.now();
    let standing_approvals = rows.iter().map(|row| api::StandingApproval::new(row, now)).collect();
    let next = next.map(|next| next.to_string());
    respond(unread, &api::StandingApprovals { standing_approvals, next })
}

/// Revokes a standing approval
///
/// Its approver or an admin may do this. Calls that it already approved continue. Later calls ask people again.
#[utoipa::path(
    delete, path = "/v1/standing-approvals/{standing}", operation_id = "revoke_standing_approval", tag = "suspensions", params(One),
    responses(
        (status = 200, description = "The revoked standing approval", body = api::StandingApproval),
        (status = 403, description = "`not-allowed`: another approver gave it"),
        (status = 404, description = "`not-found`"),
        (status = 429, description = "`busy`: the principal has too many requests, or it has too many bytes unread. In the second case `detail` says that the standing approval is revoked, and only its response is refused. With `retry-after`"),
    )
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    By(by, _in_flight): By,
    Segments(One { standing }): Segments<One>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let (handle, unread) = (app.ports.handle.clone(), app.in_flight.read_if_full(&by.id).await);
    let revoked = async move { (handle.revoke(&by, standing.0).await, unread) };
    let (row, mut unread) = run_despite_disconnect(revoked).await?;
    let row = row?;
    app.charge(&mut unread, row.arguments.size()).map_err(|error| error.with_detail(REVOKED_UNREAD))?;
    respond(unread, &api::StandingApproval::new(&row, app.ports.handle.now()))
}
