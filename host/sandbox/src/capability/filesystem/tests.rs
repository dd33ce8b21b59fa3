//! Every function of files takes a place for what may wait for a disk, and a disk that hangs is one plugin's affair.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use domain::{Json, Limits, PluginName, Span};
use futures::future::BoxFuture;
use tokio::runtime::Runtime;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, StreamError};

use super::{Folder, FolderHandle};
use crate::blocking::Places;
use crate::call::Job;
use crate::capability::Grants;
use crate::clock::{Stopwatch, SystemClock};
use crate::engine::guest_runtime;
use crate::guest::{Guest, Outside};
use crate::random::SystemRandom;

/// A host with a folder in which are `file` and `sub`, granted to every plugin for writing.
struct World {
    runtime: Runtime,
    outside: Outside,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "data").expect("a file");
        std::fs::create_dir(folder.path().join("sub")).expect("a folder");
        let outside = Outside {
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(SystemRandom),
            keyvalue: None,
            http: None,
            places: Arc::new(Places::new(512)),
        };
        Self { runtime: guest_runtime(1).expect("a thread"), outside, folder }
    }

    /// A call of a plugin of this name, with handles of the folder and of the file.
    fn guest(&self, plugin: &str, host_call_time: Span) -> (Guest, [u32; 2]) {
        let handle = FolderHandle::open(self.folder.path()).expect("a folder");
        let folder = |path: &Path| Folder { path: path.to_owned(), at: "/data".into(), write: true, handle };
        let job = Job {
            plugin: PluginName::new(plugin).expect("a name"),
            grants: Arc::new(Grants { folders: vec![folder(self.folder.path())], ..Grants::default() }),
            call_id: "call_1".into(),
            tool: "tool".into(),
            arguments: Json::new("{}"),
            idempotency_key: "key_1".into(),
            attempt: 1,
            scope: Json::new("{}"),
            streaming: false,
        };
        let limits = Limits { host_call_time, ..Limits::default() };
        let mut guest =
            Guest::new(&self.outside, Some(&job), false, Stopwatch::start(limits.time), &limits, Arc::new(()));
        let fds = self.runtime.block_on(async {
            guest.give_folders().expect("it is open");
            let folder = guest.get_directories().expect("there is one").remove(0).0.rep();
            [folder, open(&mut guest, folder).await.expect("there is one")]
        });
        (guest, fds)
    }

    /// Work of this guest that hangs on as many threads as its plugin may have, and that nobody waits for any more. It goes
    /// on until what is returned is dropped.
    fn hang(&self, guest: &Guest) -> Sender<()> {
        let ((release, hangs), (tell, begun)) = (channel(), channel());
        let hangs: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(hangs));
        let _context = self.runtime.enter();
        let going: Vec<_> = (0..PLACES)
            .map(|_| {
                let (hangs, tell) = (Arc::clone(&hangs), tell.clone());
                guest.blocking.start(move || {
                    tell.send(()).expect("the test waits");
                    // Whoever was to answer is gone, too: the disk is back.
                    let _ = hangs.lock().expect("no panic").recv();
                })
            })
            .collect();
        begun.iter().take(PLACES).for_each(drop);
        drop(going);
        release
    }
}

/// What a plugin may have wait for a disk.
const PLACES: usize = 8;

async fn open(guest: &mut Guest, folder: u32) -> Result<u32, FsError> {
    let (follow, flags) = (plainly(), DescriptorFlags::READ | DescriptorFlags::WRITE);
    let opened = guest.open_at(Resource::new_borrow(folder), follow, "file".into(), OpenFlags::empty(), flags).await;
    Ok(opened?.rep())
}

type Done<'a> = BoxFuture<'a, Result<(), String>>;
type Act = for<'a> fn(&'a mut Guest, [u32; 2]) -> Done<'a>;

fn told(error: FsError) -> String {
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
        (stringify!($function), |guest, fds| {
            Box::pin(async move {
                let fd = Resource::<Descriptor>::new_borrow(fds[$on]);
                guest.$function(fd, $($argument),*).await.map(drop).map_err(told)
            })
        })
    };
}

/// A function of a stream of the file.
macro_rules! through {
    ($open:ident($($argument:expr),*), $function:ident($($given:expr),*)) => {
        (stringify!($open), |guest, fds| {
            Box::pin(async move {
                let stream = guest.$open(Resource::new_borrow(fds[1]), $($argument),*).map_err(told)?;
                let stream = guest.table.get_mut(&stream).expect("it is there");
                stream.$function($($given),*).await.map(drop).map_err(broken)
            })
        })
    };
}

