//! The binary at a terminal, which the program `script` makes.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Ctrl-C, as a terminal gets it.
pub const CTRL_C: &str = "\u{3}";

/// A command at a terminal. It is killed when this is dropped.
pub struct Session {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl Session {
    /// Starts a command at a terminal.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(command: &Command) -> Self {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))).collect();
        let mut script = Command::new("script");
        script.args(["-qec", &format!("exec {}", words.join(" ")), "/dev/null"]);
        if let Some(folder) = command.get_current_dir() {
            script.current_dir(folder);
        }
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => script.env(variable, value),
                None => script.env_remove(variable),
            };
        }
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is `script`");
        let (keyboard, screen) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self { child, keyboard, screen, shown: String::new() }
    }

    /// Types a text.
    ///
    /// # Panics
    /// When the command has ended.
    pub fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the command reads");
    }

    /// Returns once the screen shows this text, after what was waited for before. Returns what it has shown since then.
    ///
    /// # Panics
    /// When the command ends before.
    pub fn until(&mut self, text: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.shown.find(text) {
                let later = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, later);
            }
            let read = self.screen.read(&mut bytes).expect("the screen can be read");
            assert!(read > 0, "it ended before {text:?}: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    /// Waits for the end of the command. Returns its exit code and the rest of what it has shown.
    ///
    /// # Panics
    /// When it has no exit code.
    #[must_use]
    pub fn end(mut self) -> (i32, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).expect("the screen can be read");
        let code = self.child.wait().expect("it is our child").code().expect("no signal ended it");
        (code, std::mem::take(&mut self.shown) + &String::from_utf8_lossy(&rest))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
