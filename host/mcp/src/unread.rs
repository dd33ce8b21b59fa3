//! The memory for answers that a client has not read yet.

use std::io;

use async_trait::async_trait;
use serde::Serialize;

/// Counts what a client has yet to read.
#[async_trait]
pub trait Unread: Send + Sync {
    /// Waits until the client has read enough that another call may be read for it. The memory for that is reserved until the
    /// value is dropped.
    async fn reserve(&self) -> Box<dyn Send + Sync>;

    /// Counts a message of this size until the value is dropped. HTTP has taken the message then, or the client has left.
    ///
    /// # Errors
    /// The reason, if the client has too much unread. Then the message is not sent.
    fn charge(&self, bytes: usize) -> Result<Box<dyn Send + Sync>, String>;
}

/// A client that has always read everything.
#[async_trait]
impl Unread for () {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn charge(&self, _: usize) -> Result<Box<dyn Send + Sync>, String> {
        Ok(Box::new(()))
    }
}

/// A message that is counted and not sent yet.
pub(crate) struct Unsent {
    _counted: Box<dyn Send + Sync>,
    then: Option<Then>,
}

/// Runs when a message was sent. If the client leaves before that, it never runs. It does not block.
pub(crate) type Then = Box<dyn FnOnce() + Send>;

impl Unsent {
    pub(crate) fn new(counted: Box<dyn Send + Sync>, then: Option<Then>) -> Self {
        Self { _counted: counted, then }
    }

    pub(crate) fn sent(self) {
        if let Some(then) = self.then {
            then();
        }
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
