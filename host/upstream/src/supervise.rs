//! The process between the host and a server. It runs the server in its own process group, and kills the group when the host ends
//! or the server does. So a killed host leaves no process behind.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getpgrp, kill_process_group};

/// Runs a command until it ends or the parent does. The first argument is the process id of the parent, the others are the command.
/// Then kills its own process group, so it does not return.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let parent = arguments.next().and_then(|parent| parent.to_str()?.parse().ok());
    if let (Some(parent), Some(program)) = (parent, arguments.next())
        && let Ok(host) = Parent::new(parent)
        && let Ok(mut child) = Command::new(program).args(arguments).spawn()
    {
        let watching = std::thread::Builder::new().name("toolgate-parent".to_owned()).spawn(move || {
            host.wait();
            end();
        });
        if watching.is_ok() {
            let _ = child.wait();
        }
        end();
    }
    ExitCode::FAILURE
}

/// Keeps programs of the same user from reading the environment and the memory of this process. A server is such a program, and the
/// environment can have secrets of other servers. For this, the system writes no core dump of this process, and only an
/// administrator can debug it.
///
/// # Errors
/// If the system refuses it.
pub fn hide_from_servers() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Kills the whole group, and so this process.
fn end() {
    let _ = kill_process_group(getpgrp(), Signal::KILL);
}

/// The host.
#[cfg(target_os = "linux")]
struct Parent(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Parent {
    fn new(pid: i32) -> std::io::Result<Self> {
        use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
        let gone = || std::io::Error::other("the host has ended");
        let pid = Pid::from_raw(pid).ok_or_else(gone)?;
        let opened = pidfd_open(pid, PidfdFlags::empty())?;
        // If the host had ended before, another process could have its number now.
        if getppid() == Some(pid) { Ok(Self(opened)) } else { Err(gone()) }
    }

    fn wait(&self) {
        use rustix::event::{PollFd, PollFlags, poll};
        while poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
    }
}

/// Elsewhere a parent that ends makes another process the parent.
#[cfg(not(target_os = "linux"))]
struct Parent;

#[cfg(not(target_os = "linux"))]
impl Parent {
    fn new(_: i32) -> std::io::Result<Self> {
        Ok(Self)
    }

    fn wait(&self) {
        let before = rustix::process::getppid();
        while rustix::process::getppid() == before {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
}
