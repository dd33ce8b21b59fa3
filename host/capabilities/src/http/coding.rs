//! The content coding of an answer. The host unpacks gzip itself, in steps of bounded size, so that it can count the bytes and
//! search them for secrets.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

/// Packed bytes of one step. Deflate makes at most 1,032 bytes of one, and the decoder keeps up to 32 KiB, so a step takes at
/// most 290 KiB.
const STEP: usize = 256;

/// The coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
    /// A coding that the host cannot undo.
    Foreign,
}

impl Coding {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(CONTENT_ENCODING).iter();
        match (named.next().map(|value| value.as_bytes().to_ascii_lowercase()).as_deref(), named.next()) {
            (None | Some(b"" | b"identity"), None) => Self::Plain,
            (Some(b"gzip" | b"x-gzip"), None) => Self::Gzip,
            _ => Self::Foreign,
        }
    }

    /// Removes the fields of a head that do not describe the unpacked body.
    pub(super) fn undo(self, headers: &mut HeaderMap) {
        if self == Self::Gzip {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
    }
}

/// Unpacks a body piece by piece.
pub(super) struct Unpacker {
    /// `None` for a body that is not packed.
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
    packed: usize,
    unpacked: usize,
}

impl Unpacker {
    pub(super) fn new(coding: Coding) -> Self {
        let gzip = (coding == Coding::Gzip).then(|| MultiGzDecoder::new(Vec::new()));
        Self { gzip, packed: 0, unpacked: 0 }
    }

    /// Takes one step of `packed` and returns its content. An empty body is complete.
    pub(super) fn step(&mut self, packed: &mut bytes::Bytes) -> io::Result<bytes::Bytes> {
        let Some(gzip) = &mut self.gzip else {
            return Ok(std::mem::take(packed));
        };
        let mut step = packed.split_to(packed.len().min(STEP));
        self.packed += step.len();
        while !step.is_empty() {
            let used = gzip.write(&step)?;
            if used == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let _ = step.split_to(used);
        }
        Ok(self.taken())
    }

    /// Returns the rest after the last piece.
    pub(super) fn finish(&mut self) -> io::Result<bytes::Bytes> {
        if let Some(gzip) = self.gzip.as_mut().filter(|_| self.packed > 0) {
            gzip.try_finish()?;
        }
        Ok(self.taken())
    }

    /// The bytes that unpacking has added since the last call. The packed bytes are counted when they arrive.
    pub(super) fn grown(&mut self) -> usize {
        let grown = self.unpacked.saturating_sub(self.packed);
        self.packed = self.packed.max(self.unpacked);
        grown
    }

    fn taken(&mut self) -> bytes::Bytes {
        let taken = self.gzip.as_mut().map(|gzip| std::mem::take(gzip.get_mut())).unwrap_or_default();
        self.unpacked += taken.len();
        taken.into()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).expect("to memory");
        encoder.finish().expect("to memory")
    }

    /// All content, the largest step, and the added bytes.
    fn unpacked(packed: &[u8]) -> io::Result<(Vec<u8>, usize, usize)> {
        let mut unpacker = Unpacker::new(Coding::Gzip);
        let (mut rest, mut all, mut largest, mut grown) = (Bytes::copy_from_slice(packed), Vec::new(), 0, 0);
        while !rest.is_empty() {
            let step = unpacker.step(&mut rest)?;
            largest = largest.max(step.len());
            grown += unpacker.grown();
            all.extend_from_slice(&step);
        }
        all.extend_from_slice(&unpacker.finish()?);
        grown += unpacker.grown();
        Ok((all, largest, grown))
    }

    #[test]
    fn a_bomb_is_unpacked_in_small_steps_and_counted() {
        let bomb = packed(&vec![0; 20 << 20]);
        assert!(bomb.len() < 32 << 10, "{}", bomb.len());
        let (all, largest, grown) = unpacked(&bomb).expect("well formed");
        assert_eq!(all.len(), 20 << 20);
        assert!(largest <= STEP * 1032 + (32 << 10), "{largest}");
        assert_eq!(grown + bomb.len(), all.len(), "every unpacked byte is counted once");
    }

    #[test]
    fn incompressible_content_is_counted_as_received() {
        let noise: Vec<u8> = (0..40_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let text = packed(&noise);
        let (all, _, grown) = unpacked(&text).expect("well formed");
        assert_eq!(all, noise);
        assert!(text.len() + grown >= all.len());
    }

    #[test]
    fn only_further_members_may_follow_a_member() {
        let two = [packed(b"one "), packed(b"two")].concat();
        assert_eq!(unpacked(&two).expect("two members").0, b"one two");
        assert_eq!(unpacked(b"").expect("no body").0, b"");
        let cut = &two[..two.len() - 3];
        let garbage = [packed(b"one"), b"garbage that is no member".to_vec()].concat();
        let mut wrong_sum = packed(b"one");
        *wrong_sum.iter_mut().rev().nth(5).expect("a sum") ^= 1;
        for broken in [cut, &garbage, &wrong_sum, b"no gzip at all, but long enough for its header"] {
            assert!(unpacked(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn only_plain_gzip_is_unpacked() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, value.parse().expect("a value"));
            }
            Coding::of(&headers)
        };
        for (values, expected) in [
            (&[][..], Coding::Plain),
            (&["identity"], Coding::Plain),
            (&["GZip"], Coding::Gzip),
            (&["x-gzip"], Coding::Gzip),
            (&["br"], Coding::Foreign),
            (&["gzip, gzip"], Coding::Foreign),
            (&["gzip", "gzip"], Coding::Foreign),
            (&["gzip", "identity"], Coding::Foreign),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
    }
}
