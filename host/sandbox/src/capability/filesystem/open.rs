//! What guests have open. A descriptor is scarce: the host needs them for its store and its connections as well, and a guest
//! that was let would take them all. So each that a guest opens takes a place of the call, of the plugin and of the whole
//! host, which is kept until the last stream of it is gone, and it is charged to what the host holds for the call.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult};

use super::Written;
use crate::blocking::{Blocking, Place};
use crate::ending::Stop;
use crate::guest::Guest;
use crate::spending::Charge;

/// Files and folders that a call may have open at once, besides the folders that it was granted.
pub(super) const MOST_OPEN: usize = 32;

/// What the host holds for something that is open.
const OPENED: usize = 4 << 10;

/// What it holds for a stream that reads ahead.
pub(super) const READ_AHEAD: usize = 64 << 10;

/// Files that all guests together may have open: well below what the operating system lets this host open.
pub(crate) fn most_open() -> usize {
    let most = getrlimit(Resource::Nofile).current.map_or(u64::MAX, |most| most / 4);
    usize::try_from(most).unwrap_or(usize::MAX).min(512)
}

/// Lets this host open as many files as whoever started it allows, if it does not already. What cannot be raised stays as
/// it is. Call it before a sandbox is made, which takes its measure from it.
pub fn raise_open_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// The places of something before it is opened.
pub(super) struct Room {
    place: Place,
    blocking: Blocking,
    of_call: OwnedSemaphorePermit,
    charge: Charge,
}

/// Something that a guest opened. It is the last to have it: closing may wait for a disk as well, and whoever else has it drops
/// it before this.
pub(super) struct Opened {
    file: Option<(Arc<File>, Place)>,
    blocking: Blocking,
    _of_call: OwnedSemaphorePermit,
    _charge: Charge,
    /// How large the file is, or a size that has been paid for.
    size: AtomicU64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // The place of what is open stays taken until it is closed.
        let file = self.file.take();
        self.blocking.aside(move || drop(file));
    }
}

impl Opened {
    pub(super) fn new(room: Room, opened: &Descriptor, size: u64) -> Self {
        let Room { place, blocking, of_call, charge } = room;
        let file = match opened {
            Descriptor::File(file) => Arc::clone(&file.file),
            Descriptor::Dir(folder) => Arc::clone(&folder.dir),
        };
        Self { file: Some((file, place)), blocking, _of_call: of_call, _charge: charge, size: size.into() }
    }

    /// How large it is.
    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// It has another size now.
    pub(super) fn resized(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
    }

    /// It is written to up to here.
    pub(super) fn reaches(&self, end: u64) {
        self.size.fetch_max(end, Ordering::Relaxed);
    }

    /// Pays for what lies between the end of the file and where it is written to, whatever a disk makes of that.
    pub(super) fn pay_gap(&self, offset: u64, written: &Written) -> Result<(), Stop> {
        let gap = offset.saturating_sub(self.size());
        written.take(usize::try_from(gap).unwrap_or(usize::MAX))?;
        self.reaches(offset);
        Ok(())
    }
}

impl Guest {
    /// Takes the places of something that is to be opened.
    pub(super) fn room(&self) -> FsResult<Room> {
        let Ok(of_call) = Arc::clone(&self.files.most_open).try_acquire_owned() else {
            let stop = Stop::Limit(format!("has more than {MOST_OPEN} files and folders open at once"));
            return Err(FsError::trap(stop));
        };
        let charge = self.held.charge(OPENED).map_err(FsError::trap)?;
        // The other calls that have them open will close them: worth another try.
        let place = self.blocking.open().ok_or(ErrorCode::Busy)?;
        Ok(Room { place, blocking: self.blocking.clone(), of_call, charge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_may_be_open_as_whoever_started_the_host_allows() {
        let most = getrlimit(Resource::Nofile).maximum;
        // One less is still enough for what the other tests do meanwhile.
        let less = most.map_or(1 << 16, |most| most - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(less), maximum: most }).expect("it may be lowered");
        raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, most);
    }
}
