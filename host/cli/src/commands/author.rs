//! What the commands for authors of plugins share: what the binary carries, how failures are told, and how a folder becomes
//! a component that is fit to be loaded.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use anyhow::Context as _;
use domain::{Digest, PluginName};
use kit::{Built, Carried, Failed, Fault, Kit, Project};
use registry::{Access, Holder, LoadRule, Manifest, PackError, Packed, Registry, Settings};
use sandbox::{LoadError, Sandbox};
use toolgate::config::{Config, HolderTable, Parsed, PluginTable, SecretValues, manifest};

use crate::args::{Cache, Toolchains};
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// The SDKs with their templates and lists of tools, and the interface.
pub(super) const CARRIED: Carried = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// With what plugins are built.
pub(super) fn kit<'a>(args: &Toolchains, say: &'a dyn Fn(&str)) -> Result<Kit<'a>, Report> {
    let cache = args.cache.folder().ok_or_else(|| {
        Report::new(Exit::Usage, "there is no folder for toolchains: neither TOOLGATE_CACHE nor HOME is set")
            .hint("name one with --cache")
    })?;
    Ok(Kit { carried: CARRIED, cache, offline: args.offline, say })
}

/// Tells what is being done on standard error.
pub(super) fn say(terminal: &Terminal) -> impl Fn(&str) {
    let terminal = *terminal;
    move |line| terminal.note(&format!("{}\n", terminal.note_ink(Ink::Faint, &text::line(line))))
}

/// A failure of the kit, told.
pub(super) fn failed(failed: &Failed) -> Report {
    let exit = if failed.fault() == Fault::Plugin { Exit::Refused } else { Exit::HostFault };
    let mut report = Report::new(exit, failed.to_string());
    let mut source = std::error::Error::source(failed);
    while let Some(cause) = source {
        report = report.because(cause);
        source = cause.source();
    }
    if let Some(output) = failed.output() {
        report = report.because(output);
    }
    match failed.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// What compiling an author's own component may take, in milliseconds: they wait for it, and can end it. A host's bound is for
/// strangers' components.
pub(super) const COMPILE: NonZeroU64 = match NonZeroU64::new(20 * 60 * 1000) {
    Some(millis) => millis,
    None => NonZeroU64::MIN,
};

/// A sandbox that compiles and asks one component at a time, without any grant.
pub(super) fn sandbox(cache: &Cache) -> Result<Sandbox, Report> {
    let mut config = Config::default();
    config.pool = NonZeroU32::new(4);
    config.compile.time_ms = Some(COMPILE);
    Ok(toolgate::checking_sandbox(&config, Some(super::compiler()?), cache.compiled()).map_err(anyhow::Error::from)?)
}

/// A component that is fit to be loaded by a host that grants what it wants.
pub(super) struct Made {
    pub(super) built: Built,
    pub(super) packed: Packed,
}

/// Builds, packs and checks a plugin, against a host that grants exactly what it wants.
pub(super) fn make(kit: &Kit<'_>, project: &Project, sandbox: &Sandbox) -> Result<Made, Report> {
    let wants = project.manifest().as_deref().map(manifest).transpose()?;
    let name = PluginName::new(project.name()).map_err(anyhow::Error::from)?;
    let built = kit::build::build(kit, project).map_err(|error| failed(&error))?;
    (kit.say)("checking the component as a host would");
    let (settings, has_manifest) = (granting(&name, wants.clone()), wants.is_some());
    let (packed, report) = Registry::pack_and_check(sandbox, &settings, &name, &built.component, wants)
        .map_err(|error| refused(&format!("what was built of {name}"), &error))?;
    if report.findings.is_empty() {
        return Ok(Made { built, packed });
    }
    let refused = Report::new(Exit::Refused, format!("a host would refuse {name}"));
    let told = report.findings.iter().fold(refused, |report, finding| report.because(finding));
    if !has_manifest && report.findings.iter().any(|finding| finding.rule == LoadRule::ImportNotGranted) {
        return Err(told.hint("say what it wants, and why, in toolgate-plugin.toml beside its sources"));
    }
    Err(told)
}

/// A host that grants a plugin exactly what it wants, whatever its component.
fn granting(name: &PluginName, wants: Option<Manifest>) -> Settings {
    let mut config = Config::default();
    let settings = |config: &Config| config.registry(Path::new(""), &SecretValues::default());
    // The component is not packed yet, and so has no digest that anything could be granted to.
    let none = Digest::of([]);
    let access = Access::of(&settings(&config), name, none, wants);
    if let Some(mut table) = PluginTable::granting(None, &access, none) {
        table.component = Some(HolderTable(Holder::AnyComponent));
        config.plugin.insert(Parsed(name.clone()), table);
    }
    settings(&config)
}

/// A component that cannot be packed, told. `what` is the component, as in `hello.wasm`.
pub(super) fn refused(what: &str, error: &PackError) -> Report {
    let exit = if matches!(error, PackError::Host(_)) { Exit::HostFault } else { Exit::Refused };
    let report = Report::new(exit, format!("{what} cannot be packed")).because(error);
    let report = match error {
        PackError::Component(LoadError::NotWebAssembly(_)) => {
            report.hint("name the component, which `toolgate build` writes to build/NAME.wasm")
        }
        _ => report,
    };
    match std::error::Error::source(error) {
        Some(source) => report.because(source),
        None => report,
    }
}

/// The bytes of a file that should be a component. What they are is judged elsewhere.
pub(super) fn component(file: &Path) -> Result<Vec<u8>, Report> {
    if file.is_dir() {
        return Err(Report::new(Exit::Usage, format!("{} is a folder, and no component", file.display()))
            .hint("`toolgate build` makes a component of a plugin's folder: name that, build/NAME.wasm"));
    }
    Ok(std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?)
}

/// Whoever looks sees the old file or the new one: a host may be watching the folder.
pub(super) fn write(out: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        let beside = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".toolgate-pack-").tempfile_in(beside)?;
        std::io::Write::write_all(&mut file, bytes)?;
        #[cfg(unix)]
        std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(out).map(drop).map_err(|error| error.error)
    };
    written().with_context(|| format!("cannot write {}", out.display()))
}
