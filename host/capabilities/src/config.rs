//! `wasi:config` (0.2.0-rc.1: `store`): values that the operator gives a plugin, and the placeholders of its secrets.
//!
//! The values do not change during a call. The configuration refuses a value and a secret with the same name. A call without
//! a grant has no values.

mod bindings;
mod grant;

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Linker;

use self::bindings::wasi::config::store::{self, Error};
pub use self::grant::RequestedValue;
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::secrets::Vault;
use crate::view::{CallView, Has, View};

/// The values that are granted, by name.
type Values = Option<BTreeMap<String, String>>;

/// The values of one call. Empty by default.
#[derive(Default)]
pub struct State {
    values: Option<Arc<GrantOf<Values>>>,
    vault: Vault,
}

impl Interface for State {
    type Service = ();
    type Granted = Values;

    fn is_behind(package: &str, version: &str, interface: &str) -> bool {
        (package, version, interface) == ("wasi:config", "0.2.0-rc.1", "store")
    }

    fn begin((): &(), _: &NewCall<'_>, granted: Option<Granted<'_, GrantOf<Values>>>) -> Self {
        let state = |granted: Granted<'_, _>| Self { values: Some(granted.grants), vault: granted.vault.clone() };
        granted.map(state).unwrap_or_default()
    }

    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> Result<()> {
        store::add_to_linker::<_, Has<Self>>(linker, T::view)
    }
}

impl State {
    /// Every value by name.
    fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter().flat_map(|values| (**values).as_ref()).flat_map(BTreeMap::iter);
        self.vault.placeholders().chain(values.map(|(name, value)| (name.as_str(), value.as_str())))
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
