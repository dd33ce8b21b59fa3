//! One-time links for webhooks: made with the host's own key when a message is sent, and good for whoever holds a token then.

use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use domain::SuspensionId;
use webhook::Link;

use crate::doors::Bearers;
use crate::keys;
use crate::tokens::Tokens;

/// Makes links of this host.
pub(crate) struct HostLinks(server::Links);

impl HostLinks {
    /// With the key and the tokens of a data folder.
    ///
    /// # Errors
    /// When one of them cannot be read or made.
    pub(crate) fn open(folder: &Path, handle: dispatch::Handle) -> io::Result<Self> {
        let tokens = Tokens::open(folder).map_err(io::Error::other)?;
        Ok(Self(server::Links::new(handle, keys::signing_key(folder)?, Arc::new(Bearers(tokens)))))
    }
}

#[async_trait]
impl webhook::Links for HostLinks {
    async fn link(&self, webhook: &str, suspension: SuspensionId, wanted: &Link) -> Result<Option<String>, String> {
        let made = self.0.of_webhook(webhook, suspension, &wanted.principal, wanted.ttl).await;
        let made = made.map_err(|error| error.to_string())?;
        Ok(made.map(|link| format!("{}{}", wanted.base.as_str().trim_end_matches('/'), link.path)))
    }
}
