//! `wasi:config` (0.2.0-rc.1: `store`): values that the operator gives a plugin, and the placeholders of its secrets.
//!
//! They are read by name or all at once, and are the same for the whole of a call. Where a name is that of a secret, the
//! guest is given what stands for it (`secrets.rs`); that no value has the same name is seen to when the configuration is
//! read. In an instance without grants, as when a plugin is asked for its tools, there are none.

mod bindings;

use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker};

use self::bindings::wasi::config::store::{self, Error};
use crate::guest::Guest;

/// Links the interface.
pub(crate) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    store::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)
}

impl Guest {
    /// Every value that the guest is given, by name.
    fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.grants.iter().flat_map(|grants| &grants.config).flatten();
        self.vault.placeholders().chain(given.map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

impl store::Host for Guest {
    fn get(&mut self, key: String) -> Result<std::result::Result<Option<String>, Error>> {
        let value = self.values().find(|(name, _)| *name == key).map(|(_, value)| value.to_owned());
        self.traffic.into_guest(value.as_ref().map_or(0, String::len));
        Ok(Ok(value))
    }

    fn get_all(&mut self) -> Result<std::result::Result<Vec<(String, String)>, Error>> {
        let size = self.values().map(|(name, value)| name.len() + value.len()).sum();
        let _held = self.held.charge(size)?;
        self.traffic.into_guest(size);
        Ok(Ok(self.values().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}
