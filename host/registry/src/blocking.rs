//! Blocking work on threads for it.

use std::io;

/// Runs blocking work on a thread for it. The work completes even if its caller is dropped.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
