//! Every function of files takes a permit to wait for a disk. A disk that hangs delays only one plugin.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use domain::{PluginName, Span};
use futures::future::BoxFuture;
use tokio::runtime::Runtime;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, StreamError};

use super::{Folder, FolderHandle, State};
use crate::blocking::{Blocking, Permits};
use crate::interface::Interface as _;
use crate::usage::{BytesInOut, HostMemory, Usage};
use crate::view::View;

/// A host with a folder that holds `file` and `sub`, granted to every plugin for writing.
struct FolderHost {
    runtime: Runtime,
    permits: Permits,
    folder: tempfile::TempDir,
}

/// A call for this capability.
struct Call {
    state: State,
    table: ResourceTable,
    usage: Usage,
}

impl Call {
    fn view(&mut self) -> View<'_, State> {
        View { state: &mut self.state, table: &mut self.table, usage: &self.usage }
    }
}

impl FolderHost {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "data").expect("a file");
        std::fs::create_dir(folder.path().join("sub")).expect("a folder");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        Self { runtime: runtime.expect("a thread"), permits: Permits::new(512), folder }
    }

    /// A call of a plugin of this name, with handles of the folder and of the file.
    fn call(&self, plugin: &str, host_call_time: Span) -> (Call, [u32; 2]) {
        let plugin = PluginName::new(plugin).expect("a name");
        let usage = Usage {
            memory: HostMemory::new(1 << 20, Arc::new(())),
            bytes: BytesInOut::default(),
            blocking: Blocking::new(self.permits.of(Some(&plugin)), host_call_time),
        };
        let mut call = Call { state: State::new(1 << 20), table: ResourceTable::new(), usage };
        let path = self.folder.path().to_owned();
        let handle = FolderHandle::open(&path).expect("a folder");
        call.state.start(&vec![Folder { path, at: "/data".into(), write: true, handle }]).expect("it is open");
        let folder = call.view().get_directories().expect("there is one").remove(0).0.rep();
        let file = self.runtime.block_on(open(&mut call, folder)).expect("there is one");
        (call, [folder, file])
    }

    /// Abandoned work of this call that hangs on all threads of its plugin. It ends when the result is dropped.
    fn hang(&self, call: &Call) -> Sender<()> {
        let ((release, hangs), (tell, begun)) = (channel(), channel());
        let hangs: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(hangs));
        let _context = self.runtime.enter();
        let running: Vec<_> = (0..MAX_WAITING_OF_PLUGIN)
            .map(|_| {
                let (hangs, tell) = (Arc::clone(&hangs), tell.clone());
                call.usage.blocking.start(move || {
                    tell.send(()).expect("the test waits");
                    // An error means that the test dropped the other end, so the disk answers.
                    let _ = hangs.lock().expect("no panic").recv();
                })
            })
            .collect();
        begun.iter().take(MAX_WAITING_OF_PLUGIN).for_each(drop);
        drop(running);
        release
    }
}

/// The maximum number of concurrent tasks of a plugin that wait for a disk.
const MAX_WAITING_OF_PLUGIN: usize = 8;

async fn open(call: &mut Call, folder: u32) -> Result<u32, FsError> {
    let (follow, flags) = (plainly(), DescriptorFlags::READ | DescriptorFlags::WRITE);
    let opened =
        call.view().open_at(Resource::new_borrow(folder), follow, "file".into(), OpenFlags::empty(), flags).await;
    Ok(opened?.rep())
}

type Done<'a> = BoxFuture<'a, Result<(), String>>;
type Act = for<'a> fn(&'a mut Call, [u32; 2]) -> Done<'a>;

fn worded(error: FsError) -> String {
    error.downcast().map_or_else(|trap| trap.to_string(), |code| format!("{code:?}"))
}

fn broken(error: StreamError) -> String {
    match error {
        StreamError::Trap(trap) => trap.to_string(),
        other => other.to_string(),
    }
}

/// A function of the folder (0) or of the file (1).
macro_rules! of {
    ($on:literal, $function:ident($($argument:expr),*)) => {
        (stringify!($function), |call, fds| {
            Box::pin(async move {
                let fd = Resource::<Descriptor>::new_borrow(fds[$on]);
                call.view().$function(fd, $($argument),*).await.map(drop).map_err(worded)
            })
        })
    };
}

/// A function of a stream of the file.
macro_rules! through {
    ($open:ident($($argument:expr),*), $function:ident($($given:expr),*)) => {
        (stringify!($open), |call, fds| {
            Box::pin(async move {
                let stream = call.view().$open(Resource::new_borrow(fds[1]), $($argument),*).map_err(worded)?;
                let stream = call.table.get_mut(&stream).expect("it is there");
                stream.$function($($given),*).await.map(drop).map_err(broken)
            })
        })
    };
}

const STAY: NewTimestamp = NewTimestamp::NoChange;

fn plainly() -> PathFlags {
    PathFlags::empty()
}

