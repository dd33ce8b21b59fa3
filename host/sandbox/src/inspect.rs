//! The imports and exports of a component, read in microseconds without compiling or validating it. They decide whether the
//! component is examined further. Errors in other parts are found when it is compiled.

use capabilities::{Capabilities, Capability, excerpt};
use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::abi::package::Name;
use crate::abi::{AbiVersion, DURABLE, PLUGIN};
use crate::load::{ForeignImport, LoadError};
use crate::wasi;

/// The interface of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentInterface {
    /// The names of the imports.
    pub imports: Vec<String>,
    /// The names of the exports. Toolchains add some that have no meaning here.
    pub exports: Vec<String>,
    pub speaks: AbiVersion,
    /// The version of our interface that the component was built against, such as `0.1.1`.
    pub version: String,
    /// Whether the component exports `server`, as a plugin with a server tool must.
    pub has_server: bool,
}

/// Imports or exports of one component. Only an attack has more.
const MAX_NAMES: usize = 1_000;

impl ComponentInterface {
    /// # Errors
    /// If the bytes are not a component, export no `catalog` of a version that this host supports, or import an interface of ours
    /// that this host does not have.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let (imports, exports) = names(bytes)?;
        let ours = |interface: &str| {
            let named = |name: &&Name<'_>| name.package == PLUGIN.name && name.interface == interface;
            exports.iter().filter_map(|text| Name::parse(text)).find(|name| named(&name)).map(|name| name.version)
        };
        let found = ours("catalog").ok_or_else(|| LoadError::not_a_plugin(PLUGIN.name, PLUGIN.spoken, &exports))?;
        let speaks = AbiVersion::of(found).ok_or_else(|| PLUGIN.unspoken(found))?;
        let server = ours("server");
        if let Some(version) = server.filter(|version| AbiVersion::of(version) != Some(speaks)) {
            return Err(PLUGIN.unspoken(version));
        }
        PLUGIN.check_names(&imports)?;
        let (version, has_server) = (found.to_owned(), server.is_some());
        Ok(Self { imports, exports, speaks, version, has_server })
    }

    /// The package and version that the component was built against: `toolgate:plugin@0.1.1`.
    #[must_use]
    pub fn built_against(&self) -> String {
        format!("{}@{}", PLUGIN.name, self.version)
    }

    /// Whether the component imports the interface for waits in the middle of a call.
    #[must_use]
    pub fn imports_durable(&self) -> bool {
        let is_durable = |name: Name<'_>| name.package == PLUGIN.name && name.interface == DURABLE;
        self.imports.iter().filter_map(|text| Name::parse(text)).any(is_durable)
    }

    /// Whether the component asks for folders. Most toolchains import that even if the source does not use it.
    #[must_use]
    pub fn asks_for_folders(&self) -> bool {
        let asks = |name: &Name<'_>| name.package == "wasi:filesystem" && name.interface == "preopens";
        self.imports.iter().filter_map(|text| Name::parse(text)).any(|name| asks(&name))
    }

    /// All imports that neither every guest has nor these capabilities give.
    #[must_use]
    pub fn foreign(&self, granted: Capabilities) -> Vec<ForeignImport> {
        let foreign = |text: &String| {
            let name = Name::parse(text);
            let needs = match &name {
                Some(name) if is_everyones(name) => return None,
                Some(name) => Capability::behind(name.package, name.version, name.interface),
                None => None,
            };
            match needs {
                Some(capability) if granted.holds(capability) => None,
                needs => Some(ForeignImport { name: excerpt(text), needs }),
            }
        };
        self.imports.iter().filter_map(foreign).collect()
    }
}

/// Whether every guest may import this: our own interface and the inert WASI.
fn is_everyones(name: &Name<'_>) -> bool {
    // The interfaces of the package were checked when the names were read.
    name.package == PLUGIN.name || wasi::is_inert(name.package, name.version)
}

/// The kind of a file that is not WebAssembly, by its first bytes.
fn instead(bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 9] = [
        (b"\x7fELF", "a program or library for Linux"),
        (b"MZ", "a program for Windows"),
        (b"\xcf\xfa\xed\xfe", "a program for macOS"),
        (b"\xca\xfe\xba\xbe", "a program for macOS or of Java"),
        (b"!<arch>\n", "a static library"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"(module", "the text of a WebAssembly module"),
        (b"(component", "the text of a WebAssembly component"),
    ];
    let known = KINDS.iter().find(|(begins, _)| bytes.starts_with(begins)).map(|(_, kind)| *kind);
    known.unwrap_or(match std::str::from_utf8(bytes) {
        Ok("") => "an empty file",
        Ok(_) => "a text",
        Err(_) => "something unknown",
    })
}

/// The imports and exports of the outermost component.
pub(crate) fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), LoadError> {
    let malformed = |error: wasmparser::BinaryReaderError| LoadError::Malformed(excerpt(error.message()));
    let keep = |names: &mut Vec<String>, name: &str| {
        if names.len() >= MAX_NAMES {
            return Err(LoadError::Malformed(format!("more than {MAX_NAMES} imports or exports")));
        }
        names.push(name.to_owned());
        Ok(())
    };
    if !bytes.starts_with(b"\0asm") {
        return Err(LoadError::NotWebAssembly(instead(bytes)));
    }
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    loop {
        let (consumed, payload) = match parser.parse(rest, true).map_err(malformed)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err(LoadError::Malformed("it ends too early".into())),
        };
        rest = rest.get(consumed..).unwrap_or_default();
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => return Err(LoadError::Module),
            Payload::ComponentImportSection(section) => {
                for import in section {
                    keep(&mut imports, import.map_err(malformed)?.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    keep(&mut exports, export.map_err(malformed)?.name.name)?;
                }
            }
            // Skips the bytes of a module or component inside of this one.
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                let length = unchecked_range.end.saturating_sub(unchecked_range.start);
                rest = rest.get(length..).ok_or_else(|| LoadError::Malformed("it ends too early".into()))?;
            }
            Payload::End(_) => return Ok((imports, exports)),
            _ => {}
        }
    }
}
