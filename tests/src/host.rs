//! The real host as a process with its own port and folders. A test can kill it and start it again. Its log is printed
//! when a test fails.

mod setup;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;

use crate::http::{Address, Client};

pub use setup::Setup;

/// The line that the host prints when it answers.
const LISTENS: &str = "toolgate listens on ";

/// The line that the host prints when its plugins are loaded.
const READY: &str = "ready: ";

/// How long a test waits for the end of a host. Only a host that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Variables that lead a command to a developer's own host.
const VARIABLES: [&str; 6] =
    ["TOOLGATE_URL", "TOOLGATE_TOKEN", "TOOLGATE_DATA", "TOOLGATE_CONFIG", "TOOLGATE_CONVERSATION", "TOOLGATE_LOG"];

/// A host. It is killed when this is dropped.
pub struct Host {
    folder: TempDir,
    around: Vec<String>,
    child: Option<Child>,
    address: Address,
    /// The principal `agent`, a caller.
    pub agent: Client,
    /// The principal `alice`, an approver.
    pub approver: Client,
    /// The principal `page`, a client.
    pub page: Client,
    /// The principal `root`, an admin.
    pub admin: Client,
}

/// The output and the exit code of a command.
#[derive(Debug)]
pub struct Said {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Host {
    /// Starts the stopped host. Returns when it is ready.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn start(&mut self) {
        let url = self.start_on("127.0.0.1:0");
        self.address.set(url);
    }

    /// Starts the stopped host. Returns when it listens. Its plugins may still load.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn start_loading(&mut self) {
        let (url, lines) = self.listening("127.0.0.1:0");
        self.address.set(url);
        self.keep_reading(lines);
    }

    /// Starts it at its previous address, for programs that know no other.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn start_at_the_same_address(&mut self) {
        let address = self.address.get();
        self.start_on(address.trim_start_matches("http://"));
    }

    /// Returns its URL when it is ready.
    fn start_on(&mut self, listen: &str) -> String {
        let (url, mut lines) = self.listening(listen);
        after(&mut lines, READY);
        self.keep_reading(lines);
        url
    }

    /// Starts it. Returns its URL when it listens, and the rest of its output.
    fn listening(&mut self, listen: &str) -> (String, BufReader<ChildStdout>) {
        let mut lines = self.spawn(listen);
        (after(&mut lines, LISTENS), lines)
    }

    /// The host keeps printing, and it would end if nobody read its output.
    fn keep_reading(&self, mut lines: BufReader<ChildStdout>) {
        let mut log = self.log_file();
        std::thread::spawn(move || io::copy(&mut lines, &mut log));
    }

    /// Starts it without waiting until it is ready, so that a test can kill it before.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_unready(&mut self) {
        let mut lines = self.spawn("127.0.0.1:0");
        std::thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
    }

    fn spawn(&mut self, listen: &str) -> BufReader<ChildStdout> {
        assert!(self.child.is_none(), "the host runs already");
        let mut words = self.around.clone();
        words.push(binary().display().to_string());
        let mut command = bare(&words[0]);
        command.args(&words[1..]).args(["serve", "--listen", listen, "--log", "info", "--config"]);
        command.arg(self.folder.path().join("toolgate.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.log_file());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("could not start {}: {error}", words[0]));
        let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        self.child = Some(child);
        lines
    }

    /// Kills it with SIGKILL, and returns when it has ended.
    ///
    /// # Panics
    /// When it had ended by itself.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the host runs");
        let ended = child.try_wait().expect("the host is our child");
        assert!(ended.is_none(), "the host ended by itself: {ended:?}");
        child.kill().expect("the host can be killed");
        child.wait().expect("the host ends");
    }

    /// Kills it, unless it has ended by itself.
    ///
    /// # Panics
    /// When it was not started.
    pub fn end(&mut self) {
        let mut child = self.child.take().expect("the host was started");
        // An error means that it has already ended.
        let _ = child.kill();
        child.wait().expect("the host ends");
    }

    /// Kills it and starts it again. Meanwhile, clients wait before they send a request.
    pub fn restart(&mut self) {
        let address = self.address.clone();
        let mut url = address.locked();
        self.kill();
        *url = self.start_on("127.0.0.1:0");
    }

    /// As [`Host::restart`], with these keys more at the top of its configuration.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    pub fn restart_with(&mut self, settings: &str) {
        let file = self.folder.path().join("toolgate.toml");
        let before = fs::read_to_string(&file).expect("a configuration is read");
        fs::write(&file, format!("{settings}\n{before}")).expect("a configuration is written");
        self.restart();
    }

    /// The id of the process.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.as_ref().expect("the host runs").id()
    }

    /// Whether the process runs. One that has ended by itself can be started again.
    ///
    /// # Panics
    /// When that is unknown.
    #[must_use]
    pub fn runs(&mut self) -> bool {
        let has_ended = |child: &mut Child| child.try_wait().expect("the host is our child").is_some();
        self.child.take_if(has_ended);
        self.child.is_some()
    }

    /// Waits until the process has ended by itself. Returns its exit code.
    ///
    /// # Panics
    /// When it does not run, or does not end. Then it is killed.
    pub fn wait(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("the host runs");
        let (process, (ended, end)) = (child.id(), mpsc::channel());
        std::thread::spawn(move || ended.send(child.wait()));
        let Ok(status) = end.recv_timeout(PATIENCE) else {
            sent(process, "-KILL");
            panic!("the host should end by itself, and it still runs after {} seconds", PATIENCE.as_secs());
        };
        status.expect("the host is our child").code()
    }

    /// Tells it to stop, as a supervisor does.
    ///
    /// # Panics
    /// When it does not run.
    pub fn terminate(&self) {
        assert!(sent(self.process(), "-TERM"));
    }

    /// Stops the process in the middle of what it does, until [`Host::resume`]. Returns when all its threads have stopped, or when
    /// the process has ended by itself.
    ///
    /// # Panics
    /// When it was not started.
    pub fn pause(&self) {
        let child = self.child.as_ref().expect("the host was started");
        assert!(sent(child.id(), "-STOP"));
        let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(child)), either).expect("the host is our child");
    }

    /// Lets a process go on that was paused.
    ///
    /// # Panics
    /// When it does not exist.
    pub fn resume(&self) {
        assert!(sent(self.process(), "-CONT"));
    }

    /// A new principal with these roles, bound to a conversation if one is given.
    ///
    /// # Panics
    /// When no token can be made.
    #[must_use]
    pub fn token(&self, name: &str, roles: &[&str], conversation: Option<&str>) -> Client {
        let mut words = vec!["token", "create", "--name", name];
        roles.iter().for_each(|role| words.extend(["--role", role]));
        conversation.iter().for_each(|only| words.extend(["--conversation", only]));
        let said = self.cli(None, &words);
        assert_eq!(said.code, 0, "no token could be made: {}", said.err);
        Client::new(&self.address, Some(said.out.trim()))
    }

    /// The principal with this token.
    #[must_use]
    pub fn client(&self, token: &str) -> Client {
        Client::new(&self.address, Some(token))
    }

    /// A client without a token.
    #[must_use]
    pub fn stranger(&self) -> Client {
        Client::new(&self.address, None)
    }

    /// Runs the binary with the host's configuration, as a principal or as the owner of the folder.
    ///
    /// # Panics
    /// When it cannot be run.
    #[must_use]
    pub fn cli(&self, by: Option<&Client>, words: &[&str]) -> Said {
        let mut command = self.command(by, words);
        let output = command.stdin(Stdio::null()).output().expect("the binary can be run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// As [`Host::cli`], without starting it.
    #[must_use]
    pub fn command(&self, by: Option<&Client>, words: &[&str]) -> Command {
        let mut command = bare(&binary().display().to_string());
        command.args(words).current_dir(self.folder.path());
        if let Some(by) = by {
            command.env("TOOLGATE_TOKEN", by.token());
        } else {
            let admin = self.admin.token();
            if !admin.is_empty() {
                command.env("TOOLGATE_TOKEN", admin);
            }
        }
        command
    }

    /// The folder with its configuration, in which commands run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Puts a component into the watched folder in one step.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn drop_in(&self, name: &str, bytes: &[u8]) {
        let beside = self.folder.path().join(format!("{name}.part"));
        fs::write(&beside, bytes).expect("a component is written");
        fs::rename(beside, self.plugin_file(name)).expect("a component is renamed into the folder");
    }

    /// The path of a plugin in the watched folder.
    #[must_use]
    pub fn plugin_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("plugins").join(format!("{name}.wasm"))
    }

    fn principals(&self) -> [Client; 4] {
        [&self.agent, &self.approver, &self.page, &self.admin].map(Client::clone)
    }

    fn log_file(&self) -> File {
        let path = self.folder.path().join("host.log");
        OpenOptions::new().create(true).append(true).open(path).expect("a log can be written")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // If it has ended already there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("host.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(200)..].join("\n");
            say(&format!("the host's log, its end:\n{last}"));
        }
    }
}

