//! The process of a server: a clean environment, a process group of its own, and an end with its handle.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::settings::Program;

/// A running process. Dropping it kills its process group.
pub(crate) struct Process {
    _child: Child,
    group: Option<Pid>,
}

/// The pipes of a process.
pub(crate) struct Pipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) error: ChildStderr,
}

impl Process {
    /// Starts the program.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(program: &Program) -> io::Result<(Self, Pipes)> {
        let mut words = program.command.clone();
        if let Some(supervisor) = &program.supervisor {
            let host = std::process::id().to_string().into();
            words = supervisor.iter().cloned().chain([host]).chain(words).collect();
        }
        let mut words = words.into_iter();
        let first = words.next().ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut child = Command::new(first)
            .args(words)
            .env_clear()
            .envs(&program.environment)
            .current_dir(&program.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals from the host's terminal do not reach it, and the host can kill all of it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { _child: child, group };
        let (Some(input), Some(output), Some(error)) = pipes else { return Err(io::Error::other("no pipes")) };
        Ok((process, Pipes { input, output, error }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also after the end of the child, whose own children may run on. Nothing has waited for it, so its id is still its own.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
