//! The host as a process of its own, which can be killed.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::folder::Folder;
use super::toolgate::Toolgate;
use crate::console;

/// How often the demo asks a starting host whether it is ready, and how many times: a minute in all.
const PROBE: (Duration, u32) = (Duration::from_millis(100), 600);

/// A tool of the plugin that is loaded last when all are loaded in the order of their names.
const LAST_TOOL: &str = "web_search";

/// A running host. Dropping it kills the process.
pub(crate) struct Host {
    process: Process,
    port: u16,
}

/// The process, shared with the watchdog.
#[derive(Clone)]
pub(crate) struct Process(Arc<Mutex<Child>>);

impl Host {
    /// Starts a host on the demo's folder. Returns when the host answers and all tools are loaded.
    pub(crate) fn start(operator: &Toolgate, folder: &Folder, port: u16) -> Result<Self> {
        let port = if port == 0 { free_port()? } else { port };
        let host = Self { process: Process(Arc::new(Mutex::new(spawn(operator, folder, port)?))), port };
        host.ready(operator, folder)?;
        Ok(host)
    }

    /// Starts it again after a kill.
    pub(crate) fn restart(&mut self, operator: &Toolgate, folder: &Folder) -> Result<()> {
        let child = spawn(operator, folder, self.port)?;
        *self.process.child() = child;
        self.ready(operator, folder)
    }

    fn ready(&self, operator: &Toolgate, folder: &Folder) -> Result<()> {
        for _ in 0..PROBE.1 {
            if let Some(status) = self.process.child().try_wait().context("could not look after the host")? {
                bail!("the host ended with {status}; its log is {}", folder.log().display());
            }
            if operator.quiet(&["tools"]).is_some_and(|tools| tools.contains(LAST_TOOL)) {
                console::aside(&format!("the host answers (process {})", self.process.child().id()));
                return Ok(());
            }
            std::thread::sleep(PROBE.0);
        }
        bail!("the host does not answer; its log is {}", folder.log().display())
    }

    /// Kills the host with SIGKILL, which it cannot catch.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// The process, for the watchdog.
    pub(crate) fn process(&self) -> Process {
        self.process.clone()
    }
}

impl Process {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&self) -> Result<()> {
        let mut child = self.child();
        child.kill().and_then(|()| child.wait()).context("could not kill the host")?;
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
    }
}

/// A port that was free just now. The host could choose one itself, but then followers of events would not find it
/// again after the kill.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port")?;
    Ok(listener.local_addr().context("there is no free port")?.port())
}

fn spawn(operator: &Toolgate, folder: &Folder, port: u16) -> Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(folder.log());
    let log = log.with_context(|| format!("could not open {}", folder.log().display()))?;
    let mut command: Command = operator.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let errors = log.try_clone().context("could not share the host's log")?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().context("could not start the host")
}
