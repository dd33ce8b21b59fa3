//! Serves the web console, which is embedded in the binary. The console reads everything that it shows from the API, so this crate
//! does not depend on a host.

mod files;
mod headers;
mod missing;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};

use files::{Dist, Files};

/// Path prefixes of the API. The console never answers these with its page, because a browser could not tell the difference.
const API: [&str; 5] = ["/v1", "/healthz", "/readyz", "/metrics", "/openapi.json"];

/// Serves the console's files, and its page for every other `GET` or `HEAD` outside of the API that accepts HTML. It answers all
/// other requests with 404 and no body, which the server replaces with its own problem document.
///
/// Each response has the security headers of the module `headers`.
pub fn router() -> Router {
    router_of::<Dist>()
}

fn router_of<F: Files>() -> Router {
    if F::get("index.html").is_none() {
        tracing::warn!("this binary was built without the console; `cargo xtask build` builds both");
    }
    Router::new().fallback(async |request: Request| answer::<F>(&request)).layer(map_response(headers::put))
}

fn answer<F: Files>(request: &Request) -> Response {
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) || is_api(path) {
        return StatusCode::NOT_FOUND.into_response();
    }
    if let Some(name) = path.strip_prefix('/').filter(|name| name.starts_with("assets/")) {
        return files::asset::<F>(name, request.headers());
    }
    if accepts_html(request.headers()) { page::<F>() } else { StatusCode::NOT_FOUND.into_response() }
}

/// The script of the page reads the path and shows the right view.
fn page<F: Files>() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    match F::get("index.html") {
        Some(index) => (headers, index).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, headers, missing::PAGE).into_response(),
    }
}

fn is_api(path: &str) -> bool {
    API.iter().any(|begin| path.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Whether the client asks for HTML, as browsers do. A client that accepts only `*/*` gets the API's answer.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accepted.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html")))
}

#[cfg(test)]
mod tests;
