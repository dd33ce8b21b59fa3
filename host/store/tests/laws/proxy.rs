//! A proxy that knows a little of PostgreSQL's protocol. It can cut the connection at a `COMMIT`, hold a request back, and keep all
//! answers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// The name of the socket in the folder of a server.
const SOCKET: &str = ".s.PGSQL.5432";

/// Where a `COMMIT` cuts the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server gets nothing of what was sent with it.
    BeforeAll,
    /// The server gets everything before it.
    BeforeCommit,
    /// The server commits, and its answer is lost.
    BehindCommit,
}

/// How far a request is that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Held {
    Wanted,
    Here,
    Released,
    /// The server has answered it.
    Answered,
}

/// The fate of the next answer of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Passed,
    /// That of a `COMMIT` is lost.
    Lost,
    /// It is that of the request that was held back.
    OfHeld,
}

struct Shared {
    server: PathBuf,
    /// Where the next connections are cut, the last one first.
    cut: Mutex<Vec<Cut>>,
    cuts: AtomicUsize,
    is_closed: AtomicBool,
    /// Whether the next cut also closes the proxy.
    closes: AtomicBool,
    /// The ends at the server of connections that were left behind.
    left_behind: Mutex<Vec<UnixStream>>,
    leaves_behind: AtomicBool,
    /// Cuts the present connections when it changes.
    closing: watch::Sender<()>,
    hold: Mutex<Option<&'static [u8]>>,
    /// Whether the answer to the request that was held back is lost.
    loses_answer: AtomicBool,
    held: watch::Sender<Held>,
    /// The number of the next connection.
    next: AtomicU64,
    /// Connections with lower numbers get no answers.
    first_heard: AtomicU64,
}

