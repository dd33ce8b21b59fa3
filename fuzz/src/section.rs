//! The section with a component's declaration. Another reader must find the same section. Its
//! content is refused, or read and written without change.

use registry::fuzzing::declaration;
use sandbox::section::{SECTION, find, with};
use wasmparser::{Parser, Payload};

/// The smallest component.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

/// Reads the input as a component and as the content of a section.
pub fn section(bytes: &[u8]) {
    match find(bytes) {
        Ok(found) => {
            let others = contents(bytes);
            match found {
                Ok(content) => {
                    assert!(others.is_none_or(|others| others.as_slice() == content.as_slice()), "two readers differ");
                    declared(content.unwrap_or_default());
                }
                Err(error) => {
                    assert!(others.is_none_or(|others| others.len() != 1));
                    crate::assert_harmless(&error.to_string());
                }
            }
            written(bytes, b"{}");
        }
        Err(error) => crate::assert_harmless(&error.to_string()),
    }
    declared(bytes);
    written(EMPTY, bytes);
}

/// A section that is put in is found unchanged, and putting it in again changes nothing.
fn written(component: &[u8], content: &[u8]) {
    let once = with(component, content).unwrap_or_else(|error| panic!("it was a component: {error}"));
    match find(&once) {
        Ok(Ok(found)) => assert_eq!(found, Some(content)),
        Ok(Err(error)) => panic!("there is one section: {error}"),
        Err(error) => panic!("it is not a component any more: {error}"),
    }
    assert_eq!(with(&once, content).ok(), Some(once), "the first section was replaced");
}

fn declared(content: &[u8]) {
    match declaration(content) {
        Ok(own) => assert_eq!(declaration(&own).ok(), Some(own), "a written value is read back unchanged"),
        Err(findings) => {
            assert!(!findings.is_empty(), "a refusal has a reason");
            findings.iter().for_each(|finding| crate::assert_harmless(&finding.to_string()));
        }
    }
}

/// Every section of the outermost component, found by counting the depth. `None` if an inner part is broken.
fn contents(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth == 0 => break,
            Payload::End(_) => depth -= 1,
            Payload::CustomSection(custom) if depth == 0 && custom.name() == SECTION => found.push(custom.data()),
            _ => {}
        }
    }
    Some(found)
}
