//! `verify-build`: whether a source gives the component with a digest.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use domain::Digest;
use kit::{Language, Project};
use serde_json::{Value, json};

use super::Run;
use super::author::{self, Made, Typed};
use crate::args::Toolchains;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Verify that a plugin's source gives the component with this digest.
///
/// Builds the source from nothing, with the same pinned tools as `toolgate build`, and compares the digest of the component. The
/// folder must contain only sources, as after a fresh checkout, and the folders of the build are removed from it afterwards. The
/// exit code is 1 if the digests differ.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate verify-build hello sha256:4c5e…
  toolgate verify-build hello sha256:4c5e… --component plugins/hello.wasm

`toolgate build` and `toolgate pack` print digests.")]
pub(crate) struct VerifyBuild {
    /// The plugin's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The digest of the component: `sha256:` and 64 hexadecimal digits
    #[arg(value_name = "DIGEST")]
    expected: Digest,
    /// The component with this digest. If the build differs, the tools and bytes of both are compared
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Its language, if its files fit several: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE")]
    lang: Option<Language>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    toolchains: Toolchains,
}

/// The comparison with a component that was built elsewhere.
struct Other {
    tools: Vec<String>,
    bytes: String,
}

impl Run for VerifyBuild {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        self.verify(terminal).map_err(|report| report.of_build_for_json(self.json, terminal))
    }
}

impl VerifyBuild {
    fn verify(&self, terminal: &Terminal) -> Result<(), Report> {
        let other = self.component.as_deref().map(author::component).transpose()?;
        if let (Some(file), Some(found)) = (&self.component, other.as_ref().map(Digest::of))
            && found != self.expected
        {
            let message = format!("{} has another digest: {found}", file.display());
            return Err(Report::new(Exit::Usage, message).hint("name the component that has this digest"));
        }
        let project = author::project(&self.folder, self.lang)?;
        only_sources(project.folder())?;
        let made = self.built(&project, terminal);
        let cleaned = clean(project.folder());
        let made = made?;
        cleaned?;
        let found = Digest::of(&made.packed.bytes);
        let other = other.map(|other| compared(&other, &made.packed.bytes));
        let output = if self.json {
            escape::json_line(&as_json(self.expected, found, &made, other.as_ref()).to_string())
        } else {
            as_text(self.expected, found, &made, other.as_ref(), terminal)
        };
        terminal.line(output)?;
        if found == self.expected {
            return Ok(());
        }
        if !self.json {
            explain(project.language(), terminal);
        }
        Err(Report::silent(Exit::Refused))
    }

    fn built(&self, project: &Project, terminal: &Terminal) -> Result<Made, Report> {
        let target = tempfile::tempdir()?;
        let (say, printed) = (author::say(terminal), author::printed(terminal));
        let toolkit = author::kit(&self.toolchains, &say, &printed)?;
        let project = project.clone().with_target(target.path());
        let typed = Typed { folder: &self.folder, lang: self.lang, out: None, toolchains: &self.toolchains };
        author::make(&toolkit, &project, &typed, &author::sandbox(&self.toolchains.cache)?)
    }
}

/// Folders that builds and tests write. A build could take files from them that do not come from the sources.
const GENERATED: [&str; 4] = ["build", "target", "node_modules", "__pycache__"];

/// The generated folders in this folder. Links are not followed.
fn generated(folder: &Path) -> Result<Vec<PathBuf>, Report> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_name() == ".git" {
                // A branch may have one of the names.
            } else if GENERATED.iter().any(|name| entry.file_name() == *name) {
                found.push(entry.path());
            } else if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn only_sources(folder: &Path) -> Result<(), Report> {
    let found = generated(folder)?;
    if found.is_empty() {
        return Ok(());
    }
    let shown = found.iter().map(|path| path.display().to_string());
    Err(Report::new(Exit::Usage, "the folder contains files that are not sources")
        .because_of(shown)
        .hint("verify a fresh checkout, or remove these"))
}

/// Removes what the build wrote. There was nothing with these names before it.
fn clean(folder: &Path) -> Result<(), Report> {
    for path in generated(folder)? {
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Compares a component that was built elsewhere with that of this build.
fn compared(other: &[u8], built: &[u8]) -> Other {
    let bytes = if other.len() == built.len() {
        let different = other.iter().zip(built).filter(|(one, two)| one != two).count();
        format!("{different} of {} bytes differ", built.len())
    } else {
        format!("{} bytes, and {} here", other.len(), built.len())
    };
    Other { tools: kit::tools_of(other), bytes }
}

fn as_json(expected: Digest, found: Digest, made: &Made, other: Option<&Other>) -> Value {
    json!({
        "verified": found == expected,
        "expected": expected.to_string(),
        "built": found.to_string(),
        "tools": kit::tools_of(&made.packed.bytes),
        "component": other.map(|other| json!({ "tools": other.tools, "bytes": other.bytes })),
    })
}

fn as_text(expected: Digest, found: Digest, made: &Made, other: Option<&Other>, terminal: &Terminal) -> String {
    let tools = author::names(&kit::tools_of(&made.packed.bytes));
    if found == expected {
        return format!("{} {found}\n  built with {tools}", terminal.style(Style::Good, "verified"));
    }
    let mut text = format!("{} the source gives another component\n", terminal.style(Style::Bad, "differs"));
    let _ = write!(text, "  expected {expected}\n  built    {found}\n  built with {tools}");
    if let Some(other) = other {
        let _ = write!(text, "\n  the other was built with {}\n  {}", author::names(&other.tools), other.bytes);
    }
    text
}

/// Says what may be the reason.
fn explain(language: Language, terminal: &Terminal) {
    let reasons = match language {
        Language::Python => {
            "another source, other files beside it, another toolgate, or a machine that cannot fix times"
        }
        Language::Rust => "another source, another Cargo.lock, another rustc, or another toolgate",
        Language::Go => "another source, another Go, or another toolgate",
        _ => "another source, other packages, or another toolgate, which pins the tools",
    };
    terminal.note(&format!("{} {reasons}\n", terminal.note_style(Style::Strong, "possible reasons:")));
}
