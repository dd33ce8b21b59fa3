//! The tokens, the revoked sessions and the keys of a host. They are not in its store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use domain::Timestamp;
use server::RevokedSessions;

use crate::keys::Keys;
use crate::revoked::{self, RevokedFile, RevokedShared};
use crate::shared_documents::SharedDocuments;
use crate::tokens::{TokenError, Tokens};

/// Where the tokens, the revoked sessions and the keys of a host are.
#[derive(Clone)]
pub(crate) struct HostFiles {
    /// The data folder.
    pub(crate) folder: PathBuf,
    pub(crate) keys: Keys,
    /// The documents of the database, if the host has one. Then tokens and revoked sessions are there.
    pub(crate) shared: Option<Arc<SharedDocuments>>,
}

impl HostFiles {
    pub(crate) async fn tokens(&self) -> Result<Tokens, TokenError> {
        match &self.shared {
            Some(shared) => Tokens::shared(&self.folder, shared.clone()).await,
            None => Tokens::open(&self.folder),
        }
    }

    pub(crate) async fn revoked(&self, now: Timestamp) -> io::Result<Arc<dyn RevokedSessions>> {
        let file = self.folder.join(revoked::FILE);
        Ok(match &self.shared {
            Some(shared) => Arc::new(RevokedShared::open(shared.clone(), &file, now).await?),
            None => Arc::new(RevokedFile::open(&file, now)?),
        })
    }
}
