//! The host functions of `wasi:filesystem`: those of wasmtime-wasi, with a deadline and a permit where they may wait
//! for a disk, and with counts of what they read, write and list.

use std::fs::File;
use std::sync::Arc;

use futures::FutureExt as _;
use wasmtime::Result;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::open::{Opened, READ_AHEAD};
use super::streams::{Read, Reading, Write, Writing};
use super::{NAME, State};
use crate::stop::Stop;
use crate::view::View;

/// The host's work, in the message for a function that takes too long.
const FILES: &str = "reach its files";

/// Calls the function of wasmtime-wasi for a descriptor on a thread that may block, with a permit until it returns, and
/// waits no longer than a host function may take.
macro_rules! apart {
    ($guest:ident.$function:ident($fd:ident $(, $argument:expr)*)) => {{
        let (mut apart, $fd) = $guest.apart(&$fd)?;
        let work = move || at_once(apart.view().$function($fd, $($argument),*));
        $guest.usage.blocking.run(FILES, work).await.map_err(FsError::trap)?
    }};
    ($guest:ident.$function:ident($fd:ident, $path:ident, to $new:ident, $new_path:ident $(, $flags:ident)?)) => {{
        let (mut apart, $fd) = $guest.apart(&$fd)?;
        let $new = apart.push($guest, &$new)?;
        let work = move || at_once(apart.view().$function($fd, $($flags,)? $path, $new, $new_path));
        $guest.usage.blocking.run(FILES, work).await.map_err(FsError::trap)?
    }};
}

/// The context of a function of wasmtime-wasi: its own table, separate from the call.
struct Apart {
    context: WasiFilesystemCtx,
    table: ResourceTable,
    /// After the table: the last owner of a file closes it.
    opened: Vec<Arc<Opened>>,
}

impl Apart {
    fn push(&mut self, call: &View<'_, State>, fd: &Resource<Descriptor>) -> FsResult<Resource<Descriptor>> {
        let there = self.table.push(call.table.get(fd)?.clone())?;
        self.opened.extend(call.opened(fd));
        Ok(there)
    }

    fn view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

/// The result of a function that never waits, because its thread may block.
fn at_once<T>(done: impl Future<Output = FsResult<T>>) -> FsResult<T> {
    let waits = || Err(FsError::trap(Stop::Fault("a function for files waits and does not block".to_owned())));
    done.now_or_never().unwrap_or_else(waits)
}

impl View<'_, State> {
    fn library(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.state.library, table: self.table }
    }

    /// The target of a guest's handle, separate from the call.
    fn apart(&mut self, fd: &Resource<Descriptor>) -> FsResult<(Apart, Resource<Descriptor>)> {
        let context = self.state.library.clone();
        let mut apart = Apart { context, table: ResourceTable::new(), opened: Vec::new() };
        let fd = apart.push(self, fd)?;
        Ok((apart, fd))
    }

    /// Pays for bytes that are written to files.
    fn write_out(&self, bytes: usize) -> FsResult<()> {
        self.state.written.take(bytes).map_err(FsError::trap)?;
        self.usage.bytes.count_out(bytes);
        Ok(())
    }

    /// Pays for a new name.
    fn name(&self) -> FsResult<()> {
        self.state.written.take(NAME).map_err(FsError::trap)
    }

    /// A file or folder that the guest opened. `None` for a granted folder.
    fn opened(&self, fd: &Resource<Descriptor>) -> Option<Arc<Opened>> {
        self.state.open.get(&fd.rep()).cloned()
    }

    /// Pays for the gap between the end of the file and the offset.
    fn pay_gap(&self, fd: &Resource<Descriptor>, offset: Filesize) -> FsResult<()> {
        let Some(opened) = self.opened(fd) else { return Ok(()) };
        opened.pay_gap(offset, &self.state.written).map_err(FsError::trap)
    }

    /// The file behind a handle. wasmtime-wasi made a stream of it, so the guest may read or write it.
    fn streamed<T: 'static>(&mut self, fd: &Resource<Descriptor>, stream: Resource<T>) -> FsResult<Arc<File>> {
        self.table.delete(stream)?;
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok(Arc::clone(&file.file)),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// A stream to a file; without an offset it appends.
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
            usage: self.usage.clone(),
            written: self.state.written.clone(),
            opened,
        });
        Ok(self.table.push(stream)?)
    }
}

