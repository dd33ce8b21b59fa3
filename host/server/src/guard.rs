//! Checks and headers for every request: the host names that the server answers to, and headers that keep an answer
//! from being stored or used as a page.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::{Code, Error};
use crate::ports::Hosts;

/// Names that resolve to this machine on every machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Refuses requests for host names that are not this server's. This stops DNS rebinding: a page whose own name was
/// pointed at this machine sends that name.
pub(crate) async fn host(State(app): State<App>, request: Request, next: Next) -> Response {
    let Hosts::Local { also } = &app.ports.settings.hosts else { return next.run(request).await };
    let known = asked_for(request.uri(), request.headers()).is_some_and(|asked| {
        let same = |name: &str| asked.host().eq_ignore_ascii_case(name);
        is_local(&asked) || also.iter().any(|name| same(name))
    });
    if known {
        return next.run(request).await;
    }
    let detail =
        "this server is for its own machine and does not answer under this name; its operator can add the name";
    Error::new(Code::UnknownHost, detail).into_response()
}

/// Whether the name always resolves to the machine itself.
pub(crate) fn is_local(asked: &Authority) -> bool {
    LOCAL.into_iter().any(|name| asked.host().eq_ignore_ascii_case(name))
}

/// The host name of a request: from its target (RFC 9112 section 3.2.2) or its only `Host` header.
pub(crate) fn asked_for(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    if let Some(authority) = uri.authority() {
        return Some(authority.clone());
    }
    let mut values = headers.get_all(header::HOST).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    Authority::try_from(value.as_bytes()).ok()
}

/// Keeps an answer from being cached, sniffed, framed or loaded by another page. Pages set their own policies for
/// caching and loading.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // Answers of the API have no content security policy of their own; pages do.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        );
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}
