//! The endpoint of a host for MCP clients, and the ways in which their messages arrive.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use domain::{Principal, Span};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use rmcp::model::{JsonRpcError, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::calls::Calls;
use crate::connection::Connection;
use crate::frame::{self, Checked, Invalid};
use crate::lines::Lines;
use crate::listen;
use crate::parts::{EndpointParts, Shared};
use crate::unread::Unread;

/// The body of an answer over HTTP.
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The media type of a stream.
const EVENTS: &str = "text/event-stream";

/// How often a stream without news has a comment, so that a client that has left is noticed.
const KEEP_ALIVE: Span = Span::from_secs(15);

/// The tools of a host for MCP clients. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint(Arc<Shared>);

/// Why the messages of a client are no longer answered.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not begin as the protocol requires: {0}")]
    Begin(#[from] Box<ServerInitializeError>),
    #[error("the task that answers the client failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Endpoint {
    #[must_use]
    pub fn new(parts: EndpointParts) -> Self {
        Self(Shared::new(parts))
    }

    /// Answers the messages of one client, one a line (the stdio transport), until it closes its side. Its calls are those of
    /// this principal.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn serve<R, W>(&self, by: Principal, read: R, write: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let lines = Lines::new(read, write, self.0.parts.bounds.message);
        let serving = rmcp::serve_server(self.connection(by, Arc::new(()), true), lines).await;
        let serving = match serving {
            Ok(serving) => serving,
            // It closed its side before its first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(Box::new(error).into()),
        };
        let peer = serving.peer().clone();
        // Only older revisions begin with `initialize`.
        let is_older = peer.peer_info().is_some_and(|info| info.protocol_version < ProtocolVersion::V_2026_07_28);
        let tells = async {
            if is_older {
                listen::tell_changes(&self.0, peer).await;
            }
            std::future::pending().await
        };
        let ended = tokio::select! {
            ended = serving.waiting() => ended,
            never = tells => never,
        };
        match ended? {
            QuitReason::JoinError(error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Answers one HTTP request of a client (the Streamable HTTP transport). The caller has authenticated the principal, and
    /// has checked the headers `Host` and `Origin`. The body is one message, or a stream of events: notifications, and the
    /// answer as the last. If the future or the body is dropped, the call goes on.
    pub async fn answer(&self, by: Principal, request: Request<Bytes>, unread: Arc<dyn Unread>) -> Response<Body> {
        if request.method() == Method::GET {
            return self.changes(request.headers());
        }
        let (mut parts, mut body) = request.into_parts();
        match frame::check(&body) {
            Ok(Checked::Call(arguments)) => drop(parts.extensions.insert(arguments)),
            Ok(Checked::Listen(renamed)) => body = renamed.into(),
            Ok(Checked::Other) => {}
            Err(invalid) => return refused(invalid),
        }
        let connection = self.connection(by, unread, false);
        // A stream begins with the first notification, so most answers are one message.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(self.0.parts.bounds.message)
            .disable_allowed_hosts();
        // One for each request, because it answers as this principal.
        let transport = StreamableHttpService::new(
            move || Ok(connection.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let response = transport.handle(Request::from_parts(parts, Full::new(body))).await;
        response.map(BodyExt::boxed_unsync)
    }

    /// The stream of older revisions: the changes of the tools. Newer ones ask with `subscriptions/listen`.
    fn changes(&self, headers: &HeaderMap) -> Response<Body> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_newer = text("mcp-protocol-version") >= ProtocolVersion::V_2026_07_28.as_str();
        if is_newer || !text("accept").contains(EVENTS) {
            return answered(StatusCode::METHOD_NOT_ALLOWED, (header::ALLOW, "POST"), Full::default().boxed_unsync());
        }
        let shared = self.0.clone();
        let changes = shared.parts.handle.tool_changes();
        let events = futures::stream::unfold((shared, changes), |(shared, mut changes)| async move {
            let event = tokio::select! {
                true = listen::changed(&shared, &mut changes) => list_changed(),
                () = shared.parts.handle.sleep(KEEP_ALIVE) => Bytes::from_static(b":\n\n"),
            };
            Some((Ok(Frame::data(event)), (shared, changes)))
        });
        answered(StatusCode::OK, (header::CONTENT_TYPE, EVENTS), StreamBody::new(events).boxed_unsync())
    }

    fn connection(&self, by: Principal, unread: Arc<dyn Unread>, takes_requests: bool) -> Connection {
        Connection { calls: Calls { shared: self.0.clone(), by, unread }, takes_requests }
    }
}

/// The event about a change of the tools.
fn list_changed() -> Bytes {
    let message = ServerJsonRpcMessage::notification(listen::list_changed());
    let message = serde_json::to_string(&message).unwrap_or_default();
    format!("data: {message}\n\n").into()
}

/// The response to a message that cannot be read.
fn refused(invalid: Invalid) -> Response<Body> {
    let Invalid { id, error } = invalid;
    let message = ServerJsonRpcMessage::Error(JsonRpcError::new(id, *error));
    let body = Full::new(Bytes::from(serde_json::to_vec(&message).unwrap_or_default()));
    answered(StatusCode::BAD_REQUEST, (header::CONTENT_TYPE, "application/json"), body.boxed_unsync())
}

fn answered(status: StatusCode, (name, value): (HeaderName, &'static str), body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
