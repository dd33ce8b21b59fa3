//! A proxy that knows one word of PostgreSQL's protocol: it can cut the connection at a `COMMIT`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// The name of the socket in the folder of a server.
const SOCKET: &str = ".s.PGSQL.5432";

/// Where the next `COMMIT` cuts the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server gets nothing of what was sent with it.
    BeforeAll,
    /// The server gets everything before it.
    BeforeCommit,
    /// The server commits, and its answer is lost.
    BehindCommit,
}

struct Shared {
    server: PathBuf,
    cut: Mutex<Option<Cut>>,
    cuts: AtomicUsize,
    is_closed: AtomicBool,
    /// Cuts the present connections when it changes.
    closing: watch::Sender<()>,
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
            closing: watch::channel(()).0,
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

    /// Cuts the connection of the next `COMMIT`.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.shared.cut.lock().unwrap() = Some(cut);
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
}

async fn connection(shared: Arc<Shared>, client: UnixStream) {
    let server = UnixStream::connect(&shared.server).await.unwrap();
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut closing = shared.closing.subscribe();
    let (lost, is_lost) = watch::channel(false);
    tokio::select! {
        () = requests(&shared, from_client, to_server, lost) => {}
        () = answers(from_server, to_client, is_lost) => {}
        _ = closing.changed() => {}
    }
}

async fn requests(shared: &Shared, mut client: OwnedReadHalf, mut server: OwnedWriteHalf, lost: watch::Sender<bool>) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(size @ 1..) = client.read(&mut buffer).await else { return };
        let sent = &buffer[..size];
        let commit = sent.windows(7).position(|bytes| bytes == b"COMMIT\0");
        let cut = commit.and_then(|commit| Some((commit, shared.cut.lock().unwrap().take()?)));
        match cut {
            None => {}
            Some((commit, cut)) => {
                shared.cuts.fetch_add(1, Ordering::Relaxed);
                match cut {
                    Cut::BeforeAll => return,
                    // The message begins with its kind and its length.
                    Cut::BeforeCommit => return drop(server.write_all(&sent[..commit - 5]).await),
                    Cut::BehindCommit => drop(lost.send(true)),
                }
            }
        }
        if server.write_all(sent).await.is_err() {
            return;
        }
    }
}

/// Passes the answers on, until one of them is that of a `COMMIT` that must be lost.
async fn answers(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, is_lost: watch::Receiver<bool>) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(size @ 1..) = server.read(&mut buffer).await else { return };
        let sent = &buffer[..size];
        let is_commit = sent.windows(7).any(|bytes| bytes == b"COMMIT\0");
        if (is_commit && *is_lost.borrow()) || client.write_all(sent).await.is_err() {
            return;
        }
    }
}
