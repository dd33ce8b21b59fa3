//! Bearer tokens: who holds which, and what they may do.
//!
//! `<data>/tokens.json` keeps the SHA-256 of each token and never the token. A token is 256 random bits, so a hash without
//! salt and stretching is as good as one with. The file is replaced as a whole, and each authentication looks whether it
//! was: a token that is made or revoked while the host runs counts from the next request on.

mod file;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Digest, Principal, PrincipalId, Role, Timestamp};
pub use file::Holder;
use file::{Content, Stamp};
use server::Authenticate;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::keys::private;

/// What every token begins with, so that one that leaked is recognised for what it is.
const PREFIX: &str = "tg_";

/// The most tokens of a host. Each authentication compares with all of them.
const MOST: usize = 10_000;

/// Why tokens could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file system.
    #[error("could not {attempted} {}", path.display())]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        reason: io::Error,
    },
    /// The file holds something else.
    #[error("{} does not hold tokens that this version of toolgate can read: {reason}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness: {0}")]
    NoRandomness(getrandom::Error),
    /// There is such a token already.
    #[error("there is a token with the name {0} already; revoke it first, or choose another name")]
    NameTaken(PrincipalId),
    /// The name is the host's own.
    #[error("the name {0} is the host's own, under which it acts when nobody does; choose another")]
    NameReserved(PrincipalId),
    /// There is no such token.
    #[error("there is no token with the name {0}")]
    Unknown(PrincipalId),
    /// There are too many.
    #[error("there are {MOST} tokens, and a host keeps no more; revoke some")]
    TooMany,
}

/// The tokens of a host.
#[derive(Debug)]
pub struct Tokens {
    folder: PathBuf,
    known: RwLock<(Option<Stamp>, Content)>,
}

impl Tokens {
    /// The tokens in a host's own folder. None yet is fine.
    ///
    /// # Errors
    /// When there is a file that cannot be read.
    pub fn open(folder: &Path) -> Result<Self, TokenError> {
        let tokens = Self { folder: folder.to_owned(), known: RwLock::default() };
        tokens.refresh()?;
        Ok(tokens)
    }

    /// The file in which the first admin token is kept, for the programs of whoever may read the folder.
    #[must_use]
    pub fn admin_file(folder: &Path) -> PathBuf {
        folder.join("admin-token")
    }

    /// Makes the first admin token and keeps it beside the others, unless there is or was one. Whether it did.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn first_start(&self, now: Timestamp) -> Result<bool, TokenError> {
        let is_admin = |holder: &Holder| holder.roles.contains(&Role::Admin);
        let was_made = self.path().exists() && Self::admin_file(&self.folder).exists();
        if was_made || self.list()?.iter().any(is_admin) {
            return Ok(false);
        }
        let token = new_token()?;
        // Written before it counts: a start that is killed in between begins anew and leaves no token that nobody has.
        let path = Self::admin_file(&self.folder);
        let written = private(&path).and_then(|mut file| {
            file.write_all(format!("{token}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|reason| TokenError::Io { attempted: "write", path, reason })?;
        self.add(
            Holder {
                name: admin_name(),
                roles: vec![Role::Admin],
                groups: Vec::new(),
                conversation: None,
                created_at: now,
            },
            &token,
        )?;
        Ok(true)
    }

    /// Makes a token. This is the only time that anybody sees it.
    ///
    /// # Errors
    /// [`TokenError`]; nothing has changed.
    pub fn create(&self, holder: Holder) -> Result<String, TokenError> {
        let token = new_token()?;
        self.add(holder, &token)?;
        Ok(token)
    }

    fn add(&self, holder: Holder, token: &str) -> Result<(), TokenError> {
        // Its answers would look like expiries.
        if holder.name == PrincipalId::system() {
            return Err(TokenError::NameReserved(holder.name));
        }
        self.change(|content| {
            if content.tokens.iter().any(|(known, _)| known.name == holder.name) {
                return Err(TokenError::NameTaken(holder.name.clone()));
            }
            if content.tokens.len() >= MOST {
                return Err(TokenError::TooMany);
            }
            content.tokens.push((holder, digest(token)));
            Ok(())
        })
    }

    /// Revokes the token of this name. It counts no more from the next request on, and event streams that are open under it
    /// end as soon as they look again (`door.recheck_ms`).
    ///
    /// # Errors
    /// [`TokenError`]; nothing has changed.
    pub fn revoke(&self, name: &PrincipalId) -> Result<(), TokenError> {
        self.change(|content| {
            let before = content.tokens.len();
            content.tokens.retain(|(known, _)| known.name != *name);
            if content.tokens.len() == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
        })
    }

    /// Who holds tokens, in the order of their making.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn list(&self) -> Result<Vec<Holder>, TokenError> {
        self.refresh()?;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Ok(known.1.tokens.iter().map(|(holder, _)| holder.clone()).collect())
    }

    /// The last token that is the one that is asked for; no two are.
    fn last(&self, is_it: impl Fn(&Holder, &[u8; 32]) -> bool) -> Option<(Principal, Digest)> {
        if let Err(error) = self.refresh() {
            tracing::error!(%error, "the tokens cannot be read, so nobody is let in");
            return None;
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (holder, digest) in &known.1.tokens {
            if is_it(holder, digest) {
                found = Some((holder, digest));
            }
        }
        found.map(|(holder, digest)| (principal(holder), Digest::from_bytes(*digest)))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    /// Reads the file anew if it is another than before.
    fn refresh(&self) -> Result<(), TokenError> {
        let path = self.path();
        let stamp =
            Stamp::of(&path).map_err(|reason| TokenError::Io { attempted: "look at", path: path.clone(), reason })?;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).0 == stamp {
            return Ok(());
        }
        let content = Content::read(&path)?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = (stamp, content);
        Ok(())
    }

    /// Changes the file under a lock that programs share, so that two changes at once both count.
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
        self.refresh()
    }
}

/// While the file cannot be read, nobody is known.
impl Authenticate for Tokens {
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

fn principal(holder: &Holder) -> Principal {
    Principal {
        id: holder.name.clone(),
        roles: holder.roles.iter().copied().collect(),
        groups: holder.groups.clone(),
        conversation: holder.conversation.clone(),
        link: None,
    }
}

/// The name of the principal that holds the first token.
fn admin_name() -> PrincipalId {
    #[expect(clippy::expect_used, reason = "a constant that is a valid name, as a test shows")]
    PrincipalId::new("admin").expect("a name")
}

fn new_token() -> Result<String, TokenError> {
    let mut bits = [0_u8; 32];
    getrandom::fill(&mut bits).map_err(TokenError::NoRandomness)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
