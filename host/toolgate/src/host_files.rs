//! What a host keeps beside its turns: its tokens and its keys.

use std::path::PathBuf;

use crate::keys::Keys;
use crate::tokens::{TokenError, Tokens};

/// Where the tokens and the keys of a host are.
#[derive(Clone)]
pub(crate) struct HostFiles {
    /// The data folder.
    pub(crate) folder: PathBuf,
    pub(crate) keys: Keys,
}

impl HostFiles {
    pub(crate) fn tokens(&self) -> Result<Tokens, TokenError> {
        Tokens::open(&self.folder)
    }
}
