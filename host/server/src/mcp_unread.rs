//! The bytes of an answer that an MCP client has not read yet. The port that makes the answer reserves memory and counts here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use axum::body::Bytes;
use domain::Principal;

use crate::app::App;
use crate::error::Result;
use crate::in_flight::Unread;
use crate::ports::{McpSent, McpUnread};

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
    /// The messages that were counted and that HTTP has not taken yet, oldest first.
    messages: VecDeque<Message>,
    /// The size of the frames that HTTP has taken and not sent yet.
    frames: usize,
}

struct Message {
    bytes: usize,
    sent: Option<McpSent>,
}

impl Counted {
    fn all(&self) -> usize {
        self.messages.iter().map(|message| message.bytes).sum::<usize>() + self.frames
    }
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
        let counted = Counted { unread: app.unread(by, 0)?, messages: VecDeque::new(), frames: 0 };
        Ok(Self(Arc::new(Shared { app: app.clone(), by: by.clone(), counted: Mutex::new(counted) })))
    }

    /// A frame that HTTP takes: one message, or an event without a message.
    pub(crate) fn frame(&self, bytes: Bytes) -> Bytes {
        let has_message = bytes.contains(&b'{');
        let message = self.changed(|counted| {
            counted.frames += bytes.len();
            if has_message { counted.messages.pop_front() } else { None }
        });
        if let Some(sent) = message.and_then(|message| message.sent) {
            sent();
        }
        Bytes::from_owner(Frame { unread: self.clone(), bytes })
    }

    fn changed<T>(&self, change: impl FnOnce(&mut Counted) -> T) -> T {
        let mut counted = self.0.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut counted);
        let all = counted.all();
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

    fn charge(&self, bytes: usize, sent: Option<McpSent>) -> std::result::Result<(), String> {
        self.changed(|counted| {
            let all = counted.all().saturating_add(bytes);
            self.0.app.charge(&mut counted.unread, all).map_err(|error| error.into_problem().detail)?;
            counted.messages.push_back(Message { bytes, sent });
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
