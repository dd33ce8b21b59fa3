//! `conform`: runs the conformance kit on one component.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use conform::{ConformanceReport, Row, Surroundings, TestResult, TestedComponent, conform};
use domain::{Digest, PluginName};
use kit::examples::{self, Example};
use registry::{GrantHolder, PluginSettings, Registry, RegistrySettings};
use sandbox::{Sandbox, guest_runtime};
use serde_json::json;
use toolgate::config::{Config, SecretValues};

use super::{Run, author};
use crate::args::{Cache, unread};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Test whether a component behaves as hosts, models and people expect: the conformance kit.
///
/// Loads the component and calls its server tools with examples and with common mistakes: arguments that break the schema,
/// characters of every kind, empty and very large inputs, the same call twice. Prints a line for each requirement, and a remedy
/// for each failure. Nothing leaves this process: HTTP requests are denied, configuration values and secrets are invented.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate conform build/hello.wasm
  toolgate conform build/hello.wasm --examples calls.json
  toolgate conform build/hello.wasm --json

Examples of calls are a JSON array beside the plugin's source:
  [{\"tool\": \"hello_count\", \"arguments\": {\"text\": \"to be\"}, \"result\": {\"words\": 2}},
   {\"tool\": \"hello_count\", \"arguments\": {\"text\": \"\"}, \"failure\": \"invalid-arguments\"}]")]
pub(crate) struct Conform {
    /// The component
    file: PathBuf,
    /// Examples of calls [default: examples.json beside the file, or beside its folder `build`]
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    /// How long all calls together may take. Calls that are left then fail the requirement `time`
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Load it with the limits and the policy of this configuration, as `toolgate check` does
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
}

impl Run for Conform {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let config = Config::read(self.config.as_deref())?;
        let (name, misnamed) = author::tested_name(&self.file)?;
        let bytes = author::component(&self.file)?;
        let examples = examples(&self)?;
        let around = Surroundings::default();
        let base = toolgate::checking_settings(&config, Some(super::compiler()?), self.cache.compiled());
        let engine = Sandbox::new(around.around(base)).context("cannot set up the sandbox")?;
        let settings = settings(&config, &name, &bytes);
        let time = Duration::from_secs(self.seconds);
        let misnamed = misnamed.as_ref();
        let subject =
            TestedComponent { name: &name, misnamed, bytes: &bytes, settings: &settings, examples: &examples, time };
        let runtime = guest_runtime(1).context("cannot start threads")?;
        let report = runtime.block_on(conform(&engine, &around, &subject)).context("the kit failed")?;
        runtime.shutdown_background();
        terminal.line(if self.json { as_json(&self.file, &report) } else { as_text(&self.file, &report, terminal) })?;
        if report.passed() { Ok(()) } else { Err(Report::silent(Exit::Refused)) }
    }
}

/// Grants everything that the component requests: nothing leaves this process.
fn settings(config: &Config, name: &PluginName, bytes: &[u8]) -> RegistrySettings {
    let mut settings = config.registry(Path::new(""), &SecretValues::default());
    let (access, _) = Registry::access(&settings, name, bytes);
    let grants = registry::Manifest::made_up(access.manifest.as_ref()).into();
    let holder = GrantHolder::Components([Digest::of(bytes)].into());
    let limits = Some(settings.limits(name));
    settings.plugins.insert(name.clone(), PluginSettings { grants, holder, limits });
    settings
}

fn examples(args: &Conform) -> Result<Vec<Example>, Report> {
    let file = args.examples.clone().or_else(|| beside(&args.file));
    let Some(file) = file else { return Ok(Vec::new()) };
    file.metadata().map_err(|error| unread(file.display(), error))?;
    examples::read(&file).map_err(|error| author::failed(&error))
}

/// The examples beside a component, or beside its folder `build`.
fn beside(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let above = folder.file_name().is_some_and(|name| name == "build").then(|| folder.join(".."));
    let files = [Some(folder.to_owned()), above].into_iter().flatten().map(|folder| folder.join(examples::FILE));
    files.into_iter().find(|file| file.is_file())
}

fn as_json(file: &Path, report: &ConformanceReport) -> String {
    let row = |row: Row| {
        let problem =
            |problem: &conform::Defect| json!({ "tool": problem.tool, "what": problem.what, "remedy": problem.remedy });
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
    escape::json(&value.to_string())
}

fn as_text(file: &Path, report: &ConformanceReport, terminal: &Terminal) -> String {
    let file = escape::line(&file.to_string_lossy()).into_owned();
    let tools = report.tools.iter().map(|tool| escape::line(tool).into_owned()).collect::<Vec<_>>().join(", ");
    let mut output = format!("{file}: {tools}\n");
    let mut counts = [0; 3];
    for row in report.rows() {
        let (style, index) = match row.verdict {
            TestResult::Passed => (Style::Good, 0),
            TestResult::Failed => (Style::Bad, 1),
            TestResult::Skipped => (Style::Faint, 2),
        };
        counts[index] += 1;
        let note = row.note.as_deref().map(|note| format!(" ({})", escape::line(note))).unwrap_or_default();
        let (verdict, name) = (terminal.style(style, row.verdict.as_str()), row.requirement.as_str());
        let _ = writeln!(output, "  {verdict}  {name:<17} {}{note}", row.requirement.asks());
        for problem in &row.problems {
            let about = problem.tool.as_ref().map_or_else(String::new, |tool| format!("{tool}: "));
            let _ = writeln!(output, "        {}", escape::line(&format!("{about}{}", problem.what)));
            let _ = writeln!(output, "        -> {}", escape::line(&problem.remedy));
        }
    }
    let [passed, failed, skipped] = counts;
    let _ = write!(output, "{passed} passed, {failed} failed, {skipped} skipped");
    output
}
