//! Reading of components before compilation. Bytes are refused with a sentence that is safe to print, or their names
//! are read exactly.

use sandbox::Sandbox;
use wasmparser::{Parser, Payload};

/// Reads bytes as a plugin.
pub fn loader(bytes: &[u8]) {
    match Sandbox::inspect(bytes) {
        Ok(interface) => {
            if let Some((imports, exports)) = names(bytes) {
                assert_eq!(interface.imports, imports, "all imports were read");
                assert_eq!(interface.exports, exports);
            }
            let exports = &interface.exports;
            assert!(exports.iter().any(|name| name.starts_with("toolgate:plugin/catalog@")));
        }
        Err(error) => crate::assert_harmless(&error.to_string()),
    }
}

/// The names of the outermost component, found in another way: all payloads with their depth. `None` if an inner part
/// is broken. Only a compiler would notice that, and this way cannot continue after it.
fn names(bytes: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth == 0 => break,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                imports.extend(section.into_iter().flatten().map(|import| import.name.name.to_owned()));
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                exports.extend(section.into_iter().flatten().map(|export| export.name.name.to_owned()));
            }
            _ => {}
        }
    }
    Some((imports, exports))
}
