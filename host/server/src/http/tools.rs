//! `/v1/tools`: the live tools.

use api::formats::{self, ToolFormat};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Params, verbatim};
use crate::auth::By;
use crate::error::{Error, Result};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The format of the response.
    #[serde(default)]
    #[param(inline, required = false)]
    format: ToolFormat,
    /// Whether to list the live tools also while the host starts and still loads plugins.
    #[serde(default)]
    #[param(required = false)]
    partial: bool,
}

/// Lists the live tools
///
/// The list in a provider's format can be pasted into a request to its models. It leaves out provider tools, because
/// the provider offers them itself; the header `toolgate-left-out` names them. Schemas are exactly as the plugins wrote
/// them. While the host starts, the list is not complete, and only `partial=true` returns it.
#[utoipa::path(
    get, path = "/v1/tools", operation_id = "list_tools", tag = "tools", params(List),
    responses(
        (status = 200, description = "The tools", body = api::ToolsInFormat, headers(
            ("toolgate-left-out" = Option<String>, description = "The provider tools that the format leaves out, separated by commas")
        )),
        (status = 503, description = "`loading`: the host has started and still loads plugins"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    By(by, _in_flight): By,
    Params(query): Params<List>,
) -> Result<Response> {
    if app.ports.plugins.is_starting() && !query.partial {
        let detail = "the host has started and still loads plugins, so the list of tools is not complete; ask again in a \
                      moment, or with partial=true for the tools that are live";
        return Err(Error::loading(detail));
    }
    let unread = app.read(&by).await?;
    let listed = formats::tools(query.format, &app.ports.handle.tools())?;
    let mut response = verbatim(StatusCode::OK, unread.body(listed.text));
    if !listed.left_out.is_empty() {
        let names = HeaderValue::try_from(listed.left_out.join(",")).ok();
        response.headers_mut().extend(names.map(|names| (HeaderName::from_static("toolgate-left-out"), names)));
    }
    Ok(response)
}
