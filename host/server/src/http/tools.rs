//! `/v1/tools`: the live tools.

use api::formats::{self, ToolFormat};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Params, verbatim};
use crate::auth::By;
use crate::error::Result;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The format of the response.
    #[serde(default)]
    #[param(inline, required = false)]
    format: ToolFormat,
}

/// Lists the live tools
///
/// The list in a provider's format can be pasted into a request to its models. It leaves out provider tools, because
/// the provider offers them itself; the header `toolgate-left-out` names them. Schemas are exactly as the plugins wrote
/// them.
#[utoipa::path(
    get, path = "/v1/tools", operation_id = "list_tools", tag = "tools", params(List),
    responses(
        (status = 200, description = "The tools", body = api::ToolsInFormat, headers(
            ("toolgate-left-out" = Option<String>, description = "The provider tools that the format leaves out, separated by commas")
        )),
    )
)]
pub(crate) async fn list(State(app): State<App>, _by: By, Params(query): Params<List>) -> Result<Response> {
    let listed = formats::tools(query.format, &app.doors.handle.tools())?;
    let mut response = verbatim(StatusCode::OK, listed.text);
    if !listed.left_out.is_empty() {
        let names = HeaderValue::try_from(listed.left_out.join(",")).ok();
        response.headers_mut().extend(names.map(|names| (HeaderName::from_static("toolgate-left-out"), names)));
    }
    Ok(response)
}
