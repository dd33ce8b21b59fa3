//! Looks up names. The operating system's resolver is the default.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// Finds the addresses of a host's name. They are filtered afterwards.
pub trait Resolver: Send + Sync {
    /// The addresses of a name, in the order in which to try them. Called on the runtime for I/O.
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Lookups at once. Each keeps a thread and cannot be cancelled.
const MAX_LOOKUPS: usize = 64;

/// The resolver of the operating system.
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl Resolver for SystemResolver {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let (lookups, name) = (Arc::clone(&self.0), name.to_owned());
        Box::pin(async move {
            let permit = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let look_up = move || {
                // Kept until the lookup ends, even if nobody waits for it.
                let _permit = permit;
                Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
        })
    }
}
