//! The components of a database, for the registry. Its threads wait for the database.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use dispatch::ports::StoreFault;
use domain::Digest;
use registry::RemoteComponents;
use tokio::runtime::Handle;

/// The components that all hosts on one database share.
pub(crate) struct SharedComponents {
    components: store::SharedComponents,
    runtime: Handle,
}

impl SharedComponents {
    /// Must be called in a runtime that lives as long as the host.
    pub(crate) fn new(components: store::SharedComponents) -> Self {
        Self { components, runtime: Handle::current() }
    }

    fn wait<T>(&self, request: impl Future<Output = Result<T, StoreFault>>) -> io::Result<T> {
        self.runtime.block_on(request).map_err(io::Error::other)
    }
}

impl RemoteComponents for SharedComponents {
    fn keep(&self, component: Digest, bytes: &[u8], record: &[u8]) -> io::Result<()> {
        self.wait(self.components.keep(component, bytes, record))
    }

    fn bytes(&self, component: Digest) -> io::Result<Option<Vec<u8>>> {
        self.wait(self.components.bytes(component))
    }

    fn record(&self, component: Digest) -> io::Result<Option<Vec<u8>>> {
        self.wait(self.components.record(component))
    }

    fn live(&self, components: &HashSet<Digest>) -> io::Result<HashSet<Digest>> {
        self.wait(self.components.live(components))
    }

    fn collect(&self, pinned: &HashSet<Digest>, older_than: Duration) -> io::Result<usize> {
        self.wait(self.components.collect(pinned, older_than))
    }
}
