//! `dev`: builds a plugin when its sources change, loads it into its own host, and calls it.
//!
//! One thread does this, one change after the other. New changes and the signal to end wait in a channel.

mod calls;
mod sources;

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::{Json, PluginName};
use kit::{Kit, Language};
use registry::{LoadReport, NotLoaded};
use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use toolgate::Host;
use toolgate::config::{Config, Grant};

use self::calls::as_number;
use self::sources::{Snapshot, Sources};
use super::author::{self, Made, Typed};
use super::{Run, build, call};
use crate::args::{Toolchains, not_a_file};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// A build starts when nothing has changed for this long. Editors write several files, and write one file in pieces.
const QUIET: Duration = Duration::from_millis(150);

/// How often changes can delay one build by [`QUIET`].
const MAX_DELAYS: u32 = 20;

/// Build a plugin when its sources change, load it, and call it.
///
/// Loads the component into a host in this process, runs the plugin's examples.json or the one call of --call, and prints each
/// result. With --plugins it also copies the component into the folder of a running host. After a failed build or a refused
/// component the previous one stays loaded. Gated calls are approved. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate dev
  toolgate dev plugins/stats --call stats_columns '{\"table\":\"a,b\"}'
  toolgate dev --plugins ../plugins        for a host beside it: toolgate serve --plugins ../plugins")]
pub(crate) struct Dev {
    /// The plugin's folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Its language, if its files fit several: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE")]
    lang: Option<Language>,
    /// Make this call after each build, instead of the examples. The arguments are a JSON object, `@FILE`, or `-` for standard
    /// input, and are read once
    #[arg(long, num_args = 2, value_names = ["TOOL", "ARGUMENTS"])]
    call: Vec<String>,
    /// Answer the questions of that call, if its tool is durable: see `toolgate call --help`
    #[arg(long, value_name = "ANSWER", requires = "call")]
    answer: Vec<String>,
    /// Copy the component into this folder too: the folder of a running host
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// Grant the component an access: keyvalue, http=URL
    #[arg(long, value_name = "ACCESS")]
    grant: Vec<Grant>,
    /// The configuration with other grants. Without this, no configuration is read
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON: one object a line for each event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    toolchains: Toolchains,
}

/// The events that the thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A file in the plugin's folder may have changed.
    Changed,
    /// The user ends the command.
    End,
}

