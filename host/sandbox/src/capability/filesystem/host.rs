//! The host functions of `wasi:filesystem`: those of wasmtime-wasi, each with a deadline and a place for what may wait for a
//! disk, and with what they read, write and list counted.

use std::fs::File;
use std::sync::Arc;

use futures::FutureExt as _;
use wasmtime::Result;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::NAME;
use super::open::{Opened, READ_AHEAD};
use super::streams::{Read, Reading, Write, Writing};
use crate::ending::Stop;
use crate::guest::Guest;

/// What is said of a function that took too long.
const FILES: &str = "reach its files";

/// The function of wasmtime-wasi for a descriptor: where a thread may block, in a place that it has until it returned, and
/// waited for no longer than a host function may take.
macro_rules! apart {
    ($guest:ident.$function:ident($fd:ident $(, $argument:expr)*)) => {{
        let (mut apart, $fd) = $guest.apart(&$fd)?;
        let work = move || at_once(apart.view().$function($fd, $($argument),*));
        $guest.blocking.run(FILES, work).await.map_err(FsError::trap)?
    }};
    ($guest:ident.$function:ident($fd:ident, $path:ident, to $new:ident, $new_path:ident $(, $flags:ident)?)) => {{
        let (mut apart, $fd) = $guest.apart(&$fd)?;
        let $new = apart.push($guest, &$new)?;
        let work = move || at_once(apart.view().$function($fd, $($flags,)? $path, $new, $new_path));
        $guest.blocking.run(FILES, work).await.map_err(FsError::trap)?
    }};
}

/// What a function of wasmtime-wasi works with apart from its guest: a table of its own, with what it is called for.
struct Apart {
    context: WasiFilesystemCtx,
    table: ResourceTable,
    /// After the table: the last that has a file closes it.
    opened: Vec<Arc<Opened>>,
}

impl Apart {
    fn push(&mut self, guest: &Guest, fd: &Resource<Descriptor>) -> FsResult<Resource<Descriptor>> {
        let there = self.table.push(guest.table.get(fd)?.clone())?;
        self.opened.extend(guest.opened(fd));
        Ok(there)
    }

    fn view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

/// The end of a function that has no reason to wait, since its thread may block.
fn at_once<T>(done: impl Future<Output = FsResult<T>>) -> FsResult<T> {
    let waits = || Err(FsError::trap(Stop::Fault("a function for files waits and does not block".to_owned())));
    done.now_or_never().unwrap_or_else(waits)
}

impl Guest {
    /// Something that the guest has a handle of, to be used apart from it.
    fn apart(&mut self, fd: &Resource<Descriptor>) -> FsResult<(Apart, Resource<Descriptor>)> {
        let context = self.filesystem().ctx.clone();
        let mut apart = Apart { context, table: ResourceTable::new(), opened: Vec::new() };
        let fd = apart.push(self, fd)?;
        Ok((apart, fd))
    }

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

    /// The file behind a handle, which wasmtime-wasi made a stream of and so allows to be read or written.
    fn streamed<T: 'static>(&mut self, fd: &Resource<Descriptor>, stream: Resource<T>) -> FsResult<Arc<File>> {
        self.table.delete(stream)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok(Arc::clone(&file.file)),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// A stream to a file.
    fn writing(
        &mut self,
        fd: &Resource<Descriptor>,
        stream: Resource<DynOutputStream>,
        at: Option<u64>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = self.streamed(fd, stream)?;
        let opened = self.opened(fd);
        let stream: DynOutputStream = Box::new(Writing {
            file,
            at: at.unwrap_or_else(|| opened.as_ref().map_or(0, |opened| opened.size())),
            appends: at.is_none(),
            state: Write::default(),
            traffic: self.traffic.clone(),
            blocking: self.blocking.clone(),
            written: self.files.written.clone(),
            held: self.held.clone(),
            opened,
        });
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
        let charge = self.held.charge(READ_AHEAD).map_err(FsError::trap)?;
        let stream = self.filesystem().read_via_stream(borrowed(&fd), offset)?;
        let stream: DynInputStream = Box::new(Reading {
            file: self.streamed(&fd, stream)?,
            at: offset,
            state: Read::default(),
            traffic: self.traffic.clone(),
            blocking: self.blocking.clone(),
            opened: self.opened(&fd),
            _charge: charge,
        });
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.pay_gap(&fd, offset)?;
        let stream = self.filesystem().write_via_stream(borrowed(&fd), offset)?;
        self.writing(&fd, stream, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.filesystem().append_via_stream(borrowed(&fd))?;
        self.writing(&fd, stream, None)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        apart!(self.advise(fd, offset, len, advice))
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        apart!(self.sync_data(fd))
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        apart!(self.get_flags(fd))
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        apart!(self.get_type(fd))
    }

    /// Growing a file is writing to it, whatever a disk makes of the gap.
    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let before = apart!(self.stat(fd))?.size;
        self.files
            .written
            .take(usize::try_from(size.saturating_sub(before)).unwrap_or(usize::MAX))
            .map_err(FsError::trap)?;
        let opened = self.opened(&fd);
        apart!(self.set_size(fd, size))?;
        if let Some(opened) = opened {
            opened.resized(size);
        }
        Ok(())
    }

