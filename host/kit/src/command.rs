//! Programs of others: the one place that starts them, keeps what they print, and shows it when they fail.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Failed, Fault};

/// Lines of a failed program's output that are shown.
const SHOWN: usize = 200;

/// A program to run.
pub(crate) struct Invocation {
    command: Command,
    /// How to install it, if it is not there.
    install: Option<(String, String)>,
    fault: Fault,
}

impl Invocation {
    /// A program of the path, or one whose file is named.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Self { command, install: None, fault: Fault::Plugin }
    }

    /// What to say if there is no such program: what is missing, and how to install it.
    pub(crate) fn or_install(mut self, what: &str, install: &str) -> Self {
        self.install = Some((what.to_owned(), install.to_owned()));
        self
    }

    /// It works on nothing of the plugin's: if it fails, the machine is to blame.
    pub(crate) fn of_the_machine(mut self) -> Self {
        self.fault = Fault::Machine;
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

    /// Runs it to its end, and returns what it printed to standard output. `attempt` is what it is for, as in
    /// `compiling the plugin`.
    pub(crate) fn run(mut self, attempt: &str) -> Result<String, Failed> {
        let shown = self.shown();
        let output = match self.command.output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let program = self.command.get_program().to_string_lossy().into_owned();
                let unknown =
                    || (format!("the program {program}"), "install it, and see that it is in the PATH".to_owned());
                let (what, install) = self.install.unwrap_or_else(unknown);
                return Err(Failed::Missing { what, install });
            }
            Err(source) => return Err(Failed::Io { attempt: format!("run {shown}"), source }),
        };
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(printed(&output.stdout));
        }
        let mut said = printed(&output.stdout);
        if !said.is_empty() && !said.ends_with('\n') {
            said.push('\n');
        }
        said.push_str(&printed(&output.stderr));
        if said.trim().is_empty() {
            said = format!("it printed nothing, and ended with {}", output.status);
        }
        Err(Failed::Tool { attempt: attempt.to_owned(), command: shown, output: end(&said), fault: self.fault })
    }

    fn shown(&self) -> String {
        let folder = self.command.get_current_dir().map(|folder| format!("cd {} && ", word(folder.as_os_str())));
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        folder.unwrap_or_default() + &words.map(word).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
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
    let dropped = lines.len().saturating_sub(SHOWN);
    let kept = lines[dropped..].join("\n");
    if dropped == 0 { kept } else { format!("({dropped} lines before are left out)\n{kept}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Invocation {
        Invocation::new("sh").args(["-c", script])
    }

    #[test]
    fn what_a_failed_program_printed_is_kept() {
        assert_eq!(shell("echo out; echo err >&2").run("trying").unwrap(), "out\n");
        let failed = shell("echo out; echo err >&2; exit 3").run("trying").unwrap_err();
        assert_eq!(failed.to_string(), "trying failed");
        assert_eq!(failed.output(), Some("out\nerr"));
        assert_eq!(failed.hint().unwrap(), "to repeat it: sh -c 'echo out; echo err >&2; exit 3'");
        let failed = shell("exit 3").run("trying").unwrap_err();
        assert_eq!(failed.output(), Some("it printed nothing, and ended with exit status: 3"));
    }

    #[test]
    fn of_long_output_the_end_is_kept() {
        let failed =
            shell("i=0; while [ $i -lt 250 ]; do echo $i; i=$((i+1)); done; exit 1").run("counting").unwrap_err();
        let output = failed.output().unwrap();
        assert!(output.starts_with("(50 lines before are left out)\n50\n") && output.ends_with("\n249"), "{output}");
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        let missing = || Invocation::new("toolgate-no-such-program");
        let failed = missing().run("trying").unwrap_err();
        assert_eq!(failed.to_string(), "the program toolgate-no-such-program is missing");
        let failed = missing().or_install("Go 1.24", "see https://go.dev").run("trying").unwrap_err();
        assert_eq!(
            (failed.to_string().as_str(), failed.hint().as_deref()),
            ("Go 1.24 is missing", Some("see https://go.dev"))
        );
        assert_eq!(failed.fault(), Fault::Machine);
    }
}
