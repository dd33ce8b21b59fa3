//! The bytes of an answer that an MCP client has not read yet. The port that makes the answer reserves memory and counts here.

use async_trait::async_trait;
use axum::body::Bytes;
use domain::Principal;

use crate::app::App;
use crate::error::Result;
use crate::ports::McpUnread;

/// Counts the bytes of an answer to this principal.
#[derive(Clone)]
pub(crate) struct AnswerUnread {
    app: App,
    by: Principal,
}

impl AnswerUnread {
    /// # Errors
    /// `busy` if the principal has too much unread.
    pub(crate) fn new(app: &App, by: &Principal) -> Result<Self> {
        drop(app.unread(by, 0)?);
        Ok(Self { app: app.clone(), by: by.clone() })
    }

    /// A frame that HTTP takes. It is counted until HTTP has sent it.
    pub(crate) fn frame(&self, bytes: Bytes) -> Bytes {
        self.app.small(&self.by).body(bytes)
    }
}

#[async_trait]
impl McpUnread for AnswerUnread {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        let mut reserved = self.app.small(&self.by);
        reserved.reserve().await;
        Box::new(reserved)
    }

    fn charge(&self, bytes: usize) -> std::result::Result<Box<dyn Send + Sync>, String> {
        let counted = self.app.unread(&self.by, bytes).map_err(|error| error.into_problem().detail)?;
        Ok(Box::new(counted))
    }
}
