//! `new`: a plugin to start from. The folder stands alone: it carries the SDK and the interface beside its own code.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kit::{Failed, Language};

use super::author::{self, CARRIED};
use crate::args::New;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &New, terminal: &Terminal) -> Result<(), Report> {
    let files = kit::skeleton(CARRIED, args.lang, &args.name).map_err(|error| match &error {
        // The name was typed just now.
        Failed::Project { message, hint } => Report::new(Exit::Usage, message).hint(hint),
        _ => author::failed(&error),
    })?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    if folder.exists() {
        return Err(Report::new(Exit::Refused, format!("{} exists already", folder.display()))
            .hint("choose another name, or another folder with --dir"));
    }
    for (path, content) in &files {
        write(&folder.join(path), content)?;
    }
    let shown = text::line(&folder.display().to_string()).into_owned();
    terminal.line(format!("{} {shown}", terminal.ink(Ink::Good, "wrote")))?;
    let test = test(args.lang);
    terminal.line(format!(
        "\n  cd {shown}\n  {test}\n  toolgate build\n  toolgate call build/{}.wasm '{{\"text\":\"to be or not\"}}'",
        args.name
    ))?;
    Ok(())
}

/// How the skeleton's own test is run.
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
