//! `/v1/hosts` and `/v1/drain`: the hosts on one store, and the end of one.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, NoParams, Params, respond};
use crate::auth::Admin;
use crate::error::Result;

/// The maximum number of calls in a list, to the end of the turn that has the last one.
const MAX_CALLS: usize = 1_000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Whether to list the calls that each host runs too, about 1,000 at all hosts together.
    #[serde(default)]
    #[param(default = false)]
    calls: bool,
}

/// Lists the hosts on the database
///
/// Those that are alive. The list is empty if the store is in the data folder of the host.
#[utoipa::path(
    get, path = "/v1/hosts", operation_id = "list_hosts", tag = "host", params(List),
    responses(
        (status = 200, description = "The hosts, by name", body = api::HostList),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(List { calls }): Params<List>,
) -> Result<Response> {
    let handle = &app.ports.handle;
    let hosts = handle.hosts().await?;
    let calls = match calls && !hosts.is_empty() {
        true => Some(handle.calls_of_hosts(MAX_CALLS).await?),
        false => None,
    };
    let list = api::HostList::of(&hosts, handle.owner(), calls.as_deref());
    respond(app.small(&by), &list)
}

/// Drains the host
///
/// It takes no new turns and no answers until it is started again, and `/readyz` says so. Its running calls go on. Other hosts on the
/// database do the rest of its work, such as deliveries of webhooks.
#[utoipa::path(
    post, path = "/v1/drain", operation_id = "drain_host", tag = "host",
    responses(
        (status = 200, description = "It takes no new turns", body = api::Drained),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn drain(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let handle = &app.ports.handle;
    handle.drain();
    tracing::info!(by = %by.id, "the host takes no new turns");
    let running_calls = u64::try_from(handle.counts().running_calls).unwrap_or(u64::MAX);
    let host = app.ports.about.host.clone();
    respond(app.small(&by), &api::Drained { host, draining: true, running_calls })
}
