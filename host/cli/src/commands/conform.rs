//! `conform`: the conformance kit over one component.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use conform::{Report as Conformance, Row, Subject, Surroundings, Verdict, conform};
use domain::{Digest, PluginName};
use kit::examples::{self, Example};
use registry::{Holder, PluginSettings, Registry, Settings, grants};
use sandbox::{Sandbox, guest_runtime};
use serde_json::json;
use toolgate::config::Config;

use super::author;
use super::check::plugin_name;
use crate::args::Conform;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Conform, terminal: &Terminal) -> Result<(), Report> {
    let name = plugin_name(&args.file)?;
    let bytes = author::component(&args.file)?;
    let examples = examples(args)?;
    let around = Surroundings::default();
    let config = Config::default();
    let base = toolgate::checking_settings(&config, Some(super::compiler()?), args.cache.compiled());
    let sandbox = Sandbox::new(around.around(base)).context("cannot set up the sandbox")?;
    let settings = settings(&name, &bytes);
    let time = Duration::from_secs(args.seconds);
    let subject = Subject { name: &name, bytes: &bytes, settings: &settings, examples: &examples, time };
    let runtime = guest_runtime(1).context("cannot start threads")?;
    let report = runtime.block_on(conform(&sandbox, &around, &subject)).context("the kit could not judge it")?;
    runtime.shutdown_background();
    terminal.line(if args.json { as_json(&args.file, &report) } else { as_text(&args.file, &report, terminal) })?;
    if report.passed() { Ok(()) } else { Err(Report::said(Exit::Refused)) }
}

/// What it wants is granted, since nothing that it does leaves this process.
fn settings(name: &PluginName, bytes: &[u8]) -> Settings {
    let mut settings = Settings::new("");
    let (access, _) = Registry::access(&settings, name, bytes);
    let grants = grants::made_up(access.manifest.as_ref()).into();
    let holder = Holder::Components([Digest::of(bytes)].into());
    settings.plugins.insert(name.clone(), PluginSettings { grants, holder, limits: None });
    settings
}

fn examples(args: &Conform) -> Result<Vec<Example>, Report> {
    let file = args.examples.clone().or_else(|| beside(&args.file));
    file.map_or_else(|| Ok(Vec::new()), |file| examples::read(&file).map_err(|error| author::failed(&error)))
}

/// The examples that belong to a component, if there are any.
fn beside(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let above = folder.file_name().is_some_and(|name| name == "build").then(|| folder.join(".."));
    let files = [Some(folder.to_owned()), above].into_iter().flatten().map(|folder| folder.join(examples::FILE));
    files.into_iter().find(|file| file.is_file())
}

fn as_json(file: &Path, report: &Conformance) -> String {
    let row = |row: Row| {
        let problem = |problem: &conform::Problem| json!({ "tool": problem.tool, "what": problem.what, "remedy": problem.remedy });
        json!({
            "requirement": row.requirement.as_str(),
            "verdict": row.verdict.as_str(),
            "problems": row.problems.iter().map(problem).collect::<Vec<_>>(),
            "note": row.note,
        })
    };
    let value = json!({
        "file": file.to_string_lossy(),
        "toolchain": report.toolchain.to_string(),
        "size": report.size,
        "tools": report.tools,
        "ok": report.passed(),
        "requirements": report.rows().into_iter().map(row).collect::<Vec<_>>(),
    });
    text::json(&value.to_string())
}

fn as_text(file: &Path, report: &Conformance, terminal: &Terminal) -> String {
    let file = text::line(&file.to_string_lossy()).into_owned();
    let tools = report.tools.iter().map(|tool| text::line(tool).into_owned()).collect::<Vec<_>>().join(", ");
    let mut said = format!("{file}: {tools}\n");
    let mut counts = [0; 3];
    for row in report.rows() {
        let (ink, place) = match row.verdict {
            Verdict::Passed => (Ink::Good, 0),
            Verdict::Failed => (Ink::Bad, 1),
            Verdict::Skipped => (Ink::Faint, 2),
        };
        counts[place] += 1;
        let note = row.note.as_deref().map(|note| format!(" ({})", text::line(note))).unwrap_or_default();
        let (verdict, name) = (terminal.ink(ink, row.verdict.as_str()), row.requirement.as_str());
        let _ = writeln!(said, "  {verdict}  {name:<17} {}{note}", row.requirement.asks());
        for problem in &row.problems {
            let about = problem.tool.as_ref().map_or_else(String::new, |tool| format!("{tool}: "));
            let _ = writeln!(said, "        {}", text::line(&format!("{about}{}", problem.what)));
            let _ = writeln!(said, "        -> {}", text::line(&problem.remedy));
        }
    }
    let [passed, failed, skipped] = counts;
    let _ = write!(said, "{passed} passed, {failed} failed, {skipped} skipped");
    said
}
