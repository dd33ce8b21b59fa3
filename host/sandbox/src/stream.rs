//! The streams that a guest prints to.

use domain::call::Level;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) const fn level(self) -> Level {
        match self {
            Self::Stdout => Level::Info,
            Self::Stderr => Level::Warn,
        }
    }
}
