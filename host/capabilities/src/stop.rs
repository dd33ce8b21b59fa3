//! Why the host ends a call, and how messages show texts and sizes of guests.

/// Why the host ends a call. A host function returns it as its error, and it travels through the guest's frames.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("out of time")]
    OutOfTime,
    /// The call needs more of something than the operator's limit allows. The text continues "the tool …". `key` is the key of the
    /// limit in the table `[limits]`.
    #[error("{what} (limit `limits.{key}`)")]
    Limit { what: String, key: &'static str },
    /// The call needs more of something than any host allows. The text continues "the tool …".
    #[error("{0}")]
    FixedLimit(String),
    /// All guests together would use more memory than the host gives them.
    #[error("no memory is left for the guest")]
    GuestMemory,
    #[error("{0}")]
    Fault(String),
}

impl Stop {
    /// Ends the guest from where a host function can return no error. The function that runs the guest catches it.
    pub fn unwind(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

/// Characters of a guest's text that a message shows.
const MAX_EXCERPT: usize = 400;

/// The beginning of a guest's text on one line, for messages that people and models read.
#[must_use]
pub fn excerpt(text: &str) -> String {
    escape::excerpt(text, MAX_EXCERPT).into_owned()
}

/// A size as people write it.
#[must_use]
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}
