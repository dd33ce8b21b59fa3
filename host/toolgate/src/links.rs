//! One-time links for webhooks. The host makes a link when it sends a message; the link's principal must hold a token then.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use domain::SuspensionId;
use webhook::LinkSettings;

use crate::host_files::HostFiles;

/// Makes the links of this host.
struct HostLinks(server::Links);

/// The links of a host, made with its key and for the holders of its tokens.
///
/// # Errors
/// When the key or the tokens cannot be read or made.
pub(crate) async fn open(files: &HostFiles, handle: dispatch::Handle) -> io::Result<Arc<dyn webhook::LinkMaker>> {
    let tokens = files.tokens().await.map_err(io::Error::other)?;
    Ok(Arc::new(HostLinks(server::Links::new(handle, files.keys.signing()?, Arc::new(tokens)))))
}

#[async_trait]
impl webhook::LinkMaker for HostLinks {
    async fn link(
        &self,
        hook: &str,
        suspension: SuspensionId,
        request: &LinkSettings,
    ) -> Result<Option<String>, String> {
        let made = self.0.of_webhook(hook, suspension, &request.principal, request.ttl).await;
        let made = made.map_err(|error| error.to_string())?;
        Ok(made.map(|link| format!("{}{}", request.base.as_str().trim_end_matches('/'), link.path)))
    }
}
