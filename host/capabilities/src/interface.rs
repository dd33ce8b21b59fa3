//! The part of a capability that concerns its interface: the imports behind it, its state in one call, and its host
//! functions.

use std::sync::Arc;

use domain::journal::Transferred;
use domain::{Limits, PluginName, Timestamp};
use wasmtime::component::{Linker, ResourceTable};

use crate::journal::Journal;
use crate::secrets::Vault;
use crate::stop::Stop;
use crate::usage::Usage;
use crate::view::CallView;

/// The state of a capability in one call.
pub trait Interface: Sized + Send + 'static {
    /// The host's side. `()` if it needs none.
    type Service: Clone + Default;
    /// As in [`GrantRequest::Granted`](crate::request::GrantRequest::Granted).
    type Granted;

    /// Whether every guest may import the interfaces. Without a grant they give no access.
    const IS_INERT: bool = false;

    /// Whether an import needs the capability, by its package, version and interface.
    fn is_behind(package: &str, version: &str, interface: &str) -> bool;

    /// The state of a call that has not started. Without a grant, as when a plugin is asked for its tools, every access
    /// is denied.
    fn begin(service: &Self::Service, call: &NewCall<'_>, granted: Option<Granted<'_, GrantOf<Self::Granted>>>)
    -> Self;

    /// Links the interfaces.
    ///
    /// # Errors
    /// If the linker has one of them already.
    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()>;

    /// Gives the call its access when it starts, if that can fail. A durable call gets what its first run got.
    ///
    /// # Errors
    /// If the host cannot give the access.
    fn start(&mut self, _granted: &Self::Granted) -> Result<(), Stop> {
        Ok(())
    }

    /// Carries out what the guest of a durable call waits for. If a part of it must wait, returns the time until which. The
    /// rest is carried out in the next call, which comes after that time, or without `may_wait`.
    ///
    /// # Errors
    /// The run cannot continue.
    fn settle(
        &mut self,
        _table: &mut ResourceTable,
        _may_wait: bool,
    ) -> impl Future<Output = wasmtime::Result<Option<Timestamp>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Reports what the call left undone. The call has ended, and no later run continues it.
    fn finish(&mut self) {}

    /// Whether the call may have changed data that the host keeps, or may still change it. Its result then waits until the data
    /// is on disk.
    fn wrote(&self) -> bool {
        false
    }

    /// The bytes that this instance has sent and received, without those that are counted in its [`Usage`].
    fn transferred(&self) -> Transferred {
        Transferred::default()
    }
}

/// Reads a clock that never goes back.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A call that has not started.
pub struct NewCall<'a> {
    pub limits: &'a Limits,
    pub usage: &'a Usage,
    pub now: &'a Now,
    pub log: Arc<dyn AuthorLog>,
    /// Records the results of host functions, if the call is durable.
    pub journal: Option<&'a Journal>,
}

/// A call with grants: of all capabilities, or [`GrantOf`] one.
pub struct Granted<'a, G: ?Sized> {
    pub plugin: &'a PluginName,
    pub idempotency_key: &'a Arc<str>,
    pub vault: &'a Vault,
    pub grants: Arc<G>,
}

/// A value that contains the grant of one capability.
pub type GrantOf<G> = dyn AsRef<G> + Send + Sync;

/// Tells the author of a plugin why a request failed.
pub trait AuthorLog: Send + Sync {
    fn warn(&self, line: &str);
}
