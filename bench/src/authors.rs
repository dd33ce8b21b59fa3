//! The times that authors wait, in each language: from `toolgate new` to an approved call when no toolchain is installed, from a
//! saved change to the live tool in `toolgate dev`, and from a copied file to the live tool in `toolgate serve`.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::measure::{Samples, now, progress};
use crate::table::Table;

/// The languages, as `--lang` spells them, with the file of the skeleton's tool.
pub(crate) const LANGUAGES: [(&str, &str, &str); 6] = [
    ("Rust", "rust", "src/lib.rs"),
    ("C", "c", "plugin.c"),
    ("Go", "go", "plugin.go"),
    ("JavaScript (QuickJS)", "js", "plugin.js"),
    ("TypeScript (StarlingMonkey)", "ts", "plugin.ts"),
    ("Python", "python", "plugin.py"),
];

/// The number of changes for the median.
const CHANGES: usize = 3;

/// The aim from `toolgate new` to an approved call, in seconds.
const FIRST_CALL: f64 = 600.0;

/// The time limit for a host to load a component.
const MAX_LOADING: Duration = Duration::from_secs(300);

/// The part of the skeleton's description that a change replaces.
const DESCRIPTION: &str = "Counts the words";

const RULE: &str = "[[policy]]\nname = \"first-approval\"\ntools = \"hello_count\"\nrule = \"ask\"\n";

const ANSWER: &str = r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
    "function": {"name": "hello_count", "arguments": "{\"text\": \"to be or not\"}"}}]}"#;

const COLUMNS: [&str; 5] =
    ["language", "aims", "`new` to an approved call", "save to live in `dev`", "copy to live in `serve`"];

pub(crate) fn authors() -> Result<()> {
    let mut table = Table::new("authors", &COLUMNS, 2);
    for (language, name, source) in LANGUAGES {
        progress(&format!("{language}: installing its toolchain, and from `toolgate new` to an approved call"));
        let author = Author::new()?;
        let first = author.first_call(name).with_context(|| format!("in {language}"))?;
        progress(&format!("{language}: {:.0} s; now {CHANGES} changes in `toolgate dev`", first.as_secs_f64()));
        let live = author.changes(source).with_context(|| format!("in {language}"))?;
        let copied = author.copied().with_context(|| format!("in {language}"))?.as_secs_f64();
        let (first, live) = (first.as_secs_f64(), live.quantile(0.5) / 1e6);
        let aim = if matches!(name, "rust" | "c") { 2.0 } else { 10.0 };
        let aims = if first <= FIRST_CALL && live <= aim { "met" } else { "missed" };
        let [first, live, copied] = [format!("{first:.0} s"), format!("{live:.1} s"), format!("{copied:.1} s")];
        table.row(&[language.to_owned(), aims.to_owned(), first, live, copied]);
    }
    table.finish()
}

/// An author with an empty folder, an empty home, and empty caches of toolchains and packages. The machine has Rust.
struct Author {
    folder: tempfile::TempDir,
    toolgate: PathBuf,
}

