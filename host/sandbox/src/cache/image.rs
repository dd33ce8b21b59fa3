//! Compiled code between its file and the engine, in memory that nobody can change, so that the authenticated bytes are the
//! ones that run.
//!
//! Python needs 40 MB of code, and its first call after a start waits for this. So the file is copied once, into memory
//! that the engine maps directly, and several threads copy and hash its chunks.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::thread;

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::code;

/// The size of one chunk in bytes.
const CHUNK: usize = 1 << 20;

/// Threads that copy and hash.
const THREADS: usize = 4;

/// The SHA-256 of a chunk.
pub(super) type ChunkDigest = [u8; 32];

pub(super) fn digests(code: &[u8]) -> Vec<ChunkDigest> {
    code.chunks(CHUNK).map(|chunk| Sha256::digest(chunk).into()).collect()
}

/// Compiled code that cannot change.
pub(super) struct Image {
    memory: Memory,
    length: usize,
}

impl Image {
    /// The first `length` bytes of a file.
    pub(super) fn copy(file: &File, length: usize) -> io::Result<Self> {
        let memory = Memory::filled(length, |at, chunk| file.read_exact_at(chunk, at))?;
        Ok(Self { memory, length })
    }

    pub(super) fn digests(&self) -> io::Result<Vec<ChunkDigest>> {
        in_chunks(self.length, |at, chunk| {
            self.memory.read(at, chunk)?;
            Ok(Sha256::digest(chunk).into())
        })
    }

    /// A copy of the code.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut code = vec![0; self.length];
        self.memory.read(0, &mut code)?;
        Ok(code)
    }

    /// Loads the code after it was authenticated.
    pub(super) fn load(&self, engine: &Engine) -> Result<Component, String> {
        self.memory.load(engine)
    }
}

/// A file without a name, sealed against every change.
#[cfg(target_os = "linux")]
struct Memory(File);

#[cfg(target_os = "linux")]
impl Memory {
    fn filled(length: usize, fill: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync) -> io::Result<Self> {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = File::from(memfd_create("toolgate-code", flags)?);
        in_chunks(length, |at, chunk| {
            fill(at, chunk)?;
            memory.write_all_at(chunk, at)
        })?;
        fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Self(memory))
    }

    fn read(&self, at: u64, chunk: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(chunk, at)
    }

    fn load(&self, engine: &Engine) -> Result<Component, String> {
        code::map(engine, &self.0)
    }
}

/// Memory of this process.
#[cfg(not(target_os = "linux"))]
struct Memory(Vec<u8>);

#[cfg(not(target_os = "linux"))]
impl Memory {
    fn filled(length: usize, fill: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync) -> io::Result<Self> {
        let mut bytes = vec![0; length];
        fill(0, &mut bytes)?;
        Ok(Self(bytes))
    }

    fn read(&self, at: u64, chunk: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(at).ok().and_then(|at| self.0.get(at..)?.get(..chunk.len()));
        chunk.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn load(&self, engine: &Engine) -> Result<Component, String> {
        code::load(engine, &self.0)
    }
}

/// Calls a function with each chunk: its offset and a buffer of its size. Returns the results in the order of the chunks.
fn in_chunks<T: Send>(length: usize, work: impl Fn(u64, &mut [u8]) -> io::Result<T> + Sync) -> io::Result<Vec<T>> {
    let chunks = length.div_ceil(CHUNK);
    let some = |chunks: Range<usize>| {
        let mut buffer = vec![0; CHUNK.min(length)];
        let each = chunks.map(|index| {
            let at = index * CHUNK;
            work(at as u64, &mut buffer[..CHUNK.min(length - at)])
        });
        each.collect::<io::Result<Vec<T>>>()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let share = chunks.div_ceil(threads);
    // Threads only pay off for more than a few chunks.
    if share < 2 {
        return some(0..chunks);
    }
    thread::scope(|scope| {
        let some = &some;
        let begins = (0..chunks).step_by(share);
        // If the system refuses a thread, this is an error and the code is compiled again; `Scope::spawn` would panic.
        let spawn = |at| thread::Builder::new().spawn_scoped(scope, move || some(at..chunks.min(at + share)));
        let parts = begins.map(spawn).collect::<io::Result<Vec<_>>>()?;
        let mut all = Vec::with_capacity(chunks);
        for part in parts {
            all.extend(part.join().map_err(|_| io::Error::other("a thread that reads compiled code panicked"))??);
        }
        Ok(all)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Bytes in which no two chunks are alike.
    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / CHUNK * 7 + at % 251) as u8).collect()
    }

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("room");
        file
    }

    #[test]
    fn a_copy_has_the_digests_of_its_chunks_in_order() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 9 * CHUNK + 5] {
            let content = bytes(length);
            let image = Image::copy(&file(&content), length).expect("it is copied");
            let found = image.digests().expect("it can be read");
            assert_eq!(found.len(), length.div_ceil(CHUNK));
            assert_eq!(found, digests(&content), "{length}");
        }
    }

    #[test]
    fn truncated_image_is_refused() {
        assert!(Image::copy(&file(&bytes(CHUNK)), CHUNK + 1).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn open_image_cannot_be_changed() {
        let image = Image::copy(&file(b"code"), 4).expect("it is copied");
        let memory = &image.memory.0;
        assert!(memory.write_at(b"x", 0).is_err(), "written");
        assert!(memory.write_at(b"x", 4).is_err(), "made longer");
        assert!(memory.set_len(3).is_err(), "cut");
    }
}
