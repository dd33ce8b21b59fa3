//! `wasi:config` (0.2.0-rc.1: `store`): values that the operator gives a plugin, and the placeholders of its secrets.
//!
//! The values do not change during a call: a durable call has those of its first run, which its journal keeps. The
//! configuration refuses a value and a secret with the same name. A call without a grant has no values.

mod bindings;
mod grant;

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Linker;

use self::bindings::wasi::config::store::{self, Error};
pub use self::grant::RequestedValue;
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::journal::{HostCall, Journal};
use crate::secrets::Vault;
use crate::stop::Stop;
use crate::view::{CallView, Has, View};

/// The values that are granted, by name.
type Values = Option<BTreeMap<String, String>>;

/// The values of one call. Empty by default.
#[derive(Default)]
pub struct State {
    values: Option<Arc<GrantOf<Values>>>,
    vault: Vault,
    journal: Option<Journal>,
    /// The values of the first run of a durable call, with the placeholders.
    frozen: Option<BTreeMap<String, String>>,
}

impl Interface for State {
    type Service = ();
    type Granted = Values;

    fn is_behind(package: &str, version: &str, interface: &str) -> bool {
        (package, version, interface) == ("wasi:config", "0.2.0-rc.1", "store")
    }

    fn begin((): &(), call: &NewCall<'_>, granted: Option<Granted<'_, GrantOf<Values>>>) -> Self {
        let (values, vault) = granted.map(|granted| (granted.grants, granted.vault.clone())).unzip();
        Self { values, vault: vault.unwrap_or_default(), journal: call.journal.cloned(), frozen: None }
    }

    fn start(&mut self, _: &Values) -> Result<(), Stop> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let values = self.values().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.frozen = Some(frozen(journal, values)?);
        Ok(())
    }

    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> Result<()> {
        store::add_to_linker::<_, Has<Self>>(linker, T::view)
    }
}

/// The values of the first run. The first entry of the journal has them, unless there were none.
fn frozen(journal: &Journal, values: BTreeMap<String, String>) -> std::result::Result<BTreeMap<String, String>, Stop> {
    let fault = |error: serde_json::Error| Stop::Fault(format!("the values of the first run: {error}"));
    let call = HostCall::new("configuration", "wasi:config/store", &[]);
    if journal.is_new() {
        if !values.is_empty() {
            let text = serde_json::to_string(&values).map_err(fault)?;
            journal.record(&call, text.into()).map_err(|error| Stop::FixedLimit(error.to_string()))?;
        }
        return Ok(values);
    }
    match journal.recorded_here(&call) {
        Some(text) => serde_json::from_str(&text).map_err(fault),
        None => Ok(BTreeMap::new()),
    }
}

impl State {
    /// Every value by name.
    fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let present = self.frozen.is_none().then_some(());
        let granted = self.values.iter().flat_map(|values| (**values).as_ref()).flatten();
        let granted = granted.map(|(name, value)| (name.as_str(), value.as_str()));
        let present = present.into_iter().flat_map(move |()| self.vault.placeholders().chain(granted.clone()));
        let frozen = self.frozen.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        frozen.chain(present)
    }
}

impl store::Host for View<'_, State> {
    fn get(&mut self, key: String) -> Result<std::result::Result<Option<String>, Error>> {
        let value = self.state.values().find(|(name, _)| *name == key).map(|(_, value)| value.to_owned());
        self.usage.bytes.count_in(value.as_ref().map_or(0, String::len));
        Ok(Ok(value))
    }

    fn get_all(&mut self) -> Result<std::result::Result<Vec<(String, String)>, Error>> {
        let size = self.state.values().map(|(name, value)| name.len() + value.len()).sum();
        let _charge = self.usage.memory.charge(size)?;
        self.usage.bytes.count_in(size);
        Ok(Ok(self.state.values().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}
