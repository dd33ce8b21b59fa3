//! CORS: pages of the origins that the operator names may use the API with a token of their own.
//!
//! Credentials are never allowed. So a browser sends no session cookie for such a page, and the page cannot read a
//! response to a request with one. It may not send the CSRF header either, which every change through a session needs.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may cache the permission of an origin.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The layer for these origins. `None` if there are no origins: then no response has a CORS header.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let allowed: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::try_from(origin).ok()).collect();
    if allowed.is_empty() {
        return None;
    }
    let headers = ["last-event-id", "mcp-protocol-version", "mcp-method", "mcp-name"].map(HeaderName::from_static);
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(allowed))
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE].into_iter().chain(headers).collect::<Vec<_>>())
            .expose_headers([header::RETRY_AFTER, header::WWW_AUTHENTICATE])
            .max_age(MAX_AGE),
    )
}
