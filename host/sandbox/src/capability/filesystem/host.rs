//! The host functions of `wasi:filesystem`: those of wasmtime-wasi, each with a deadline, and with what they read, write and
//! list counted.

use std::fs::File;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::NAME;
use super::open::{Opened, READ_AHEAD};
use super::streams::{Reading, Writing};
use crate::ending::Stop;
use crate::guest::Guest;

/// What is said of a function that took too long.
const FILES: &str = "reach its files";

/// The function of wasmtime-wasi, no longer than a host function may take.
macro_rules! timely {
    ($guest:ident.$function:ident($($argument:expr),*)) => {{
        let blocking = $guest.blocking.clone();
        blocking.timely(FILES, $guest.filesystem().$function($($argument),*)).await.map_err(FsError::trap)?
    }};
}

impl Guest {
    /// Takes so many bytes of what may be written to files.
    fn write_out(&self, bytes: usize) -> FsResult<()> {
        self.files.written.take(bytes).map_err(FsError::trap)?;
        self.traffic.out_of_guest(bytes);
        Ok(())
    }

    /// Pays for a new name.
    fn name(&self) -> FsResult<()> {
        self.files.written.take(NAME).map_err(FsError::trap)
    }

    /// What is known of something that the guest opened; nothing of the folders that it was granted.
    fn opened(&self, fd: &Resource<Descriptor>) -> Option<Arc<Opened>> {
        self.files.open.get(&fd.rep()).cloned()
    }

    /// Pays for the gap that writing there leaves.
    fn pay_gap(&self, fd: &Resource<Descriptor>, offset: Filesize) -> FsResult<()> {
        let Some(opened) = self.opened(fd) else { return Ok(()) };
        opened.pay_gap(offset, &self.files.written).map_err(FsError::trap)
    }

    /// Puts something of ours around an output stream.
    fn writing(
        &mut self,
        stream: Resource<DynOutputStream>,
        opened: Option<Arc<Opened>>,
        at: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream)?;
        let (traffic, blocking) = (self.traffic.clone(), self.blocking.clone());
        let stream: DynOutputStream =
            Box::new(Writing { inner, traffic, blocking, opened, at, written: self.files.written.clone() });
        Ok(self.table.push(stream)?)
    }
}

impl preopens::Host for Guest {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        let folders = self.files.folders.clone();
        let opened = folders.into_iter().map(|(folder, at)| Ok((self.table.push(Descriptor::Dir(folder))?, at)));
        opened.collect()
    }
}

impl types::Host for Guest {
    fn convert_error_code(&mut self, error: FsError) -> Result<ErrorCode> {
        self.filesystem().convert_error_code(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> Result<Option<ErrorCode>> {
        self.filesystem().filesystem_error_code(error)
    }
}

impl HostDescriptor for Guest {
    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let opened = self.opened(&fd);
        let charge = self.held.charge(READ_AHEAD).map_err(FsError::trap)?;
        let stream = self.filesystem().read_via_stream(fd, offset)?;
        let inner = self.table.delete(stream)?;
        let (traffic, blocking) = (self.traffic.clone(), self.blocking.clone());
        let stream: DynInputStream = Box::new(Reading { inner, traffic, blocking, _opened: opened, _charge: charge });
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        let opened = self.opened(&fd);
        self.pay_gap(&fd, offset)?;
        let stream = self.filesystem().write_via_stream(fd, offset)?;
        self.writing(stream, opened, offset)
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let opened = self.opened(&fd);
        let stream = self.filesystem().append_via_stream(fd)?;
        let end = opened.as_ref().map_or(0, |opened| opened.size());
        self.writing(stream, opened, end)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        timely!(self.advise(fd, offset, len, advice))
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        timely!(self.sync_data(fd))
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        timely!(self.get_flags(fd))
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        timely!(self.get_type(fd))
    }

    /// Growing a file is writing to it, whatever a disk makes of the gap.
    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let before = timely!(self.stat(Resource::new_borrow(fd.rep())))?.size;
        self.files
            .written
            .take(usize::try_from(size.saturating_sub(before)).unwrap_or(usize::MAX))
            .map_err(FsError::trap)?;
        let opened = self.opened(&fd);
        timely!(self.set_size(fd, size))?;
        if let Some(opened) = opened {
            opened.resized(size);
        }
        Ok(())
    }

    async fn set_times(&mut self, fd: Resource<Descriptor>, atim: NewTimestamp, mtim: NewTimestamp) -> FsResult<()> {
        timely!(self.set_times(fd, atim, mtim))
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let (bytes, ended) = timely!(self.read(fd, len, offset))?;
        self.traffic.into_guest(bytes.len());
        Ok((bytes, ended))
    }

