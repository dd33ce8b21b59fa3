//! Revoked sessions, until they would have expired. A thread appends several revocations to one file, syncs them together and
//! then answers. A check for revocation reads memory only.
//!
//! The hosts on one database have them in a document of the database instead.
//!
//! The number is bounded. If one token revokes too many sessions, all its older sessions become revoked. So a client that logs
//! in and out in a loop only revokes sessions of its own token, and no log-out is refused.

mod file;
mod known;
#[cfg(test)]
mod power_loss;
mod shared;

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use domain::{Digest, Timestamp};
use server::{NotRevoked, OpenedBy, SessionMark};
use tokio::sync::{mpsc, oneshot};

use self::file::RevokedLog;
use self::known::Known;
pub(crate) use self::shared::{DOCUMENT, RevokedShared};
use crate::files::{existing, replace};

/// The name of the file in a data folder.
pub(crate) const FILE: &str = "ended-sessions";

/// The maximal number of log-outs in the queue of the thread. Others wait until it has room.
const QUEUE: usize = 256;

/// Adds the revoked sessions of a document to those of a file. A line without its end counts for nothing, and must not spoil the next one.
pub(crate) fn add(path: &Path, document: &[u8]) -> io::Result<()> {
    let own = existing(std::fs::read(path))?.unwrap_or_default();
    let whole = document.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let both = [&document[..whole], &own].concat();
    replace(path, &file::text(&file::parse_all(&both, path, Timestamp::from_millis(0))?))
}

/// Whether a document can be added to the file.
pub(crate) fn check(document: &[u8], path: &Path) -> io::Result<()> {
    file::parse_all(document, path, Timestamp::from_millis(0)).map(drop)
}

/// The revoked sessions of a data folder.
#[derive(Debug, Clone)]
pub(crate) struct RevokedFile {
    known: Arc<RwLock<Known>>,
    queue: mpsc::Sender<Revocation>,
}

/// A session to revoke, the time, and the waiting caller.
#[derive(Debug)]
struct Revocation {
    session: SessionMark,
    now: Timestamp,
    done: oneshot::Sender<Result<(), NotRevoked>>,
}

impl RevokedFile {
    /// Reads or makes the file, and drops expired sessions.
    pub(crate) fn open(path: &Path, now: Timestamp) -> io::Result<Self> {
        let known = file::read(path, now)?;
        let log = RevokedLog::open(path, &known)?;
        let known = Arc::new(RwLock::new(known));
        let (queue, revocations) = mpsc::channel(QUEUE);
        let shared = known.clone();
        std::thread::Builder::new().name("toolgate-sessions".into()).spawn(move || write(log, revocations, &shared))?;
        Ok(Self { known, queue })
    }
}

#[async_trait]
impl server::RevokedSessions for RevokedFile {
    fn has(&self, session: &SessionMark) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).has(session)
    }

    async fn revoke(&self, session: SessionMark, now: Timestamp) -> Result<(), NotRevoked> {
        let (done, answer) = oneshot::channel();
        let stopped =
            || NotRevoked("the thread that records revoked sessions has stopped; restart the host".to_owned());
        self.queue.send(Revocation { session, now, done }).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    fn revoked_until(&self, token: Digest, opened_by: OpenedBy) -> Option<Timestamp> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).revoked_until((token, opened_by))
    }
}

/// Records revocations until every sender is dropped.
fn write(mut log: RevokedLog, mut revocations: mpsc::Receiver<Revocation>, known: &RwLock<Known>) {
    let mut batch = Vec::with_capacity(QUEUE);
    while revocations.blocking_recv_many(&mut batch, QUEUE) > 0 {
        let sessions: Vec<SessionMark> = batch.iter().map(|revocation| revocation.session).collect();
        // Only this thread writes, so the value stays current. Others can read in between.
        let next = {
            let mut next = known.read().unwrap_or_else(PoisonError::into_inner).clone();
            batch.iter().for_each(|revocation| next.revoke(&revocation.session, revocation.now));
            next
        };
        let written = log.append(&sessions, &next);
        if written.is_ok() {
            *known.write().unwrap_or_else(PoisonError::into_inner) = next;
        }
        for revocation in batch.drain(..) {
            let failed = |error: &io::Error| NotRevoked(format!("cannot record a revoked session: {error}"));
            // The caller may have dropped the request.
            let _ = revocation.done.send(written.as_ref().map(|_| ()).map_err(failed));
        }
    }
}

#[cfg(test)]
mod tests {
    use server::RevokedSessions as _;

    use super::*;

    pub(super) fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    pub(super) fn session(token: &str, id: u128, expires: u64) -> SessionMark {
        SessionMark { id, token: Digest::of(token), opened_by: OpenedBy::LogIn, expires: at(expires) }
    }

