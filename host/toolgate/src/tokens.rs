//! Bearer tokens with their holders and roles.
//!
//! `<data>/tokens.json` has the SHA-256 of each token and never the token. A token has 256 random bits, so its hash needs no
//! salt and no stretching. A change replaces the file, and a request that authenticates looks for that: a running host sees a
//! new or revoked token at the next request. A thread that may block looks at the metadata of the file, and reads a new
//! file. A look counts for all requests of the next `LOOK`, so that few requests wait for a thread. A change waits as
//! long before it returns: every later request looks again.

mod file;
mod mcp;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dispatch::ports::Principals;
use domain::{
    Digest, Principal, PrincipalId, Timestamp,
    principal::{Channel, Role},
};
pub use file::TokenHolder;
use file::{Content, Stamp};
use oauth::is_reserved;
use server::Authenticate;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::files::private;

/// The prefix of every token, by which scanners recognise a leaked one.
const PREFIX: &str = "tg_";

/// The maximal number of tokens. Each authentication compares with all of them.
const MAX_TOKENS: usize = 10_000;

/// A request needs no look if one began at most this long before it arrived.
const LOOK: Duration = Duration::from_millis(10);

/// A request waits at most this long for the file.
const MAX_READ: Duration = Duration::from_secs(10);

/// Why tokens could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A file operation failed.
    #[error("could not {attempted} {}", path.display())]
    Io {
        /// The operation.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: io::Error,
    },
    /// The file cannot be parsed.
    #[error("cannot read the tokens in {}: {reason}; restore the file from a backup", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A newer toolgate wrote the file.
    #[error("{} has the version {found}, and this toolgate knows {known}; start a newer toolgate", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this toolgate reads.
        known: u32,
    },
    /// The operating system has no random bytes.
    #[error("the operating system has no random bytes: {0}")]
    NoRandomness(getrandom::Error),
    /// Another token has this name.
    #[error("another token has the name {0}; revoke it first, or choose another name")]
    NameTaken(PrincipalId),
    /// The host uses this name for its own actions, or for the subjects of an authorization server.
    #[error("the host keeps the name {0} for its own actions or for access tokens; choose another")]
    NameReserved(PrincipalId),
    /// There is no such token.
    #[error("there is no token with the name {0}")]
    Unknown(PrincipalId),
    /// The token in this file was revoked.
    #[error("the token in {} was revoked; remove the file, and the next start makes another token", .0.display())]
    Revoked(PathBuf),
    /// The maximal number of tokens is reached.
    #[error("there are {MAX_TOKENS} tokens, which is the maximum; revoke some")]
    TooMany,
}

/// The tokens of a host.
#[derive(Debug)]
pub struct Tokens {
    folder: PathBuf,
    known: Arc<RwLock<Known>>,
    /// Held by the thread that looks at the file for requests.
    looking: Arc<Mutex<()>>,
}

/// The file when it was last read.
#[derive(Debug, Default)]
struct Known {
    stamp: Option<Stamp>,
    content: Content,
    /// When the last look for a request began.
    looked: Option<Instant>,
    /// Whether a newer file cannot be read. Then no token is valid.
    is_outdated: bool,
}