impl Author {
    fn new() -> Result<Self> {
        let toolgate = std::env::current_exe()?.with_file_name("toolgate");
        ensure!(toolgate.is_file(), "the binary is missing: cargo build --release -p toolgate-cli");
        let author = Self { folder: tempfile::tempdir()?, toolgate };
        std::fs::create_dir(author.path("home"))?;
        Ok(author)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.toolgate);
        command.args(words).current_dir(self.folder.path()).env("TOOLGATE_CACHE", self.path("cache"));
        let theirs = PathBuf::from(of_machine("HOME").unwrap_or_default());
        for (name, path) in [("RUSTUP_HOME", ".rustup"), ("npm_config_userconfig", ".npmrc")] {
            command.env(name, of_machine(name).unwrap_or_else(|| theirs.join(path).into()));
        }
        command.env("HOME", self.path("home")).env("CARGO_HOME", self.path("cargo"));
        for variable in ["CARGO_TARGET_DIR", "TOOLGATE_URL", "TOOLGATE_TOKEN", "TOOLGATE_DATA", "TOOLGATE_CONFIG"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Runs a command, and returns its output.
    fn run(&self, words: &[&str]) -> Result<String> {
        let output = self.command(words).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "toolgate {}: {errors}", words.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The quick start of the README: the time from `toolgate new` to the result of an approved call.
    fn first_call(&self, language: &str) -> Result<Duration> {
        let begun = now();
        self.run(&["new", "hello", "--lang", language])?;
        self.run(&["build", "hello"])?;
        std::fs::create_dir(self.path("plugins"))?;
        std::fs::copy(self.path("hello/build/hello.wasm"), self.path("plugins/hello.wasm"))?;
        std::fs::write(self.path("toolgate.toml"), RULE)?;
        std::fs::write(self.path("answer.json"), ANSWER)?;
        for (name, role) in [("agent", "caller"), ("alice", "approver")] {
            std::fs::write(self.path(name), self.run(&["token", "create", "--name", name, "--role", role])?)?;
        }
        let mut serve = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let (_host, mut lines) = Running::start(serve.stderr(Stdio::null()))?;
        lines.until("toolgate listens on ")?;
        self.run(&["submit", "answer.json", "--token-file", "agent"])?;
        let pending: Value = serde_json::from_str(&self.run(&["pending", "--json", "--token-file", "alice"])?)?;
        let suspension = pending["suspension"].as_str().context("a call waits")?;
        self.run(&["approve", suspension, "--token-file", "alice"])?;
        let settled = self.run(&["submit", "answer.json", "--wait", "--json", "--token-file", "agent"])?;
        ensure!(settled.contains("\"ok\""), "the call failed: {settled}");
        Ok(begun.elapsed())
    }

    /// The time from a copy of the built file into the folder of a running host to the live tool. `toolgate build` has compiled it.
    fn copied(&self) -> Result<Duration> {
        let file = self.path("plugins/hello.wasm");
        std::fs::remove_file(&file)?;
        let mut serve = self.command(&["serve", "--listen", "127.0.0.1:0", "--data", "other"]);
        let (_host, mut lines) = Running::start(serve.stderr(Stdio::null()))?;
        lines.until("toolgate listens on ")?;
        let begun = now();
        std::fs::copy(self.path("hello/build/hello.wasm"), &file)?;
        loop {
            let status: Value = serde_json::from_str(&self.run(&["status", "--json", "--data", "other"])?)?;
            if status["plugins"]["live"].as_array().is_some_and(|live| !live.is_empty()) {
                return Ok(begun.elapsed());
            }
            ensure!(begun.elapsed() < MAX_LOADING, "the copied component is not live: {status}");
        }
    }

    /// The times from a saved change of the source to the live tool.
    fn changes(&self, source: &str) -> Result<Samples> {
        let mut dev = self.command(&["dev", "hello", "--json"]);
        let (_dev, mut lines) = Running::start(dev.stderr(Stdio::null()))?;
        lines.until("{\"event\":\"waiting\"")?;
        let file = self.path("hello").join(source);
        let text = std::fs::read_to_string(&file)?;
        ensure!(text.contains(DESCRIPTION), "{} has no {DESCRIPTION:?}", file.display());
        let mut samples = Samples::default();
        for change in 0..CHANGES {
            let changed = text.replacen(DESCRIPTION, &format!("{DESCRIPTION} ({change})"), 1);
            let begun = now();
            write(&file, &changed)?;
            lines.until("{\"event\":\"loaded\"")?;
            samples.add(begun.elapsed(), 1);
            lines.until("{\"event\":\"waiting\"")?;
        }
        Ok(samples)
    }
}

#[expect(clippy::disallowed_methods, reason = "an author uses the programs of the machine")]
fn of_machine(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Saves a file in one step, as most editors do.
fn write(file: &Path, text: &str) -> Result<()> {
    let beside = file.with_extension("new~");
    std::fs::write(&beside, text)?;
    Ok(std::fs::rename(beside, file)?)
}

/// A process that is killed when this is dropped.
struct Running(Child);

/// Its output.
struct Lines(BufReader<ChildStdout>);

impl Running {
    fn start(command: &mut Command) -> Result<(Self, Lines)> {
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("its output is piped")?;
        Ok((Self(child), Lines(BufReader::new(output))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Lines {
    /// Reads until a line with this beginning.
    fn until(&mut self, beginning: &str) -> Result<()> {
        let mut line = String::new();
        while !line.starts_with(beginning) {
            if line.contains("\"event\":\"failed\"") {
                bail!("{line}");
            }
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "it ended before it printed {beginning}");
        }
        Ok(())
    }
}
