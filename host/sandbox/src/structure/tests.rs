//! Each limit, with a component at the limit and one just beyond it.

use super::*;

fn leb(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![id];
    leb(&mut out, body.len());
    out.extend_from_slice(body);
    out
}

/// A section with this many of one item.
fn many(id: u8, count: usize, item: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    leb(&mut body, count);
    body.extend(item.repeat(count));
    section(id, &body)
}

/// A component of these sections.
fn component(sections: &[u8]) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0", sections].concat()
}

/// A component with one module of these sections.
fn module(sections: &[u8]) -> Vec<u8> {
    component(&section(1, &[b"\0asm\x01\0\0\0", sections].concat()))
}

/// A component of this many levels.
fn nested(levels: usize) -> Vec<u8> {
    (1..levels).fold(component(&[]), |inner, _| component(&section(4, &inner)))
}

/// A component with nested types: instances that export the type of an instance.
fn nested_types(levels: usize) -> Vec<u8> {
    let mut types = vec![1];
    types.extend([0x42, 1, 1].repeat(levels - 1));
    types.extend([0x42, 0]);
    component(&section(7, &types))
}

fn function(size: usize) -> Vec<u8> {
    let mut code = vec![1];
    leb(&mut code, size);
    code.push(0);
    code.extend(vec![1; size - 2]);
    code.push(0x0b);
    module(&[many(3, 1, &[0]), section(10, &code)].concat())
}

fn segment(id: u8, head: &[u8], size: usize) -> Vec<u8> {
    let mut body = head.to_vec();
    leb(&mut body, size);
    body.extend(vec![0; size]);
    module(&section(id, &body))
}

fn named(length: usize) -> Vec<u8> {
    let mut body = Vec::new();
    leb(&mut body, length);
    body.extend(vec![b'n'; length]);
    component(&section(0, &body))
}

/// Makes a component with this many of something.
type Make = fn(usize) -> Vec<u8>;

/// One function for each limit, in order.
const MAKE: [Make; BOUNDS.len()] = [
    nested,
    |n| component(&section(4, &component(&[])).repeat(n - 1)),
    |n| component(&section(1, b"\0asm\x01\0\0\0").repeat(n)),
    |n| component(&many(2, n, &[1, 0])),
    |n| module(&many(1, n, &[0x60, 0, 0])),
    nested_types,
    |n| module(&[many(3, n, &[0]), many(10, n, &[2, 0, 0x0b])].concat()),
    function,
    |n| module(&many(2, n, &[0, 0, 0, 0])),
    |n| module(&many(7, n, &[0, 0, 0])),
    |n| component(&many(6, n, &[0, 0, 0])),
    |n| module(&many(6, n, &[0x7f, 0, 0x41, 0, 0x0b])),
    |n| module(&many(4, n, &[0x70, 0, 0])),
    |n| module(&many(5, n, &[0, 0])),
    |n| module(&many(13, n, &[0, 0])),
    |n| module(&many(9, n, &[1, 0, 0])),
    |n| segment(9, &[1, 1, 0], n),
    |n| module(&many(11, n, &[1, 0])),
    |n| segment(11, &[1, 1], n),
    named,
    |n| component(&section(0, &[0]).repeat(n)),
];

#[test]
fn every_bound_holds_exactly() {
    for (bound, make) in BOUNDS.iter().zip(MAKE) {
        let at = check(&make(bound.max));
        assert!(at.is_ok(), "{bound:?}: {at:?}");
        match check(&make(bound.max + 1)) {
            Err(LoadError::Structure(broken)) => assert_eq!(broken, *bound),
            other => panic!("one more than {bound:?}: {other:?}"),
        }
    }
}

#[test]
fn a_million_nested_types_do_not_exhaust_the_stack() {
    let deep = nested_types(1_000_000);
    assert!(matches!(check(&deep), Err(LoadError::Structure(bound)) if bound.what.contains("levels of types")));
}

#[test]
fn types_count_with_their_parts_everywhere() {
    let text = r#"(component
      (type (record (field "a" u8) (field "b" u8)))
      (type (component (type (enum "a" "b" "c")) (import "f" (func (param "a" u8) (param "b" u8)))))
      (core type (module (type (func)) (import "m" "n" (func (type 0))))))"#;
    let mut counts = Counts::default();
    assert!(counts.walk(&wat::parse_str(text).expect("text")).is_ok());
    // The record and its fields; the component, the enum and its cases, the function and its parameters; the module
    // with its type and its import.
    assert_eq!(counts.0[Counted::Types as usize], 3 + (1 + 4 + 3) + 3);
    assert_eq!(counts.0[Counted::Imports as usize], 1);
}

#[test]
fn truncated_or_corrupt_component_is_malformed() {
    let whole = nested_types(10);
    // The first eight bytes alone are an empty component.
    for end in (0..whole.len()).filter(|end| *end != 8) {
        assert!(matches!(check(&whole[..end]), Err(LoadError::Malformed(_))), "cut at {end}");
    }
}
