//! The routes, one file per resource, and their shared parts: reading of paths and queries, and writing of responses.

mod audit;
mod backup;
mod conversations;
mod events;
mod external;
mod health;
mod hosts;
mod journal;
mod logs;
mod mcp;
mod params;
mod pending;
mod plugins;
mod policy;
mod resource;
mod session;
mod standing;
pub(crate) mod suspensions;
mod tools;
mod turns;

use std::future::Future;
use std::sync::Arc;

use api::json;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::params::{Id, NoParams, Params, Segments};
pub(crate) use crate::app::App;
use crate::app::State;
use crate::error::{Code, Error, Result};
use crate::in_flight::{InFlight, Unread};
use crate::login_throttle::LoginThrottle;
use crate::metrics::{self, Meters};
use crate::ports::Ports;
use crate::{access, auth, cross_origin, guard, openapi, paths};

/// All routes. The paths and the OpenAPI document come from the same declarations.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(turns::submit, turns::list))
        .routes(routes!(turns::read))
        .routes(routes!(turns::cancel))
        .routes(routes!(logs::read))
        .routes(routes!(journal::read))
        .routes(routes!(events::conversation))
        .routes(routes!(events::host))
        .routes(routes!(conversations::list))
        .routes(routes!(suspensions::pending))
        .routes(routes!(pending::counts))
        .routes(routes!(pending::events))
        .routes(routes!(pending::resolve_many))
        .routes(routes!(suspensions::read))
        .routes(routes!(suspensions::resolve))
        .routes(routes!(suspensions::defaults))
        .routes(routes!(suspensions::resolve_call))
        .routes(routes!(suspensions::delegate))
        .routes(routes!(suspensions::progress))
        .routes(routes!(external::send_result))
        .routes(routes!(external::send_signal))
        .routes(routes!(standing::list))
        .routes(routes!(standing::revoke))
        .routes(routes!(session::log_in, session::read_session, session::log_out))
        .routes(routes!(session::make_link))
        .routes(routes!(session::use_link))
        .routes(routes!(tools::list))
        .routes(routes!(plugins::list))
        .routes(routes!(plugins::put, plugins::remove))
        .routes(routes!(policy::explain))
        .routes(routes!(audit::list))
        .routes(routes!(audit::chain))
        .routes(routes!(audit::checkpoint))
        .routes(routes!(backup::read))
        .routes(routes!(hosts::list))
        .routes(routes!(hosts::drain))
        .routes(routes!(health::status))
        .routes(routes!(health::health))
        .routes(routes!(health::readiness))
        .routes(routes!(health::metrics))
        .routes(routes!(health::openapi))
}

/// The OpenAPI document that `/openapi.json` serves.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    openapi::finished(routes().into_openapi())
}

/// The router over a host. Principals come from `Authorization: Bearer …` and from sessions; see
/// [`crate::Authenticate`].
pub fn router(ports: Ports) -> Router {
    router_with_pages(ports, Router::new())
}

/// The same router with pages for people on all other paths. A page sets its own headers for caching and loading. If
/// the pages answer 404, the response is the same problem as without pages.
pub fn router_with_pages(ports: Ports, pages: Router) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = openapi::finished(document).to_json().unwrap_or_default().into();
    let in_flight = InFlight::new(&ports.settings);
    let others = cross_origin::layer(&ports.settings.origins);
    let app = Arc::new(State {
        ports,
        meters: Arc::new(Meters::new()),
        in_flight,
        login_throttle: LoginThrottle::default(),
        document,
    });
    // JSON-RPC and OAuth are not part of the OpenAPI document.
    let router = router.route(paths::MCP, post(mcp::exchange).get(mcp::exchange));
    let router =
        paths::RESOURCE_METADATA.into_iter().fold(router, |router, path| router.route(path, get(resource::read)));
    let router = router.fallback(async move |request: Request| page(pages, request).await).method_not_allowed_fallback(
        async || Error::new(Code::MethodNotAllowed, "this path does not have this method; see /openapi.json"),
    );
    // Other origins may use the routes, not the pages, and only under the host names of the server.
    let router = match others {
        Some(others) => router.layer(others),
        None => router,
    };
    router
        .layer(from_fn_with_state(app.clone(), access::layer))
        .layer(from_fn_with_state(app.clone(), auth::refresh))
        .layer(from_fn_with_state(app.clone(), guard::host))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.meters.clone(), metrics::requests))
        .layer(from_fn(guard::headers))
        .with_state(app)
}

async fn page(pages: Router, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let answered = pages.oneshot(request).await.unwrap_or_else(|never| match never {});
    if answered.status() == StatusCode::NOT_FOUND {
        return Error::new(Code::NotFound, format!("there is nothing at {path}")).into_response();
    }
    answered
}

/// A panic is a fault of the host and ends only its request.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of an unknown kind");
    Error::fault(&format_args!("panic: {text}")).into_response()
}

/// Answers 200 with a value. Its size counts until the client has read it.
pub(crate) fn respond<T: Serialize>(unread: Unread, value: &T) -> Result<Response> {
    Ok(verbatim(StatusCode::OK, unread.body(json::write(value)?)))
}

/// Answers with a JSON text.
pub(crate) fn verbatim(status: StatusCode, text: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text.into()).into_response()
}

/// Runs work to its end, even if the client disconnects. So a stored commit is always performed too.
pub(crate) async fn run_despite_disconnect<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await.map_err(|error| Error::fault(&error))
}
