//! `/v1/plugins`: the plugins, for operators.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use domain::PluginName;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, NoParams, Params, Segments, respond, run_despite_disconnect};
use crate::auth::Admin;
use crate::body::{self, Limit};
use crate::error::{Code, Error, Result};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OnePlugin {
    /// The plugin's name.
    #[param(value_type = String)]
    name: Id<PluginName>,
}

/// Lists the plugins
#[utoipa::path(
    get, path = "/v1/plugins", operation_id = "list_plugins", tag = "plugins",
    responses(
        (status = 200, description = "All plugins that are live, are being loaded or were rejected", body = api::PluginList),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let unread = app.read(&by).await?;
    respond(unread, &api::PluginList { plugins: app.ports.plugins.list() })
}

/// Loads a plugin
///
/// The body is the component. It replaces the live component of this name. If it is refused, the response lists all
/// findings, and the live component stays live. Calls that wait keep the component that they were submitted to.
#[utoipa::path(
    put, path = "/v1/plugins/{name}", operation_id = "put_plugin", tag = "plugins", params(OnePlugin),
    request_body(content = Vec<u8>, content_type = "application/wasm"),
    responses(
        (status = 200, description = "The plugin, live", body = api::PluginView),
        (status = 403, description = "`not-allowed`"),
        (status = 409, description = "`deployed-plugins`: several hosts use the database"),
        (status = 408, description = "`too-slow`: the component did not arrive in time"),
        (status = 413, description = "`too-large`"),
        (status = 422, description = "`plugin-refused`: with all `findings`"),
    )
)]
pub(crate) async fn put(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Segments(OnePlugin { name: Id(name) }): Segments<OnePlugin>,
    Params(NoParams {}): Params<NoParams>,
    body: Body,
) -> Result<Response> {
    check_deployment(&app)?;
    let limit = Limit::fixed(app.ports.settings.component_bytes);
    let component = body::bytes(&app, Some(&by.id), body, limit).await?;
    let (plugins, unread) = (app.ports.plugins.clone(), app.small(&by));
    let plugin = run_despite_disconnect(async move { plugins.put(name, component, by.id).await }).await??;
    respond(unread, &plugin)
}

/// Unloads a plugin
///
/// Its tools cannot be called any more. Calls that wait keep waiting, and run when they are answered.
#[utoipa::path(
    delete, path = "/v1/plugins/{name}", operation_id = "remove_plugin", tag = "plugins", params(OnePlugin),
    responses(
        (status = 200, description = "It is no longer live", body = api::Removed),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`"),
        (status = 409, description = "`deployed-plugins`: several hosts use the database"),
    )
)]
pub(crate) async fn remove(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Segments(OnePlugin { name: Id(name) }): Segments<OnePlugin>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    check_deployment(&app)?;
    let (plugins, unread, removed) = (app.ports.plugins.clone(), app.small(&by), name.to_string());
    if run_despite_disconnect(async move { plugins.remove(name, by.id).await }).await?? {
        respond(unread, &api::Removed { removed })
    } else {
        Err(Error::new(Code::NotFound, format!("there is no plugin {removed}")))
    }
}

/// Refuses a change at one host only.
fn check_deployment(app: &App) -> Result<()> {
    if app.ports.plugins.are_deployed() {
        let detail = "several hosts can use the database of this host, and all need the same plugins: put the component into the \
                      folder of plugins of each host";
        return Err(Error::new(Code::DeployedPlugins, detail));
    }
    Ok(())
}