const STAY: NewTimestamp = NewTimestamp::NoChange;

fn plainly() -> PathFlags {
    PathFlags::empty()
}

/// Every function that may wait for a disk, such that each can be carried out after those before it.
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
    ("open_at", |guest, fds| Box::pin(async move { open(guest, fds[0]).await.map(drop).map_err(told) })),
    ("link_at", |guest, fds| {
        Box::pin(async move {
            let [from, to] = [(); 2].map(|()| Resource::new_borrow(fds[0]));
            guest.link_at(from, plainly(), "file".into(), to, "twin".into()).await.map_err(told)
        })
    }),
    ("rename_at", |guest, fds| {
        Box::pin(async move {
            let [from, to] = [(); 2].map(|()| Resource::new_borrow(fds[0]));
            guest.rename_at(from, "twin".into(), to, "renamed".into()).await.map_err(told)
        })
    }),
    ("is_same_object", |guest, fds| {
        Box::pin(async move {
            let same = guest.is_same_object(Resource::new_borrow(fds[0]), Resource::new_borrow(fds[1])).await;
            same.map(drop).map_err(|error| error.to_string())
        })
    }),
    through!(read_via_stream(0), blocking_read(10)),
    through!(append_via_stream(), blocking_write_and_flush(bytes::Bytes::from_static(b"end"))),
];

#[test]
fn a_folder_that_hangs_takes_the_places_of_its_plugin_and_no_more() {
    let world = World::new();
    let (mut stuck, of_stuck) = world.guest("stuck", Span::from_millis(30));
    let (mut neighbour, of_neighbour) = world.guest("neighbour", Span::from_secs(60));
    let (mut later, of_later) = world.guest("stuck", Span::from_secs(60));
    let release = world.hang(&stuck);
    for (name, act) in EVERY {
        let done = world.runtime.block_on(act(&mut stuck, of_stuck));
        assert!(done.as_ref().is_err_and(|why| why.contains("`host_call_time`")), "{name}: {done:?}");
        let done = world.runtime.block_on(act(&mut neighbour, of_neighbour));
        assert_eq!(done, Ok(()), "{name}: a neighbour is served");
    }
    drop(release);
    let done = world.runtime.block_on(EVERY[9].1(&mut later, of_later));
    assert_eq!(done, Ok(()), "the disk is back, and with it the places");
}

#[test]
fn streams_of_files_read_and_write_what_is_there() {
    let world = World::new();
    let (mut guest, [_, file]) = world.guest("streams", Span::from_secs(60));
    let path = world.folder.path().join("file");
    std::fs::write(&path, vec![b'x'; 100_000]).expect("a file");
    let fd = || Resource::<Descriptor>::new_borrow(file);
    world.runtime.block_on(async {
        let written = guest.write_via_stream(fd(), 10).map_err(told).expect("a stream");
        let appended = guest.append_via_stream(fd()).map_err(told).expect("a stream");
        for (stream, text) in [(&written, "one"), (&appended, "end"), (&written, "two")] {
            let stream = guest.table.get_mut(stream).expect("it is there");
            let permitted = stream.check_write().expect("room");
            stream.write(bytes::Bytes::from_static(text.as_bytes())).expect("it is permitted");
            assert!(permitted > 3 && stream.check_write().expect("room") == 0, "one thing at a time");
            stream.ready().await;
            stream.flush().expect("it was written");
        }
        let reading = guest.read_via_stream(fd(), 5).map_err(told).expect("a stream");
        let reading = guest.table.get_mut(&reading).expect("it is there");
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
fn an_open_beyond_what_the_plugin_may_have_open_is_busy() {
    let world = World::new();
    let (mut guest, [folder, _]) = world.guest("greedy", Span::from_secs(60));
    let others: Vec<_> = std::iter::from_fn(|| guest.blocking.open()).collect();
    assert_eq!(others.len(), 127, "one is the guest's");
    let refused = world.runtime.block_on(open(&mut guest, folder)).expect_err("no place");
    assert_eq!(refused.downcast().expect("an error of the guest's"), ErrorCode::Busy);
    let (mut neighbour, [folder_of_neighbour, _]) = world.guest("modest", Span::from_secs(60));
    assert!(world.runtime.block_on(open(&mut neighbour, folder_of_neighbour)).is_ok());
    drop(others);
    assert!(world.runtime.block_on(open(&mut guest, folder)).is_ok(), "worth another try");
}
