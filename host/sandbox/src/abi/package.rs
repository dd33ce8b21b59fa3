//! Our packages in the versions that this host supports. A component that was built against a later version loads if it
//! imports only interfaces and functions that this host has.

use capabilities::excerpt;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::load::{LoadError, Newer};

/// One of our packages, in the version that this host supports. A test compares it with the text in `wit/`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// The versions that are compatible: `0.1` for `0.1.x`.
    pub(crate) spoken: &'static str,
    /// The newest of them. This host has all of it.
    pub(crate) newest: &'static str,
    /// The interfaces that a component may import, with their functions.
    pub(crate) interfaces: &'static [(&'static str, &'static [&'static str])],
}

/// `namespace:package/interface@version`.
pub(crate) struct Name<'a> {
    pub(crate) package: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> Name<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (path, version) = text.split_once('@')?;
        let (package, interface) = path.split_once('/')?;
        Some(Self { package, interface, version })
    }
}

impl Package {
    /// Whether a version is compatible: three plain numbers, and the first two are those of `spoken`.
    pub(crate) fn speaks(&self, version: &str) -> bool {
        let patch = version.strip_prefix(self.spoken).and_then(|rest| rest.strip_prefix('.'));
        patch.is_some_and(|patch| patch.parse::<u32>().is_ok_and(|number| number.to_string() == patch))
    }

    /// The error for a version that is not compatible.
    pub(crate) fn unspoken(&'static self, found: &str) -> LoadError {
        LoadError::Version { package: self.name, found: excerpt(found), spoken: self.spoken, newest: self.newest }
    }

    /// Checks the names of a component's imports.
    ///
    /// # Errors
    /// [`LoadError::Version`], or [`LoadError::Newer`] with every interface that is missing.
    pub(crate) fn check_names(&'static self, imports: &[String]) -> Result<(), LoadError> {
        let ours = || imports.iter().filter_map(|text| Name::parse(text)).filter(|name| name.package == self.name);
        if let Some(name) = ours().find(|name| !self.speaks(name.version)) {
            return Err(self.unspoken(name.version));
        }
        let missing = ours().filter(|name| self.functions(name.interface).is_none());
        let found = missing.clone().map(|name| name.version).next();
        self.missing(found, missing.map(|name| format!("the interface `{}`", excerpt(name.interface))).collect())
    }

    /// Checks the functions that a compiled component imports.
    ///
    /// # Errors
    /// [`LoadError::Newer`] with every function that is missing.
    pub(crate) fn check_functions(&'static self, engine: &Engine, component: &Component) -> Result<(), LoadError> {
        let (mut missing, mut found) = (Vec::new(), None);
        for (interface, version, function) in self.imported(engine, component) {
            if !self.functions(&interface).is_some_and(|known| known.contains(&function.as_str())) {
                missing.push(format!("`{}` of the interface `{}`", excerpt(&function), excerpt(&interface)));
                found.get_or_insert(version);
            }
        }
        self.missing(found.as_deref(), missing)
    }

    /// Whether a component imports a function.
    pub(crate) fn is_imported(&self, engine: &Engine, component: &Component, function: &str) -> bool {
        self.imported(engine, component).iter().any(|(_, _, imported)| imported == function)
    }

    /// The functions of this package that a component imports: interface, version, function.
    fn imported(&self, engine: &Engine, component: &Component) -> Vec<(String, String, String)> {
        let mut functions = Vec::new();
        for (text, import) in component.component_type().imports(engine) {
            let Some(name) = Name::parse(text).filter(|name| name.package == self.name) else { continue };
            let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
            for (function, export) in instance.exports(engine) {
                if matches!(export.ty, ComponentItem::ComponentFunc(_)) {
                    functions.push((name.interface.to_owned(), name.version.to_owned(), function.to_owned()));
                }
            }
        }
        functions
    }

    fn functions(&self, interface: &str) -> Option<&'static [&'static str]> {
        self.interfaces.iter().find(|(name, _)| *name == interface).map(|(_, functions)| *functions)
    }

    fn missing(&self, found: Option<&str>, missing: Vec<String>) -> Result<(), LoadError> {
        match found {
            None => Ok(()),
            Some(found) => {
                let (package, newest, found) = (self.name, self.newest, excerpt(found));
                Err(LoadError::Newer(Newer { package, newest, found, missing }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wit_parser::{Resolve, TypeDefKind, WorldItem};

    use crate::abi::{PLUGIN, policy};

    #[test]
    fn compatible_versions_are_recognised() {
        for (version, spoken) in [
            ("0.1.0", true),
            ("0.1.9", true),
            ("0.1.10", true),
            ("0.2.0", false),
            ("0.10.0", false),
            ("1.0.0", false),
            ("0.1", false),
            ("0.1.", false),
            ("0.1.01", false),
            ("0.1.+1", false),
            ("0.1.2-rc.1", false),
            ("0.1.2\u{1b}[2J", false),
            ("", false),
        ] {
            assert_eq!((PLUGIN.speaks(version), policy::POLICY.speaks(version)), (spoken, spoken), "{version}");
        }
    }

    #[test]
    fn host_implements_the_whole_interface() {
        for (package, folder) in [(&PLUGIN, "../../wit/v0.1"), (&policy::POLICY, "../../wit/policy/v0.1")] {
            let mut resolve = Resolve::default();
            let (id, _) = resolve.push_dir(folder).expect("our own interface");
            let found = &resolve.packages[id];
            assert_eq!(found.name.version.as_ref().map(ToString::to_string).as_deref(), Some(package.newest));
            assert!(package.newest.starts_with(&format!("{}.", package.spoken)));
            // A component may import the interfaces of its world. It may also import interfaces without functions for
            // their types.
            let mut imported: Vec<(&str, Vec<&str>)> = Vec::new();
            for world in found.worlds.values() {
                for item in resolve.worlds[*world].imports.values() {
                    let WorldItem::Interface { id: interface, .. } = item else { continue };
                    let interface = &resolve.interfaces[*interface];
                    let functions = interface.functions.keys().map(String::as_str).collect();
                    let row = (interface.name.as_deref().unwrap_or_default(), functions);
                    if interface.package == Some(id) && !imported.contains(&row) {
                        imported.push(row);
                    }
                }
            }
            imported.sort();
            let mut known: Vec<_> = package.interfaces.iter().map(|(name, all)| (*name, all.to_vec())).collect();
            known.sort();
            assert_eq!(imported, known, "{folder}");
            let resources = resolve.types.iter().filter(|(_, ty)| matches!(ty.kind, TypeDefKind::Resource));
            let ours = resources.filter(|(_, ty)| match ty.owner {
                wit_parser::TypeOwner::Interface(interface) => resolve.interfaces[interface].package == Some(id),
                _ => false,
            });
            assert_eq!(ours.count(), 0, "the functions of a resource would have to be known, too");
        }
    }
}
