//! Which other origins' pages may use the API (CORS): those that the operator names, exactly, and with a token of their own.
//!
//! Credentials are never allowed: a browser neither sends the cookie of a session for such a page nor hands it an answer that
//! came by one, and the header that changes by a session need is not among those that such a page may send.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may keep what it was told of an origin.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The layer for these origins. `None` where there are none: then nothing is said to other origins at all.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let allowed: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::try_from(origin).ok()).collect();
    if allowed.is_empty() {
        return None;
    }
    let last_event = HeaderName::from_static("last-event-id");
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(allowed))
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, last_event])
            .expose_headers([header::RETRY_AFTER])
            .max_age(MAX_AGE),
    )
}
