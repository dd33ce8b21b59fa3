//! The parts of an endpoint.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::Handle;
use domain::Span;

use crate::deliveries::Deliveries;

/// Everything that an endpoint uses.
pub struct EndpointParts {
    pub handle: Handle,
    /// A secret of the host that outlasts its restarts. The names of conversations follow from it, so that no other caller
    /// can take them.
    pub key: [u8; 32],
    pub ready: Arc<dyn Ready>,
    /// The address of the console where people answer, without a path.
    pub console: Option<String>,
    /// Whether the user of a client can answer the questions of its own calls there.
    pub questions: bool,
    pub bounds: EndpointBounds,
}

/// Waits until the host knows all its tools.
#[async_trait]
pub trait Ready: Send + Sync {
    async fn ready(&self);
}

/// A host that knows its tools from the start.
#[async_trait]
impl Ready for () {
    async fn ready(&self) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointBounds {
    /// The maximum time that a request waits for a call, or for the tools of a host that starts. Clients give up after 60
    /// seconds or less.
    pub hold: Span,
    /// How long after its end a call is still the outcome of a request that asks for the same.
    pub joins: Span,
    /// The maximum size of a message, in bytes.
    pub message: usize,
}

impl Default for EndpointBounds {
    fn default() -> Self {
        Self { hold: Span::from_secs(25), joins: Span::from_secs(60 * 60), message: 4 << 20 }
    }
}

/// The state that all connections of an endpoint share.
pub(crate) struct Shared {
    pub(crate) parts: EndpointParts,
    pub(crate) deliveries: Deliveries,
}

impl Shared {
    pub(crate) fn new(parts: EndpointParts) -> Arc<Self> {
        let deliveries = Deliveries::since(parts.handle.now());
        Arc::new(Self { parts, deliveries })
    }
}
