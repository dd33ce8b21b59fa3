//! Why something was not made: whose fault it is, what was attempted, and what to do next.

use std::io;
use std::path::Path;

/// Whose doing a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The plugin's: its files, its sources.
    Plugin,
    /// The machine's: something is missing, unreachable or full.
    Machine,
}

/// Why something was not made.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The plugin's folder is not what it must be.
    #[error("{message}")]
    Project {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// A program that the machine must have is not there, or too old.
    #[error("{what} is missing")]
    Missing {
        /// What.
        what: String,
        /// How to install it.
        install: String,
    },
    /// Something would have to be fetched, and nothing may be.
    #[error("{what} is not there yet, and --offline forbids to fetch it")]
    Offline {
        /// What.
        what: String,
    },
    /// A program ran and failed.
    #[error("{attempt} failed")]
    Tool {
        /// What was attempted.
        attempt: String,
        /// The command, as it could be typed.
        command: String,
        /// What the program printed, its end if that was long.
        output: String,
        /// Whose doing that is, as far as one can know.
        fault: Fault,
    },
    /// What the compiler made is not a module that fits the interface.
    #[error("what was compiled does not fit the interface")]
    Component(#[source] anyhow::Error),
    /// The machine did not do what it was asked.
    #[error("cannot {attempt}")]
    Io {
        /// What was attempted.
        attempt: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Failed {
    /// The folder is not what it must be.
    pub(crate) fn project(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Project { message: message.into(), hint: hint.into() }
    }

    /// For errors of files.
    pub(crate) fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let attempt = attempt.into();
        |source| Self::Io { attempt, source }
    }

    /// For errors of reading a file.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("read {}", path.display()))
    }

    /// For errors of writing a file.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("write {}", path.display()))
    }

    /// Whose doing it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Project { .. } | Self::Component(_) => Fault::Plugin,
            Self::Tool { fault, .. } => *fault,
            Self::Missing { .. } | Self::Offline { .. } | Self::Io { .. } => Fault::Machine,
        }
    }

    /// What to do next, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project { hint, .. } => Some(hint.clone()),
            Self::Missing { install, .. } => Some(install.clone()),
            Self::Offline { .. } => Some("run it once without --offline".to_owned()),
            Self::Tool { command, .. } => Some(format!("to repeat it: {command}")),
            Self::Component(_) | Self::Io { .. } => None,
        }
    }

    /// What a program printed that failed, for people.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Tool { output, .. } => Some(output),
            _ => None,
        }
    }
}
