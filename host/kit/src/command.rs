//! The one place that starts programs. It keeps their output and shows it when they fail.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use crate::{Failed, Fault};

/// The number of lines of a failed program's output that are shown.
const MAX_LINES: usize = 2_000;

/// A program to run.
pub(crate) struct Invocation {
    command: Command,
    /// The name of the program, and how to install it, for when it is missing.
    install: Option<(String, String)>,
    fault: Fault,
}

impl Invocation {
    /// A program of the PATH, or the path of one.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Self { command, install: None, fault: Fault::Plugin }
    }

    /// Sets the name and the instruction that the user gets if the program is missing.
    pub(crate) fn or_install(mut self, what: &str, install: &str) -> Self {
        self.install = Some((what.to_owned(), install.to_owned()));
        self
    }

    /// Marks a program that does not work on the plugin's files: if it fails, its installation is to blame.
    pub(crate) fn of_the_machine(mut self) -> Self {
        self.fault = Fault::Tools;
        self
    }

    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command.args(words);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it to its end, and returns its standard output. `attempt` is its purpose, as in `compiling the plugin`.
    pub(crate) fn run(mut self, attempt: &str) -> Result<String, Failed> {
        let output = self.command.output();
        let Output { status, stdout, stderr } = output.map_err(|error| self.not_started(error))?;
        if status.success() {
            return Ok(text(&stdout));
        }
        let mut printed = text(&stdout);
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        Err(self.ended(attempt, status, printed + &text(&stderr)))
    }

    /// Runs a compiler to its end, and returns both streams of its output, in the order in which it printed them.
    pub(crate) fn compile(mut self, attempt: &str) -> Result<String, Failed> {
        let output = in_order(&mut self.command);
        let (status, printed) = output.map_err(|error| self.not_started(error))?;
        if status.success() { Ok(printed) } else { Err(self.ended(attempt, status, printed)) }
    }

    fn not_started(&self, error: io::Error) -> Failed {
        if error.kind() != io::ErrorKind::NotFound {
            return Failed::Io { attempt: format!("run {}", self.shown()), source: error };
        }
        let program = self.command.get_program().to_string_lossy();
        let unknown =
            || (format!("the program {program}"), "install it, and make sure that it is in the PATH".to_owned());
        let (what, install) = self.install.clone().unwrap_or_else(unknown);
        Failed::Missing { what, install }
    }

    fn ended(&self, attempt: &str, status: ExitStatus, mut printed: String) -> Failed {
        if printed.trim().is_empty() {
            printed = format!("it printed nothing and ended with {status}");
        }
        Failed::Program { attempt: attempt.to_owned(), command: self.shown(), output: end(&printed), fault: self.fault }
    }

    fn shown(&self) -> String {
        let folder = self.command.get_current_dir().map(|folder| format!("cd {} && ", word(folder.as_os_str())));
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        folder.unwrap_or_default() + &words.map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Runs a program with one pipe for both streams.
fn in_order(command: &mut Command) -> io::Result<(ExitStatus, String)> {
    let (mut reader, writer) = io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The pipe ends when nobody can write to it, and the command keeps what it passed to the child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut printed = Vec::new();
    let read = reader.read_to_end(&mut printed);
    let status = child.wait()?;
    read.map(|_| (status, text(&printed)))
}

fn text(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).into_owned()
}

/// A word, quoted for a shell.
fn word(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@+%".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The last lines of a text.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let dropped = lines.len().saturating_sub(MAX_LINES);
    let kept = lines[dropped..].join("\n");
    if dropped == 0 { kept } else { format!("({dropped} earlier lines are left out)\n{kept}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Invocation {
        Invocation::new("sh").args(["-c", script])
    }

    #[test]
    fn failed_program_shows_its_output() {
        assert_eq!(shell("echo out; echo err >&2").run("trying").unwrap(), "out\n");
        let failed = shell("echo out; echo err >&2; exit 3").run("trying").unwrap_err();
        assert_eq!(failed.to_string(), "trying failed");
        assert_eq!(failed.output(), Some("out\nerr"));
        assert_eq!(failed.command(), Some("sh -c 'echo out; echo err >&2; exit 3'"));
        let failed = shell("exit 3").run("trying").unwrap_err();
        assert_eq!(failed.output(), Some("it printed nothing and ended with exit status: 3"));
    }

    #[test]
    fn compiler_output_keeps_its_order() {
        let both = "echo 1; echo 2 >&2; echo 3; printf 4 >&2";
        assert_eq!(shell(both).compile("trying").unwrap(), "1\n2\n3\n4");
        let failed = shell(&format!("{both}; exit 3")).compile("trying").unwrap_err();
        assert_eq!(failed.output(), Some("1\n2\n3\n4"));
        let failed = shell("exit 3").compile("trying").unwrap_err();
        assert_eq!(failed.output(), Some("it printed nothing and ended with exit status: 3"));
        let failed = Invocation::new("toolgate-no-such-program").compile("trying").unwrap_err();
        assert_eq!(failed.to_string(), "the program toolgate-no-such-program is missing");
    }

    #[test]
    fn long_output_keeps_its_end() {
        let failed =
            shell("i=0; while [ $i -lt 2050 ]; do echo $i; i=$((i+1)); done; exit 1").run("counting").unwrap_err();
        let output = failed.output().unwrap();
        assert!(output.starts_with("(50 earlier lines are left out)\n50\n") && output.ends_with("\n2049"), "{output}");
    }

    #[test]
    fn missing_program_is_named() {
        let missing = || Invocation::new("toolgate-no-such-program");
        let failed = missing().run("trying").unwrap_err();
        assert_eq!(failed.to_string(), "the program toolgate-no-such-program is missing");
        let failed = missing().or_install("Go 1.24", "see https://go.dev").run("trying").unwrap_err();
        assert_eq!(
            (failed.to_string().as_str(), failed.hint().as_deref()),
            ("Go 1.24 is missing", Some("see https://go.dev"))
        );
        assert_eq!(failed.fault(), Fault::Tools);
    }
}
