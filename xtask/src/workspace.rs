//! The repository, and commands that run in it.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::console;

/// The target that guests are compiled for.
pub(crate) const GUEST_TARGET: &str = "wasm32-wasip2";

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The path of a binary that was built in the same profile as xtask.
pub(crate) fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("could not find the path of xtask")?;
    Ok(own.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// The path of a binary in the release profile.
pub(crate) fn release_binary(name: &str) -> Result<PathBuf> {
    let debug = binary(name)?;
    let target = debug.parent().and_then(Path::parent).context("xtask is not in a target folder")?;
    Ok(target.join("release").join(debug.file_name().unwrap_or_default()))
}

#[expect(clippy::disallowed_methods, reason = "only commands of xtask depend on it")]
fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// A command in a folder of the repository, as a user can type it.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    folder: &'static str,
    words: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Invocation {
    /// A command in the root. Spaces separate its words.
    pub(crate) fn new(line: &str) -> Self {
        Self { folder: "", words: line.split(' ').map(str::to_owned).collect(), variables: Vec::new() }
    }

    /// Sets another folder.
    pub(crate) fn in_folder(mut self, folder: &'static str) -> Self {
        self.folder = folder;
        self
    }

    /// Replaces the first word.
    pub(crate) fn program(mut self, path: &Path) -> Self {
        self.words[0] = path.display().to_string();
        self
    }

    /// Adds these words, which spaces separate.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.words.extend(words.split(' ').map(str::to_owned));
        self
    }

    /// Adds one word.
    pub(crate) fn word(mut self, word: &str) -> Self {
        self.words.push(word.to_owned());
        self
    }

    /// Sets an environment variable.
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
        if is_ci() {
            // A machine that builds once needs no caches of the compiler for the next time. They take gigabytes.
            command.env("CARGO_INCREMENTAL", "0");
        }
        if !self.folder.is_empty() {
            // This variable would replace the linker flags of the other workspaces.
            command.env_remove("RUSTFLAGS");
        }
        command
    }

    /// Runs it and shows its output.
    pub(crate) fn run(&self) -> Result<()> {
        let status = self.command().status().with_context(|| format!("could not start `{self}`"))?;
        ended(status, &self.to_string())
    }

    /// Starts it. Its output goes to a file in the target folder until it has ended.
    pub(crate) fn start(&self, name: &str) -> Result<Running> {
        let path = root().join("target").join(name);
        let output = File::create(&path).with_context(|| format!("could not create {}", path.display()))?;
        let errors = output.try_clone().context("could not use the file of the output")?;
        let child = self.command().stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.with_context(|| format!("could not start `{self}`"))?;
        Ok(Running { line: self.to_string(), child, path })
    }

    /// Runs it and returns its output.
    pub(crate) fn output(&self) -> Result<String> {
        let output =
            self.command().stderr(Stdio::inherit()).output().with_context(|| format!("could not start `{self}`"))?;
        if !output.status.success() {
            bail!("this failed with {}; to repeat it:\n  {self}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{self}` printed bytes that are not UTF-8"))
    }

    /// Whether it succeeds. Its output is not shown.
    pub(crate) fn succeeds(&self) -> bool {
        let quiet = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    }
}

/// A command that runs.
pub(crate) struct Running {
    line: String,
    child: Child,
    /// Of its output.
    path: PathBuf,
}

impl Running {
    /// Waits until it has ended, and shows its output.
    pub(crate) fn wait(mut self) -> Result<()> {
        let status = self.child.wait().with_context(|| format!("could not wait for `{}`", self.line))?;
        let output = fs::read(&self.path).with_context(|| format!("could not read {}", self.path.display()))?;
        console::line(&String::from_utf8_lossy(&output));
        ended(status, &self.line)
    }
}

fn ended(status: ExitStatus, line: &str) -> Result<()> {
    if !status.success() {
        bail!("this failed with {status}; to repeat it:\n  {line}");
    }
    Ok(())
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
    fn command_is_shown_as_users_type_it() {
        let plain = Invocation::new("cargo test --locked");
        assert_eq!(plain.to_string(), "cargo test --locked");
        let elsewhere = plain.in_folder("plugins").word("a b").variable("X", "-D y");
        assert_eq!(elsewhere.to_string(), "(cd plugins && X='-D y' cargo test --locked 'a b')");
    }
}
