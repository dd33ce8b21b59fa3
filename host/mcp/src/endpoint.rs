//! The endpoint of a host for MCP clients, and the ways in which their messages arrive.

use std::sync::Arc;

use bytes::Bytes;
use domain::{Principal, Span};
use futures::FutureExt as _;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{JsonRpcError, ProtocolVersion, ServerJsonRpcMessage, ServerNotification};
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::calls::Calls;
use crate::connection::Connection;
use crate::exchange::{Body, EVENTS, Exchange, Exchanged};
use crate::frame::{self, Checked, Invalid};
use crate::lines::Lines;
use crate::listen;
use crate::parts::{EndpointParts, Shared};
use crate::unread::Unread;

/// When the host tries again to tell a client with too much unread that the tools changed.
const RETRY: Span = Span::from_secs(1);

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
        let serving = rmcp::serve_server(self.connection(by, Arc::new(()), None), lines).await;
        let serving = match serving {
            Ok(serving) => serving,
            // It closed its side before its first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(Box::new(error).into()),
        };
        let peer = serving.peer().clone();
        // Only older revisions begin with `initialize`.
        let is_older = peer.peer_info().is_some_and(|info| info.protocol_version < ProtocolVersion::V_2026_07_28);
        let changes = self.0.parts.handle.tool_changes();
        let send = |change| peer.send_notification(change).map(|sent| sent.is_ok());
        let ended = tokio::select! {
            ended = serving.waiting() => ended,
            never = listen::tell_changes(&self.0, changes, send), if is_older => never,
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
            return self.changes(request.headers(), unread);
        }
        let (mut parts, mut body) = request.into_parts();
        match frame::check(&body) {
            Ok(Checked::Call(arguments)) => drop(parts.extensions.insert(arguments)),
            Ok(Checked::Listen(renamed)) => body = renamed.into(),
            Ok(Checked::Other) => {}
            Err(invalid) => return refused(invalid),
        }
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(self.0.parts.bounds.message)
            .disable_allowed_hosts();
        let exchanged = Exchanged::new(self.0.clone(), unread.clone(), |exchange| {
            let connection = self.connection(by, unread, Some(exchange));
            // One for each request, because it answers as this principal.
            let sessions = Arc::new(NeverSessionManager::default());
            let transport = StreamableHttpService::new(move || Ok(connection.clone()), sessions, config);
            async move { transport.handle(Request::from_parts(parts, Full::new(body))).await }
        });
        exchanged.response().await
    }

    /// The stream of older revisions: the changes of the tools. Newer ones ask with `subscriptions/listen`.
    fn changes(&self, headers: &HeaderMap, unread: Arc<dyn Unread>) -> Response<Body> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_newer = text("mcp-protocol-version") >= ProtocolVersion::V_2026_07_28.as_str();
        if is_newer || !text("accept").contains(EVENTS) {
            return answered(StatusCode::METHOD_NOT_ALLOWED, (header::ALLOW, "POST"), Full::default().boxed_unsync());
        }
        let (shared, changes) = (self.0.clone(), self.0.parts.handle.tool_changes());
        let tells = |exchange: Arc<Exchange>| async move {
            // While the client has too much unread, the change waits.
            let send = |change: ServerNotification| {
                let (exchange, shared) = (&exchange, &shared);
                async move {
                    loop {
                        match exchange.notify(change.clone(), None).await {
                            Ok(is_sent) => return is_sent,
                            Err(_) => shared.parts.handle.sleep(RETRY).await,
                        }
                    }
                }
            };
            listen::tell_changes(&shared, changes, send).await
        };
        Exchanged::new(self.0.clone(), unread, tells).stream()
    }

    /// Without an exchange it lasts, so the client can get requests.
    fn connection(&self, by: Principal, unread: Arc<dyn Unread>, exchange: Option<Arc<Exchange>>) -> Connection {
        Connection { calls: Calls { shared: self.0.clone(), by, unread, exchange } }
    }
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
