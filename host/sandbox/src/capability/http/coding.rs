//! How an answer's body is packed. The host unpacks gzip itself, in steps whose size is bounded whatever was packed, so that
//! what a guest is given has been counted and, where it has secrets, searched.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

/// Packed bytes that are unpacked at once. Deflate makes at most 1,032 bytes of one, and the decoder keeps up to 32 KiB, so
/// a step takes at most 290 KiB of the host's memory.
const STEP: usize = 256;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all.
    Plain,
    /// In a way that the host undoes.
    Gzip,
    /// In a way that the host does not know.
    Foreign,
}

impl Coding {
    /// What the head of an answer says.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(CONTENT_ENCODING).iter();
        match (named.next().map(|value| value.as_bytes().to_ascii_lowercase()).as_deref(), named.next()) {
            (None | Some(b"" | b"identity"), None) => Self::Plain,
            (Some(b"gzip" | b"x-gzip"), None) => Self::Gzip,
            _ => Self::Foreign,
        }
    }

    /// Takes out of a head what is no longer true of the body that the guest is given.
    pub(super) fn undo(self, headers: &mut HeaderMap) {
        if self == Self::Gzip {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
    }
}

/// Unpacks a body piece by piece.
pub(super) struct Unpacker {
    /// `None` for a body that is handed on as it is.
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
    packed: usize,
    unpacked: usize,
}

impl Unpacker {
    pub(super) fn new(coding: Coding) -> Self {
        let gzip = (coding == Coding::Gzip).then(|| MultiGzDecoder::new(Vec::new()));
        Self { gzip, packed: 0, unpacked: 0 }
    }

    /// Takes some of `packed` and gives what was in it. An answer without a body is none that was cut off.
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

    /// What is left after the last piece.
    pub(super) fn finish(&mut self) -> io::Result<bytes::Bytes> {
        if let Some(gzip) = self.gzip.as_mut().filter(|_| self.packed > 0) {
            gzip.try_finish()?;
        }
        Ok(self.taken())
    }

    /// How much more was unpacked than was packed, since the last time that somebody asked. The packed bytes themselves
    /// were counted when they came in.
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

    /// Everything that comes out, the largest step, and how much it grew.
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
    fn what_does_not_shrink_is_counted_as_it_came() {
        let noise: Vec<u8> = (0..40_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let text = packed(&noise);
        let (all, _, grown) = unpacked(&text).expect("well formed");
        assert_eq!(all, noise);
        assert!(text.len() + grown >= all.len());
    }

    #[test]
    fn members_may_follow_each_other_and_nothing_else_may() {
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
    fn only_what_is_surely_gzip_is_unpacked() {
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
