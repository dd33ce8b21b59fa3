//! The repository, and the commands that are run in it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The target that guests are compiled for.
pub(crate) const GUEST_TARGET: &str = "wasm32-wasip2";

/// The folder that holds the repository.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where this build of xtask lies, and with it every binary of the same profile.
pub(crate) fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("could not find out where xtask itself lies")?;
    Ok(own.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// A command in a folder of the repository, as it could be typed.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    folder: &'static str,
    words: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Invocation {
    /// A command in the root, with its words divided by spaces.
    pub(crate) fn new(line: &str) -> Self {
        Self { folder: "", words: line.split(' ').map(str::to_owned).collect(), variables: Vec::new() }
    }

    /// In this folder instead.
    pub(crate) fn in_folder(mut self, folder: &'static str) -> Self {
        self.folder = folder;
        self
    }

    /// Another program than the first word.
    pub(crate) fn program(mut self, path: &Path) -> Self {
        self.words[0] = path.display().to_string();
        self
    }

    /// With these words, divided by spaces.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.words.extend(words.split(' ').map(str::to_owned));
        self
    }

    /// With one more word.
    pub(crate) fn word(mut self, word: &str) -> Self {
        self.words.push(word.to_owned());
        self
    }

    /// With an environment variable.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command
            .args(words)
            .current_dir(root().join(self.folder))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        if !self.folder.is_empty() {
            // The other workspaces link with flags of their own, which this variable would replace.
            command.env_remove("RUSTFLAGS");
        }
        command
    }

    /// Runs it in sight of whoever watches.
    pub(crate) fn run(&self) -> Result<()> {
        let status = self.command().status().with_context(|| format!("could not start `{self}`"))?;
        if !status.success() {
            bail!("this failed with {status}; to repeat it:\n  {self}");
        }
        Ok(())
    }

    /// Runs it and returns what it printed.
    pub(crate) fn output(&self) -> Result<String> {
        let output =
            self.command().stderr(Stdio::inherit()).output().with_context(|| format!("could not start `{self}`"))?;
        if !output.status.success() {
            bail!("this failed with {}; to repeat it:\n  {self}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{self}` printed something other than text"))
    }

    /// Whether it runs and succeeds, in silence.
    pub(crate) fn succeeds(&self) -> bool {
        let quiet = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |word: &String| if word.contains(' ') { format!("'{word}'") } else { word.clone() };
        let variables = self.variables.iter().map(|(name, value)| format!("{name}='{value}' "));
        let line = variables.collect::<String>() + &self.words.iter().map(quoted).collect::<Vec<_>>().join(" ");
        if self.folder.is_empty() { f.write_str(&line) } else { write!(f, "(cd {} && {line})", self.folder) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_could_be_typed() {
        let plain = Invocation::new("cargo test --locked");
        assert_eq!(plain.to_string(), "cargo test --locked");
        let elsewhere = plain.in_folder("plugins").word("a b").variable("X", "-D y");
        assert_eq!(elsewhere.to_string(), "(cd plugins && X='-D y' cargo test --locked 'a b')");
    }
}