    async fn set_times(&mut self, fd: Resource<Descriptor>, atim: NewTimestamp, mtim: NewTimestamp) -> FsResult<()> {
        apart!(self.set_times(fd, atim, mtim))
    }

    async fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let (bytes, ended) = apart!(self.read(fd, len, offset))?;
        self.traffic.into_guest(bytes.len());
        Ok((bytes, ended))
    }

    async fn write(&mut self, fd: Resource<Descriptor>, buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.pay_gap(&fd, offset)?;
        self.write_out(buffer.len())?;
        let opened = self.opened(&fd);
        let written = apart!(self.write(fd, buffer, offset))?;
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
        let mut charge = self.held.nothing();
        let (mut apart, fd) = self.apart(&fd)?;
        let list = move || -> FsResult<_> {
            names(&folder, |name| charge.grow(name + ENTRY))?;
            let listing = at_once(apart.view().read_directory(fd))?;
            Ok((apart.table.delete(listing)?, charge))
        };
        let (listing, charge) = self.blocking.run(FILES, list).await.map_err(FsError::trap)??;
        let listing = self.table.push(listing)?;
        self.files.listings.insert(listing.rep(), charge);
        Ok(listing)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        apart!(self.sync(fd))
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.name()?;
        apart!(self.create_directory_at(fd, path))
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        apart!(self.stat(fd))
    }

    async fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        apart!(self.stat_at(fd, flags, path))
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        atim: NewTimestamp,
        mtim: NewTimestamp,
    ) -> FsResult<()> {
        apart!(self.set_times_at(fd, flags, path, atim, mtim))
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
        apart!(self.link_at(fd, old_path, to new, new_path, flags))
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
        let (mut apart, fd) = self.apart(&fd)?;
        let open = move || {
            let there = at_once(apart.view().stat_at(borrowed(&fd), follow, path.clone()));
            if there.is_ok_and(|there| !is_plain(there.type_)) {
                return Err(ErrorCode::NotPermitted.into());
            }
            let opened = at_once(apart.view().open_at(fd, follow, path, how, flags))?;
            let found = at_once(apart.view().stat(borrowed(&opened)))?;
            if !is_plain(found.type_) {
                return Err(ErrorCode::NotPermitted.into());
            }
            let descriptor = apart.table.delete(opened)?;
            let opened = Opened::new(room, &descriptor, found.size);
            FsResult::Ok((descriptor, opened))
        };
        let (descriptor, opened) = self.blocking.run(FILES, open).await.map_err(FsError::trap)??;
        let fd = self.table.push(descriptor)?;
        self.files.open.insert(fd.rep(), Arc::new(opened));
        Ok(fd)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        apart!(self.readlink_at(fd, path))
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        apart!(self.remove_directory_at(fd, path))
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        apart!(self.rename_at(fd, old_path, to new, new_path))
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, old_path: String, new_path: String) -> FsResult<()> {
        self.name()?;
        apart!(self.symlink_at(fd, old_path, new_path))
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        apart!(self.unlink_file_at(fd, path))
    }

    async fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> Result<bool> {
        let (mut apart, a) = self.apart(&a).map_err(trapped)?;
        let b = apart.push(self, &b).map_err(trapped)?;
        let same = move || at_once(async { apart.view().is_same_object(a, b).await.map_err(FsError::trap) });
        self.blocking.run(FILES, same).await?.map_err(trapped)
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        apart!(self.metadata_hash(fd))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        apart!(self.metadata_hash_at(fd, flags, path))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> Result<()> {
        // First the handle's and then ours, which is what closes the file.
        let rep = fd.rep();
        HostDescriptor::drop(&mut self.filesystem(), fd)?;
        self.files.open.remove(&rep);
        Ok(())
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

/// Looks at the length of every name in a folder.
fn names(folder: &File, mut look: impl FnMut(usize) -> std::result::Result<(), Stop>) -> FsResult<()> {
    for entry in rustix::fs::Dir::read_from(folder).map_err(std::io::Error::from)? {
        look(entry.map_err(std::io::Error::from)?.file_name().count_bytes()).map_err(FsError::trap)?;
    }
    Ok(())
}

/// What ends the guest, where a function has no error to return.
fn trapped(error: FsError) -> wasmtime::Error {
    error.downcast().map_or_else(|trap| trap, |code| wasmtime::format_err!("{code:?}"))
}

/// The same handle, for one call of a function.
fn borrowed(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

/// Whether this is a file or leads to one, or a folder.
fn is_plain(kind: DescriptorType) -> bool {
    matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}
