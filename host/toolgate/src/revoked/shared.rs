//! The revoked sessions of all hosts on one database: one document with the lines of the file.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use dispatch::ports::{Clock as _, StoreFault};
use domain::{Digest, Timestamp};
use server::{NotRevoked, OpenedBy, RevokedSessions, SessionMark};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::file;
use super::known::Known;
use crate::clock::WallClock;
use crate::files::existing;
use crate::shared_documents::{LOOK, SharedDocuments};

/// The name of the document.
pub(crate) const DOCUMENT: &str = "ended-sessions";

/// A request waits at most this long for the document.
const MAX_READ: Duration = Duration::from_secs(10);

/// The revoked sessions in a database.
pub(crate) struct RevokedShared {
    documents: Arc<SharedDocuments>,
    read: RwLock<LastRead>,
    /// Held by the request that reads.
    reading: Mutex<()>,
}

/// The document when it was last read.
#[derive(Default)]
struct LastRead {
    version: Option<i64>,
    known: Known,
    /// Whether a newer one cannot be read. Then every session counts as revoked.
    is_outdated: bool,
}

/// Why the document cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Database(#[from] StoreFault),
    #[error(transparent)]
    Damaged(#[from] io::Error),
}

impl RevokedShared {
    /// Reads the document. The first host that opens it takes over the sessions in the file of its data folder.
    pub(crate) async fn open(documents: Arc<SharedDocuments>, file: &Path, now: Timestamp) -> io::Result<Self> {
        if existing(std::fs::metadata(file))?.is_some() {
            let known = file::read(file, now)?;
            documents.make(DOCUMENT, file::text(&known)).await.map_err(io::Error::other)?;
        }
        let opened = Self { documents, read: RwLock::default(), reading: Mutex::default() };
        opened.read_again().await.map_err(io::Error::other)?;
        Ok(opened)
    }

    async fn read_again(&self) -> Result<(), Unusable> {
        let arrived = Instant::now();
        let _reading = self.reading.lock().await;
        let version = self.documents.look(arrived).await?.version(DOCUMENT);
        let is_known = |read: &LastRead| !read.is_outdated && read.version == version;
        if is_known(&self.read.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let (version, text) = self.documents.read(DOCUMENT).await?.unzip();
        // Nobody asks for an expired session.
        let known = parsed(text.as_deref(), Timestamp::from_millis(0))?;
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = LastRead { version, known, is_outdated: false };
        Ok(())
    }
}

fn parsed(text: Option<&[u8]>, now: Timestamp) -> io::Result<Known> {
    file::parse_all(text.unwrap_or_default(), Path::new(DOCUMENT), now)
}

#[async_trait]
impl RevokedSessions for RevokedShared {
    async fn refresh(&self) {
        let reason = match tokio::time::timeout(MAX_READ, self.read_again()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "they were not read in time".to_owned(),
        };
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut read.is_outdated, true) {
            tracing::error!(reason, "the revoked sessions cannot be read, so every session is refused");
        }
    }

    fn has(&self, session: &SessionMark) -> bool {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        read.is_outdated || read.known.has(session)
    }

    async fn revoke(&self, session: SessionMark, now: Timestamp) -> Result<(), NotRevoked> {
        let revoke = |text: Option<&[u8]>| {
            let mut known = parsed(text, now)?;
            known.revoke(&session, now);
            Ok::<_, Unusable>(file::text(&known))
        };
        let failed = |error: Unusable| NotRevoked(format!("cannot record a revoked session: {error}"));
        self.documents.change(DOCUMENT, revoke).await.map_err(failed)?;
        // After this, no look that began before the change counts at any host.
        WallClock.sleep(LOOK).await;
        self.read_again().await.map_err(failed)
    }

    fn revoked_until(&self, token: Digest, opened_by: OpenedBy) -> Option<Timestamp> {
        self.read.read().unwrap_or_else(PoisonError::into_inner).known.revoked_until((token, opened_by))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::RevokedFile;
    use super::super::tests::{at, session};
    use super::*;
    use crate::shared_documents::tests::{InMemory, window};

    async fn host(database: &Arc<InMemory>, file: &Path) -> RevokedShared {
        RevokedShared::open(database.host(), file, at(0)).await.unwrap()
    }

    fn no_file() -> PathBuf {
        tempfile::tempdir().unwrap().path().join("ended-sessions")
    }

    #[tokio::test]
    async fn log_out_at_one_host_counts_at_the_other() {
        let database = Arc::default();
        let (a, b) = (host(&database, &no_file()).await, host(&database, &no_file()).await);
        let (one, two, living) = (session("a", 1, 10), session("b", 2, 20), session("a", 3, 20));
        for (from, to, ended) in [(&a, &b, one), (&b, &a, two)] {
            from.revoke(ended, at(0)).await.unwrap();
            assert!(from.has(&ended));
            to.refresh().await;
            assert!(to.has(&ended) && !to.has(&living));
        }
        assert!(b.has(&one), "no host forgets what the other has revoked");
        let later = host(&database, &no_file()).await;
        assert!(later.has(&one) && later.has(&two) && !later.has(&living));
    }

    #[tokio::test]
    async fn sessions_in_a_data_folder_are_taken_over_once() {
        let (database, folder) = (Arc::new(InMemory::default()), tempfile::tempdir().unwrap());
        let file = folder.path().join("ended-sessions");
        let (before, after) = (session("a", 1, 10), session("a", 2, 10));
        RevokedFile::open(&file, at(0)).unwrap().revoke(before, at(0)).await.unwrap();
        let line = format!("before {} login 7\n", Digest::of("b"));
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &line).unwrap();
        let shared = host(&database, &file).await;
        assert!(shared.has(&before));
        assert_eq!(shared.revoked_until(Digest::of("b"), OpenedBy::LogIn), Some(at(7)));
        shared.revoke(after, at(0)).await.unwrap();
        assert!(host(&database, &file).await.has(&after), "an old file does not undo a log-out");
    }

    #[tokio::test]
    async fn database_that_does_not_answer_refuses_every_session() {
        let database = Arc::new(InMemory::default());
        let (host, living) = (host(&database, &no_file()).await, session("a", 1, 10));
        assert!(!host.has(&living));
        *database.is_down.lock().unwrap() = true;
        assert!(host.revoke(living, at(0)).await.is_err(), "a log-out that is not stored is an error");
        window().await;
        host.refresh().await;
        assert!(host.has(&living));
        *database.is_down.lock().unwrap() = false;
        host.refresh().await;
        assert!(!host.has(&living));
    }
}