impl Tokens {
    /// The tokens in a data folder. The file may be missing.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn open(folder: &Path) -> Result<Self, TokenError> {
        let tokens = Self { folder: folder.to_owned(), known: Arc::default(), looking: Arc::default() };
        tokens.read_again()?;
        Ok(tokens)
    }

    /// The name of the file with the first admin token, for programs that can read the data folder.
    pub const ADMIN_FILE: &str = "admin-token";

    /// Its path.
    #[must_use]
    pub fn admin_file(folder: &Path) -> PathBuf {
        folder.join(Self::ADMIN_FILE)
    }

    /// Makes the first admin token and writes it into the data folder, unless there is or was one. Returns whether it did.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn first_start(&self, now: Timestamp) -> Result<bool, TokenError> {
        let is_admin = |holder: &TokenHolder| holder.roles.contains(&Role::Admin);
        let was_made = self.path().exists() && Self::admin_file(&self.folder).exists();
        if was_made || self.list()?.iter().any(is_admin) {
            return Ok(false);
        }
        self.make_admin(now)?;
        Ok(true)
    }

    /// Whether no token was ever made in the folder.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        !self.path().exists()
    }

    /// Makes an admin token and writes it into [`Tokens::admin_file`].
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn make_admin(&self, now: Timestamp) -> Result<(), TokenError> {
        let taken: Vec<PrincipalId> = self.list()?.into_iter().map(|holder| holder.name).collect();
        let name = admin_names().find(|name| !taken.contains(name)).ok_or(TokenError::TooMany)?;
        let token = new_token()?;
        // The token is written before it is valid. So a kill in between leaves no valid token that nobody has.
        let path = Self::admin_file(&self.folder);
        let written = private(&path).and_then(|mut file| {
            file.write_all(format!("{token}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|reason| TokenError::Io { attempted: "write", path, reason })?;
        let roles = vec![Role::Admin];
        self.add(TokenHolder { name, roles, groups: Vec::new(), conversation: None, created_at: now }, &token)
    }

    /// Makes a token. It cannot be read again later.
    ///
    /// # Errors
    /// [`TokenError`]. Then nothing has changed.
    pub fn create(&self, holder: TokenHolder) -> Result<String, TokenError> {
        let token = new_token()?;
        self.add(holder, &token)?;
        Ok(token)
    }

    fn add(&self, holder: TokenHolder, token: &str) -> Result<(), TokenError> {
        // Answers under these names would look like expiries, or like answers of the subjects of an issuer.
        if holder.name == PrincipalId::system() || is_reserved(&holder.name) {
            return Err(TokenError::NameReserved(holder.name));
        }
        self.change(|content| {
            if content.tokens.iter().any(|(known, _)| known.name == holder.name) {
                return Err(TokenError::NameTaken(holder.name.clone()));
            }
            if content.tokens.len() >= MAX_TOKENS {
                return Err(TokenError::TooMany);
            }
            content.tokens.push((holder, digest(token)));
            Ok(())
        })
    }

    /// Revokes the token of this name. The next request with it is refused. Its open event streams end at their next check
    /// (`server.recheck_ms`).
    ///
    /// # Errors
    /// [`TokenError`]. Then nothing has changed.
    pub fn revoke(&self, name: &PrincipalId) -> Result<(), TokenError> {
        self.change(|content| {
            let before = content.tokens.len();
            content.tokens.retain(|(known, _)| known.name != *name);
            if content.tokens.len() == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
        })
    }

    /// The holders of tokens, oldest token first.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn list(&self) -> Result<Vec<TokenHolder>, TokenError> {
        self.read_again()?;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Ok(known.content.tokens.iter().map(|(holder, _)| holder.clone()).collect())
    }

    /// The last token that matches. At most one does. A token with the name of a subject, which an older toolgate could make,
    /// matches nothing.
    fn last(&self, matches: impl Fn(&TokenHolder, &[u8; 32]) -> bool) -> Option<(Principal, Digest)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (holder, digest) in
            known.content.tokens.iter().filter(|(holder, _)| !known.is_outdated && !is_reserved(&holder.name))
        {
            if matches(holder, digest) {
                found = Some((holder, digest));
            }
        }
        found.map(|(holder, digest)| (principal(holder), Digest::from_bytes(*digest)))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    /// Reads the file again if it was replaced.
    fn read_again(&self) -> Result<(), TokenError> {
        look(&self.path(), &self.known)
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
        !known.is_outdated && known.looked.is_some_and(|began| arrived < began + LOOK)
    }

    /// Reads changed tokens in time: a request does this before it looks at them.
    async fn refresh_within(&self, time: Duration) {
        let reason = match tokio::time::timeout(time, self.look_elsewhere()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the disk does not answer in time".to_owned(),
        };
        tracing::error!(reason, "the tokens cannot be read, so every token is refused");
        self.known.write().unwrap_or_else(PoisonError::into_inner).is_outdated = true;
    }

    /// Changes the file under a lock that programs share, so that simultaneous changes are all kept.
    fn change(&self, change: impl FnOnce(&mut Content) -> Result<(), TokenError>) -> Result<(), TokenError> {
        let io = |attempted, path: &Path| {
            let path = path.to_owned();
            move |reason| TokenError::Io { attempted, path, reason }
        };
        let lock = self.folder.join("tokens.lock");
        let lock: File = {
            let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
            opened.and_then(|file| file.lock().map(|()| file)).map_err(io("lock", &lock))?
        };
        let path = self.path();
        let mut content = Content::read(&path)?;
        change(&mut content)?;
        content.write(&path).map_err(io("write", &path))?;
        drop(lock);
        // A look of another host that began before the change does not count afterwards.
        thread::sleep(LOOK);
        self.read_again()
    }
}

/// Reads the file if it is another one than the last time.
fn look(path: &Path, known: &RwLock<Known>) -> Result<(), TokenError> {
    #[cfg(all(test, unix))]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    let failed = |reason| TokenError::Io { attempted: "read the metadata of", path: path.to_owned(), reason };
    let stamp = Stamp::of(path).map_err(failed)?;
    let before = known.read().unwrap_or_else(PoisonError::into_inner);
    if !before.is_outdated && before.stamp == stamp {
        return Ok(());
    }
    drop(before);
    let content = Content::read(path)?;
    let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
    (known.stamp, known.content, known.is_outdated) = (stamp, content, false);
    Ok(())
}

/// While the file cannot be read, no token is valid.
#[async_trait]
impl Authenticate for Tokens {
    async fn refresh(&self) {
        self.refresh_within(MAX_READ).await;
    }

    fn principal(&self, token: &str) -> Option<Principal> {
        self.holder(Digest::from_bytes(digest(token)))
    }

    fn holder(&self, token: Digest) -> Option<Principal> {
        // Compares with every token, so that the time taken does not tell where it was found.
        self.last(|_, digest| bool::from(digest.ct_eq(token.as_bytes()))).map(|(principal, _)| principal)
    }

    fn named(&self, name: &PrincipalId) -> Option<(Principal, Digest)> {
        self.last(|holder, _| holder.name == *name)
    }
}

/// A principal is its token. A later token with the same name is another principal. While the file cannot be read, those
/// that were known before are current: no request is accepted, and what they did before counts.
#[async_trait]
impl Principals for Tokens {
    async fn refresh(&self) {
        self.refresh_within(MAX_READ).await;
    }

    fn is_current(&self, id: &PrincipalId, since: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .content
            .tokens
            .iter()
            .any(|(holder, _)| holder.name == *id && holder.created_at <= since && !is_reserved(&holder.name))
    }
}

fn principal(holder: &TokenHolder) -> Principal {
    Principal {
        id: holder.name.clone(),
        roles: holder.roles.iter().copied().collect(),
        groups: holder.groups.clone(),
        conversation: holder.conversation.clone(),
        link: None,
        // The server puts the channel of the credential in its place.
        channel: Channel::Api,
        since: Some(holder.created_at),
    }
}

/// The names for the holder of the admin token: `admin`, or the first free one of `admin-2`, `admin-3` and so on.
fn admin_names() -> impl Iterator<Item = PrincipalId> {
    let names = (1..=MAX_TOKENS).map(|n| if n == 1 { "admin".to_owned() } else { format!("admin-{n}") });
    names.filter_map(|name| PrincipalId::new(&name).ok())
}

fn new_token() -> Result<String, TokenError> {
    let mut bits = [0_u8; 32];
    getrandom::fill(&mut bits).map_err(TokenError::NoRandomness)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How often this thread has looked at a file.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A named pipe simulates a disk that does not answer.
    #[tokio::test]
    async fn while_the_file_is_not_read_in_time_no_token_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(folder.path()).unwrap();
        tokens.make_admin(Timestamp::from_millis(1)).unwrap();
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
            program.make_admin(Timestamp::from_millis(1)).unwrap();
            let token = std::fs::read_to_string(Tokens::admin_file(folder.path())).unwrap();
            let looks = LOOKS.get();
            Authenticate::refresh(&running).await;
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
        looked(Instant::now().checked_sub(LOOK).unwrap());
        assert!(tokio::time::timeout(Duration::ZERO, tokens.look_elsewhere()).await.is_err());
    }
}
