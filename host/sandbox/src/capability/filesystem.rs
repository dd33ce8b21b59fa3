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
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// Where it is on the host.
    pub path: PathBuf,
    /// Under which path the guest sees it, such as `/data`.
    pub at: String,
    /// Whether the guest may change what is in it.
    pub write: bool,
}

impl Folder {
    /// Opens the folder, whatever it takes: where a thread may block.
    fn open(&self) -> io::Result<(Dir, String)> {
        if !std::fs::metadata(&self.path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let folder = File::open(&self.path)?;
        let (perms, mode) = match self.write {
            true => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
            false => (FsPerms::ReadOnly, OpenMode::READ),
        };
        // Whoever calls its functions does that where a thread may block.
        Ok((Dir::new(folder, perms, mode, true), self.at.clone()))
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
    /// Opens the folders that are granted. A disk that does not answer costs the call and not its thread.
    pub(crate) async fn open_folders(&mut self) -> Result<(), Stop> {
        let Some(grants) = self.grants.clone().filter(|grants| !grants.folders.is_empty()) else { return Ok(()) };
        let open = move || -> Result<Vec<_>, Stop> {
            let opened = |folder: &Folder| {
                let path = folder.path.display();
                folder
                    .open()
                    .map_err(|error| Stop::Fault(format!("the granted folder {path} cannot be opened: {error}")))
            };
            grants.folders.iter().map(opened).collect()
        };
        self.files.folders = self.blocking.run("open its folders", open).await??;
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
