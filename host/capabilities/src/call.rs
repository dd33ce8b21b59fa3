//! All capabilities of one call.

use std::sync::Arc;

use domain::{Limits, PluginName};
use wasmtime::component::{Linker, ResourceTable};

use crate::blocking::{Blocking, Permits};
use crate::grants::{Capability, Grants};
use crate::interface::{Granted, Interface, NewCall};
use crate::list::listed;
use crate::secrets::Vault;
use crate::usage::{BytesInOut, HostMemory, Usage};
use crate::view::{CallView, View};

/// A call and its grants.
pub struct GrantedCall<'a> {
    pub plugin: &'a PluginName,
    pub grants: &'a Arc<Grants>,
    pub idempotency_key: &'a Arc<str>,
    pub vault: &'a Vault,
}

impl GrantedCall<'_> {
    /// The call for one capability.
    fn of<G>(&self, grant: Arc<dyn AsRef<G> + Send + Sync>) -> Granted<'_, G> {
        Granted { plugin: self.plugin, idempotency_key: self.idempotency_key, vault: self.vault, grant }
    }
}

impl Usage {
    /// The usage of a call that has not started. Without a plugin's name the call has separate permits.
    #[must_use]
    pub fn new(permits: &Permits, plugin: Option<&PluginName>, limits: &Limits) -> Self {
        Self {
            memory: HostMemory::new(limits.host_bytes),
            bytes: BytesInOut::default(),
            blocking: Blocking::new(permits.of(plugin), limits.host_call_time),
        }
    }
}

/// A call that has every capability.
pub trait Call: Send + 'static {
    /// The parts of a call that a host function works with; see [`CallView::view`].
    fn called(&mut self) -> (&mut States, &mut ResourceTable, &Usage);
}

macro_rules! calls {
    ($(#[doc = $doc:literal] $key:ident: $folder:ident::$request:ident of $capability:ident
        $(, linked by $linked:ident)?;)*) => {
        /// The host's side of the capabilities. A capability without a service denies every access.
        #[derive(Clone, Default)]
        pub struct Services {
            $($(pub $linked: <crate::$linked::State as Interface>::Service,)?)*
        }

        /// The state of each capability in one call.
        pub struct States {
            $($(pub $linked: crate::$linked::State,)?)*
        }

        impl States {
            /// Without grants, as when a plugin is asked for its tools, every access is denied.
            #[must_use]
            pub fn new(services: &Services, call: &NewCall<'_>, granted: Option<&GrantedCall<'_>>) -> Self {
                Self {
                    $($($linked: {
                        let granted = granted.map(|granted| granted.of(granted.grants.clone()));
                        Interface::begin(&services.$linked, call, granted)
                    },)?)*
                }
            }
        }

        $($(impl<T: Call> CallView<crate::$linked::State> for T {
            fn view(&mut self) -> View<'_, crate::$linked::State> {
                let (states, table, usage) = self.called();
                View { state: &mut states.$linked, table, usage }
            }
        })?)*

        /// Links the interfaces of a capability.
        ///
        /// # Errors
        /// If the linker has one of them already.
        pub fn link<T: Call>(linker: &mut Linker<T>, capability: Capability) -> wasmtime::Result<()> {
            match capability {
                $($(Capability::$capability => crate::$linked::State::link(linker),)?)*
            }
        }
    };
}

listed!(calls);