impl Run for Dev {
    const LOG: &'static str = "error";

    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let only_call = match &self.call[..] {
            [tool, arguments] => Some((tool.clone(), call::arguments(arguments)?)),
            _ => None,
        };
        let (say, printed) = (author::say(terminal), author::printed(terminal));
        let toolkit = author::kit(&self.toolchains, &say, &printed)?;
        let project = author::project(&self.folder, self.lang)?;
        let name = PluginName::new(project.name())?;
        let runtime = super::runtime()?;
        let (sender, events) = mpsc::channel();
        let (end, ended) = watch::channel(false);
        runtime.spawn(send_end(sender.clone(), end));
        let host = runtime.block_on(open(&self, &name))?;
        let mut round = Round {
            args: &self,
            terminal,
            kit: toolkit,
            name,
            sandbox: author::sandbox(&self.toolchains.cache)?,
            runtime: &runtime,
            host,
            only_call,
            ended,
            is_loaded: false,
            calls: 0,
        };
        let mut sources = Sources::watch(project.folder(), sender).context("cannot watch the plugin's folder")?;
        loop {
            let seen = sources.look();
            match round.run() {
                Ok(()) => {}
                // The signal to end has stopped the round.
                Err(_) if events.try_iter().any(|event| event == Event::End) => break,
                Err(report) => round.print(&report)?,
            }
            let waiting = json!({"event": "waiting", "folder": self.folder.to_string_lossy()});
            round.say(&waiting, || format!("waiting for changes in {}", author::shown(&self.folder)))?;
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
}

/// Waits until the sources differ from the built ones. `false` if the user ends the command.
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

/// Waits until changes stop. `false` if the user ends the command.
fn settle(events: &Receiver<Event>) -> bool {
    for _ in 0..MAX_DELAYS {
        match events.recv_timeout(QUIET) {
            Ok(Event::Changed) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Sends the end at the first Ctrl-C. The second one ends the process at once.
async fn send_end(sender: Sender<Event>, end: watch::Sender<bool>) {
    // If the signal cannot be received, it ends the process as usual.
    if tokio::signal::ctrl_c().await.is_ok() {
        let _ = sender.send(Event::End);
        // After the event, for which the end of a call looks.
        end.send_replace(true);
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(Exit::Refused as i32);
        }
    }
}

/// A host for one plugin, with the grants of the operator.
async fn open(args: &Dev, name: &PluginName) -> Result<Host, Report> {
    // Not the `toolgate.toml` of the working folder: it may come with the plugin and grant it anything.
    let mut config = args.config.as_deref().map_or_else(|| Ok(Config::default()), |file| Config::read(Some(file)))?;
    // The secrets and folders of other plugins need not exist here.
    config.plugin.retain(|plugin, _| plugin.0 == *name);
    for grant in &args.grant {
        config.grant(name.clone(), grant.clone());
    }
    config.compile.time_ms.get_or_insert(author::COMPILE);
    author::host(config, None, &args.toolchains.cache).await
}

/// The state of every build.
struct Round<'a> {
    args: &'a Dev,
    terminal: &'a Terminal,
    kit: Kit<'a>,
    name: PluginName,
    sandbox: Sandbox,
    runtime: &'a Runtime,
    host: Host,
    /// The call that is made instead of the examples.
    only_call: Option<(String, Json)>,
    /// Whether the user ends the command.
    ended: watch::Receiver<bool>,
    /// Whether the component of this round was loaded.
    is_loaded: bool,
    /// The number of calls so far, from which each call gets its id.
    calls: u64,
}

impl Round<'_> {
    /// Builds, loads, calls.
    fn run(&mut self) -> Result<(), Report> {
        let begun = author::now();
        self.is_loaded = false;
        let project = author::project(&self.args.folder, self.args.lang)?;
        if project.name() != self.name.as_str() {
            return Err(Report::new(Exit::Usage, format!("the plugin is now called {}", project.name()))
                .hint("end this command with Ctrl-C and start it again"));
        }
        let Dev { folder, lang, toolchains, .. } = self.args;
        let typed = Typed { folder, lang: *lang, out: None, toolchains };
        let made = author::make(&self.kit, &project, &typed, &self.sandbox)?;
        let out = project.output();
        std::fs::create_dir_all(&out)?;
        let file = out.join(format!("{}.wasm", project.name()));
        author::write(&file, &made.packed.bytes)?;
        let as_typed = self.args.folder.join("build").join(format!("{}.wasm", project.name()));
        let mut event = build::as_json(&as_typed, &project, &made);
        event["event"] = json!("built");
        self.say(&event, || build::summary(&as_typed, &made, self.terminal))?;
        let notes = self.load(&made)?.notes;
        let event = json!({
            "event": "loaded", "plugin": project.name(), "millis": as_number(begun.elapsed()),
            "notes": author::notes_json(&notes),
        });
        self.say(&event, || {
            let (word, took) = (self.terminal.style(Style::Good, "loaded"), build::seconds(begun.elapsed()));
            let notes = author::notes(&notes, self.terminal);
            format!("{word} {}, live {took} after the change\n{notes}", self.name).trim_end().to_owned()
        })?;
        self.is_loaded = true;
        self.copy(&made)?;
        self.call(&project)
    }

    /// Loads it into the host of this process, in place of the previous component.
    fn load(&self, made: &Made) -> Result<LoadReport, Report> {
        let loaded = self.runtime.block_on(self.host.registry().load(self.name.clone(), made.packed.bytes.clone()));
        loaded.map_err(|error| match error {
            refused @ NotLoaded::Rejected { .. } => {
                let hint = "grant its requests with --grant, or in a configuration with --config";
                author::not_loaded(&self.name, refused).hint(hint)
            }
            fault @ NotLoaded::Fault(_) => fault.into(),
        })
    }

    /// Prints an event, in the form that the user wants.
    fn say(&self, event: &Value, text: impl FnOnce() -> String) -> Result<(), Report> {
        Ok(self.terminal.line(if self.args.json { escape::json_line(&event.to_string()) } else { text() })?)
    }

    /// Copies it into the folder of a running host.
    fn copy(&self, made: &Made) -> Result<(), Report> {
        let Some(folder) = &self.args.plugins else { return Ok(()) };
        not_a_file(folder)?;
        if !folder.is_dir() {
            return Err(Report::new(Exit::Usage, format!("there is no plugin folder at {}", author::shown(folder))));
        }
        let file = folder.join(format!("{}.wasm", self.name));
        author::write(&file, &made.packed.bytes)?;
        let event = json!({"event": "copied", "file": file.to_string_lossy()});
        self.say(&event, || format!("copied to {}", author::shown(&file)))
    }

    /// Prints why a round failed. The command continues.
    fn print(&self, report: &Report) -> Result<(), Report> {
        if self.args.json {
            let mut event = report.of_build_as_json();
            (event["event"], event["loaded"]) = (json!("failed"), json!(self.is_loaded));
            return self.say(&event, String::new);
        }
        report.print(self.terminal);
        if self.is_loaded {
            return Ok(());
        }
        let stays = format!("{}: the previous component stays loaded", self.terminal.style(Style::Bad, "not loaded"));
        self.terminal.line(stays)?;
        Ok(())
    }
}
