//! The first admin token of a host, which makes the others possible.

use std::io::Write as _;

use domain::{PrincipalId, Timestamp, principal::Role};

use super::file::Content;
use super::{DOCUMENT, MAX_TOKENS, Place, TokenError, TokenHolder, Tokens, digest, new_token};
use crate::files::{existing, private};

impl Tokens {
    /// Makes the first admin token and writes it into the data folder, unless there is or was one. Returns whether it did. Of the
    /// hosts on one database, the first one makes it.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn first_start(&self, now: Timestamp) -> Result<bool, TokenError> {
        let holders = self.list().await?;
        let is_admin = |holder: &TokenHolder| holder.roles.contains(&Role::Admin);
        if holders.iter().any(is_admin) {
            return Ok(false);
        }
        match &self.place {
            Place::File if self.path().exists() && Self::admin_file(&self.folder).exists() => return Ok(false),
            Place::File => self.make_admin(now).await?,
            Place::Shared(_) if !self.is_unused().await? => return Ok(false),
            Place::Shared(documents) => {
                let (holder, token) = self.new_admin(&holders, now)?;
                let content = Content { tokens: vec![(holder, digest(&token))] };
                if !documents.make(DOCUMENT, content.to_text()?).await? {
                    // Another host has made the first one meanwhile.
                    existing(std::fs::remove_file(Self::admin_file(&self.folder))).map_err(self.io("remove"))?;
                    return Ok(false);
                }
                self.changed().await?;
            }
        }
        Ok(true)
    }

    /// Whether no token was ever made.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn is_unused(&self) -> Result<bool, TokenError> {
        match &self.place {
            Place::File => Ok(!self.path().exists()),
            Place::Shared(documents) => Ok(documents.read(DOCUMENT).await?.is_none()),
        }
    }

    /// Makes an admin token and writes it into [`Tokens::admin_file`].
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn make_admin(&self, now: Timestamp) -> Result<(), TokenError> {
        let (holder, token) = self.new_admin(&self.list().await?, now)?;
        self.add(holder, &token).await
    }

    /// Writes a new admin token into its file. It is not valid yet: a kill before that leaves no valid token that nobody has.
    fn new_admin(&self, holders: &[TokenHolder], now: Timestamp) -> Result<(TokenHolder, String), TokenError> {
        let is_free = |name: &PrincipalId| holders.iter().all(|holder| holder.name != *name);
        let name = admin_names().find(is_free).ok_or(TokenError::TooMany)?;
        let token = new_token()?;
        let path = Self::admin_file(&self.folder);
        let written = private(&path).and_then(|mut file| {
            file.write_all(format!("{token}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|reason| TokenError::Io { attempted: "write", path, reason })?;
        let roles = vec![Role::Admin];
        Ok((TokenHolder { name, roles, groups: Vec::new(), conversation: None, created_at: now }, token))
    }
}

/// The names for the holder of the admin token: `admin`, or the first free one of `admin-2`, `admin-3` and so on.
fn admin_names() -> impl Iterator<Item = PrincipalId> {
    let names = (1..=MAX_TOKENS).map(|n| if n == 1 { "admin".to_owned() } else { format!("admin-{n}") });
    names.filter_map(|name| PrincipalId::new(&name).ok())
}
