//! `wasi:filesystem` (0.2): folders of the host that the operator opens to a plugin.
//!
//! What a path may lead to is wasmtime-wasi's to say: it resolves every path beneath its folder one step at a time, so
//! neither `..` nor a symbolic link leads out of it, and a folder that is granted for reading is not written to. Here is what
//! it does not do: each function has a deadline and a place for what may wait for a disk, what is written and listed is counted and bounded, and what is neither a
//! file nor a folder is not opened, since opening a pipe or a device may wait for ever or do something.
//!
//! The interface itself is everybody's, because runtimes of languages import it; without a grant it has no folder in it, and
//! nothing can be reached without one. What a plugin does to files cannot be taken back and told apart from what somebody
//! else did, so such a plugin's calls cannot be replayed ([`Grants::is_replayable`](super::Grants::is_replayable)).

mod host;
mod open;
mod streams;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustix::fs::{Mode, OFlags};
use tokio::sync::Semaphore;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

pub(crate) use self::open::most_open;
pub use self::open::raise_open_files;
use crate::ending::Stop;
use crate::guest::Guest;
use crate::spending::Charge;

/// A folder that a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The path on the host. Messages show it; no call opens it.
    pub path: PathBuf,
    /// The path under which the guest sees the folder, such as `/data`.
    pub at: String,
    /// Whether the guest may change the folder.
    pub write: bool,
    /// The folder itself. The default is not open, which is enough where no call runs.
    pub handle: FolderHandle,
}

/// An open folder, which every call shares. A path can lead elsewhere later, for example because a plugin renames a folder
/// and puts a link in its place. A handle cannot.
#[derive(Clone, Default)]
pub struct FolderHandle(Option<Dir>);

impl FolderHandle {
    /// Opens a folder. This may block.
    ///
    /// # Errors
    /// If the path does not lead to a folder, or the host may not read the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        // Host functions use the folder on threads that may block.
        Ok(Self(Some(Dir::new(folder, FsPerms::ReadOnly, OpenMode::READ, true))))
    }

    /// The file system's number and the folder's number in it. `None` if the folder is not open.
    ///
    /// # Errors
    /// If the file system does not answer.
    pub fn id(&self) -> io::Result<Option<(u64, u64)>> {
        self.0.as_ref().map(|folder| folder.dir.metadata().map(|found| (found.dev(), found.ino()))).transpose()
    }
}

/// Two handles are equal if they are copies of one.
impl PartialEq for FolderHandle {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.dir, &other.dir),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for FolderHandle {}

impl fmt::Debug for FolderHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "FolderHandle(open)" } else { "FolderHandle(not open)" })
    }
}

impl Folder {
    /// The folder as the guest gets it. `None` if it is not open.
    fn granted(&self) -> Option<(Dir, String)> {
        let mut folder = self.handle.0.clone()?;
        if self.write {
            folder.perms = FsPerms::ReadWrite;
            folder.open_mode = OpenMode::READ | OpenMode::WRITE;
        }
        Some((folder, self.at.clone()))
    }
}

/// Links the interfaces.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)?;
    preopens::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)
}

/// The files of one call.
pub(crate) struct Files {
    /// Its folders, each with the path under which the guest sees it.
    folders: Vec<(Dir, String)>,
    written: Written,
    /// What the guest opened and has a handle of, by that handle.
    open: std::collections::HashMap<u32, Arc<open::Opened>>,
    /// The places of what a call has open.
    most_open: Arc<Semaphore>,
    /// What is held for listings that the guest has open, by their handles.
    listings: std::collections::HashMap<u32, Charge>,
}

impl Files {
    /// No folder yet, and so many bytes that may be written.
    pub(crate) fn new(most_written: usize) -> Self {
        let written = Written { left: Arc::new(most_written.into()), most: most_written };
        Self {
            folders: Vec::new(),
            written,
            open: std::collections::HashMap::new(),
            most_open: Arc::new(Semaphore::new(open::MOST_OPEN)),
            listings: std::collections::HashMap::new(),
        }
    }
}

impl Guest {
    /// Gives the guest the folders that are granted.
    pub(crate) fn give_folders(&mut self) -> Result<(), Stop> {
        let granted = self.grants.iter().flat_map(|grants| &grants.folders);
        let folders = granted.map(|folder| {
            let not_open = || Stop::Fault(format!("the granted folder {} is not open", folder.path.display()));
            folder.granted().ok_or_else(not_open)
        });
        self.files.folders = folders.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// What a call may still write to files.
#[derive(Clone)]
struct Written {
    left: Arc<std::sync::atomic::AtomicUsize>,
    most: usize,
}

/// What a new name costs: an empty file takes room on a disk as well.
const NAME: usize = 4 << 10;

impl Written {
    /// Takes so many bytes of what may be written.
    fn take(&self, bytes: usize) -> Result<(), Stop> {
        use std::sync::atomic::Ordering::Relaxed;
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| {
            let most = crate::ending::size(self.most);
            Stop::Limit(format!(
                "wrote more than {most} to files, where each new name counts as {NAME} bytes (limit `files_written`)"
            ))
        })
    }
}
