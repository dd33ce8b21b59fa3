//! Bearer tokens with their holders and roles.
//!
//! `<data>/tokens.json` has the SHA-256 of each token and never the token. A token has 256 random bits, so its hash needs no
//! salt and no stretching. A change replaces the file, and a request that authenticates looks for that: a running host sees a
//! new or revoked token at the next request. A thread that may block looks at the metadata of the file, and reads a new
//! file. A look counts for all requests of the next `LOOK`, so that few requests wait for a thread. A change waits as
//! long before it returns: every later request looks again.
//!
//! The hosts on one database have the same text in a document of the database, which a look asks for its version.

mod file;
mod first;
mod mcp;
mod moving;
mod reading;
#[cfg(test)]
mod two_hosts;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dispatch::ports::{Clock as _, Principals, StoreFault};
use domain::{Digest, Principal, PrincipalId, Timestamp, principal::Channel};
use file::Content;
pub use file::TokenHolder;
pub(crate) use moving::MARKER;
use oauth::is_reserved;
use reading::{Known, MAX_READ, look};
use server::Authenticate;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;

use crate::clock::WallClock;
use crate::config::Config;
#[cfg(feature = "postgres")]
use crate::config::ConfigError;
use crate::shared_documents::{LOOK, SharedDocuments};

/// The prefix of every token, by which scanners recognise a leaked one.
const PREFIX: &str = "tg_";

/// The maximal number of tokens. Each authentication compares with all of them.
const MAX_TOKENS: usize = 10_000;

/// The name of the document in the database. It has the content of the file.
pub(crate) const DOCUMENT: &str = "tokens";

