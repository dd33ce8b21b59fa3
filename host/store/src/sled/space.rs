//! Looks for space after the disk was full, without much work for the disk.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::blobs::SEGMENT;
use super::folder::PROBE;

/// A segment and a snapshot.
const NEEDED: usize = 2 * SEGMENT;

/// The maximum number of looks between two attempts to write. The committing thread looks ten times a second.
const MAX_PAUSE: u32 = 10;

/// The pauses between attempts to write. Each is twice as long as the one before it.
#[derive(Debug)]
pub(super) struct Space {
    pause: u32,
    left: u32,
}

impl Default for Space {
    fn default() -> Self {
        Self { pause: 1, left: 0 }
    }
}

impl Space {
    /// Returns whether sled can write as much as a segment and a snapshot need.
    pub(super) fn is_back(&mut self, path: &Path) -> bool {
        self.look(free(path), || probe(path).is_ok())
    }

    /// `free` is an upper bound on what can be written, if it is known. A quota can allow less, so only an attempt to write
    /// shows that there is space.
    fn look(&mut self, free: Option<u64>, probe: impl FnOnce() -> bool) -> bool {
        if free.is_some_and(|free| free < NEEDED as u64) {
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        let is_back = probe();
        *self = match is_back {
            true => Self::default(),
            false => Self { pause: (self.pause * 2).min(MAX_PAUSE), left: self.pause - 1 },
        };
        is_back
    }
}

/// The free bytes of the disk, also those that are reserved for root.
fn free(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bfree.saturating_mul(found.f_frsize))
}

/// Writes a new file, at the offset where sled's file ends.
fn probe(path: &Path) -> io::Result<()> {
    let probe = path.join(PROBE);
    let written = fs::metadata(path.join("sled/db")).and_then(|sled| {
        let mut file = File::create(&probe)?;
        file.seek(SeekFrom::Start(sled.len()))?;
        file.write_all(&vec![0; NEEDED])?;
        file.sync_all()
    });
    fs::remove_file(probe).and(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The looks that write, of the first hundred.
    fn writing(free: Option<u64>) -> Vec<u32> {
        let (mut space, mut writing) = (Space::default(), Vec::new());
        for look in 0..100 {
            let is_back = space.look(free, || {
                writing.push(look);
                false
            });
            assert!(!is_back);
        }
        writing
    }

    #[test]
    fn a_full_disk_is_written_at_most_once_a_second() {
        assert!(writing(Some(0)).is_empty(), "the disk says that it is full");
        assert!(writing(Some(NEEDED as u64 - 1)).is_empty());
        for free in [None, Some(u64::MAX)] {
            assert_eq!(writing(free), [0, 1, 3, 7, 15, 25, 35, 45, 55, 65, 75, 85, 95], "{free:?}");
        }
    }

    #[test]
    fn space_is_found_at_once_and_the_next_time_too() {
        let mut space = Space::default();
        for _ in 0..50 {
            assert!(!space.look(Some(0), || panic!("there is no space")));
        }
        assert!(space.look(Some(u64::MAX), || true));
        assert!(!space.look(None, || false));
        assert!(space.look(None, || true), "the pauses begin again");
    }

    #[test]
    fn this_disk_has_space_and_keeps_no_probe() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sled")).unwrap();
        fs::write(folder.path().join("sled/db"), "").unwrap();
        assert!(Space::default().is_back(folder.path()));
        assert!(!folder.path().join(PROBE).exists());
        assert!(!Space::default().is_back(Path::new("/does/not/exist")));
    }
}
