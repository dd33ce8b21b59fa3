//! The threads of the connections. The runtime of a caller may have no I/O.

use tokio::runtime::{self, Handle, Runtime};

use super::error::PostgresError;

/// Threads that end in the background: a runtime must not be dropped where blocking is not allowed.
pub(super) struct Threads {
    handle: Handle,
    /// `None` only while they are dropped.
    runtime: Option<Runtime>,
}

impl Threads {
    pub(super) fn start(threads: usize) -> Result<Self, PostgresError> {
        let refused = |error: std::io::Error| PostgresError::Refused {
            attempted: "start its threads",
            reason: error.to_string(),
        };
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("toolgate-postgres")
            .enable_all()
            .build()
            .map_err(refused)?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs work on the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, PostgresError>> + Send + 'static,
    ) -> Result<T, PostgresError> {
        let done = self.handle.spawn(work).await;
        done.map_err(|error| PostgresError::Refused { attempted: "connect", reason: error.to_string() })?
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
