//! Joins the data segments of a core module.
//!
//! Go's linker starts a new segment after eight zeros in a row. A plugin that counts words has 45,000 segments. They take time to
//! load, and a host accepts hardly more. Joining them across gaps of up to 32 bytes leaves some dozens.

use wasm_encoder::{ConstExpr, DataSection, Module, RawSection};
use wasmparser::{Data, DataKind, DataSectionReader, Encoding, Operator, Parser, Payload};

/// Smaller gaps are filled with zeros, which is what memory contains there in any case.
const GAP: u64 = 32;

/// The same module with fewer data segments. `None` if it has no data, or is not a module, or does not look like Go's: passive
/// segments, computed offsets, overlaps.
pub(crate) fn join(module: &[u8]) -> Option<Vec<u8>> {
    let mut out = Module::new();
    let mut joined = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.ok()? {
            // With this section, instructions may refer to segments by number.
            Payload::DataCountSection { .. } | Payload::Version { encoding: Encoding::Component, .. } => return None,
            Payload::DataSection(data) => {
                out.section(&section(&merged(segments(data)?)?));
                joined = true;
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    out.section(&RawSection { id, data: module.get(range)? });
                }
            }
        }
    }
    joined.then(|| out.finish())
}

/// The address of a segment, and its bytes.
type Segment<'a> = (u32, &'a [u8]);

fn segments(data: DataSectionReader<'_>) -> Option<Vec<Segment<'_>>> {
    data.into_iter().map(|data| segment(data.ok()?)).collect()
}

/// A segment with a constant address.
fn segment(data: Data<'_>) -> Option<Segment<'_>> {
    let DataKind::Active { memory_index: 0, offset_expr } = data.kind else { return None };
    let mut operators = offset_expr.get_operators_reader();
    let Operator::I32Const { value } = operators.read().ok()? else { return None };
    let ends = matches!(operators.read().ok()?, Operator::End) && operators.eof();
    ends.then_some((value.cast_unsigned(), data.data))
}

fn merged(mut segments: Vec<Segment<'_>>) -> Option<Vec<(u32, Vec<u8>)>> {
    segments.sort_by_key(|(offset, _)| *offset);
    let mut merged: Vec<(u32, Vec<u8>)> = Vec::new();
    for (offset, bytes) in segments {
        let gap =
            merged.last().map(|(start, last)| u64::from(offset).checked_sub(u64::from(*start) + last.len() as u64));
        match (merged.last_mut(), gap) {
            (Some(_), Some(None)) => return None,
            (Some((_, last)), Some(Some(gap @ 0..=GAP))) => {
                last.extend(std::iter::repeat_n(0, usize::try_from(gap).ok()?));
                last.extend_from_slice(bytes);
            }
            _ => merged.push((offset, bytes.to_vec())),
        }
    }
    Some(merged)
}

fn section(segments: &[(u32, Vec<u8>)]) -> DataSection {
    let mut section = DataSection::new();
    for (offset, bytes) in segments {
        section.active(0, &ConstExpr::i32_const(offset.cast_signed()), bytes.iter().copied());
    }
    section
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{CustomSection, DataCountSection};

    use super::*;

    /// A module with only these data segments, between two other sections.
    fn module(segments: &[(u32, &[u8])]) -> Module {
        let owned: Vec<_> = segments.iter().map(|(offset, bytes)| (*offset, bytes.to_vec())).collect();
        let mut module = Module::new();
        module.section(&CustomSection { name: "x".into(), data: b"-".as_slice().into() });
        module.section(&section(&owned));
        module.section(&CustomSection { name: "y".into(), data: b"".as_slice().into() });
        module
    }

    #[test]
    fn segments_with_small_gaps_become_one() {
        let far = 0xffff_ff00;
        let apart = module(&[(1000, b"c"), (8, b"a"), (41, b"b"), (far, b"d"), (75, b"e")]).finish();
        let joined = &[&b"a"[..], &[0; 32], b"b"].concat();
        let together = module(&[(8, joined), (75, b"e"), (1000, b"c"), (far, b"d")]).finish();
        assert_eq!(join(&apart).unwrap(), together);
        assert_eq!(join(&together).unwrap(), together);
    }

    #[test]
    fn every_address_survives() {
        for address in [0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 27, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let plain = module(&[(address, b"a")]).finish();
            assert_eq!(join(&plain).unwrap(), plain);
        }
    }

    #[test]
    fn other_modules_are_left_alone() {
        let mut counted = module(&[(0, b"a")]);
        counted.section(&DataCountSection { count: 1 });
        let mut passive = Module::new();
        passive.section(DataSection::new().passive(*b"a"));
        let mut cut = module(&[(0, b"abc")]).finish();
        cut.truncate(cut.len() - 5);
        let overlapping = module(&[(0, b"abc"), (2, b"d")]);
        let modules = [counted, passive, overlapping, Module::new()].map(Module::finish);
        let component = wasm_encoder::Component::new().finish();
        for other in modules.into_iter().chain([cut, component, b"\0asm".to_vec(), Vec::new()]) {
            assert_eq!(join(&other), None, "{other:?}");
        }
    }
}
