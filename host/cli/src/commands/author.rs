//! Shared by the commands for plugin authors: the SDKs in the binary, reports of failures, and the way from a folder to a
//! component that a host loads.

pub(super) mod flags;
mod typed;

use std::fmt::Display;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use dispatch::ports::{KnownTool, Tools as _};
use domain::{CatalogLimits, Digest, PluginName, Tool};
use kit::{Built, Carried, Failed, Fault, Kit, Language, Project};
use registry::{
    Access, Finding, GrantHolder, LoadRule, Manifest, NotLoaded, Note, PackError, Packed, Registry, RegistrySettings,
};
use sandbox::{LoadError, Sandbox};
use serde_json::{Value, json};
use toolgate::Host;
use toolgate::config::{Config, HolderTable, Parsed, PluginTable, SecretValues, manifest};

pub(super) use self::typed::Typed;
use crate::args::{Cache, Toolchains, folder_instead, not_a_file, unread};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// The SDKs with their templates and pinned tools, and the WIT interface.
pub(super) const CARRIED: Carried = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// The kit that builds plugins.
pub(super) fn kit<'a>(args: &Toolchains, say: &'a dyn Fn(&str), printed: &'a dyn Fn(&str)) -> Result<Kit<'a>, Report> {
    args.cache.typed().map_or(Ok(()), not_a_file)?;
    let cache = args.cache.folder().ok_or_else(|| {
        Report::new(Exit::Usage, "there is no folder for toolchains, because neither TOOLGATE_CACHE nor HOME is set")
            .hint("name one with --cache")
    })?;
    Ok(Kit { carried: CARRIED, cache, offline: args.offline, say, printed })
}

/// Prints the steps of a build to standard error.
pub(super) fn say(terminal: &Terminal) -> impl Fn(&str) {
    let terminal = *terminal;
    move |line| terminal.note(&format!("{}\n", terminal.note_style(Style::Faint, &escape::line(line))))
}

/// Prints the output of compilers to standard error, as they printed it.
pub(super) fn printed(terminal: &Terminal) -> impl Fn(&str) {
    let terminal = *terminal;
    move |output| terminal.note(&escape::block(output, ""))
}

/// The plugin in a folder that the command line names.
pub(super) fn project(folder: &Path, lang: Option<Language>) -> Result<Project, Report> {
    not_a_file(folder)?;
    Project::open(folder, lang).map_err(|error| failed(&error))
}