impl preopens::Host for View<'_, State> {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        let folders = self.state.folders.clone();
        let opened = folders.into_iter().map(|(folder, at)| Ok((self.table.push(Descriptor::Dir(folder))?, at)));
        opened.collect()
    }
}

impl types::Host for View<'_, State> {
    fn convert_error_code(&mut self, error: FsError) -> Result<ErrorCode> {
        self.library().convert_error_code(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> Result<Option<ErrorCode>> {
        self.library().filesystem_error_code(error)
    }
}

impl HostDescriptor for View<'_, State> {
    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let charge = self.usage.memory.charge(READ_AHEAD).map_err(FsError::trap)?;
        let stream = self.library().read_via_stream(borrowed(&fd), offset)?;
        let stream: DynInputStream = Box::new(Reading {
            file: self.streamed(&fd, stream)?,
            at: offset,
            state: Read::default(),
            usage: self.usage.clone(),
            opened: self.opened(&fd),
            _charge: charge,
        });
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.pay_gap(&fd, offset)?;
        let stream = self.library().write_via_stream(borrowed(&fd), offset)?;
        self.writing(&fd, stream, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.library().append_via_stream(borrowed(&fd))?;
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

    /// Growing a file counts as writing to it, even if the disk keeps no bytes for the gap.
    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let before = apart!(self.stat(fd))?.size;
        self.state
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
        self.usage.bytes.count_in(bytes.len());
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

    /// The library reads the whole list before its first entry, so the guest pays for it before.
    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let folder = match self.table.get(&fd)? {
            Descriptor::Dir(folder) => Arc::clone(&folder.dir),
            Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        let mut charge = self.usage.memory.nothing();
        let (mut apart, fd) = self.apart(&fd)?;
        let list = move || -> FsResult<_> {
            names(&folder, |name| charge.grow(name + ENTRY))?;
            let listing = at_once(apart.view().read_directory(fd))?;
            Ok((apart.table.delete(listing)?, charge))
        };
        let (listing, charge) = self.usage.blocking.run(FILES, list).await.map_err(FsError::trap)??;
        let listing = self.table.push(listing)?;
        self.state.listings.insert(listing.rep(), charge);
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

    /// Opens files and folders only. The kind is checked before the file is opened, and again after it, in case the
    /// path leads to another file by then.
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
        let permit = self.open_permit()?;
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
            let opened = Opened::new(permit, &descriptor, found.size);
            FsResult::Ok((descriptor, opened))
        };
        let (descriptor, opened) = self.usage.blocking.run(FILES, open).await.map_err(FsError::trap)??;
        let fd = self.table.push(descriptor)?;
        self.state.open.insert(fd.rep(), Arc::new(opened));
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
        self.usage.blocking.run(FILES, same).await?.map_err(trapped)
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
        // Ours comes last, because the last owner closes the file.
        let rep = fd.rep();
        HostDescriptor::drop(&mut self.library(), fd)?;
        self.state.open.remove(&rep);
        Ok(())
    }
}

impl HostDirectoryEntryStream for View<'_, State> {
    async fn read_directory_entry(
        &mut self,
        listing: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let entry = self.library().read_directory_entry(listing).await?;
        self.usage.bytes.count_in(entry.as_ref().map_or(0, |entry| entry.name.len()));
        Ok(entry)
    }

    fn drop(&mut self, listing: Resource<DirectoryEntryStream>) -> Result<()> {
        self.state.listings.remove(&listing.rep());
        HostDirectoryEntryStream::drop(&mut self.library(), listing)
    }
}

/// The bytes of a list entry without its name.
const ENTRY: usize = 64;

/// Calls `look` with the length of every name in a folder.
fn names(folder: &File, mut look: impl FnMut(usize) -> std::result::Result<(), Stop>) -> FsResult<()> {
    for entry in rustix::fs::Dir::read_from(folder).map_err(std::io::Error::from)? {
        look(entry.map_err(std::io::Error::from)?.file_name().count_bytes()).map_err(FsError::trap)?;
    }
    Ok(())
}

/// The end of the call, where a function can return no error.
fn trapped(error: FsError) -> wasmtime::Error {
    error.downcast().map_or_else(|trap| trap, |code| wasmtime::format_err!("{code:?}"))
}

/// The same handle, for one function.
fn borrowed(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

/// Whether this is a file, a folder or a symbolic link.
fn is_plain(kind: DescriptorType) -> bool {
    matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}
