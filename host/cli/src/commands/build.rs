//! `build`: from a plugin's folder, in any supported language, to a component that a host loads.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use domain::Digest;
use kit::{Language, Project};
use serde_json::{Value, json};

use super::Run;
use super::author::{self, Made, Typed};
use crate::args::Toolchains;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Build a plugin in any language: a component that is packed, checked, and ready to load.
///
/// The language follows from the folder's files: Cargo.toml, pyproject.toml, package.json, go.mod or plugin.c. Missing tools
/// are installed once into toolgate's own folder, in versions that are pinned by their hashes. The plugin's requests and
/// reasons come from toolgate-plugin.toml beside its sources.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate build
  toolgate build plugins/stats --out plugins/stats.wasm
  toolgate build --json

The result is DIR/build/NAME.wasm. A failed build keeps the previous result. The exit code says whose fault a failure is: \
1 the plugin's sources, 2 the command line, 5 a tool that is missing or does not work, 4 this machine or toolgate itself.")]
pub(crate) struct Build {
    /// The plugin's folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Its language, if its files fit several: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE")]
    lang: Option<Language>,
    /// Where to write the component [default: DIR/build/NAME.wasm]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON, also for a failure
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    toolchains: Toolchains,
}

impl Run for Build {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        self.build(terminal).map_err(|report| report.of_build_for_json(self.json, terminal))
    }
}

impl Build {
    fn build(&self, terminal: &Terminal) -> Result<(), Report> {
        let (say, printed) = (author::say(terminal), author::printed(terminal));
        let toolkit = author::kit(&self.toolchains, &say, &printed)?;
        let project = author::project(&self.folder, self.lang)?;
        let (folder, out, toolchains) = (&self.folder, self.out.as_deref(), &self.toolchains);
        let typed = Typed { folder, lang: self.lang, out, toolchains };
        let made = author::make(&toolkit, &project, &typed, &author::sandbox(&toolchains.cache)?)?;
        let file = match self.out.clone() {
            Some(out) => out,
            None => {
                std::fs::create_dir_all(project.output())?;
                // The path as it was typed, which is short.
                self.folder.join("build").join(format!("{}.wasm", project.name()))
            }
        };
        author::write(&file, &made.packed.bytes)?;
        terminal.line(if self.json {
            let mut value = as_json(&file, &project, &made);
            value["notes"] = author::notes_json(&made.notes).into();
            escape::json(&value.to_string())
        } else {
            let text = format!("{}\n{}", summary(&file, &made, terminal), author::notes(&made.notes, terminal));
            text.trim_end().to_owned()
        })?;
        Ok(())
    }
}

/// The component as JSON.
pub(super) fn as_json(file: &Path, project: &Project, made: &Made) -> Value {
    json!({
        "ok": true,
        "plugin": project.name(),
        "language": project.language().to_string(),
        "file": file.to_string_lossy(),
        "component": Digest::of(&made.packed.bytes).to_string(),
        "bytes": made.packed.bytes.len(),
        "tools": made.packed.tools,
        "built_with": made.built.tools,
        "millis": u64::try_from(made.took.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The component in words: its file, tools, size, build time and digest.
pub(super) fn summary(file: &Path, made: &Made, terminal: &Terminal) -> String {
    let (shown, tools) = (author::shown(file), author::names(&made.packed.tools));
    let mut summary = format!("{} {shown}: {tools}\n", terminal.style(Style::Good, "built"));
    let (size, took) = (size(made.packed.bytes.len()), seconds(made.took));
    let _ = writeln!(summary, "  {size} in {took}, with {}", author::names(&made.built.tools));
    let _ = write!(summary, "  component {}", Digest::of(&made.packed.bytes));
    summary
}

fn size(bytes: usize) -> String {
    let (whole, tenths) = (bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    if bytes < 1_000_000 { format!("{} KB", bytes.div_ceil(1000)) } else { format!("{whole}.{tenths} MB") }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{}.{} s", time.as_secs(), time.subsec_millis() / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        let sizes = [0, 1, 999, 1001, 999_999, 1_000_000, 18_550_000].map(size);
        assert_eq!(sizes, ["0 KB", "1 KB", "1 KB", "2 KB", "1000 KB", "1.0 MB", "18.5 MB"]);
        assert_eq!(seconds(Duration::from_millis(61_270)), "61.2 s");
    }
}
