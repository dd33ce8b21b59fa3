//! The memory for answers that a client has not read yet.

use std::io;

use async_trait::async_trait;
use serde::Serialize;

/// Runs when a message was sent. It does not block.
pub type Sent = Box<dyn FnOnce() + Send>;

/// Counts what a client has yet to read. The messages of one request are counted in the order in which they are sent, and each
/// before it is sent. Messages after the last counted one need not be.
#[async_trait]
pub trait Unread: Send + Sync {
    /// Waits until the client has read enough that another call may be read for it. The memory for that is reserved until the
    /// value is dropped.
    async fn reserve(&self) -> Box<dyn Send + Sync>;

    /// Counts a message of this size, until the client has read it. `sent` runs once the transport has taken it; if the client
    /// leaves before that, it never runs.
    ///
    /// # Errors
    /// The reason, if the client has too much unread. Then the message is not sent.
    fn charge(&self, bytes: usize, sent: Option<Sent>) -> Result<(), String>;
}

/// A pipe. Its host belongs to the client and ends with it, so each message counts as sent.
#[async_trait]
impl Unread for () {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn charge(&self, _: usize, sent: Option<Sent>) -> Result<(), String> {
        if let Some(sent) = sent {
            sent();
        }
        Ok(())
    }
}

/// The size of a value as JSON, in bytes.
pub(crate) fn size(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // It cannot be sent either.
        Err(_) => 0,
    }
}
