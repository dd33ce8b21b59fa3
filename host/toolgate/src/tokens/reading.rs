//! Looks for new and revoked tokens, for requests and for commands.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::file::{Content, Stamp};
use super::{DOCUMENT, Place, TokenError, Tokens};
use crate::shared_documents::{SharedDocuments, counts};

/// A request waits at most this long for the tokens.
pub(super) const MAX_READ: Duration = Duration::from_secs(10);

/// The tokens when they were last read.
#[derive(Debug, Default)]
pub(super) struct Known {
    stamp: Option<Stamp>,
    pub(super) content: Content,
    /// When the last look for a request began.
    looked: Option<Instant>,
    /// Whether newer tokens cannot be read. Then no token is valid.
    pub(super) is_outdated: bool,
}

impl Tokens {
    /// Reads the tokens again if they were replaced.
    pub(super) async fn read_again(&self) -> Result<(), TokenError> {
        match &self.place {
            Place::File => look(&self.path(), &self.known),
            Place::Shared(documents) => {
                let arrived = Instant::now();
                let _looking = self.looking.lock().await;
                look_at_document(documents, &self.known, arrived).await
            }
        }
    }

    /// As [`Tokens::read_again`], in a thread that may block. At most one thread looks, and its look serves every request
    /// that arrived before it began.
    async fn look_elsewhere(&self) -> Result<(), TokenError> {
        let arrived = Instant::now();
        if self.was_looked_at(arrived) {
            return Ok(());
        }
        let looking = self.looking.clone().lock_owned().await;
        if self.was_looked_at(arrived) {
            return Ok(());
        }
        if let Place::Shared(documents) = &self.place {
            return look_at_document(documents, &self.known, arrived).await;
        }
        let (known, path) = (self.known.clone(), self.path());
        let looked = tokio::task::spawn_blocking(move || {
            let _looking = looking;
            let began = Instant::now();
            look(&path, &known)?;
            known.write().unwrap_or_else(PoisonError::into_inner).looked = Some(began);
            Ok(())
        });
        looked.await.map_err(|error| TokenError::Unreadable { path: self.path(), reason: error.to_string() })?
    }

    /// Whether a look counts for a request that arrived at this time.
    fn was_looked_at(&self, arrived: Instant) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        !known.is_outdated && known.looked.is_some_and(|began| counts(began, arrived))
    }

    /// Reads changed tokens in time: a request does this before it looks at them.
    pub(super) async fn refresh_within(&self, time: Duration) {
        let reason = match tokio::time::timeout(time, self.look_elsewhere()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "they were not read in time".to_owned(),
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut known.is_outdated, true) {
            tracing::error!(reason, "the tokens cannot be read, so every token is refused");
        }
    }
}

/// Reads the file if it is another one than the last time.
pub(super) fn look(path: &Path, known: &RwLock<Known>) -> Result<(), TokenError> {
    #[cfg(all(test, unix))]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    let failed = |reason| TokenError::Io { attempted: "read the metadata of", path: path.to_owned(), reason };
    let stamp = Stamp::of(path).map_err(failed)?;
    if is_known(known, stamp.as_ref()) {
        return Ok(());
    }
    let content = Content::read(path)?;
    let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
    (known.stamp, known.content, known.is_outdated) = (stamp, content, false);
    Ok(())
}

/// Reads the document of the database if it has another version than the last time. Only one caller at a time looks, so no older
/// version replaces a newer one.
async fn look_at_document(
    documents: &Arc<SharedDocuments>,
    known: &RwLock<Known>,
    arrived: Instant,
) -> Result<(), TokenError> {
    let look = documents.look(arrived).await?;
    let stamp = look.version(DOCUMENT).map(Stamp::Version);
    if !is_known(known, stamp.as_ref()) {
        let (stamp, content) = match documents.read(DOCUMENT).await? {
            None => (None, Content::default()),
            Some((version, text)) => (Some(Stamp::Version(version)), Content::parse(&text, Path::new(DOCUMENT))?),
        };
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        (known.stamp, known.content, known.is_outdated) = (stamp, content, false);
    }
    known.write().unwrap_or_else(PoisonError::into_inner).looked = Some(look.began);
    Ok(())
}

fn is_known(known: &RwLock<Known>, stamp: Option<&Stamp>) -> bool {
    let known = known.read().unwrap_or_else(PoisonError::into_inner);
    !known.is_outdated && known.stamp.as_ref() == stamp
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::shared_documents::LOOK;
    use domain::Timestamp;
    use server::Authenticate as _;

    thread_local! {
        /// How often this thread has looked at a file.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A named pipe simulates a disk that does not answer.
    #[tokio::test]
    async fn while_the_file_is_not_read_in_time_no_token_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(folder.path()).unwrap();
        tokens.make_admin(Timestamp::from_millis(1)).await.unwrap();
        let token = std::fs::read_to_string(Tokens::admin_file(folder.path())).unwrap();
        let path = tokens.path();
        let valid = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        tokens.refresh_within(Duration::ZERO).await;
        assert!(tokens.principal(token.trim()).is_none());
        // The thread that reads the pipe ends.
        std::fs::write(&path, &valid).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &valid).unwrap();
        tokens.refresh_within(MAX_READ).await;
        assert!(tokens.principal(token.trim()).is_some());
    }

    #[tokio::test]
    async fn no_thread_that_serves_requests_looks_at_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [running, program] = [(); 2].map(|()| Tokens::open(folder.path()).unwrap());
        for _ in 0..2 {
            program.make_admin(Timestamp::from_millis(1)).await.unwrap();
            let token = std::fs::read_to_string(Tokens::admin_file(folder.path())).unwrap();
            let looks = LOOKS.get();
            server::Authenticate::refresh(&running).await;
            assert!(running.principal(token.trim()).is_some(), "the next request knows the new token");
            assert_eq!(LOOKS.get(), looks);
        }
    }

    #[tokio::test]
    async fn requests_after_a_look_do_not_wait_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(folder.path()).unwrap();
        let looked = |at| tokens.known.write().unwrap().looked = Some(at);
        let _disk_that_hangs = tokens.looking.clone().lock_owned().await;
        looked(Instant::now() + MAX_READ);
        assert!(matches!(tokio::time::timeout(Duration::ZERO, tokens.look_elsewhere()).await, Ok(Ok(()))));
        looked(Instant::now().checked_sub(Duration::from_millis(LOOK.millis())).unwrap());
        assert!(tokio::time::timeout(Duration::ZERO, tokens.look_elsewhere()).await.is_err());
    }
}
