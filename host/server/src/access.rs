//! One layer around the routes for access tokens of an authorization server: a request ends when its token expires, and a
//! refusal tells the client how to get a better token (RFC 6750, RFC 9728).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::{Timestamp, principal::Role};
use tokio::sync::watch;

use crate::app::App;
use crate::error::{Code, Error, MissingRole};
use crate::paths;
use crate::ports::AccessTokens;

/// Tells the layer when the access token of a request expires.
#[derive(Clone)]
pub(crate) struct Expiry(Arc<watch::Sender<Option<Timestamp>>>);

impl Expiry {
    /// The request has a valid access token, which expires then.
    pub(crate) fn set(&self, expires: Timestamp) {
        self.0.send_replace(Some(expires));
    }
}

/// The facts about a request that its challenge depends on.
struct Asked {
    /// Whether it is for the resource whose identifier the metadata has.
    is_for_resource: bool,
    has_token: bool,
}

/// The layer. Does nothing if the host accepts no access tokens.
pub(crate) async fn layer(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let Some(tokens) = app.ports.access_tokens.clone() else { return next.run(request).await };
    let is_for_resource = request.uri().path() == paths::MCP;
    let asked = Asked { is_for_resource, has_token: request.headers().contains_key(header::AUTHORIZATION) };
    let (expiry, expiring) = watch::channel(None);
    request.extensions_mut().insert(Expiry(Arc::new(expiry)));
    let mut response = tokio::select! {
        response = next.run(request) => response,
        () = expired(&app, expiring.clone()) => {
            Error::new(Code::Unauthorized, "the access token has expired; send the request again with a new one").into_response()
        }
    };
    let has_access_token = expiring.borrow().is_some();
    let challenge = match (response.status(), response.extensions().get::<MissingRole>()) {
        (StatusCode::UNAUTHORIZED, _) => Some(unauthorized(tokens.as_ref(), &asked)),
        (StatusCode::FORBIDDEN, Some(MissingRole(role))) if has_access_token => {
            insufficient(tokens.as_ref(), &asked, *role)
        }
        _ => None,
    };
    let value =
        challenge.and_then(|parameters| HeaderValue::try_from(format!("Bearer {}", parameters.join(", "))).ok());
    if let Some(value) = value {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// Returns when the access token of a request has expired. Never, if it has none.
async fn expired(app: &App, mut expiring: watch::Receiver<Option<Timestamp>>) {
    let expires = expiring.wait_for(Option::is_some).await.ok().and_then(|expires| *expires);
    let Some(expires) = expires else { return std::future::pending().await };
    loop {
        let now = app.ports.handle.now();
        if now >= expires {
            return;
        }
        app.ports.handle.sleep(expires - now).await;
    }
}

/// The challenge to a request without a valid credential.
fn unauthorized(tokens: &dyn AccessTokens, asked: &Asked) -> Vec<String> {
    let error = asked.has_token.then(|| "error=\"invalid_token\"".to_owned());
    let scope = tokens.scope_with(Role::Caller).filter(|_| asked.is_for_resource);
    place(tokens, asked).into_iter().chain(error).chain(scope.map(|scope| format!("scope=\"{scope}\""))).collect()
}

/// The challenge to a request whose token lacks a scope. `None`: no scope would help.
fn insufficient(tokens: &dyn AccessTokens, asked: &Asked, role: Role) -> Option<Vec<String>> {
    let scope = format!("scope=\"{}\"", tokens.scope_with(role)?);
    Some(place(tokens, asked).into_iter().chain(["error=\"insufficient_scope\"".to_owned(), scope]).collect())
}

/// Where to learn of the authorization server. Clients compare the identifier of the resource with the URL of their
/// request, so other paths do not name it.
fn place(tokens: &dyn AccessTokens, asked: &Asked) -> [String; 1] {
    if asked.is_for_resource {
        return [format!("resource_metadata=\"{}\"", tokens.resource().url)];
    }
    ["realm=\"toolgate\"".to_owned()]
}
