//! The binary as authors use it: its commands with the installed toolchains, and `toolgate dev` as a process, with its
//! output round by round.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::host::Host;

/// `toolgate dev` on a plugin's folder inside a host's folder. It is killed when this is dropped.
pub struct Dev {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The line that ends a round.
    waiting: String,
    errors: PathBuf,
    /// The number of bytes of its standard error that were read.
    read: usize,
}

impl Dev {
    /// Starts it on this plugin, with these arguments and these folders in its environment.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(host: &Host, plugin: &str, words: &[&str], folders: &[(&str, PathBuf)]) -> Self {
        let mut command = host.command(None, &[&["dev", plugin], words].concat());
        folders.iter().for_each(|(name, folder)| {
            command.env(name, folder);
        });
        let errors = host.folder().join("dev.log");
        let log = fs::File::create(&errors).expect("a log can be written");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary can be run");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        let waiting = match words.contains(&"--json") {
            true => format!("{{\"event\":\"waiting\",\"folder\":\"{plugin}\"}}"),
            false => format!("waiting for changes in {plugin}"),
        };
        Self { child, lines, waiting, errors, read: 0 }
    }

    /// Its output until it waits for a change.
    ///
    /// # Panics
    /// When it ends instead.
    #[must_use]
    pub fn round(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("it prints text");
            assert!(read > 0, "it ended: {said:#?}\n{}", self.errors());
            let line = line.trim_end().to_owned();
            if line == self.waiting {
                return said;
            }
            said.push(line);
        }
    }

    /// Its output to standard error since the last call.
    ///
    /// # Panics
    /// When that cannot be read.
    #[must_use]
    pub fn errors(&mut self) -> String {
        let all = fs::read_to_string(&self.errors).expect("it prints text");
        let new = all[self.read..].to_owned();
        self.read = all.len();
        new
    }

    /// Ends it as Ctrl-C does, and returns its exit code.
    ///
    /// # Panics
    /// When it has no code.
    #[must_use]
    pub fn interrupt(mut self) -> i32 {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("there is `kill`");
        assert!(sent.success(), "it had ended");
        self.child.wait().expect("it is our child").code().expect("no signal ended it")
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The root of the repository.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the tests lie in the repository")
}

/// Runs the binary in the host's folder, with the installed toolchains.
///
/// # Panics
/// When it cannot be run.
#[must_use]
pub fn toolgate(host: &Host, words: &[&str]) -> Output {
    toolgate_with(host, words, &[])
}

/// The same, with these folders in its environment.
///
/// # Panics
/// When it cannot be run.
#[must_use]
pub fn toolgate_with(host: &Host, words: &[&str], folders: &[(&str, PathBuf)]) -> Output {
    let mut command = host.command(None, words);
    command.env("TOOLGATE_CACHE", root().join("target/toolchains"));
    // Kept between runs, so that dependencies are compiled once.
    command.env("CARGO_TARGET_DIR", root().join("plugins/target/new"));
    command.envs(folders.iter().map(|(name, folder)| (name, folder)));
    command.stdin(Stdio::null()).output().expect("the binary can be run")
}

/// The output of a successful command.
///
/// # Panics
/// When it fails.
#[track_caller]
pub fn done(host: &Host, words: &[&str]) -> String {
    let output = toolgate(host, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "toolgate {}: {said}\n(toolchains are installed by `cargo xtask test`; `--without languages` leaves this out)",
        words.join(" ")
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Checks that a line begins like this.
///
/// # Panics
/// When no line does.
#[track_caller]
pub fn has(said: &[String], beginning: &str) {
    assert!(said.iter().any(|line| line.starts_with(beginning)), "{beginning}: {said:#?}");
}

/// Replaces one text of a file by another.
///
/// # Panics
/// When the file does not contain it.
#[track_caller]
pub fn change(file: &Path, (from, to): (&str, &str)) {
    let text = fs::read_to_string(file).expect("it is there");
    assert!(text.contains(from), "{} has no {from:?}", file.display());
    fs::write(file, text.replace(from, to)).expect("it can be written");
}
