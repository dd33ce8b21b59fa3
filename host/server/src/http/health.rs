//! `/v1/status`, `/healthz`, `/readyz`, `/metrics` and `/openapi.json`: information about the server.

use api::json;
use api::{HostStatus, PluginCounts, PluginNames, PluginState, PluginView, StoreState};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use dispatch::ports::FaultKind;
use domain::principal::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, NoParams, Params, respond, verbatim};
use crate::auth::{Admin, By};
use crate::error::{Error, Result};

/// The server is running.
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct Health {
    /// Whether something needs attention. In each of these states the server is healthy.
    status: api::HealthStatus,
}

/// Checks that the server is running and can store changes
///
/// Needs no token. The response says nothing else about the host.
#[utoipa::path(
    get, path = "/healthz", operation_id = "read_health", tag = "host", security(()),
    responses((status = 200, description = "It is running", body = Health))
)]
pub(crate) async fn health(State(app): State<App>, Params(NoParams {}): Params<NoParams>) -> Result<Response> {
    let handle = &app.ports.handle;
    let health = handle.store_health();
    if let Some(error) = health.failure.as_ref().and_then(Error::of_disk) {
        return Err(error);
    }
    let status = match (handle.is_disk_low(), health.damaged_records) {
        (true, _) => api::HealthStatus::DiskLow,
        (false, 0) => api::HealthStatus::Ok,
        (false, _) => api::HealthStatus::DamagedRecords,
    };
    Ok(verbatim(StatusCode::OK, json::write(&Health { status })?))
}

/// Checks that the server can take requests
///
/// As `/healthz`, and not before the plugins are loaded that the host found at its start. Until then, turns with their tools
/// are refused.
#[utoipa::path(
    get, path = "/readyz", operation_id = "read_readiness", tag = "host", security(()),
    responses(
        (status = 200, description = "It is ready", body = Health),
        (status = 503, description = "`loading`: the host has started and still loads plugins. `draining`: it ends soon. `store-failed`: its disk or its database failed, or it cannot read its tokens"),
    )
)]
pub(crate) async fn readiness(State(app): State<App>, params: Params<NoParams>) -> Result<Response> {
    if app.ports.handle.is_draining() {
        return Err(Error::draining("the host ends soon and takes no new turns"));
    }
    if app.ports.plugins.is_starting() {
        return Err(Error::loading("the host has started and still loads plugins"));
    }
    if !app.ports.auth.is_readable() {
        return Err(Error::unreadable());
    }
    health(State(app), params).await
}

/// Reads the state of the host
///
/// Every principal gets the state of the store, the numbers of plugins and the names of live plugins. Only admins get the
/// rest, such as the names of rejected plugins.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "read_status", tag = "host",
    responses(
        (status = 200, description = "The state", body = HostStatus),
        (status = 403, description = "`not-allowed`: the session is from a link to a suspension"),
    )
)]
pub(crate) async fn status(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let handle = &app.ports.handle;
    let health = handle.store_health();
    let state = match health.failure {
        Some(fault) if fault.kind == FaultKind::NoSpace => StoreState::Full,
        Some(_) => StoreState::Failed,
        None if handle.is_disk_low() => StoreState::DiskLow,
        None if health.damaged_records > 0 => StoreState::DamagedRecords,
        None => StoreState::Ok,
    };
    let (plugins, about, is_admin) = (app.ports.plugins.list(), &app.ports.about, by.roles.has(Role::Admin));
    let named = |fits: fn(&PluginView) -> bool| -> Vec<String> {
        plugins.iter().filter(|plugin| fits(plugin)).map(|plugin| plugin.name.clone()).collect()
    };
    let live = named(|plugin| plugin.state == PluginState::Live);
    let rejected = named(|plugin| !plugin.findings.is_empty());
    let loading: Vec<String> = app.ports.plugins.loading().iter().map(ToString::to_string).collect();
    let status = HostStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: state,
        plugin_counts: PluginCounts { live: live.len(), loading: loading.len(), rejected: rejected.len() },
        plugins: PluginNames { live, loading: is_admin.then_some(loading), rejected: is_admin.then_some(rejected) },
        address: is_admin.then(|| about.address.clone()),
        compiler: is_admin.then(|| about.compiler.clone()),
        audit_key: about.audit_key.clone().filter(|_| is_admin),
    };
    respond(app.small(&by), &status)
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
    let text = app.meters.render(&app.ports.handle).await;
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