/// A failure of the kit, as a report.
pub(super) fn failed(failed: &Failed) -> Report {
    let exit = match failed.fault() {
        Fault::Plugin => Exit::Refused,
        Fault::Usage => Exit::Usage,
        Fault::Tools => Exit::Tools,
        Fault::Machine => Exit::HostFault,
    };
    let mut report = Report::new(exit, failed.to_string());
    let mut source = std::error::Error::source(failed);
    while let Some(cause) = source {
        report = report.because(cause);
        source = cause.source();
    }
    if let (Some(command), Some(output)) = (failed.command(), failed.output()) {
        report = report.of_program(command, output);
    }
    match failed.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// How long compiling an author's own component may take, in milliseconds. The author can stop it, so this is longer than a
/// host's limit for components of strangers.
pub(super) const COMPILE: NonZeroU64 = match NonZeroU64::new(20 * 60 * 1000) {
    Some(millis) => millis,
    None => NonZeroU64::MIN,
};

/// A sandbox for one component at a time, without grants.
pub(super) fn sandbox(cache: &Cache) -> Result<Sandbox, Report> {
    let mut config = Config::default();
    config.pool = NonZeroU32::new(4);
    config.compile.time_ms = Some(COMPILE);
    let made = toolgate::checking_sandbox(&config, Some(super::compiler()?), cache.compiled());
    made.map_err(|error| Report::from(error).of_machine())
}

/// Opens a host that lasts as long as one command and runs a few guests. Its principals may approve their own calls.
pub(super) async fn host(mut config: Config, plugins: Option<PathBuf>, cache: &Cache) -> Result<Host, Report> {
    (config.data, config.plugins) = (None, plugins);
    config.pool = NonZeroU32::new(16);
    let builder = Host::builder().config(config).compiler(super::compiler()?).memory().approve_own_calls();
    Ok(builder.user_cache(cache.compiled()).open().await?)
}

/// The report for a component that a host did not load. `what` names the component.
pub(super) fn not_loaded(what: impl Display, error: NotLoaded) -> Report {
    match error {
        NotLoaded::Rejected { findings, .. } => {
            Report::new(Exit::Refused, format!("{what} was refused")).because_of(findings)
        }
        NotLoaded::Fault(_) => error.into(),
    }
}

/// Finds a live tool.
pub(super) fn tool(host: &Host, name: &str) -> Result<Arc<KnownTool>, Report> {
    let live = host.handle().tools();
    live.iter().find(|tool| tool.tool.name.as_str() == name).cloned().ok_or_else(|| {
        let names: Vec<_> = live.iter().map(|tool| tool.tool.name.as_str()).collect();
        let refused = host.registry().plugins();
        let refused: Vec<_> = refused.iter().filter(|plugin| plugin.rejected.is_some()).collect();
        let refused = refused.iter().map(|plugin| {
            let (name, findings) = (&plugin.name, plugin.rejected.as_ref().map_or(&[][..], |(_, findings)| findings));
            match flags::for_call(findings, plugin.access.as_ref()) {
                Some(flags) => format!(
                    "the plugin {name} was refused because it lacks grants; to grant them for this call only, name its file \
                     {name}.wasm before the tool and add {flags}"
                ),
                None => format!("the plugin {name} was refused; call its file, and `toolgate check` it to see why"),
            }
        });
        let report = refused.fold(Report::new(Exit::Usage, format!("there is no tool {name:?}")), Report::hint);
        match host.registry().find(name) {
            Err(Some(near)) => report.hint(format!("did you mean {near}?")),
            _ => report.hint(format!("there are: {}", names.join(", "))),
        }
    })
}

/// A component that a host with the right grants loads.
pub(super) struct Made {
    pub(super) built: Built,
    pub(super) packed: Packed,
    /// The parts of its declaration that a host with default limits reduces.
    pub(super) notes: Vec<Note>,
    /// The time of all of it, with installations and the check.
    pub(super) took: Duration,
}

/// Builds, packs and checks a plugin. The check grants exactly the plugin's requests.
pub(super) fn make(toolkit: &Kit<'_>, project: &Project, typed: &Typed<'_>, engine: &Sandbox) -> Result<Made, Report> {
    made(toolkit, project, engine).map_err(|report| {
        if report.is_of_program() { report.hint(format!("to repeat it: {}", typed.command())) } else { report }
    })
}

fn made(toolkit: &Kit<'_>, project: &Project, engine: &Sandbox) -> Result<Made, Report> {
    let begun = now();
    let requests = project.manifest().as_deref().map(manifest).transpose()?;
    let name = PluginName::new(project.name())?;
    let built = kit::build::build(toolkit, project).map_err(|error| failed(&error))?;
    (toolkit.say)("checking the component as a host would, which compiles it to machine code");
    let (mut settings, has_manifest) = (granting(&name, requests.clone()), requests.is_some());
    // An operator may allow larger schemas than the default.
    settings.catalog.schema = CatalogLimits::MAX.schema;
    let (packed, report) = Registry::pack_and_check(engine, &settings, &name, &built.component, requests)
        .map_err(|error| refused(&format!("the component of {name}"), &error))?;
    if report.findings.is_empty() {
        let notes = report.notes.into_iter().chain(report.tools.iter().filter_map(large_schema)).collect();
        return Ok(Made { built, packed, notes, took: begun.elapsed() });
    }
    let refused = Report::new(Exit::Refused, format!("a host would refuse {name}")).because_of(&report.findings);
    if !has_manifest && report.findings.iter().any(|finding| finding.rule == LoadRule::ImportNotGranted) {
        return Err(refused.hint("write its requests and reasons into toolgate-plugin.toml beside its sources"));
    }
    Err(refused)
}

/// The note about a tool with a schema that a host with default limits refuses.
fn large_schema(tool: &Tool) -> Option<Note> {
    let (name, max) = (tool.name.clone(), CatalogLimits::default().schema);
    let schemas = [Some(&tool.parameters), tool.options.result.as_ref(), tool.options.response.as_ref()];
    let size = schemas.into_iter().flatten().map(|schema| schema.as_str().len()).max().filter(|size| *size > max)?;
    let message =
        format!("a schema has {size} bytes; a host accepts {max}, unless its `catalog.schema_bytes` is larger");
    Some(Note { tool: name, message })
}

/// The time, to tell an author how long something took.
#[expect(clippy::disallowed_methods, reason = "an author sees how long a build or a call took")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Settings that grant a plugin exactly its requests, for any component.
fn granting(name: &PluginName, requests: Option<Manifest>) -> RegistrySettings {
    let mut config = Config::default();
    let settings = |config: &Config| config.registry(Path::new(""), &SecretValues::default());
    // The component is not packed yet, so nothing can be granted to its digest.
    let none = Digest::of([]);
    let access = Access::of(&settings(&config), name, none, requests);
    if let Some(mut table) = PluginTable::granting(None, &access, none) {
        table.component = Some(HolderTable(GrantHolder::AnyComponent));
        config.plugin.insert(Parsed(name.clone()), table);
    }
    settings(&config)
}

/// The report for a component that cannot be packed. `what` names the component, such as `hello.wasm`.
pub(super) fn refused(what: &str, error: &PackError) -> Report {
    let exit = if matches!(error, PackError::Host(_)) { Exit::HostFault } else { Exit::Refused };
    let report = Report::new(exit, format!("{what} cannot be packed")).because(error);
    let report = match error {
        PackError::Component(LoadError::NotWebAssembly(_)) => {
            report.hint("name a component; `toolgate build` writes one to build/NAME.wasm")
        }
        _ => report,
    };
    match std::error::Error::source(error) {
        Some(source) => report.because(source),
        None => report,
    }
}

/// Refuses a folder where a component's file is expected.
pub(super) fn not_a_folder(file: &Path) -> Result<(), Report> {
    let Some(report) = folder_instead(file, "a component") else { return Ok(()) };
    let is_component = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "wasm");
    Err(if file.read_dir().is_ok_and(|entries| entries.flatten().any(is_component)) {
        report.hint(format!("name its components, such as {}", file.join("*.wasm").display()))
    } else {
        report.hint("`toolgate build` makes a component from a plugin's folder; name that file, build/NAME.wasm")
    })
}

