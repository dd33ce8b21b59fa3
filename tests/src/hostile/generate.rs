//! Generates components that are too large for a file. The case gives the kind and its numbers. The same numbers give
//! the same bytes.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::guest::{self, Declared};
use crate::binary::{leb, section, with_modules, with_section};
use crate::wat::Encoding;

/// A kind of component.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Generate {
    /// Zero bytes.
    Zeroes {
        /// How many.
        bytes: usize,
    },
    /// A plugin with a custom section of this size.
    Padding {
        /// How many.
        bytes: usize,
    },
    /// A plugin with more functions of this number and length.
    Functions {
        /// How many.
        count: usize,
        /// Additions in each.
        length: usize,
    },
    /// A plugin with more modules, each instantiated once.
    Instances {
        /// How many.
        count: usize,
        /// The text of each.
        module: String,
    },
    /// A component with many imports.
    Imports {
        /// How many.
        count: usize,
    },
    /// A component with one import that has a long name.
    LongName {
        /// Bytes of the name.
        bytes: usize,
    },
    /// A plugin with nested components.
    Nested {
        /// How deep.
        depth: usize,
    },
    /// A plugin with a component that declares types, each a list of the one before.
    Types {
        /// How many.
        count: usize,
    },
    /// A plugin with a type that doubles with every step: a tuple of the one before, twice.
    Doubling {
        /// How often.
        steps: usize,
    },
    /// A plugin with many data segments.
    Data {
        /// How many.
        count: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// A plugin cut off in the middle.
    Truncated,
    /// A plugin with every hundredth byte inverted.
    Rotten,
}

impl Generate {
    /// The bytes, for a plugin whose tool has this name.
    pub(super) fn component(&self, tool: &str) -> Result<Vec<u8>> {
        let tool = Declared { tool, options: "{}" };
        let plain = |text: &str| guest::component(text, "", Encoding::default(), &tool);
        Ok(match self {
            Self::Zeroes { bytes } => vec![0; *bytes],
            Self::Padding { bytes } => {
                with_section(plain("")?, 0, &[b"\x07padding".as_slice(), &vec![b'x'; *bytes]].concat())
            }
            Self::Functions { count, length } => {
                let body = "(i64.add (local.get 0)".repeat(*length) + "(i64.const 1)" + &")".repeat(*length);
                plain(&format!("(func (param i64) (result i64) {body})\n").repeat(*count))?
            }
            Self::Instances { count, module } => with_modules(plain("")?, &vec![module.as_str(); *count]),
            Self::Imports { count } => imports(*count),
            Self::LongName { bytes } => {
                parsed(&format!("(component (import \"a:b/{}@1.0.0\" (instance)))", "c".repeat(*bytes)))?
            }
            Self::Nested { depth } => within(plain("")?, &nested(*depth)),
            // 0x70 is a list, 0x6f a tuple, and 0x7d is `u8`.
            Self::Types { count } => {
                within(plain("")?, &types(*count, &[0x70, 0x7d], |before| [&[0x70], before].concat()))
            }
            Self::Doubling { steps } => {
                let doubled = |before: &[u8]| [&[0x6f, 2], before, before].concat();
                within(plain("")?, &types(*steps, &[0x6f, 2, 0x7d, 0x7d], doubled))
            }
            Self::Data { count, bytes } => {
                let segment = format!("(data \"{}\")\n", "x".repeat(*bytes));
                plain(&segment.repeat(*count))?
            }
            Self::Truncated => {
                let mut component = plain("")?;
                component.truncate(component.len() / 2);
                component
            }
            Self::Rotten => {
                let mut component = plain("")?;
                component.iter_mut().skip(100).step_by(100).for_each(|byte| *byte ^= 0x55);
                component
            }
        })
    }
}

fn parsed(text: &str) -> Result<Vec<u8>> {
    wat::parse_str(text).context("the text of the component")
}

/// A plugin with an unused component inside.
fn within(plugin: Vec<u8>, inner: &[u8]) -> Vec<u8> {
    with_section(plugin, 4, inner)
}

/// The header of every component.
const EMPTY: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// Imports of empty instances. Written byte by byte, because the text parser would take minutes.
fn imports(count: usize) -> Vec<u8> {
    let mut component = EMPTY.to_vec();
    // One type, of an instance (0x42) without declarations.
    section(&mut component, 7, &[1, 0x42, 0]);
    let mut body = Vec::new();
    leb(&mut body, count);
    for n in 0..count {
        let name = format!("a:b/c{n}@1.0.0");
        body.push(0);
        leb(&mut body, name.len());
        body.extend_from_slice(name.as_bytes());
        // An instance (5) of the first type.
        body.extend_from_slice(&[5, 0]);
    }
    section(&mut component, 10, &body);
    component
}

/// A component with many types. Each is made from the index of the previous one.
fn types(count: usize, first: &[u8], next: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut body = Vec::new();
    leb(&mut body, count);
    body.extend_from_slice(first);
    for n in 1..count {
        let mut before = Vec::new();
        signed(&mut before, n - 1);
        body.extend_from_slice(&next(&before));
    }
    let mut component = EMPTY.to_vec();
    section(&mut component, 7, &body);
    component
}

/// The index of a type in signed LEB128.
fn signed(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x40 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Components nested to this depth.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(EMPTY.to_vec(), |inner, _| {
        let mut outer = EMPTY.to_vec();
        section(&mut outer, 4, &inner);
        outer
    })
}
