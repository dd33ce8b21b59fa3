//! What a component says that it imports and exports, read in microseconds without compiling or validating anything of it.
//!
//! This decides whether a component is looked at any further. It trusts nothing: whatever is wrong in the parts that are
//! skipped here is found when they are compiled.

use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::abi::{AbiVersion, PLUGIN};
use crate::capability::{Capabilities, Capability};
use crate::ending::excerpt;
use crate::load::{ForeignImport, LoadError};
use crate::wasi;

/// The interface of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The names of its imports, as they stand in the component.
    pub imports: Vec<String>,
    /// The names of its exports. Toolchains add some of their own; they mean nothing here.
    pub exports: Vec<String>,
    /// The form of our interface that it speaks.
    pub speaks: AbiVersion,
    /// The version of our interface that it was built against, such as `0.1.1`.
    pub version: String,
    /// Whether it exports `server`, which a plugin with a server tool must.
    pub has_server: bool,
}

/// Imports, and exports, of one component. One that names more is not a plugin but an attack.
const MAX_NAMES: usize = 1_000;

/// `namespace:package/interface@version`, taken apart.
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

impl Interface {
    /// Reads it.
    ///
    /// # Errors
    /// When the bytes are not a component, or one that exports no `catalog` of a version that this host speaks, or one that
    /// needs an interface of ours that this host does not have.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let (imports, exports) = names(bytes)?;
        let ours = |interface: &str| {
            let named = |name: &&Name<'_>| name.package == PLUGIN.name && name.interface == interface;
            exports.iter().filter_map(|text| Name::parse(text)).find(|name| named(&name)).map(|name| name.version)
        };
        let found = ours("catalog").ok_or_else(|| LoadError::not_a_plugin(&exports))?;
        let speaks = AbiVersion::of(found).ok_or_else(|| PLUGIN.unspoken(found))?;
        let server = ours("server");
        if let Some(version) = server.filter(|version| AbiVersion::of(version) != Some(speaks)) {
            return Err(PLUGIN.unspoken(version));
        }
        PLUGIN.judge_names(&imports)?;
        let (version, has_server) = (found.to_owned(), server.is_some());
        Ok(Self { imports, exports, speaks, version, has_server })
    }

    /// The version of our interface that it was built against, with the name of the package: `toolgate:plugin@0.1.1`.
    #[must_use]
    pub fn built_against(&self) -> String {
        format!("{}@{}", PLUGIN.name, self.version)
    }

    /// Whether it asks which folders there are. Most toolchains import that whether the source does anything with it or not.
    #[must_use]
    pub fn asks_for_folders(&self) -> bool {
        let asks = |name: &Name<'_>| name.package == "wasi:filesystem" && name.interface == "preopens";
        self.imports.iter().filter_map(|text| Name::parse(text)).any(|name| asks(&name))
    }

    /// The imports that neither every guest has nor these capabilities give, all of them.
    #[must_use]
    pub fn foreign(&self, capabilities: Capabilities) -> Vec<ForeignImport> {
        let judge = |text: &String| {
            let name = Name::parse(text);
            let needs = match &name {
                Some(name) if is_everyones(name) => return None,
                Some(name) => Capability::behind(name.package, name.version, name.interface),
                None => None,
            };
            match needs {
                Some(capability) if capabilities.holds(capability) => None,
                needs => Some(ForeignImport { name: excerpt(text), needs }),
            }
        };
        self.imports.iter().filter_map(judge).collect()
    }
}

/// Whether every guest may import this: the host's own interface and the inert WASI.
fn is_everyones(name: &Name<'_>) -> bool {
    // Which interfaces of it there are was judged when the names were read.
    name.package == PLUGIN.name || wasi::is_inert(name.package, name.version)
}

/// What a file is that is no WebAssembly, by what files of a kind begin with.
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

/// The names of what the outermost component imports and exports.
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
            // A module or component inside of this one: its bytes are skipped, and the parser goes on behind them.
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                let length = unchecked_range.end.saturating_sub(unchecked_range.start);
                rest = rest.get(length..).ok_or_else(|| LoadError::Malformed("it ends too early".into()))?;
            }
            Payload::End(_) => return Ok((imports, exports)),
            _ => {}
        }
    }
}
