//! What goes on beside the demo: events are shown as they come, and a demo that answers by itself is bounded in time.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::CONVERSATION;
use super::folder::Folder;
use super::host::Host;
use super::toolgate::Toolgate;
use crate::console;

/// How long a demo may take that answers by itself, after everything was built.
const PATIENCE: Duration = Duration::from_secs(180);

/// `toolgate events`, whose lines are shown. It survives the kill of the host: it connects again where it was cut off.
pub(crate) struct Events {
    child: Child,
    shows: JoinHandle<()>,
}

impl Events {
    /// Follows the demo's conversation.
    pub(crate) fn follow(agent: &Toolgate) -> Result<Self> {
        let mut command = agent.command(&["events", CONVERSATION]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("could not follow the events")?;
        let lines = child.stdout.take().context("the events have no output")?;
        let shows = std::thread::spawn(move || {
            let lines = BufReader::new(lines).lines().map_while(Result::ok);
            lines.filter(|line| !line.is_empty()).for_each(|line| console::aside(&format!("  event | {line}")));
        });
        Ok(Self { child, shows })
    }

    /// Ends it once everything it received is shown.
    pub(crate) fn stop(mut self) {
        // If it is gone already there is nothing to end, and its lines end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.shows.join();
    }
}

/// Ends the demo when it takes too long.
pub(crate) struct Watchdog(Sender<()>);

impl Watchdog {
    /// Watches from now on.
    pub(crate) fn start(host: &Host, folder: &Folder) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (process, log) = (host.process(), folder.log());
        std::thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                console::failure(&format!(
                    "the demo took more than {}; the host's log is {}",
                    console::duration(PATIENCE),
                    log.display()
                ));
                // The process ends in a moment, whether or not the host could be killed.
                let _ = process.kill();
                std::process::exit(1);
            }
        });
        Self(stop)
    }

    /// The demo is over in time.
    pub(crate) fn stop(self) {
        drop(self.0);
    }
}
