//! Changes to the bytes of a component: more sections, more modules, other texts.

/// The component with a text in its bytes replaced by one of the same length.
///
/// # Panics
/// When the lengths differ.
#[must_use]
pub fn replaced(mut component: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..component.len() - from.len() {
        if component[at..].starts_with(from.as_bytes()) {
            component[at..at + from.len()].copy_from_slice(to.as_bytes());
        }
    }
    component
}

/// Adds core modules to a component, each instantiated once. So it gets parts that one module cannot have, such as
/// several memories.
///
/// # Panics
/// When the text of a module is invalid.
#[must_use]
pub fn with_modules(mut component: Vec<u8>, modules: &[&str]) -> Vec<u8> {
    let before = count_modules(&component);
    for text in modules {
        section(&mut component, 1, &wat::parse_str(text).expect("the text of the test"));
    }
    for index in before..before + modules.len() {
        // One core instance: instantiate, the module's index, no arguments.
        let mut body = vec![1, 0];
        leb(&mut body, index);
        body.push(0);
        section(&mut component, 2, &body);
    }
    component
}

/// The component with a section at its end.
#[must_use]
pub fn with_section(mut component: Vec<u8>, id: u8, body: &[u8]) -> Vec<u8> {
    section(&mut component, id, body);
    component
}

/// Appends a section.
pub fn section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    out.push(id);
    leb(out, body.len());
    out.extend_from_slice(body);
}

/// Appends a number in unsigned LEB128.
pub fn leb(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn count_modules(component: &[u8]) -> usize {
    let (mut rest, mut count) = (component.get(8..).unwrap_or_default(), 0);
    while let [id, after @ ..] = rest {
        let (size, used) = unleb(after);
        count += usize::from(*id == 1);
        rest = after.get(used + size..).unwrap_or_default();
    }
    count
}

fn unleb(bytes: &[u8]) -> (usize, usize) {
    let used = bytes.iter().position(|byte| byte & 0x80 == 0).map_or(bytes.len(), |at| at + 1);
    let size = bytes[..used].iter().rev().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
    (size, used)
}