    pub(super) async fn at_once(revoked: &RevokedFile, sessions: &[SessionMark]) -> Vec<Result<(), NotRevoked>> {
        let mut tasks = tokio::task::JoinSet::new();
        for session in sessions.iter().copied() {
            let revoked = revoked.clone();
            tasks.spawn(async move { revoked.revoke(session, at(0)).await });
        }
        tasks.join_all().await
    }

    #[tokio::test]
    async fn a_revoked_session_stays_revoked_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        let (early, late) = (session("a", 1, 10), session("a", 2, 20));
        for session in [early, late, late] {
            revoked.revoke(session, at(0)).await.unwrap();
        }
        assert!(revoked.has(&early) && revoked.has(&late) && !revoked.has(&session("a", 3, 20)));
        drop(revoked);
        let revoked = RevokedFile::open(&path, at(10)).unwrap();
        assert!(revoked.has(&late) && !revoked.has(&early), "an expired session is dropped: nobody can use it");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }

    #[tokio::test]
    async fn a_line_cut_off_by_a_kill_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let (whole, cut) = (session("a", 1, 10), session("a", 2, 20));
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        revoked.revoke(whole, at(0)).await.unwrap();
        revoked.revoke(cut, at(0)).await.unwrap();
        drop(revoked);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 4]).unwrap();
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        assert!(revoked.has(&whole) && !revoked.has(&cut));
        revoked.revoke(cut, at(0)).await.unwrap();
        drop(revoked);
        assert!(RevokedFile::open(&path, at(0)).unwrap().has(&cut));
        std::fs::write(&path, "anything else\n").unwrap();
        let refused = RevokedFile::open(&path, at(0)).unwrap_err().to_string();
        assert!(refused.contains("line 1 of ") && refused.contains("ended-sessions is damaged"), "{refused}");
        std::fs::write(&path, b"\xff\xfe\n").unwrap();
        let refused = RevokedFile::open(&path, at(0)).unwrap_err().to_string();
        assert!(refused.contains("remove it together with `session-key`"), "{refused}");
    }

    #[tokio::test]
    async fn lines_of_an_older_host_are_still_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        std::fs::write(&path, format!("{:032x} 10\n{:032x} 20\n", 1, 2)).unwrap();
        for _ in 0..2 {
            let revoked = RevokedFile::open(&path, at(10)).unwrap();
            assert!(revoked.has(&session("anybody", 2, 20)) && !revoked.has(&session("anybody", 1, 10)));
        }
    }

    #[tokio::test]
    async fn a_failed_disk_is_tried_again_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let path = inside.join("ended-sessions");
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        let (before, failed) = (session("a", 1, 10), session("a", 2, 10));
        revoked.revoke(before, at(0)).await.unwrap();
        // A long file is rewritten, which needs the folder.
        std::fs::rename(&inside, folder.path().join("away")).unwrap();
        let many: Vec<_> = (10..20_000).map(|id| session("b", id, 10 + id as u64)).collect();
        let mut refused = 0;
        for some in many.chunks(QUEUE) {
            refused += at_once(&revoked, some).await.into_iter().filter(Result::is_err).count();
        }
        assert!(refused > 0, "without its folder the file cannot be rewritten");
        assert!(
            revoked.revoke(failed, at(0)).await.is_err() && !revoked.has(&failed),
            "a revocation that is not on disk has not happened"
        );
        std::fs::rename(folder.path().join("away"), &inside).unwrap();
        revoked.revoke(failed, at(0)).await.unwrap();
        drop(revoked);
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        assert!(revoked.has(&before) && revoked.has(&failed));
    }

    #[tokio::test]
    async fn a_log_in_loop_fills_no_disk_and_blocks_no_log_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let revoked = RevokedFile::open(&path, at(0)).unwrap();
        let other = session("other", 1, 5);
        revoked.revoke(other, at(0)).await.unwrap();
        let loops: Vec<_> = (10..20_000).map(|id| session("looping", id, id as u64)).collect();
        for some in loops.chunks(QUEUE) {
            at_once(&revoked, some).await.into_iter().for_each(Result::unwrap);
        }
        let another = session("another", 2, 5);
        revoked.revoke(another, at(0)).await.unwrap();
        for _ in 0..2 {
            let revoked = RevokedFile::open(&path, at(0)).unwrap();
            assert!(loops.iter().chain([&other, &another]).all(|session| revoked.has(session)));
            assert!(!revoked.has(&session("another", 3, 5)) && !revoked.has(&session("looping", 3, 20_000)));
            // A new session of the token must expire later than all its revoked ones.
            let until = revoked.revoked_until(Digest::of("looping"), OpenedBy::LogIn).unwrap().millis();
            assert!(revoked.has(&session("looping", 3, until)) && !revoked.has(&session("looping", 3, until + 1)));
            assert_eq!(
                (
                    revoked.revoked_until(Digest::of("looping"), OpenedBy::Link),
                    revoked.revoked_until(other.token, OpenedBy::LogIn)
                ),
                (None, None)
            );
            assert!(std::fs::metadata(&path).unwrap().len() < 200_000, "20,000 lines would be over two million");
        }
    }
}
