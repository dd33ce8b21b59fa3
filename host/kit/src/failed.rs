//! Errors of the kit: what failed, whose fault it is, and what to do next.

use std::io;
use std::path::Path;

/// Who has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The author: the plugin's files are wrong.
    Plugin,
    /// The user: the folder is not that of a plugin.
    Usage,
    /// The user of the machine: a tool is missing, of a wrong version, or does not work.
    Tools,
    /// The user of the machine: a file cannot be read or written.
    Machine,
}

/// An error of the kit.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("{message}")]
    Project { message: String, hint: String },
    /// The named folder is not that of a plugin, or the plugin's language is unclear.
    #[error("{message}")]
    Folder { message: String, hint: String },
    /// A program that the machine must have is missing.
    #[error("{what} is missing")]
    Missing {
        /// The name of the program.
        what: String,
        /// How to install it.
        install: String,
    },
    /// A program has a version that cannot be used.
    #[error("{what} is not supported")]
    TooOld {
        /// The name of the program, and its version.
        what: String,
        /// How to install another.
        install: String,
    },
    /// A download is needed, and `--offline` forbids it.
    #[error("{what} is not installed, and --offline forbids downloads")]
    Offline {
        /// The missing toolchain.
        what: String,
    },
    /// A program ran and failed.
    #[error("{attempt} failed")]
    Program {
        /// The purpose of the program.
        attempt: String,
        /// The command, as a user can type it.
        command: String,
        /// The end of its output.
        output: String,
        /// Who probably has to act.
        fault: Fault,
    },
    /// The compiled module does not fit the interface.
    #[error("the compiled module does not fit the interface")]
    Component(#[source] anyhow::Error),
    #[error("cannot {attempt}")]
    Io {
        attempt: String,
        #[source]
        source: io::Error,
    },
}

impl Failed {
    pub(crate) fn project(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Project { message: message.into(), hint: hint.into() }
    }

    pub(crate) fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let attempt = attempt.into();
        |source| Self::Io { attempt, source }
    }

    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("read {}", path.display()))
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("write {}", path.display()))
    }

    /// Who has to act.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Project { .. } | Self::Component(_) => Fault::Plugin,
            Self::Folder { .. } => Fault::Usage,
            Self::Program { fault, .. } => *fault,
            Self::Missing { .. } | Self::TooOld { .. } | Self::Offline { .. } => Fault::Tools,
            Self::Io { .. } => Fault::Machine,
        }
    }

    /// The next step, if it is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project { hint, .. } | Self::Folder { hint, .. } => Some(hint.clone()),
            Self::Missing { install, .. } | Self::TooOld { install, .. } => Some(install.clone()),
            Self::Offline { .. } => Some("run it once without --offline".to_owned()),
            Self::Program { .. } | Self::Component(_) | Self::Io { .. } => None,
        }
    }

    /// The command of a failed program, as a user can type it. Some are long.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Program { command, .. } => Some(command),
            _ => None,
        }
    }

    /// The output of a failed program.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Program { output, .. } => Some(output),
            _ => None,
        }
    }
}
