//! Sessions that somebody logged out of, for as long as they would have lasted. One file, a line for each; a thread of its own
//! appends what comes together, syncs it once, and answers only then. Whoever asks whether a session has ended waits for no disk.
//!
//! It is bounded: of one token a number of sessions is kept one by one, and of more than that the older ones have all ended.
//! So whoever logs in and out for ever ends sessions of that one token, and nobody's log-out is ever refused.

mod file;
mod known;

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use domain::{Digest, Timestamp};
use server::{NotEnded, SessionMark};
use tokio::sync::{mpsc, oneshot};

use self::file::EndedLog;
use self::known::Known;

/// How many log-outs wait for the thread; more wait for room.
const QUEUE: usize = 256;

/// Sessions that have ended. The folder has one host, and the host one of these.
#[derive(Debug, Clone)]
pub(crate) struct EndedFile {
    known: Arc<RwLock<Known>>,
    queue: mpsc::Sender<End>,
}

/// A session to end, when, and who waits for it.
#[derive(Debug)]
struct End {
    session: SessionMark,
    now: Timestamp,
    done: oneshot::Sender<Result<(), NotEnded>>,
}

impl EndedFile {
    /// Reads the file, or makes it, and leaves out what has expired.
    pub(crate) fn open(path: &Path, now: Timestamp) -> io::Result<Self> {
        let known = file::read(path, now)?;
        let log = EndedLog::open(path, &known)?;
        let known = Arc::new(RwLock::new(known));
        let (queue, ends) = mpsc::channel(QUEUE);
        let shared = known.clone();
        std::thread::Builder::new().name("toolgate-sessions".into()).spawn(move || write(log, ends, &shared))?;
        Ok(Self { known, queue })
    }
}

#[async_trait]
impl server::EndedSessions for EndedFile {
    fn has(&self, session: &SessionMark) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).has(session)
    }

    async fn end(&self, session: SessionMark, now: Timestamp) -> Result<(), NotEnded> {
        let (done, ended) = oneshot::channel();
        let gone = || NotEnded("the thread that writes ended sessions down is gone; start the host anew".to_owned());
        self.queue.send(End { session, now, done }).await.map_err(|_| gone())?;
        ended.await.unwrap_or_else(|_| Err(gone()))
    }

    fn all_until(&self, token: Digest, by_link: bool) -> Option<Timestamp> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).all_until((token, by_link))
    }
}

/// Writes down what comes, until nobody can send anything any more.
fn write(mut log: EndedLog, mut ends: mpsc::Receiver<End>, known: &RwLock<Known>) {
    let mut batch = Vec::with_capacity(QUEUE);
    while ends.blocking_recv_many(&mut batch, QUEUE) > 0 {
        let sessions: Vec<SessionMark> = batch.iter().map(|end| end.session).collect();
        // Only this thread writes, so what it reads here stays so; others read meanwhile.
        let next = {
            let mut next = known.read().unwrap_or_else(PoisonError::into_inner).clone();
            batch.iter().for_each(|end| next.end(&end.session, end.now));
            next
        };
        let written = log.append(&sessions, &next);
        if written.is_ok() {
            *known.write().unwrap_or_else(PoisonError::into_inner) = next;
        }
        for end in batch.drain(..) {
            let failed = |error: &io::Error| NotEnded(format!("an ended session was not written down: {error}"));
            // Whoever has hung up is not told.
            let _ = end.done.send(written.as_ref().map(|_| ()).map_err(failed));
        }
    }
}

#[cfg(test)]
mod tests {
    use server::EndedSessions as _;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn session(token: &str, id: u128, expires: u64) -> SessionMark {
        SessionMark { id, token: Digest::of(token), by_link: false, expires: at(expires) }
    }

    async fn at_once(ended: &EndedFile, sessions: &[SessionMark]) -> Vec<Result<(), NotEnded>> {
        let mut tasks = tokio::task::JoinSet::new();
        for session in sessions.iter().copied() {
            let ended = ended.clone();
            tasks.spawn(async move { ended.end(session, at(0)).await });
        }
        tasks.join_all().await
    }

