//! What the binary says when something was not done: one sentence, what led to it, what to do next, and an exit code.

use toolgate::OpenError;
use toolgate::config::ConfigError;
use toolgate::tokens::TokenError;

use crate::terminal::{Ink, Terminal};

/// Whose doing it is, and so the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was refused, or it failed.
    Refused = 1,
    /// The command line or the configuration is mistaken. The command line's own parser uses this code, too.
    Usage = 2,
    /// The host cannot be reached.
    Unreachable = 3,
    /// The host failed.
    HostFault = 4,
}

/// Why a command was not carried out.
#[derive(Debug)]
pub(crate) struct Report {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    silent: bool,
}

impl Report {
    /// A report with this sentence.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), causes: Vec::new(), hints: Vec::new(), silent: false }
    }

    /// Everything was said already; only the exit code is left.
    pub(crate) fn said(exit: Exit) -> Self {
        Self { silent: true, ..Self::new(exit, "") }
    }

    /// What led to it.
    pub(crate) fn because(mut self, cause: impl ToString) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// What to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.exit as u8
    }

    /// Whether there is nothing to say: it was said, or whoever read our output has left, as `head` does.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Says it on standard error.
    pub(crate) fn print(&self, terminal: &Terminal) {
        let mut text = format!("{} {}\n", terminal.note_ink(Ink::Bad, "error:"), text::line(&self.message));
        for cause in &self.causes {
            text.push_str(&text::block(cause, "  because: "));
        }
        for hint in &self.hints {
            text.push_str(&format!("{} {}\n", terminal.note_ink(Ink::Strong, "hint:"), text::line(hint)));
        }
        terminal.note(&text);
    }
}

impl From<anyhow::Error> for Report {
    fn from(error: anyhow::Error) -> Self {
        let mut report = Self::new(Exit::Refused, error.to_string());
        report.causes.extend(error.chain().skip(1).map(ToString::to_string));
        let opened = error.downcast_ref::<OpenError>().and_then(|error| match error {
            OpenError::Config(error) => Some(error),
            _ => None,
        });
        if let Some(config) = error.downcast_ref::<ConfigError>().or(opened) {
            report.exit = Exit::Usage;
            report.hints.extend(config.hint().map(str::to_owned));
            report.hints.push("`toolgate config --schema` prints what the file may say".into());
        }
        report.silent = error.chain().any(|cause| {
            cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        });
        report
    }
}

impl From<std::io::Error> for Report {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<ConfigError> for Report {
    fn from(error: ConfigError) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<TokenError> for Report {
    fn from(error: TokenError) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Report {
    fn from(error: serde_json::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}
