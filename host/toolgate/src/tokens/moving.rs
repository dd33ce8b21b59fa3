//! Moves the tokens of a data folder to the database, once. Afterwards the file is a marker that no toolgate reads as tokens: with it
//! gone, or still full, a command that does not know of the database would revoke a token that stays valid.

use super::file::Content;
use super::{DOCUMENT, TokenError, Tokens};
use crate::files::{existing, replace};
use crate::shared_documents::SharedDocuments;

/// Older versions refuse it, because it has a newer version than they know.
pub(crate) const MARKER: &[u8] = b"{\"version\": 2, \"moved\": true}\n";

impl Tokens {
    /// Moves them to the database, if it has none. If it has some, those of the folder are given up.
    pub(super) async fn move_to(&self, documents: &SharedDocuments) -> Result<(), TokenError> {
        if !self.has_own()? {
            return Ok(());
        }
        let _lock = self.lock()?;
        let path = self.path();
        let Some(text) = existing(std::fs::read(&path)).map_err(self.io("read"))? else { return Ok(()) };
        let content = Content::parse(&text, &path)?;
        if documents.make(DOCUMENT, text).await? {
            tracing::info!(from = %path.display(), "the tokens of the data folder are now in the database");
        } else if !content.tokens.is_empty() {
            let tokens = content.tokens.len();
            tracing::warn!(
                from = %path.display(), tokens,
                "the database has tokens of other hosts; those of this data folder are not valid any more"
            );
        }
        replace(&path, MARKER).map_err(self.io("replace"))
    }

    /// Whether the data folder has tokens that were not moved.
    pub(super) fn has_own(&self) -> Result<bool, TokenError> {
        match Content::read(&self.path()) {
            Err(TokenError::Moved(_)) => Ok(false),
            content => content.map(|_| self.path().exists()),
        }
    }
}