    #[tokio::test]
    async fn what_has_ended_stays_so_over_a_restart_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let ended = EndedFile::open(&path, at(0)).unwrap();
        let (early, late) = (session("a", 1, 10), session("a", 2, 20));
        for session in [early, late, late] {
            ended.end(session, at(0)).await.unwrap();
        }
        assert!(ended.has(&early) && ended.has(&late) && !ended.has(&session("a", 3, 20)));
        drop(ended);
        let ended = EndedFile::open(&path, at(10)).unwrap();
        assert!(ended.has(&late) && !ended.has(&early), "what has expired is forgotten: nobody can use it");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }

    #[tokio::test]
    async fn a_line_that_a_kill_cut_off_was_told_to_nobody_and_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let (whole, cut) = (session("a", 1, 10), session("a", 2, 20));
        let ended = EndedFile::open(&path, at(0)).unwrap();
        ended.end(whole, at(0)).await.unwrap();
        ended.end(cut, at(0)).await.unwrap();
        drop(ended);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 4]).unwrap();
        let ended = EndedFile::open(&path, at(0)).unwrap();
        assert!(ended.has(&whole) && !ended.has(&cut));
        ended.end(cut, at(0)).await.unwrap();
        drop(ended);
        assert!(EndedFile::open(&path, at(0)).unwrap().has(&cut));
        std::fs::write(&path, "anything else\n").unwrap();
        assert!(EndedFile::open(&path, at(0)).is_err(), "a file that means nothing is not taken for an empty one");
    }

    #[tokio::test]
    async fn what_an_older_host_wrote_still_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        std::fs::write(&path, format!("{:032x} 10\n{:032x} 20\n", 1, 2)).unwrap();
        for _ in 0..2 {
            let ended = EndedFile::open(&path, at(10)).unwrap();
            assert!(ended.has(&session("anybody", 2, 20)) && !ended.has(&session("anybody", 1, 10)));
        }
    }

    #[tokio::test]
    async fn a_disk_that_failed_once_is_tried_again_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let path = inside.join("ended-sessions");
        let ended = EndedFile::open(&path, at(0)).unwrap();
        let (before, failed) = (session("a", 1, 10), session("a", 2, 10));
        ended.end(before, at(0)).await.unwrap();
        // What has grown too long is written anew, which needs the folder.
        std::fs::rename(&inside, folder.path().join("away")).unwrap();
        let many: Vec<_> = (10..20_000).map(|id| session("b", id, 10 + id as u64)).collect();
        let mut refused = 0;
        for some in many.chunks(QUEUE) {
            refused += at_once(&ended, some).await.into_iter().filter(Result::is_err).count();
        }
        assert!(refused > 0, "without its folder it cannot be written anew");
        assert!(ended.end(failed, at(0)).await.is_err() && !ended.has(&failed), "what is not on disk has not happened");
        std::fs::rename(folder.path().join("away"), &inside).unwrap();
        ended.end(failed, at(0)).await.unwrap();
        drop(ended);
        let ended = EndedFile::open(&path, at(0)).unwrap();
        assert!(ended.has(&before) && ended.has(&failed));
    }

    #[tokio::test]
    async fn one_that_logs_in_and_out_for_ever_fills_neither_memory_nor_disk_and_keeps_nobody_from_logging_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended-sessions");
        let ended = EndedFile::open(&path, at(0)).unwrap();
        let other = session("other", 1, 5);
        ended.end(other, at(0)).await.unwrap();
        let loops: Vec<_> = (10..20_000).map(|id| session("looping", id, id as u64)).collect();
        for some in loops.chunks(QUEUE) {
            at_once(&ended, some).await.into_iter().for_each(Result::unwrap);
        }
        let another = session("another", 2, 5);
        ended.end(another, at(0)).await.unwrap();
        for _ in 0..2 {
            let ended = EndedFile::open(&path, at(0)).unwrap();
            assert!(loops.iter().chain([&other, &another]).all(|session| ended.has(session)));
            assert!(!ended.has(&session("another", 3, 5)) && !ended.has(&session("looping", 3, 20_000)));
            // One that is opened now ends later than all that have ended together, also where the clock says otherwise.
            let until = ended.all_until(Digest::of("looping"), false).unwrap().millis();
            assert!(ended.has(&session("looping", 3, until)) && !ended.has(&session("looping", 3, until + 1)));
            assert_eq!(
                (ended.all_until(Digest::of("looping"), true), ended.all_until(other.token, false)),
                (None, None)
            );
            assert!(std::fs::metadata(&path).unwrap().len() < 200_000, "20,000 lines would be over two million");
        }
    }
}
