//! `new`: writes a plugin to start from. The folder contains the SDK and the WIT interface, so it builds without the repository.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use kit::{Failed, Language, Sample};
use serde_json::json;

use super::Run;
use super::author::{self, CARRIED};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Write a plugin to start from, in any language: one tool, with a test.
///
/// The folder contains the SDK and the interface, and `toolgate build` builds it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate new hello && cd hello && toolgate build
  toolgate new hello --lang python --json
  toolgate new deploy --lang go --durable")]
pub(crate) struct New {
    /// The plugin's name: at most 50 small letters, digits, `_` and `-`, beginning with a letter
    name: String,
    /// The language: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    lang: Language,
    /// Write a durable tool: its call waits for people in the middle of its code
    #[arg(long)]
    durable: bool,
    /// The folder to write [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON, also for a failure
    #[arg(long)]
    json: bool,
}

impl Run for New {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        self.write(terminal).map_err(|report| report.of_build_for_json(self.json, terminal))
    }
}

impl New {
    fn write(&self, terminal: &Terminal) -> Result<(), Report> {
        let sample = if self.durable { Sample::Durable } else { Sample::Plain };
        let files = kit::skeleton(CARRIED, self.lang, sample, &self.name).map_err(|error| match &error {
            // The user has just typed the name.
            Failed::Project { message, hint } => Report::new(Exit::Usage, message).hint(hint),
            _ => author::failed(&error),
        })?;
        let folder = self.dir.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        if folder.exists() {
            return Err(Report::new(Exit::Refused, format!("{} exists already", folder.display()))
                .hint("choose another name, or another folder with --dir"));
        }
        for (path, content) in &files {
            write(&folder.join(path), content)?;
        }
        let name = &self.name;
        let next = [
            format!("cd {}", author::shown(&folder)),
            test(self.lang).to_owned(),
            "toolgate build".to_owned(),
            match sample {
                Sample::Plain => format!("toolgate call build/{name}.wasm '{{\"text\":\"to be or not\"}}'"),
                Sample::Durable => format!("toolgate conform build/{name}.wasm"),
            },
        ];
        if self.json {
            let files: Vec<_> = files.iter().map(|(path, _)| path.to_string_lossy()).collect();
            let wrote = json!({
                "ok": true, "plugin": name, "language": self.lang.to_string(), "folder": folder.to_string_lossy(),
                "files": files, "next": next,
            });
            terminal.line(escape::json(&wrote.to_string()))?;
            return Ok(());
        }
        terminal.line(format!("{} {}", terminal.style(Style::Good, "wrote"), author::shown(&folder)))?;
        terminal.line(format!("\n  {}", next.join("\n  ")))?;
        Ok(())
    }
}

/// The command that runs the skeleton's own test.
fn test(language: Language) -> &'static str {
    match language {
        Language::Rust => "cargo test",
        Language::Python => "python3 -m unittest",
        Language::JavaScript | Language::TypeScript => "npm install && npm test",
        Language::Go => "go test",
        Language::C => "make test",
    }
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(failed)?;
    }
    std::fs::write(path, content).with_context(failed)
}
