//! The tools of a host for MCP clients.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use domain::Principal;
use http::{Request, Response};
use mcp::{Endpoint, EndpointBounds, EndpointParts, Ready, Unread};
use registry::Registry;
use server::{McpBody, McpClients, McpUnread};
use toolgate::Host;

use crate::report::Report;

/// The tools of a host for MCP clients. People answer at `console_url`.
pub(super) fn endpoint(
    host: &Host,
    console_url: Option<String>,
    message: usize,
    questions: bool,
) -> Result<Endpoint, Report> {
    let key = toolgate::http_api::mcp_key(host);
    let parts = EndpointParts {
        handle: host.handle().clone(),
        key: key.with_context(|| format!("cannot keep a key in {}", host.data().display()))?,
        ready: Arc::new(Loaded(host.registry().clone())),
        console: console_url,
        questions,
        bounds: EndpointBounds { message, ..EndpointBounds::default() },
    };
    Ok(Endpoint::new(parts))
}

/// The endpoint behind the HTTP server.
pub(super) fn answering(endpoint: Endpoint) -> Arc<dyn McpClients> {
    Arc::new(Clients(endpoint))
}

struct Clients(Endpoint);

#[async_trait]
impl McpClients for Clients {
    async fn answer(&self, by: Principal, request: Request<Bytes>, unread: Arc<dyn McpUnread>) -> Response<McpBody> {
        self.0.answer(by, request, Arc::new(Counted(unread))).await
    }
}

/// The bytes that a client of the server has not read yet.
struct Counted(Arc<dyn McpUnread>);

#[async_trait]
impl Unread for Counted {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        self.0.reserve().await
    }

    fn charge(&self, bytes: usize) -> Result<Box<dyn Send + Sync>, String> {
        self.0.charge(bytes)
    }
}

/// The plugins of the watched folder.
struct Loaded(Registry);

#[async_trait]
impl Ready for Loaded {
    async fn ready(&self) {
        self.0.loaded().await;
    }
}