/// Every function that may wait for a disk. Each can run after the functions before it.
const EVERY: [(&str, Act); 26] = [
    of!(1, advise(0, 1, Advice::Normal)),
    of!(1, sync_data()),
    of!(1, sync()),
    of!(1, get_flags()),
    of!(1, get_type()),
    of!(1, set_size(10)),
    of!(1, set_times(STAY, STAY)),
    of!(1, read(10, 0)),
    of!(1, write(b"more".to_vec(), 0)),
    of!(1, stat()),
    of!(1, metadata_hash()),
    of!(0, metadata_hash_at(plainly(), "file".into())),
    of!(0, stat_at(plainly(), "file".into())),
    of!(0, set_times_at(plainly(), "file".into(), STAY, STAY)),
    of!(0, read_directory()),
    of!(0, create_directory_at("made".into())),
    of!(0, remove_directory_at("made".into())),
    of!(0, symlink_at("file".into(), "linked".into())),
    of!(0, readlink_at("linked".into())),
    of!(0, unlink_file_at("linked".into())),
    ("open_at", |call, fds| Box::pin(async move { open(call, fds[0]).await.map(drop).map_err(worded) })),
    ("link_at", |call, fds| {
        Box::pin(async move {
            let [from, to] = [(); 2].map(|()| Resource::new_borrow(fds[0]));
            call.view().link_at(from, plainly(), "file".into(), to, "twin".into()).await.map_err(worded)
        })
    }),
    ("rename_at", |call, fds| {
        Box::pin(async move {
            let [from, to] = [(); 2].map(|()| Resource::new_borrow(fds[0]));
            call.view().rename_at(from, "twin".into(), to, "renamed".into()).await.map_err(worded)
        })
    }),
    ("is_same_object", |call, fds| {
        Box::pin(async move {
            let same = call.view().is_same_object(Resource::new_borrow(fds[0]), Resource::new_borrow(fds[1])).await;
            same.map(drop).map_err(|error| error.to_string())
        })
    }),
    through!(read_via_stream(0), blocking_read(10)),
    through!(append_via_stream(), blocking_write_and_flush(bytes::Bytes::from_static(b"end"))),
];

#[test]
fn a_folder_that_hangs_takes_only_the_permits_of_its_plugin() {
    let world = FolderHost::new();
    let (mut stuck, of_stuck) = world.call("stuck", Span::from_millis(30));
    let (mut neighbour, of_neighbour) = world.call("neighbour", Span::from_secs(60));
    let (mut later, of_later) = world.call("stuck", Span::from_secs(60));
    let release = world.hang(&stuck);
    for (name, act) in EVERY {
        let done = world.runtime.block_on(act(&mut stuck, of_stuck));
        assert!(done.as_ref().is_err_and(|why| why.contains("`limits.host_call_ms`")), "{name}: {done:?}");
        let done = world.runtime.block_on(act(&mut neighbour, of_neighbour));
        assert_eq!(done, Ok(()), "{name}: a neighbour is served");
    }
    drop(release);
    let done = world.runtime.block_on(EVERY[9].1(&mut later, of_later));
    assert_eq!(done, Ok(()), "the disk answers, and the permits are free");
}

#[test]
fn streams_of_files_read_and_write_what_is_there() {
    let world = FolderHost::new();
    let (mut call, [_, file]) = world.call("streams", Span::from_secs(60));
    let path = world.folder.path().join("file");
    std::fs::write(&path, vec![b'x'; 100_000]).expect("a file");
    let fd = || Resource::<Descriptor>::new_borrow(file);
    world.runtime.block_on(async {
        let written = call.view().write_via_stream(fd(), 10).map_err(worded).expect("a stream");
        let appended = call.view().append_via_stream(fd()).map_err(worded).expect("a stream");
        for (stream, text) in [(&written, "one"), (&appended, "end"), (&written, "two")] {
            let stream = call.table.get_mut(stream).expect("it is there");
            let permitted = stream.check_write().expect("room");
            stream.write(bytes::Bytes::from_static(text.as_bytes())).expect("it is permitted");
            assert!(permitted > 3 && stream.check_write().expect("room") == 0, "one write at a time");
            stream.ready().await;
            stream.flush().expect("it was written");
        }
        let reading = call.view().read_via_stream(fd(), 5).map_err(worded).expect("a stream");
        let reading = call.table.get_mut(&reading).expect("it is there");
        let mut read = Vec::new();
        assert!(reading.read(10).expect("nothing is there yet").is_empty());
        while let Ok(bytes) = reading.blocking_read(1 << 20).await {
            read.extend(bytes);
        }
        assert_eq!((read.len(), &read[..13]), (100_003 - 5, b"xxxxxonetwoxx".as_slice()));
        assert_eq!(&read[read.len() - 4..], b"xend");
    });
}

#[test]
fn a_plugin_with_too_many_open_files_is_busy() {
    let world = FolderHost::new();
    let (mut call, [folder, _]) = world.call("greedy", Span::from_secs(60));
    let others: Vec<_> = std::iter::from_fn(|| call.usage.blocking.open()).collect();
    assert_eq!(others.len(), 127, "one is the call's");
    let refused = world.runtime.block_on(open(&mut call, folder)).expect_err("no permit");
    assert_eq!(refused.downcast().expect("an error for the call"), ErrorCode::Busy);
    let (mut neighbour, [folder_of_neighbour, _]) = world.call("modest", Span::from_secs(60));
    assert!(world.runtime.block_on(open(&mut neighbour, folder_of_neighbour)).is_ok());
    drop(others);
    assert!(world.runtime.block_on(open(&mut call, folder)).is_ok(), "worth another try");
}
