//! The web console at `/`, embedded in the binary: files and the headers that they are sent with. What the console shows, it
//! asks of the API; nothing here knows a host.

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

/// Beginnings of paths that are no pages, whoever asks: what answers them is the API, and a browser that is shown a page in
/// its place could not tell.
const API: [&str; 4] = ["/v1", "/healthz", "/metrics", "/openapi.json"];

/// Answers `GET` and `HEAD` of the console's files, and with its one page whatever else accepts HTML and is not the API's. For
/// everything else it answers 404 without a body, so that the server can say in its own words that there is nothing.
///
/// Every answer bears the headers of `headers`; the server adds what holds for all of its answers.
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

/// The console itself finds out which of its pages a path means.
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

/// Whether a person's browser asks. Programs that accept anything (`*/*`) are better served by the API's own answers.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accepted.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html")))
}

#[cfg(test)]
mod tests;