/// The name of the plugin in this file: a host names a plugin after its file.
pub(super) fn plugin_name(file: &Path) -> Result<PluginName, Report> {
    registry::plugin_name(file).map_err(|finding| {
        Report::new(Exit::Usage, format!("the name of {} is not a plugin's name", file.display()))
            .because(finding.message)
            .hint(format!("a host names a plugin after its file; {}", finding.remedy))
    })
}

/// The name under which a file is tested: its own or, with the finding about its own, the nearest valid one.
pub(super) fn tested_name(file: &Path) -> Result<(PluginName, Option<Finding>), Report> {
    Ok(match registry::plugin_name(file) {
        Ok(name) => (name, None),
        Err(misnamed) => {
            let near = registry::nearest_name(file).map_or_else(|| PluginName::new("plugin"), Ok)?;
            (near, Some(misnamed))
        }
    })
}

/// The bytes of a file that should be a component. Others check whether it is one.
pub(super) fn component(file: &Path) -> Result<Vec<u8>, Report> {
    not_a_folder(file)?;
    let hint = "name a component's file: `toolgate build` makes build/NAME.wasm";
    std::fs::read(file).map_err(|error| unread(file.display(), error).hint(hint))
}

/// Replaces a file at once, so that a host that watches the folder sees the old file or the new one.
pub(super) fn write(out: &Path, bytes: &[u8]) -> Result<(), Report> {
    let written = || -> std::io::Result<()> {
        let beside = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".toolgate-pack-").tempfile_in(beside)?;
        std::io::Write::write_all(&mut file, bytes)?;
        #[cfg(unix)]
        std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(out).map(drop).map_err(|error| error.error)
    };
    let written = written().with_context(|| format!("cannot write {}", out.display()));
    written.map_err(|error| Report::from(error).of_machine())
}

/// Notes as lines for the terminal, indented.
pub(super) fn notes(notes: &[Note], terminal: &Terminal) -> String {
    let word = terminal.style(Style::Open, "note");
    notes.iter().map(|note| format!("  {word}: {}\n", escape::line(&note.to_string()))).collect()
}

pub(super) fn notes_json(notes: &[Note]) -> Vec<Value> {
    notes.iter().map(|note| json!({"tool": note.tool.as_str(), "message": note.message})).collect()
}

/// Names for the terminal, escaped.
pub(super) fn names(names: &[String]) -> String {
    names.iter().map(|name| escape::line(name).into_owned()).collect::<Vec<_>>().join(", ")
}

/// A path for the terminal, escaped.
pub(super) fn shown(path: &Path) -> String {
    escape::line(&path.display().to_string()).into_owned()
}