pub(crate) struct Proxy {
    folder: TempDir,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy before the server with this folder.
    pub(crate) async fn start(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let shared = Arc::new(Shared {
            server: server.join(SOCKET),
            cut: Mutex::default(),
            cuts: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            closes: AtomicBool::new(false),
            left_behind: Mutex::default(),
            leaves_behind: AtomicBool::new(false),
            closing: watch::channel(()).0,
            hold: Mutex::default(),
            loses_answer: AtomicBool::new(false),
            held: watch::channel(Held::Wanted).0,
            next: AtomicU64::new(0),
            first_heard: AtomicU64::new(0),
        });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !accepting.is_closed.load(Ordering::Relaxed) {
                    tokio::spawn(connection(accepting.clone(), client));
                }
            }
        });
        Self { folder, shared }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Cuts the connections of the next `COMMIT`s, and no later ones.
    pub(crate) fn cut(&self, cut: Cut, times: usize) {
        self.shared.closes.store(false, Ordering::Relaxed);
        *self.shared.cut.lock().unwrap() = vec![cut; times];
    }

    /// Cuts the connection of the next `COMMIT`, and then takes no connections.
    pub(crate) fn cut_and_close(&self, cut: Cut) {
        let mut cuts = self.shared.cut.lock().unwrap();
        self.shared.closes.store(true, Ordering::Relaxed);
        *cuts = vec![cut];
    }

    /// How often it cut a connection.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Cuts all connections and takes none, or takes them again.
    pub(crate) fn close(&self, is_closed: bool) {
        self.shared.is_closed.store(is_closed, Ordering::Relaxed);
        self.shared.closing.send_replace(());
    }

    /// Cuts all connections. From now on, the server does not hear of the end of one.
    pub(crate) fn leave_behind(&self) {
        self.shared.leaves_behind.store(true, Ordering::Relaxed);
        self.shared.closing.send_replace(());
    }

    /// From now on, requests are taken and no connection gets an answer. None is closed.
    pub(crate) fn fall_silent(&self) {
        self.shared.first_heard.store(u64::MAX, Ordering::SeqCst);
    }

    /// Connections that are made from now on get answers. Those before stay silent.
    pub(crate) fn answer_new_connections(&self) {
        self.shared.first_heard.store(self.shared.next.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Holds the next request back that has these bytes.
    pub(crate) fn hold(&self, bytes: &'static [u8]) {
        *self.shared.hold.lock().unwrap() = Some(bytes);
    }

    /// Returns when a request is held back.
    pub(crate) async fn held(&self) {
        let mut held = self.shared.held.subscribe();
        held.wait_for(|held| *held >= Held::Here).await.unwrap();
    }

    /// Sends the request that is held back. The host gets no answer of the server.
    pub(crate) async fn release_without_answer(&self) {
        self.shared.loses_answer.store(true, Ordering::Relaxed);
        self.release().await;
    }

    /// Sends the request that is held back, and returns when the server has answered it.
    pub(crate) async fn release(&self) {
        self.held().await;
        self.shared.held.send_replace(Held::Released);
        let mut held = self.shared.held.subscribe();
        held.wait_for(|held| *held == Held::Answered).await.unwrap();
    }
}

async fn connection(shared: Arc<Shared>, client: UnixStream) {
    let number = shared.next.fetch_add(1, Ordering::SeqCst);
    // The server may be down.
    let Ok(server) = UnixStream::connect(&shared.server).await else { return };
    let ((from_client, to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
    let mut closing = shared.closing.subscribe();
    let (next, following) = watch::channel(Next::Passed);
    tokio::select! {
        () = requests(&shared, from_client, &mut to_server, next) => {}
        () = answers(&shared, number, &mut from_server, to_client, following) => {}
        _ = closing.changed() => {}
    }
    if shared.leaves_behind.load(Ordering::Relaxed) {
        shared.left_behind.lock().unwrap().extend(from_server.reunite(to_server).ok());
    }
}

async fn requests(shared: &Shared, mut client: OwnedReadHalf, server: &mut OwnedWriteHalf, next: watch::Sender<Next>) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(size @ 1..) = client.read(&mut buffer).await else { return };
        let sent = &buffer[..size];
        let commit = sent.windows(7).position(|bytes| bytes == b"COMMIT\0");
        let cut = commit.and_then(|commit| Some((commit, shared.cut.lock().unwrap().pop()?)));
        match cut {
            None => {}
            Some((commit, cut)) => {
                shared.cuts.fetch_add(1, Ordering::Relaxed);
                if shared.closes.swap(false, Ordering::Relaxed) {
                    shared.is_closed.store(true, Ordering::Relaxed);
                }
                match cut {
                    Cut::BeforeAll => return,
                    // The message begins with its kind and its length.
                    Cut::BeforeCommit => return drop(server.write_all(&sent[..commit - 5]).await),
                    Cut::BehindCommit => drop(next.send(Next::Lost)),
                }
            }
        }
        let is_held = shared.hold.lock().unwrap().take_if(|held| sent.windows(held.len()).any(|bytes| bytes == *held));
        if is_held.is_some() {
            shared.held.send_replace(Held::Here);
            shared.held.subscribe().wait_for(|held| *held == Held::Released).await.unwrap();
            next.send_replace(Next::OfHeld);
        }
        if server.write_all(sent).await.is_err() {
            return;
        }
        if is_held.is_some() {
            shared.held.subscribe().wait_for(|held| *held == Held::Answered).await.unwrap();
            next.send_replace(Next::Passed);
        }
    }
}

/// Passes the answers on, until one of them is that of a `COMMIT` that must be lost.
async fn answers(
    shared: &Shared,
    number: u64,
    server: &mut OwnedReadHalf,
    mut client: OwnedWriteHalf,
    next: watch::Receiver<Next>,
) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(size @ 1..) = server.read(&mut buffer).await else { return };
        if number < shared.first_heard.load(Ordering::SeqCst) {
            continue;
        }
        let sent = &buffer[..size];
        let next = *next.borrow();
        if next == Next::OfHeld {
            shared.held.send_replace(Held::Answered);
            if shared.loses_answer.load(Ordering::Relaxed) {
                return;
            }
        }
        let is_lost = next == Next::Lost && sent.windows(7).any(|bytes| bytes == b"COMMIT\0");
        if is_lost || client.write_all(sent).await.is_err() {
            return;
        }
    }
}
