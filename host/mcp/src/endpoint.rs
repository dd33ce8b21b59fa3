//! The endpoint of a host for MCP clients, and the ways in which their messages arrive.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use domain::Principal;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{JsonRpcError, ServerJsonRpcMessage};
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::calls::Calls;
use crate::connection::Connection;
use crate::frame::{self, Invalid};
use crate::lines::Lines;
use crate::parts::{EndpointParts, Shared};
use crate::unread::Unread;

/// The body of an answer over HTTP.
type Body = BoxBody<Bytes, Infallible>;

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
        let serving = rmcp::serve_server(self.connection(by, Arc::new(())), lines).await;
        let serving = match serving {
            Ok(serving) => serving,
            // It closed its side before its first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(Box::new(error).into()),
        };
        match serving.waiting().await? {
            QuitReason::JoinError(error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Answers one HTTP request of a client (the Streamable HTTP transport). The caller has authenticated the principal, and
    /// has checked the headers `Host` and `Origin`. The body is one message, or a stream of events: notifications, and the
    /// answer as the last. If the future or the body is dropped, the call goes on.
    pub async fn answer(&self, by: Principal, request: Request<Bytes>, unread: Arc<dyn Unread>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        match frame::check(&body) {
            Ok(Some(arguments)) => drop(parts.extensions.insert(arguments)),
            Ok(None) => {}
            Err(invalid) => return refused(invalid),
        }
        let connection = self.connection(by, unread);
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
        transport.handle(Request::from_parts(parts, Full::new(body))).await
    }

    fn connection(&self, by: Principal, unread: Arc<dyn Unread>) -> Connection {
        Connection { calls: Calls { shared: self.0.clone(), by, unread } }
    }
}

/// The response to a message that cannot be read.
fn refused(invalid: Invalid) -> Response<Body> {
    let Invalid { id, error } = invalid;
    let message = ServerJsonRpcMessage::Error(JsonRpcError::new(id, *error));
    let body = serde_json::to_vec(&message).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
