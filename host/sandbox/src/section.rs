//! The custom section with a component's declaration, which is read before any of the component is compiled or run.
//!
//! Only a section of the component itself counts. Sections inside its modules belong to compilers and to authors of their
//! sources.

use std::borrow::Cow;
use std::ops::Range;

use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::load::LoadError;
use capabilities::excerpt;

pub const SECTION: &str = "toolgate:plugin";

/// The component has several such sections, as many as this says. Two readers could read different ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the component has {0} sections `{SECTION}`")]
pub struct SeveralSections(pub usize);

/// The content of the section. `None` in a component without one.
///
/// # Errors
/// [`LoadError`] if the bytes are not a component; the inner error if there are several sections.
pub fn find(bytes: &[u8]) -> Result<Result<Option<&[u8]>, SeveralSections>, LoadError> {
    let mut contents = sections(bytes)?.into_iter().map(|section| section.content);
    let content = contents.next();
    if content.is_some() && contents.len() > 0 {
        return Ok(Err(SeveralSections(contents.len() + 1)));
    }
    Ok(Ok(content))
}

/// The component with this content as its last section. It replaces earlier sections of that name.
///
/// # Errors
/// If the bytes are not a component.
pub fn with(bytes: &[u8], content: &[u8]) -> Result<Vec<u8>, LoadError> {
    let mut packed = without(bytes)?.into_owned();
    let mut body = Vec::with_capacity(content.len() + 32);
    number(SECTION.len(), &mut body);
    body.extend_from_slice(SECTION.as_bytes());
    body.extend_from_slice(content);
    packed.push(0);
    number(body.len(), &mut packed);
    packed.extend_from_slice(&body);
    Ok(packed)
}

/// The component without this section. The declaration does not change the code.
///
/// # Errors
/// If the bytes are not a component.
pub(crate) fn without(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    let found = sections(bytes)?;
    if found.is_empty() {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut rest = Vec::with_capacity(bytes.len());
    let mut kept = 0;
    for section in found {
        rest.extend_from_slice(&bytes[kept..section.whole.start]);
        kept = section.whole.end;
    }
    rest.extend_from_slice(&bytes[kept..]);
    Ok(Cow::Owned(rest))
}

/// A section with our name.
struct Section<'a> {
    /// Its position, with its kind and its size.
    whole: Range<usize>,
    content: &'a [u8],
}

/// Every section of the outermost component with our name.
fn sections(bytes: &[u8]) -> Result<Vec<Section<'_>>, LoadError> {
    let early = || LoadError::Malformed("it ends too early".into());
    let mut found = Vec::new();
    let mut parser = Parser::new(0);
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).ok_or_else(early)?;
        let (consumed, payload) = match parser.parse(rest, true) {
            Ok(Chunk::Parsed { consumed, payload }) => (consumed, payload),
            Ok(Chunk::NeedMoreData(_)) => return Err(early()),
            Err(error) => return Err(LoadError::Malformed(excerpt(error.message()))),
        };
        let whole = at..at + consumed;
        at = whole.end;
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => return Err(LoadError::Module),
            Payload::CustomSection(custom) if custom.name() == SECTION => {
                found.push(Section { whole, content: custom.data() });
            }
            // Skips the bytes of a module or component inside of this one.
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                at = at.saturating_add(unchecked_range.end.saturating_sub(unchecked_range.start));
            }
            Payload::End(_) => return Ok(found),
            _ => {}
        }
    }
}

/// An unsigned number in LEB128, the number format of WebAssembly.
fn number(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn content(bytes: &[u8]) -> Option<&[u8]> {
        find(bytes).expect("a component").expect("a section")
    }

    #[test]
    fn section_is_read_back_and_replaced() {
        assert_eq!(content(EMPTY), None);
        for size in [0, 1, 100, 200, 70_000, 1 << 20] {
            let first = with(EMPTY, &vec![b'x'; size]).expect("a component");
            assert_eq!(content(&first).map(<[u8]>::len), Some(size));
            let second = with(&first, b"other").expect("a component");
            assert_eq!(content(&second), Some(b"other".as_slice()));
            assert_eq!(second, with(EMPTY, b"other").expect("a component"), "nothing of the first is left");
            assert_eq!(without(&second).expect("a component"), EMPTY);
        }
    }

    #[test]
    fn two_sections_are_an_error() {
        let one = with(EMPTY, b"1").expect("a component");
        let two = [&one[..], &one[EMPTY.len()..]].concat();
        assert_eq!(find(&two).expect("a component"), Err(SeveralSections(2)));
        assert_eq!(content(&with(&two, b"3").expect("a component")), Some(b"3".as_slice()));

        let module = [b"\0asm\x01\0\0\0".as_slice(), &one[EMPTY.len()..]].concat();
        let mut nested = EMPTY.to_vec();
        nested.push(1);
        number(module.len(), &mut nested);
        nested.extend_from_slice(&module);
        assert_eq!(content(&nested), None);
        assert!(matches!(find(&module), Err(LoadError::Module)));
        assert!(find(&one[..one.len() - 1]).is_err() && find(b"").is_err() && find(b"text").is_err());
    }
}
