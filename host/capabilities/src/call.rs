//! All capabilities of one call. A new capability adds one line to each list here.

use std::sync::Arc;

use domain::{Limits, PluginName};
use wasmtime::component::{Linker, ResourceTable};

use crate::blocking::{Blocking, Permits};
use crate::grants::{Capability, Grants};
use crate::http::{CallLog, HttpClient, Terms};
use crate::keyvalue::{Buckets, Writes};
use crate::secrets::Vault;
use crate::usage::{BytesInOut, HostMemory, Usage};
use crate::view::{CallView, View};
use crate::{config, filesystem, http, keyvalue};

/// The host's side of the capabilities. A capability without a service denies every access.
#[derive(Clone)]
pub struct Services {
    pub keyvalue: Option<Arc<dyn Buckets>>,
    pub keyvalue_writes: Arc<Writes>,
    pub http: Option<HttpClient>,
    pub permits: Arc<Permits>,
}

/// A call and its grants.
pub struct Granted<'a> {
    pub plugin: &'a PluginName,
    pub grants: &'a Arc<Grants>,
    pub idempotency_key: &'a Arc<str>,
    pub vault: &'a Vault,
}

/// The state of each capability in one call.
pub struct States {
    pub keyvalue: keyvalue::State,
    pub http: http::State,
    pub config: config::State,
    pub filesystem: filesystem::State,
}

impl States {
    /// Without a grant, as when a plugin is asked for its tools, every access is denied.
    pub fn new(
        services: &Services,
        granted: Option<&Granted<'_>>,
        limits: &Limits,
        usage: &Usage,
        log: Arc<dyn CallLog>,
    ) -> Self {
        let keyvalue = granted.and_then(|granted| {
            let (buckets, quota) = (services.keyvalue.clone()?, granted.grants.keyvalue?);
            let writes = &services.keyvalue_writes;
            Some(keyvalue::State::new(buckets, granted.plugin.clone(), quota, writes, limits))
        });
        let terms = granted.filter(|granted| !granted.grants.http.is_empty()).map(|granted| Terms {
            client: services.http.clone(),
            plugin: granted.plugin.clone(),
            rules: granted.grants.clone(),
            idempotency_key: granted.idempotency_key.clone(),
            vault: granted.vault.clone(),
            limits: *limits,
        });
        let config = granted.map(|granted| config::State::new(granted.grants.clone(), granted.vault.clone()));
        Self {
            keyvalue: keyvalue.unwrap_or_default(),
            http: http::State::new(terms, log, usage.memory.clone()),
            config: config.unwrap_or_default(),
            filesystem: filesystem::State::new(limits.files_written),
        }
    }
}

impl Usage {
    /// The usage of a call that has not started. Without a plugin's name the call has separate permits.
    #[must_use]
    pub fn new(services: &Services, plugin: Option<&PluginName>, limits: &Limits) -> Self {
        Self {
            memory: HostMemory::new(limits.host_bytes),
            bytes: BytesInOut::default(),
            blocking: Blocking::new(services.permits.of(plugin), limits.host_call_time),
        }
    }
}

/// A call that has every capability.
pub trait Call: Send + 'static {
    /// The parts of a call that a host function works with; see [`CallView::view`].
    fn called(&mut self) -> (&mut States, &mut ResourceTable, &Usage);
}

macro_rules! views {
    ($($capability:ident)*) => {$(
        impl<T: Call> CallView<$capability::State> for T {
            fn view(&mut self) -> View<'_, $capability::State> {
                let (states, table, usage) = self.called();
                View { state: &mut states.$capability, table, usage }
            }
        }
    )*};
}

views! { keyvalue http config filesystem }

/// Links the interfaces of a capability.
///
/// # Errors
/// If the linker has one of them already.
pub fn link<T: Call>(linker: &mut Linker<T>, capability: Capability) -> wasmtime::Result<()> {
    match capability {
        Capability::KeyValue => keyvalue::link(linker),
        Capability::Http => http::link(linker),
        Capability::Config => config::link(linker),
        Capability::Filesystem => filesystem::link(linker),
    }
}
