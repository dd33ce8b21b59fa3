//! The files of the console. Their names contain a digest of their contents, so that a browser may cache them without limit.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// A source of files. Tests replace the embedded one.
pub(crate) trait Files: 'static {
    /// The contents of the file with this name.
    fn get(name: &str) -> Option<Cow<'static, [u8]>>;
}

/// The output of Vite for `web/`. Empty if the crate was built first.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Embedded;

/// See [`Embedded`].
pub(crate) struct Dist;

impl Files for Dist {
    fn get(name: &str) -> Option<Cow<'static, [u8]>> {
        Embedded::get(name).map(|file| file.data)
    }
}

/// Content types by file extension. Vite makes no other files, and no others are served.
const KINDS: [(&str, &str); 5] = [
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("woff2", "font/woff2"),
];

/// A file of the folder `assets`, compressed if there is a gzip version and the browser accepts it.
pub(crate) fn asset<F: Files>(name: &str, asked: &HeaderMap) -> Response {
    let kind = name.rsplit_once('.').and_then(|(_, end)| KINDS.iter().find(|(known, _)| *known == end));
    let (Some((_, kind)), Some(plain)) = (kind, F::get(name)) else { return StatusCode::NOT_FOUND.into_response() };
    let packed = if accepts_gzip(asked) { F::get(&format!("{name}.gz")) } else { None };
    let is_packed = packed.is_some();
    let mut response = Response::new(Body::from(packed.unwrap_or(plain)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = accepted.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}