    async fn write(&mut self, fd: Resource<Descriptor>, buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.pay_gap(&fd, offset)?;
        self.write_out(buffer.len())?;
        let opened = self.opened(&fd);
        let written = timely!(self.write(fd, buffer, offset))?;
        if let Some(opened) = opened {
            opened.reaches(offset.saturating_add(written));
        }
        Ok(written)
    }

    /// A listing is made whole before its first entry is read, so it is paid for before it is made.
    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let folder = match self.table.get(&fd)? {
            Descriptor::Dir(folder) => Arc::clone(&folder.dir),
            Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        let mut charge = self.held.charge(0).map_err(FsError::trap)?;
        let count = move || -> std::result::Result<_, Uncounted> {
            names(&folder, |name| charge.grow(name + ENTRY))?;
            Ok(charge)
        };
        let charge = match self.blocking.run(FILES, count).await.map_err(FsError::trap)? {
            Ok(charge) => charge,
            Err(Uncounted::Stop(stop)) => return Err(FsError::trap(stop)),
            Err(Uncounted::Io(error)) => return Err(error.into()),
        };
        let listing = timely!(self.read_directory(fd))?;
        self.files.listings.insert(listing.rep(), charge);
        Ok(listing)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        timely!(self.sync(fd))
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.name()?;
        timely!(self.create_directory_at(fd, path))
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        timely!(self.stat(fd))
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        timely!(self.stat_at(fd, flags, path))
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        atim: NewTimestamp,
        mtim: NewTimestamp,
    ) -> FsResult<()> {
        timely!(self.set_times_at(fd, flags, path, atim, mtim))
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.name()?;
        timely!(self.link_at(fd, flags, old_path, new, new_path))
    }

    /// Opens files and folders. Anything else is refused by what it is before it is opened, and once more by what was opened,
    /// should it have been put in place between the two.
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        follow: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        if how.contains(OpenFlags::CREATE) {
            self.name()?;
        }
        let room = self.room()?;
        let there = timely!(self.stat_at(Resource::new_borrow(fd.rep()), follow, path.clone()));
        if there.is_ok_and(|there| !is_plain(there.type_)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        let opened = timely!(self.open_at(fd, follow, path, how, flags))?;
        let found = timely!(self.stat(Resource::new_borrow(opened.rep())))?;
        if !is_plain(found.type_) {
            self.table.delete(opened)?;
            return Err(ErrorCode::NotPermitted.into());
        }
        self.files.open.insert(opened.rep(), Arc::new(Opened::new(room, found.size)));
        Ok(opened)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        timely!(self.readlink_at(fd, path))
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        timely!(self.remove_directory_at(fd, path))
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        timely!(self.rename_at(fd, old_path, new, new_path))
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, old_path: String, new_path: String) -> FsResult<()> {
        self.name()?;
        timely!(self.symlink_at(fd, old_path, new_path))
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        timely!(self.unlink_file_at(fd, path))
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> Result<bool> {
        let blocking = self.blocking.clone();
        blocking.timely(FILES, self.filesystem().is_same_object(a, b)).await?
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        timely!(self.metadata_hash(fd))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        timely!(self.metadata_hash_at(fd, flags, path))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> Result<()> {
        self.files.open.remove(&fd.rep());
        HostDescriptor::drop(&mut self.filesystem(), fd)
    }
}

impl HostDirectoryEntryStream for Guest {
    async fn read_directory_entry(
        &mut self,
        listing: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let entry = self.filesystem().read_directory_entry(listing).await?;
        self.traffic.into_guest(entry.as_ref().map_or(0, |entry| entry.name.len()));
        Ok(entry)
    }

    fn drop(&mut self, listing: Resource<DirectoryEntryStream>) -> Result<()> {
        self.files.listings.remove(&listing.rep());
        HostDirectoryEntryStream::drop(&mut self.filesystem(), listing)
    }
}

/// What an entry of a listing takes besides its name.
const ENTRY: usize = 64;

/// Why the names of a folder were not counted.
enum Uncounted {
    Stop(Stop),
    Io(std::io::Error),
}

impl From<rustix::io::Errno> for Uncounted {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Looks at the length of every name in a folder.
fn names(
    folder: &File,
    mut look: impl FnMut(usize) -> std::result::Result<(), Stop>,
) -> std::result::Result<(), Uncounted> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        look(entry?.file_name().count_bytes()).map_err(Uncounted::Stop)?;
    }
    Ok(())
}

/// Whether this is a file or leads to one, or a folder.
fn is_plain(kind: DescriptorType) -> bool {
    matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}
