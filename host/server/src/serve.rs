//! Serves a listener until shutdown. The number of connections is bounded, and so is the time that a client may keep
//! one waiting. When the host is full, connections that wait for their clients are closed first.

mod slots;
mod socket;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::{Extension, Router};
use domain::Span;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
pub(crate) use slots::ConnectionHandle;
use slots::{Answering, Slot, Slots};
use socket::{Arriving, Leaving, Socket};
pub use tls::{Tls, TlsError, TlsFiles};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::login_throttle::Peer;

/// How long requests in flight may take after shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// The pause after the system refused another socket.
const REST: Duration = Duration::from_millis(500);

/// The smallest possible bound on a request's head.
const MIN_HEAD: usize = 8 << 10;

/// Bounds on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// The maximum number. When one more arrives, the one that has waited longest for its client is closed, among those
    /// whose newest request was authenticated or among the others, whichever are more.
    pub max: usize,
    /// The maximum number of one peer. When one more arrives, one of this peer is closed in the same way. If none can be
    /// closed, the new one is. A peer is an IPv4 address or the first 64 bits
    /// of an IPv6 address. Loopback has no limit, because a local proxy and all local users share it.
    pub max_per_peer: usize,
    /// How long a client may take to send the head of its request, from the opening of its connection or from the end
    /// of the previous response. So it is also how long an idle connection is kept.
    pub head: Span,
    /// The maximum size of a request's head, in bytes.
    pub head_bytes: usize,
    /// How long a client may go without reading any of its response.
    pub stall: Span,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max: 1_024,
            max_per_peer: 512,
            head: Span::from_secs(10),
            head_bytes: 32 << 10,
            stall: Span::from_secs(30),
        }
    }
}

/// Signals that the server is closing, so that streams end and waits return.
#[derive(Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Returns when the server is closing.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|closing| *closing).await.is_err() {
            // The sender was dropped without closing.
            std::future::pending::<()>().await;
        }
    }
}

/// A router without a server is never closed.
impl<S: Sync> FromRequestParts<S> for Closing {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self(watch::channel(false).1)))
    }
}

/// Serves a router until `shutdown` returns. Then the server accepts no more connections, event streams end, waiting
/// requests return the current state, and requests in flight get five seconds. With `tls`, every connection must use it.
///
/// # Errors
/// Errors of the listener.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Connections,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (close, closing) = watch::channel(false);
    let closing = Closing(closing);
    let router = router.layer(Extension(closing.clone()));
    let tls = tls.map(Arc::new);
    let slots = Slots::new(bounds.max, bounds.max_per_peer);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, address)) => (stream, Peer(address.ip())),
            // The client left before the connection was accepted.
            Err(error) if is_the_clients(&error) => continue,
            Err(error) => {
                tracing::error!(%error, "a connection could not be accepted");
                slots.evict();
                if tokio::time::timeout(REST, &mut shutdown).await.is_ok() {
                    break;
                }
                continue;
            }
        };
        let slot = tokio::select! {
            () = &mut shutdown => break,
            slot = slots.slot(peer) => slot,
        };
        let Some(slot) = slot else {
            tracing::debug!(peer = %peer.0, "a connection was closed: its peer has too many");
            continue;
        };
        let (tls, slot) = (tls.clone(), Arc::new(slot));
        connections.spawn(connection((stream, peer), tls, slot, router.clone(), bounds, closing.clone()));
    }
    drop(listener);
    close.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("requests were still being answered when the server closed");
    }
    Ok(())
}

fn millis(span: Span) -> Duration {
    Duration::from_millis(span.millis().max(1))
}

/// One connection, to its end.
async fn connection(
    (stream, peer): (TcpStream, Peer),
    tls: Option<Arc<Tls>>,
    slot: Arc<Slot>,
    router: Router,
    bounds: Connections,
    mut closing: Closing,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return requests((stream, peer), slot, router, bounds, closing).await };
    let handshake = async { tls.acceptor().await.accept(stream).await };
    let accepted = tokio::select! {
        // A client has as much time for it as for the head of a request.
        accepted = tokio::time::timeout(millis(bounds.head), handshake) => accepted,
        () = slot.evicted() => return,
        () = closing.wait() => return,
    };
    match accepted.unwrap_or_else(|late| Err(late.into())) {
        Ok(stream) => requests((stream, peer), slot, router, bounds, closing).await,
        Err(error) => tracing::debug!(%error, "a connection ended before its TLS handshake did"),
    }
}

/// The requests of one connection.
async fn requests(
    (stream, peer): (impl AsyncRead + AsyncWrite + Unpin, Peer),
    slot: Arc<Slot>,
    router: Router,
    bounds: Connections,
    mut closing: Closing,
) {
    let socket = TokioIo::new(Socket::new(stream, slot.clone(), millis(bounds.stall)));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let answering = Answering::new(slot.clone());
        let mut request = request.map(|body| Body::new(Arriving::new(body, slot.clone())));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(slot.handle());
        let answer = router.clone().oneshot(request);
        async move {
            let answer = answer.await.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(answer.map(|body| Leaving::new(body, answering)))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(millis(bounds.head)).max_header_size(bounds.head_bytes);
    // This also bounds the buffer of a response that the client does not read.
    http.max_buf_size(bounds.head_bytes.max(MIN_HEAD));
    let mut serving = pin!(http.serve_connection(socket, service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = slot.evicted() => return,
        () = closing.wait() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