/// The name of the file in a data folder.
pub(crate) const FILE: &str = "tokens.json";

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
    /// The tokens of this data folder were moved to the database.
    #[error(
        "the tokens of {} are in the database of the hosts: name their configuration with --config. To use the data folder alone \
         again, remove this file and the file session-key, and make new tokens",
        .0.display()
    )]
    Moved(PathBuf),
    /// The tokens of this data folder will be moved to the database.
    #[error("the tokens of {} are not in the database yet; start the host once, which moves them there", .0.display())]
    NotMoved(PathBuf),
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
    /// The database of the hosts failed.
    #[error("the tokens in the database cannot be used: {0}")]
    Database(#[from] StoreFault),
    /// The settings of the database are invalid.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database of the hosts cannot be used.
    #[cfg(feature = "postgres")]
    #[error("the tokens in the database cannot be used")]
    Connect(#[from] store::PostgresError),
    /// The maximal number of tokens is reached.
    #[error("there are {MAX_TOKENS} tokens, which is the maximum; revoke some")]
    TooMany,
}

/// The tokens of a host, or of all hosts on one database.
pub struct Tokens {
    /// The data folder, with the tokens of this machine.
    folder: PathBuf,
    place: Place,
    known: Arc<RwLock<Known>>,
    /// Held by the thread that looks for requests.
    looking: Arc<Mutex<()>>,
}

/// Where the tokens are.
enum Place {
    /// In the data folder.
    File,
    /// In the database.
    Shared(Arc<SharedDocuments>),
}

/// Whether a document can be the file of a data folder.
pub(crate) fn check(document: &[u8], path: &Path) -> Result<(), TokenError> {
    file::Content::parse(document, path).map(drop)
}

impl Tokens {
    /// The tokens in a data folder. The file may be missing.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn open(folder: &Path) -> Result<Self, TokenError> {
        let tokens = Self::of(folder, Place::File);
        look(&tokens.path(), &tokens.known)?;
        Ok(tokens)
    }

    /// The tokens of the hosts on a database. The first host that opens them moves those of its data folder there.
    pub(crate) async fn shared(folder: &Path, documents: Arc<SharedDocuments>) -> Result<Self, TokenError> {
        let tokens = Self::of(folder, Place::Shared(documents.clone()));
        tokens.move_to(&documents).await?;
        tokens.read_again().await?;
        Ok(tokens)
    }

    /// The tokens of the host with this configuration, for a command beside it.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn configured(config: &Config, folder: &Path) -> Result<Self, TokenError> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = config.database()? {
            let documents = store::Documents::connect(&settings).await?;
            let tokens = Self::of(folder, Place::Shared(Arc::new(SharedDocuments::new(Arc::new(documents)))));
            if tokens.has_own()? && tokens.is_unused().await? {
                return Err(TokenError::NotMoved(tokens.path()));
            }
            tokens.read_again().await?;
            return Ok(tokens);
        }
        let _ = config;
        let failed =
            |reason| TokenError::Io { attempted: "move the tokens of an import to", path: folder.to_owned(), reason };
        crate::moving::complete(folder).map_err(failed)?;
        Self::open(folder)
    }

    fn of(folder: &Path, place: Place) -> Self {
        Self { folder: folder.to_owned(), place, known: Arc::default(), looking: Arc::default() }
    }

    /// The name of the file with the first admin token, for programs that can read the data folder.
    pub const ADMIN_FILE: &str = "admin-token";

    /// Its path.
    #[must_use]
    pub fn admin_file(folder: &Path) -> PathBuf {
        folder.join(Self::ADMIN_FILE)
    }

    /// The present time. It is that of the database if hosts share it, because their votes and answers have its times too.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn now(&self) -> Result<Timestamp, TokenError> {
        match &self.place {
            Place::File => Ok(WallClock.now()),
            Place::Shared(documents) => Ok(documents.now().await?),
        }
    }

    /// Makes a token. It cannot be read again later.
    ///
    /// # Errors
    /// [`TokenError`]. Then nothing has changed.
    pub async fn create(&self, holder: TokenHolder) -> Result<String, TokenError> {
        let token = new_token()?;
        self.add(holder, &token).await?;
        Ok(token)
    }

    async fn add(&self, holder: TokenHolder, token: &str) -> Result<(), TokenError> {
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
            content.tokens.push((holder.clone(), digest(token)));
            Ok(())
        })
        .await
    }

    /// Revokes the token of this name. The next request with it is refused. Its open event streams end at their next check
    /// (`server.recheck_ms`).
    ///
    /// # Errors
    /// [`TokenError`]. Then nothing has changed.
    pub async fn revoke(&self, name: &PrincipalId) -> Result<(), TokenError> {
        self.change(|content| {
            let before = content.tokens.len();
            content.tokens.retain(|(known, _)| known.name != *name);
            if content.tokens.len() == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
        })
        .await
    }

    /// The holders of tokens, oldest token first.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn list(&self) -> Result<Vec<TokenHolder>, TokenError> {
        self.read_again().await?;
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
        self.folder.join(FILE)
    }

    fn io(&self, attempted: &'static str) -> impl FnOnce(io::Error) -> TokenError + use<> {
        let path = self.path();
        move |reason| TokenError::Io { attempted, path, reason }
    }

    /// Changes the tokens so that simultaneous changes of other programs and hosts are all kept.
    async fn change(
        &self,
        mut change: impl FnMut(&mut Content) -> Result<(), TokenError> + Send,
    ) -> Result<(), TokenError> {
        match &self.place {
            Place::File => self.change_file(change)?,
            Place::Shared(documents) => {
                let of_document = |text: Option<&[u8]>| {
                    let parse = |text| Content::parse(text, Path::new(DOCUMENT));
                    let mut content = text.map(parse).transpose()?.unwrap_or_default();
                    change(&mut content)?;
                    content.to_text()
                };
                documents.change(DOCUMENT, of_document).await?;
            }
        }
        self.changed().await
    }

    /// After this, no look that began before the change counts at any host.
    async fn changed(&self) -> Result<(), TokenError> {
        WallClock.sleep(LOOK).await;
        self.read_again().await
    }

    /// Changes the file under a lock that programs share.
    fn change_file(&self, mut change: impl FnMut(&mut Content) -> Result<(), TokenError>) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let path = self.path();
        let mut content = Content::read(&path)?;
        change(&mut content)?;
        content.write(&path)
    }

    /// Locks the file for other programs.
    fn lock(&self) -> Result<File, TokenError> {
        let lock = self.folder.join("tokens.lock");
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let opened = opened.and_then(|file| file.lock().map(|()| file));
        opened.map_err(|reason| TokenError::Io { attempted: "lock", path: lock, reason })
    }
}

/// Without the digests of the tokens.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// While the tokens cannot be read, none is valid.
#[async_trait]
impl Authenticate for Tokens {
    async fn refresh(&self) {
        self.refresh_within(MAX_READ).await;
    }

    fn is_readable(&self) -> bool {
        !self.known.read().unwrap_or_else(PoisonError::into_inner).is_outdated
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

fn new_token() -> Result<String, TokenError> {
    let mut bits = [0_u8; 32];
    getrandom::fill(&mut bits).map_err(TokenError::NoRandomness)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
