//! `wasi:filesystem` (0.2): folders of the host that the operator opens to a plugin.
//!
//! wasmtime-wasi resolves every path beneath its folder one step at a time, so neither `..` nor a symbolic link leads out of
//! it, and it refuses writes to a folder that is granted for reading. This module adds deadlines and permits for functions
//! that may wait for a disk. It limits the bytes that a guest writes and the entries that it lists. It opens only files and
//! folders, because opening a pipe or a device could block without end or have side effects.
//!
//! Every guest may import the interface, because the runtimes of languages do; without a grant it has no folder. The host
//! cannot tell a plugin's changes to files from other changes, so a call with folders cannot be replayed.

mod grant;
mod host;
mod open;
mod streams;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::{fmt, io};

use rustix::fs::{Mode, OFlags};
use tokio::sync::Semaphore;
use wasmtime::component::{Linker, ResourceTable};
use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode, WasiFilesystemCtx, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub use self::grant::{FolderTable, RequestedFolder};
pub use self::open::raise_open_files;
use self::open::{MAX_OPEN, Opened};
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::stop::{Stop, size};
use crate::usage::Charge;
use crate::view::{CallView, Has};

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

/// The files of one call.
pub struct State {
    /// The granted folders, each with the path under which the guest sees it.
    folders: Vec<(Dir, String)>,
    /// A durable call sees no folder, also not one that was granted while it waited.
    is_durable: bool,
    written: Written,
    /// Open files and folders, by the guest's handle.
    open: HashMap<u32, Arc<Opened>>,
    max_open: Arc<Semaphore>,
    /// The memory of open lists, by the guest's handle.
    listings: HashMap<u32, Charge>,
    library: WasiFilesystemCtx,
}

impl Interface for State {
    type Service = ();
    type Granted = Vec<Folder>;

    const IS_INERT: bool = true;

    fn is_behind(_: &str, _: &str, _: &str) -> bool {
        false
    }

    fn begin((): &(), call: &NewCall<'_>, _: Option<Granted<'_, GrantOf<Self::Granted>>>) -> Self {
        Self { is_durable: call.journal.is_some(), ..Self::new(call.limits.files_written) }
    }

    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        types::add_to_linker::<_, Has<Self>>(linker, T::view)?;
        preopens::add_to_linker::<_, Has<Self>>(linker, T::view)
    }

    fn start(&mut self, folders: &Self::Granted) -> Result<(), Stop> {
        if self.is_durable {
            return Ok(());
        }
        let given = folders.iter().map(|folder| {
            let not_open = || Stop::Fault(format!("the granted folder {} is not open", folder.path.display()));
            folder.granted().ok_or_else(not_open)
        });
        self.folders = given.collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl State {
    /// A call without folders that may write at most this many bytes.
    #[must_use]
    pub fn new(max_written: usize) -> Self {
        let written = Written { left: Arc::new(max_written.into()), max: max_written };
        Self {
            folders: Vec::new(),
            is_durable: false,
            written,
            open: HashMap::new(),
            max_open: Arc::new(Semaphore::new(MAX_OPEN)),
            listings: HashMap::new(),
            library: BLOCKING.clone(),
        }
    }
}

/// The library's context for functions on threads that may block. Only a whole WASI context has this setting.
static BLOCKING: LazyLock<WasiFilesystemCtx> = LazyLock::new(|| {
    struct Wasi(WasiCtx, ResourceTable);

    impl WasiView for Wasi {
        fn ctx(&mut self) -> WasiCtxView<'_> {
            WasiCtxView { ctx: &mut self.0, table: &mut self.1 }
        }
    }

    let context = WasiCtx::builder().allow_blocking_current_thread(true).build();
    Wasi(context, ResourceTable::new()).filesystem().ctx.clone()
});

/// The bytes that a call may still write to files.
#[derive(Clone)]
struct Written {
    left: Arc<AtomicUsize>,
    max: usize,
}

/// The cost of a new name: an empty file takes room on a disk as well.
const NAME: usize = 4 << 10;

impl Written {
    /// Takes bytes from the rest.
    fn take(&self, bytes: usize) -> Result<(), Stop> {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map(drop).map_err(|_| {
            let max = size(self.max);
            let what = format!("wrote more than {max} to files, where each new name counts as {NAME} bytes");
            Stop::Limit { what, key: "files_written_bytes" }
        })
    }
}
