//! Serving a listener until it is told to stop.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long requests that are being answered may still take.
const GRACE: Duration = Duration::from_secs(5);

/// Says when the server is closing, so that streams end and waits return.
#[derive(Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// For a router that nobody closes.
    pub(crate) fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Returns when the server is closing.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|closing| *closing).await.is_err() {
            // Whoever could have said so is gone without having done so.
            std::future::pending::<()>().await;
        }
    }
}

/// Serves a router until `shutdown` returns. Then no connection is accepted any more, event streams end, waits return
/// with what there is, and requests that are being answered have five seconds left.
///
/// # Errors
/// What the listener says.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (close, closing) = watch::channel(false);
    let mut stop = Closing(closing);
    let router = router.layer(Extension(stop.clone()));
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move { stop.wait().await });
    let mut serving = std::pin::pin!(serving.into_future());
    tokio::select! {
        ended = &mut serving => return ended,
        () = shutdown => {}
    }
    close.send_replace(true);
    match tokio::time::timeout(GRACE, serving).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::warn!("requests were still being answered when the server closed");
            Ok(())
        }
    }
}
