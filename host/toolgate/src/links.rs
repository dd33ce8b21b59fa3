//! One-time links for webhooks: made with the host's own key when a message is sent, and good for whoever holds a token then.

use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::Clock;
use domain::SuspensionId;
use webhook::Link;

use crate::clock::mint;
use crate::doors::Bearers;
use crate::keys;
use crate::tokens::Tokens;

/// Makes links of this host.
pub(crate) struct HostLinks {
    links: server::Links,
    clock: Arc<dyn Clock>,
}

impl HostLinks {
    /// With the key and the tokens of a data folder.
    ///
    /// # Errors
    /// When one of them cannot be read or made.
    pub(crate) fn open(folder: &Path, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let tokens = Tokens::open(folder).map_err(io::Error::other)?;
        Ok(Self { links: server::Links::new(keys::signing_key(folder)?, Arc::new(Bearers(tokens))), clock })
    }
}

#[async_trait]
impl webhook::Links for HostLinks {
    async fn link(&self, suspension: SuspensionId, wanted: &Link) -> Result<String, String> {
        let made = self.links.make(mint(), suspension, &wanted.principal, wanted.ttl, self.clock.now());
        let path = made.map_err(|error| error.to_string())?.path;
        Ok(format!("{}{path}", wanted.base.as_str().trim_end_matches('/')))
    }
}