/// Sends a signal to a process. Returns whether there is one.
///
/// # Panics
/// Without the program `kill`.
pub fn sent(process: impl ToString, signal: &str) -> bool {
    Command::new("kill").args([signal, &process.to_string()]).output().expect("there is `kill`").status.success()
}

/// Prints to a test's output.
#[expect(clippy::disallowed_macros, reason = "the test runner captures this output")]
pub fn say(text: &str) {
    println!("{text}");
}

/// The binary under test.
///
/// # Panics
/// When it is not built, or older than its sources.
#[must_use]
pub fn binary() -> PathBuf {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("a test has a file");
        let binary = test.ancestors().nth(2).expect("it lies in target/PROFILE/deps").join("toolgate");
        assert!(binary.is_file(), "{} is missing: run `cargo build -p toolgate-cli`", binary.display());
        if let Some(newer) = newer_source(&binary) {
            panic!("{} was built before {newer} was changed: run `cargo build -p toolgate-cli`", binary.display());
        }
        binary
    });
    BINARY.clone()
}

/// A source that is newer than the binary. It exists if only some of the tests run, because cargo does not build the
/// binary then. If cargo left no list of sources, it has just built both.
fn newer_source(binary: &Path) -> Option<String> {
    // The time of a folder also changes when tools write other files there.
    let changed = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok();
    let built = changed(binary)?;
    let list = fs::read_to_string(binary.with_extension("d")).ok()?;
    let (_, sources) = list.trim_end().split_once(": ")?;
    let sources = sources.replace("\\ ", "\0");
    let mut sources = sources.split(' ').map(|path| path.replace('\0', " "));
    sources.find(|path| changed(Path::new(path)).is_some_and(|changed| changed > built))
}

/// The rest of the next line that begins like this.
fn after(lines: &mut impl BufRead, beginning: &str) -> String {
    let mut line = String::new();
    while !line.starts_with(beginning) {
        line.clear();
        let read = lines.read_line(&mut line).expect("the host prints text");
        assert!(read > 0, "the host ended and did not print {beginning:?}");
    }
    line[beginning.len()..].trim().to_owned()
}

/// A command without the developer's own variables.
fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    // Not the developer's own cache, but one that all tests share.
    command.env("TOOLGATE_CACHE", concat!(env!("CARGO_MANIFEST_DIR"), "/../target/toolchains"));
    VARIABLES.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    command
}
