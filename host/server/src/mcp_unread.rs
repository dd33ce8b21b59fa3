//! The bytes of an answer that an MCP client has not read yet. The port that makes the answer reserves memory and counts here.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use axum::body::Bytes;
use domain::Principal;

use crate::app::App;
use crate::error::Result;
use crate::in_flight::Unread;
use crate::ports::McpUnread;

/// The bytes of an answer that its principal has not read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AnswerUnread(Arc<Shared>);

struct Shared {
    app: App,
    by: Principal,
    counted: Mutex<Counted>,
}

struct Counted {
    unread: Unread,
    /// The size of the messages that were counted and did not arrive in a frame yet.
    messages: usize,
    /// The size of the frames that HTTP has not sent yet.
    frames: usize,
}

/// A frame of an answer. It is counted until HTTP has sent it.
struct Frame {
    unread: AnswerUnread,
    bytes: Bytes,
}

impl AnswerUnread {
    /// # Errors
    /// `busy` if the principal has too much unread.
    pub(crate) fn new(app: &App, by: &Principal) -> Result<Self> {
        let counted = Counted { unread: app.unread(by, 0)?, messages: 0, frames: 0 };
        Ok(Self(Arc::new(Shared { app: app.clone(), by: by.clone(), counted: Mutex::new(counted) })))
    }

    /// Bytes that HTTP sends. They are of messages that were counted, unless they are more.
    pub(crate) fn frame(&self, bytes: Bytes) -> Bytes {
        self.changed(|counted| {
            counted.messages = counted.messages.saturating_sub(bytes.len());
            counted.frames += bytes.len();
        });
        Bytes::from_owner(Frame { unread: self.clone(), bytes })
    }

    fn changed<T>(&self, change: impl FnOnce(&mut Counted) -> T) -> T {
        let mut counted = self.0.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut counted);
        let all = counted.messages + counted.frames;
        counted.unread.count(all);
        changed
    }
}

#[async_trait]
impl McpUnread for AnswerUnread {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        let mut reserved = self.0.app.small(&self.0.by);
        reserved.reserve().await;
        Box::new(reserved)
    }

    fn charge(&self, bytes: usize) -> std::result::Result<(), String> {
        self.changed(|counted| {
            let all = counted.messages.saturating_add(counted.frames).saturating_add(bytes);
            self.0.app.charge(&mut counted.unread, all).map_err(|error| error.into_problem().detail)?;
            counted.messages += bytes;
            Ok(())
        })
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.unread.changed(|counted| counted.frames -= self.bytes.len());
    }
}
