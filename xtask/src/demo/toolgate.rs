//! Runs the binary's commands, and prints them in a form that users can paste.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::CONVERSATION;
use super::folder::{Folder, relative};
use super::turn::{Turn, Waiting};
use crate::console;
use crate::languages;
use crate::workspace;

/// The binary with a user's token. Without a token it uses the admin's, from the host's folder.
#[derive(Clone)]
pub(crate) struct Toolgate {
    binary: PathBuf,
    configuration: PathBuf,
    token: Option<String>,
}

impl Toolgate {
    /// The binary, as the operator uses it.
    pub(crate) fn new(binary: &Path, folder: &Folder) -> Self {
        Self { binary: binary.to_owned(), configuration: folder.configuration(), token: None }
    }

    /// Creates a token, and returns the binary for its holder.
    pub(crate) fn token(&self, name: &str, role: &str) -> Result<Self> {
        let printed = self.run(&["token", "create", "--name", name, "--role", role])?;
        let token = printed.split_whitespace().find(|word| word.starts_with("tg_"));
        let token = token.context("`toolgate token create` printed no token")?.to_owned();
        Ok(Self { token: Some(token), ..self.clone() })
    }

    /// The number of live tools.
    pub(crate) fn tools(&self) -> Result<usize> {
        let printed = self.run(&["tools", "--format", "toolgate"])?;
        let live: Value = serde_json::from_str(&printed).context("the tools are not JSON")?;
        Ok(live["tools"].as_array().context("toolgate printed no list of tools")?.len())
    }

    /// Submits a file of the folder `demo/`. Returns the turn when no call of it runs any more.
    pub(crate) fn submit(&self, file: &str, conversation: &str) -> Result<Turn> {
        self.submit_file(Path::new(&format!("demo/{file}")), conversation)
    }

    /// The same with a file in any folder.
    pub(crate) fn submit_file(&self, file: &Path, conversation: &str) -> Result<Turn> {
        let file = relative(file).display().to_string();
        console::aside(&format!("$ toolgate submit {file} --conversation {conversation}"));
        Turn::parse(&self.run(&["submit", &file, "--conversation", conversation, "--json"])?)
    }

    /// The current turn.
    pub(crate) fn turn(&self, turn: &Turn, conversation: &str) -> Result<Turn> {
        Turn::parse(&self.run(&["show", turn.id(), "--conversation", conversation, "--json"])?)
    }

    /// The suspensions that people can answer, in a conversation and its nested turns.
    pub(crate) fn pending(&self, conversation: &str) -> Result<Vec<Waiting>> {
        let printed = self.run(&["pending", "--conversation", conversation, "--json"])?;
        let read = |line| Ok(Waiting::read(&serde_json::from_str(line).context("a suspension is not JSON")?));
        printed.lines().map(read).collect()
    }

    /// Waits for the end of a turn that was submitted from this file. Submitting the same calls again returns the
    /// recorded turn.
    pub(crate) fn wait(&self, file: &str, turn: &Turn) -> Result<Turn> {
        let settled = self.wait_file(Path::new(&format!("demo/{file}")), CONVERSATION)?;
        ensure!(settled.id() == turn.id(), "the same calls made another turn");
        Ok(settled)
    }

    /// The same with a file in any folder.
    pub(crate) fn wait_file(&self, file: &Path, conversation: &str) -> Result<Turn> {
        let file = relative(file).display().to_string();
        Turn::parse(&self.run(&["submit", &file, "--conversation", conversation, "--wait", "--json"])?)
    }

    /// The results of a turn as messages for the API that its calls came from.
    pub(crate) fn messages(&self, file: &str) -> Result<Vec<String>> {
        let file = format!("demo/{file}");
        console::aside(&format!("$ toolgate submit {file} --conversation {CONVERSATION} --format openai"));
        let printed = self.run(&["submit", &file, "--conversation", CONVERSATION, "--format", "openai"])?;
        let messages: Vec<Value> = serde_json::from_str(&printed).context("the messages are not a JSON array")?;
        Ok(messages.iter().map(Value::to_string).collect())
    }

    /// Runs a command and does not show its output.
    pub(crate) fn succeeds(&self, words: &[String]) -> Result<()> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        console::aside(&format!("$ {}", self.line(&shell(&words))));
        self.run(&words).map(drop)
    }

    /// Runs a command and shows its output.
    pub(crate) fn shown(&self, words: &[String]) -> Result<()> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        console::line(&format!("$ {}", self.line(&shell(&words))));
        let printed = self.run(&words)?;
        printed.lines().filter(|line| !line.is_empty()).for_each(|line| console::aside(&format!("  {line}")));
        Ok(())
    }

    /// The output of a command, or nothing if it fails.
    pub(crate) fn quiet(&self, words: &[&str]) -> Option<String> {
        let output = self.command(words).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A command that users can paste into a terminal in the root of the repository.
    pub(crate) fn line(&self, command: &str) -> String {
        let binary = relative(&self.binary);
        format!("{} {command} --config {}", binary.display(), relative(&self.configuration).display())
    }

    /// A command, not started yet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).current_dir(workspace::root()).env("TOOLGATE_CONFIG", &self.configuration);
        // `toolgate build` has compiled the plugins of other languages there.
        command.env("TOOLGATE_CACHE", languages::cache());
        // The developer's settings for another host must not affect the demo.
        for variable in ["TOOLGATE_URL", "TOOLGATE_TOKEN", "TOOLGATE_DATA", "TOOLGATE_CONVERSATION", "TOOLGATE_LOG"] {
            command.env_remove(variable);
        }
        if let Some(token) = &self.token {
            command.env("TOOLGATE_TOKEN", token);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let output = self.command(words).stdin(Stdio::null()).output();
        let Output { status, stdout, stderr } =
            output.with_context(|| format!("could not start {}", self.binary.display()))?;
        if !status.success() {
            let said = String::from_utf8_lossy(&stderr);
            bail!("`toolgate {}` ended with {status}: {}", words.join(" "), said.trim());
        }
        String::from_utf8(stdout).context("toolgate printed bytes that are not UTF-8")
    }
}

fn shell(words: &[&str]) -> String {
    let plain = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./:".contains(&b));
    let quoted = |word: &&str| if plain(word) { (*word).to_owned() } else { format!("'{word}'") };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
