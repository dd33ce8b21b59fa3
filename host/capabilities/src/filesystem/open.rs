//! Open files and folders of guests. The host needs file descriptors for its store and its connections as well. So each
//! file that a guest opens takes a permit of the call, of the plugin and of the whole host until the last stream of the
//! file ends, and it is charged to the call's host memory.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult};

use super::{State, Written};
use crate::blocking::{Blocking, Permit};
use crate::stop::Stop;
use crate::usage::Charge;
use crate::view::View;

/// Files and folders that a call may have open at once, besides its granted folders.
pub(super) const MAX_OPEN: usize = 32;

/// Host memory for one open file.
const OPENED: usize = 4 << 10;

/// Host memory for a stream that reads ahead.
pub(super) const READ_AHEAD: usize = 64 << 10;

/// Raises this process's limit of open files to its hard limit, if it can. Call this before you make a sandbox, which
/// derives its own limit from it.
pub fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The permits and the charge that a file needs before it is opened.
pub(super) struct OpenPermit {
    permit: Permit,
    blocking: Blocking,
    of_call: OwnedSemaphorePermit,
    charge: Charge,
}

/// A file or folder that a guest opened. This is its last owner, because closing may wait for a disk as well: every
/// other owner drops the file first.
pub(super) struct Opened {
    file: Option<(Arc<File>, Permit)>,
    blocking: Blocking,
    _of_call: OwnedSemaphorePermit,
    _charge: Charge,
    /// The size of the file, or a larger one that the call has paid for.
    size: AtomicU64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // The permit stays taken until the file is closed.
        let file = self.file.take();
        self.blocking.detach(move || drop(file));
    }
}

impl Opened {
    pub(super) fn new(permit: OpenPermit, opened: &Descriptor, size: u64) -> Self {
        let OpenPermit { permit, blocking, of_call, charge } = permit;
        let file = match opened {
            Descriptor::File(file) => Arc::clone(&file.file),
            Descriptor::Dir(folder) => Arc::clone(&folder.dir),
        };
        Self { file: Some((file, permit)), blocking, _of_call: of_call, _charge: charge, size: size.into() }
    }

    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub(super) fn resized(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
    }

    /// The guest writes up to here.
    pub(super) fn reaches(&self, end: u64) {
        self.size.fetch_max(end, Ordering::Relaxed);
    }

    /// Pays for the gap between the end of the file and the offset, even if the disk keeps no bytes for it.
    pub(super) fn pay_gap(&self, offset: u64, written: &Written) -> Result<(), Stop> {
        let gap = offset.saturating_sub(self.size());
        written.take(usize::try_from(gap).unwrap_or(usize::MAX))?;
        self.reaches(offset);
        Ok(())
    }
}

impl View<'_, State> {
    /// Takes what a file needs before it is opened.
    pub(super) fn open_permit(&self) -> FsResult<OpenPermit> {
        let Ok(of_call) = Arc::clone(&self.state.max_open).try_acquire_owned() else {
            let stop = Stop::FixedLimit(format!("has more than {MAX_OPEN} files and folders open at once"));
            return Err(FsError::trap(stop));
        };
        let charge = self.usage.memory.charge(OPENED).map_err(FsError::trap)?;
        // Other calls of the plugin will close their files, so the guest may try again.
        let permit = self.usage.blocking.open().ok_or(ErrorCode::Busy)?;
        Ok(OpenPermit { permit, blocking: self.usage.blocking.clone(), of_call, charge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_to_the_hard_limit() {
        let max = getrlimit(Resource::Nofile).maximum;
        // One less is still enough for the tests that run at the same time.
        let less = max.map_or(1 << 16, |max| max - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(less), maximum: max }).expect("it may be lowered");
        raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, max);
    }
}
