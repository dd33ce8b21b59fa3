//! All capabilities of one call.

use std::sync::Arc;

use domain::journal::Transferred;
use domain::{Limits, PluginName, Timestamp};
use wasmtime::component::{Linker, ResourceTable};

use crate::blocking::{Blocking, Permits};
use crate::grants::{Capabilities, Capability, Grants};
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::list::listed;
use crate::stop::Stop;
use crate::usage::{BytesInOut, HostMemory, SharedMemory, Usage};
use crate::view::{CallView, View};

impl Usage {
    /// The usage of a call that has not started. Without a plugin's name the call has separate permits.
    #[must_use]
    pub fn new(permits: &Permits, plugin: Option<&PluginName>, limits: &Limits, shared: Arc<dyn SharedMemory>) -> Self {
        Self {
            memory: HostMemory::new(limits.host_bytes, shared),
            bytes: BytesInOut::default(),
            blocking: Blocking::new(permits.of(plugin), limits.host_call_time),
        }
    }
}

/// A call that has every capability.
pub trait CallParts: Send + 'static {
    /// The parts of a call that a host function works with; see [`CallView::view`].
    fn called(&mut self) -> (&mut States, &mut ResourceTable, &Usage);
}

impl<'a> Granted<'a, Grants> {
    /// The same for one capability.
    fn narrowed<G>(&self) -> Granted<'a, GrantOf<G>>
    where
        Grants: AsRef<G>,
    {
        let Self { plugin, idempotency_key, vault, grants } = self;
        Granted { plugin, idempotency_key, vault, grants: grants.clone() }
    }
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
            $($($linked: crate::$linked::State,)?)*
        }

        impl States {
            /// Without grants, as when a plugin is asked for its tools, every access is denied.
            #[must_use]
            pub fn new(services: &Services, call: &NewCall<'_>, granted: Option<&Granted<'_, Grants>>) -> Self {
                Self {
                    $($($linked: Interface::begin(&services.$linked, call, granted.map(Granted::narrowed)),)?)*
                }
            }

            /// See [`Interface::start`].
            ///
            /// # Errors
            /// If the host cannot give the call its access.
            pub fn start(&mut self, grants: &Grants) -> Result<(), Stop> {
                $($(self.$linked.start(&grants.$key)?;)?)*
                Ok(())
            }

            /// See [`Interface::settle`].
            ///
            /// # Errors
            /// The run cannot continue.
            pub async fn settle(
                &mut self,
                table: &mut ResourceTable,
                may_wait: bool,
            ) -> wasmtime::Result<Option<Timestamp>> {
                let mut until = None;
                $($(until = until.max(self.$linked.settle(table, may_wait).await?);)?)*
                Ok(until)
            }

            /// See [`Interface::finish`].
            pub fn finish(&mut self) {
                $($(self.$linked.finish();)?)*
            }

            /// See [`Interface::wrote`].
            #[must_use]
            pub fn wrote(&self) -> bool {
                [$($(self.$linked.wrote(),)?)*].contains(&true)
            }

            /// See [`Interface::transferred`].
            #[must_use]
            pub fn transferred(&self) -> Transferred {
                let each = [$($(self.$linked.transferred(),)?)*];
                each.into_iter().fold(Transferred::default(), |sum, one| Transferred {
                    sent: sum.sent + one.sent,
                    received: sum.received + one.received,
                })
            }
        }

        $($(impl<T: CallParts> CallView<crate::$linked::State> for T {
            fn view(&mut self) -> View<'_, crate::$linked::State> {
                let (states, table, usage) = self.called();
                View { state: &mut states.$linked, table, usage }
            }
        })?)*

        /// Links the interfaces that every guest may import.
        ///
        /// # Errors
        /// If the linker has one of them already.
        pub fn link_inert<T: CallParts>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
            $($(if crate::$linked::State::IS_INERT {
                crate::$linked::State::link(linker)?;
            })?)*
            Ok(())
        }

        /// Links the interfaces of these capabilities, without those that every guest may import.
        ///
        /// # Errors
        /// If the linker has one of them already.
        pub fn link<T: CallParts>(linker: &mut Linker<T>, granted: Capabilities) -> wasmtime::Result<()> {
            $($(if granted.holds(Capability::$capability) && !crate::$linked::State::IS_INERT {
                crate::$linked::State::link(linker)?;
            })?)*
            Ok(())
        }
    };
}

listed!(calls);
