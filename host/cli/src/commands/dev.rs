//! `dev`: builds a plugin whenever its sources change, loads it into a host of its own, and calls it.
//!
//! One thread does it all, one change after the other; what happens meanwhile waits in a channel: a change, or the end.

mod calls;
mod sources;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Context as _;
use domain::PluginName;
use kit::{Failed, Kit, Project};
use registry::NotLoaded;
use sandbox::Sandbox;
use tokio::runtime::Runtime;
use toolgate::Host;
use toolgate::config::Config;

use self::sources::{Snapshot, Sources};
use super::author::{self, Made};
use super::{build, call};
use crate::args::Dev;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// How long nothing may have changed before a build begins: editors write several files, and files in pieces.
const QUIET: Duration = Duration::from_millis(150);

/// How many times that in a row a build is put off.
const PATIENCE: u32 = 20;

/// What the thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Something in the plugin's folder may have changed.
    Changed,
    /// Somebody asked for the end.
    End,
}

pub(super) fn run(args: &Dev, terminal: &Terminal) -> Result<(), Report> {
    if let [_, arguments] = &args.call[..] {
        call::arguments(arguments)?;
    }
    let say = author::say(terminal);
    let kit = author::kit(&args.toolchains, &say)?;
    let project = Project::open(&args.folder, args.lang).map_err(|error: Failed| author::failed(&error))?;
    let name = PluginName::new(project.name()).map_err(anyhow::Error::from)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let (sender, events) = mpsc::channel();
    runtime.spawn(until_the_end(sender.clone()));
    let host = runtime.block_on(open(args, &name))?;
    let mut round = Round {
        args,
        terminal,
        kit,
        name,
        sandbox: author::sandbox(&args.toolchains.cache)?,
        runtime: &runtime,
        host,
        is_loaded: false,
        calls: 0,
    };
    let mut sources = Sources::watch(project.folder(), sender).context("cannot watch the plugin's folder")?;
    loop {
        let seen = sources.look();
        match round.run() {
            Ok(()) => {}
            // What the end cut short did not fail.
            Err(_) if events.try_iter().any(|event| event == Event::End) => break,
            Err(report) => round.tell(&report)?,
        }
        terminal.line(format!("waiting for changes in {}", shown(&args.folder)))?;
        let after = sources.look();
        let built = if after.differs_by_locks_from(&seen) { after } else { seen };
        if !wait(&events, &mut sources, &built) {
            break;
        }
    }
    let Round { host, .. } = round;
    drop(host);
    runtime.shutdown_background();
    Ok(())
}

/// Waits until the sources are others than those that were built; `false` at the end.
fn wait(events: &Receiver<Event>, sources: &mut Sources, built: &Snapshot) -> bool {
    loop {
        if sources.look() != *built {
            return settle(events);
        }
        match events.recv() {
            Ok(Event::Changed) => {}
            Ok(Event::End) | Err(_) => return false,
        }
    }
}

/// Waits until nothing changes any more; `false` at the end.
fn settle(events: &Receiver<Event>) -> bool {
    for _ in 0..PATIENCE {
        match events.recv_timeout(QUIET) {
            Ok(Event::Changed) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Tells of the end. Whoever asks twice does not want to wait for what runs.
async fn until_the_end(sender: Sender<Event>) {
    // If nobody can be asked for the end, a signal ends the process as it ends any.
    if tokio::signal::ctrl_c().await.is_ok() {
        let _ = sender.send(Event::End);
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(Exit::Refused as i32);
        }
    }
}

/// A host for one plugin, with what the operator would grant it.
async fn open(args: &Dev, name: &PluginName) -> Result<Host, Report> {
    // Not the `toolgate.toml` of the folder that one is in: that may be the plugin's own, and would grant it what it likes.
    let mut config = args.config.as_deref().map_or_else(|| Ok(Config::default()), |file| Config::read(Some(file)))?;
    // What others are granted, their secrets and folders, is not needed here and need not be there.
    config.plugin.retain(|plugin, _| plugin.0 == *name);
    for grant in &args.grant {
        config.grant(name.clone(), grant.clone());
    }
    (config.data, config.plugins) = (None, None);
    config.pool = NonZeroU32::new(16);
    config.compile.time_ms.get_or_insert(author::COMPILE);
    let builder = Host::builder().config(config).compiler(super::compiler()?).memory().approve_own_calls();
    let builder = builder.user_cache(args.toolchains.cache.compiled());
    Ok(builder.open().await.map_err(anyhow::Error::from)?)
}

/// What every build works with.
struct Round<'a> {
    args: &'a Dev,
    terminal: &'a Terminal,
    kit: Kit<'a>,
    name: PluginName,
    sandbox: Sandbox,
    runtime: &'a Runtime,
    host: Host,
    /// Whether what this round has built was loaded.
    is_loaded: bool,
    /// Calls that were made: each has an id of its own.
    calls: u64,
}

impl Round<'_> {
    /// Builds, loads, calls.
    fn run(&mut self) -> Result<(), Report> {
        self.is_loaded = false;
        let project = Project::open(&self.args.folder, self.args.lang).map_err(|error| author::failed(&error))?;
        if project.name() != self.name.as_str() {
            return Err(Report::new(Exit::Usage, format!("the plugin is now called {}", project.name()))
                .hint("end this with Ctrl-C and begin again"));
        }
        let made = author::make(&self.kit, &project, &self.sandbox)?;
        let out = project.output();
        std::fs::create_dir_all(&out)?;
        let file = out.join(format!("{}.wasm", project.name()));
        author::write(&file, &made.packed.bytes)?;
        let as_typed = self.args.folder.join("build").join(format!("{}.wasm", project.name()));
        self.terminal.line(build::summary(&as_typed, &made, self.terminal))?;
        self.load(&made)?;
        self.is_loaded = true;
        self.hand_over(&made)?;
        self.call(&project)
    }

    /// Loads it into the host of this process, in the place of what is there.
    fn load(&self, made: &Made) -> Result<(), Report> {
        let loaded = self.runtime.block_on(self.host.registry().load(self.name.clone(), made.packed.bytes.clone()));
        match loaded {
            Ok(_) => {}
            Err(NotLoaded::Rejected { findings, .. }) => {
                let report = Report::new(Exit::Refused, format!("{} was refused", self.name));
                let report = findings.iter().fold(report, |report, finding| report.because(finding));
                return Err(report.hint("grant what it wants with --grant, or in a configuration with --config"));
            }
            Err(error) => return Err(anyhow::Error::from(error).into()),
        }
        self.terminal.line(format!("{} {}", self.terminal.ink(Ink::Good, "loaded"), self.name))?;
        Ok(())
    }

    /// Puts it where a running host finds it.
    fn hand_over(&self, made: &Made) -> Result<(), Report> {
        let Some(folder) = &self.args.plugins else { return Ok(()) };
        if !folder.is_dir() {
            return Err(Report::new(Exit::Usage, format!("there is no folder of plugins at {}", shown(folder))));
        }
        let file = folder.join(format!("{}.wasm", self.name));
        author::write(&file, &made.packed.bytes)?;
        self.terminal.line(format!("copied to {}", shown(&file)))?;
        Ok(())
    }

    /// Says what went wrong. Nothing ends by it.
    fn tell(&self, report: &Report) -> Result<(), Report> {
        report.print(self.terminal);
        if self.is_loaded {
            return Ok(());
        }
        let stays = format!("{}: what was loaded before stays", self.terminal.ink(Ink::Bad, "not loaded"));
        self.terminal.line(stays)?;
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    text::line(&path.display().to_string()).into_owned()
}
