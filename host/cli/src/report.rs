//! An error as the user reads it: one sentence, its causes, what to do next, and an exit code.

use std::io::ErrorKind;
use std::process::ExitCode;

use api::{ProblemCode, Role};
use serde_json::{Value, json};
use toolgate::OpenError;
use toolgate::config::ConfigError;

use crate::terminal::{Style, Terminal};

/// The exit codes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The operation was refused, or it failed.
    Refused = 1,
    /// The command line or the configuration has a mistake. clap uses this code too.
    Usage = 2,
    /// The host cannot be reached.
    Unreachable = 3,
    /// The host or this machine failed.
    HostFault = 4,
    /// A tool that a build needs is missing, or does not work.
    Tools = 5,
    /// The database lacks commits that the host relied on. Only a person can decide how to go on: `EX_IOERR` of sysexits.h.
    LostCommits = 74,
    /// The host ends because it must be started again: `EX_TEMPFAIL` of sysexits.h.
    StartAgain = 75,
}

/// A token that the user needs, and where it comes from.
pub(crate) fn token_with(role: Role) -> String {
    format!(
        "a token with the role {role}; the host's operator makes one: `toolgate token create --name NAME --role {role}`"
    )
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Report {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    silent: bool,
    code: Option<ProblemCode>,
    program: Option<Box<Program>>,
}

/// A program that failed.
#[derive(Debug)]
struct Program {
    command: String,
    output: String,
}

impl Report {
    /// A report with this sentence.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            silent: false,
            code: None,
            program: None,
        }
    }

    /// The report for a command line that clap refuses.
    pub(crate) fn of_words(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut parts = text.split("\n\n").map(str::trim);
        let message = parts.next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        parts.fold(Self::new(Exit::Usage, message), Self::hint)
    }

    /// The sentence.
    #[cfg(feature = "mcp")]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A failure that is printed already: only the exit code is left.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { silent: true, ..Self::new(exit, "") }
    }

    /// Adds a cause.
    pub(crate) fn because(mut self, cause: impl ToString) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub(crate) fn because_of(self, causes: impl IntoIterator<Item = impl ToString>) -> Self {
        causes.into_iter().fold(self, Self::because)
    }

    /// Adds the program that failed. Its output is printed first, as the program printed it.
    pub(crate) fn of_program(mut self, command: &str, output: &str) -> Self {
        self.program = Some(Box::new(Program { command: command.to_owned(), output: output.to_owned() }));
        self
    }

    /// Whether a program failed that the command has run.
    pub(crate) fn is_of_program(&self) -> bool {
        self.program.is_some()
    }

    /// The report as JSON. `code` is the name of the problem if a host has refused a request.
    pub(crate) fn as_json(&self) -> Value {
        let mut value = json!({ "ok": false, "error": self.message, "causes": self.causes, "hints": self.hints });
        if let Some(code) = self.code {
            value["code"] = json!(code);
        }
        value
    }

    /// The report of a build as JSON. `fault` says who has to act.
    pub(crate) fn of_build_as_json(&self) -> Value {
        let mut value = self.as_json();
        value["fault"] = json!(match self.exit {
            Exit::Refused => "plugin",
            Exit::Usage => "usage",
            Exit::Tools => "tools",
            Exit::Unreachable | Exit::HostFault | Exit::LostCommits | Exit::StartAgain => "host",
        });
        if let Some(Program { command, output }) = self.program.as_deref() {
            value["command"] = json!(command);
            value["output"] = json!(output);
        }
        value
    }

    /// If `json` is set, prints the report as JSON and keeps only the exit code.
    pub(crate) fn for_json(self, json: bool, terminal: &Terminal) -> Self {
        self.printed(json, Self::as_json, terminal)
    }

    /// As [`Self::for_json`], for a command that builds.
    pub(crate) fn of_build_for_json(self, json: bool, terminal: &Terminal) -> Self {
        self.printed(json, Self::of_build_as_json, terminal)
    }

    fn printed(self, json: bool, form: fn(&Self) -> Value, terminal: &Terminal) -> Self {
        if !json || self.silent {
            return self;
        }
        match terminal.line(escape::json_line(&form(&self).to_string())) {
            Ok(()) => Self::silent(self.exit),
            Err(error) => error.into(),
        }
    }

    /// Whether the host does not find what was named, or this principal may not see it.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code == Some(ProblemCode::NotFound)
    }

    /// Marks a failure of this machine, unless the user made a mistake.
    pub(crate) fn of_machine(mut self) -> Self {
        if self.exit == Exit::Refused {
            self.exit = Exit::HostFault;
        }
        self
    }

    /// Marks a mistake on the command line.
    pub(crate) fn of_user(self) -> Self {
        Self { exit: Exit::Usage, ..self }
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the name of the problem with which a host has refused a request.
    pub(crate) fn coded(mut self, code: Option<ProblemCode>) -> Self {
        self.code = code;
        self
    }

    /// Whether the host refused the request because it still loads plugins.
    pub(crate) fn is_loading(&self) -> bool {
        self.code == Some(ProblemCode::Loading)
    }

    /// Whether the same request can succeed later.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_unreachable() || self.code.is_some_and(|code| matches!(code.status(), 429 | 503))
    }

    /// Whether the host could not be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.exit == Exit::Unreachable
    }

    /// The exit code of the failure.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }

    /// Prints the report to standard error.
    pub(crate) fn print(&self, terminal: &Terminal) {
        if self.silent {
            return;
        }
        let mut output = self.program.as_ref().map_or_else(String::new, |program| escape::block(&program.output, ""));
        let error = terminal.note_style(Style::Bad, "error:");
        output.push_str(&format!("{error} {}\n", escape::line(&self.message)));
        for cause in &self.causes {
            output.push_str(&escape::block(cause, "  because: "));
        }
        for hint in &self.hints {
            output.push_str(&format!("{} {}\n", terminal.note_style(Style::Strong, "hint:"), escape::line(hint)));
        }
        terminal.note(&output);
    }
}

impl<E: Into<anyhow::Error>> From<E> for Report {
    fn from(error: E) -> Self {
        let error = error.into();
        let mut report = Self::new(Exit::Refused, error.to_string());
        report.causes.extend(error.chain().skip(1).map(ToString::to_string));
        let opened = error.downcast_ref::<OpenError>().and_then(|error| match error {
            OpenError::Config(error) => Some(error),
            _ => None,
        });
        if let Some(config) = error.downcast_ref::<ConfigError>().or(opened) {
            report.exit = Exit::Usage;
            report.hints.extend(config.hint().map(str::to_owned));
            report.hints.push("`toolgate config --schema` prints every key of the file".into());
        }
        #[cfg(feature = "postgres")]
        if let Some(OpenError::Database(store::PostgresError::LostCommits { .. })) = error.downcast_ref() {
            report.exit = Exit::LostCommits;
        }
        let is_of = |kind: ErrorKind| {
            error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == kind))
        };
        if is_of(ErrorKind::IsADirectory) {
            report.exit = Exit::Usage;
            report.hints = vec!["it is a folder; name a file".into()];
        }
        // The reader closed the pipe, as `head` does.
        report.silent = is_of(ErrorKind::BrokenPipe);
        report
    }
}
