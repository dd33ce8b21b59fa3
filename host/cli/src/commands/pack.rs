//! `pack`: a component that carries what it declares and what it wants.

use domain::Digest;
use registry::Registry;
use toolgate::config::manifest;

use super::author;
use crate::args::Pack;
use crate::report::Report;
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Pack, terminal: &Terminal) -> Result<(), Report> {
    let manifest = args.manifest.as_deref().map(manifest).transpose()?;
    let bytes = author::component(&args.file)?;
    let packed = Registry::pack(&author::sandbox(&args.cache)?, &bytes, manifest)
        .map_err(|error| author::refused(&args.file.display().to_string(), &error))?;
    let out = args.out.as_deref().unwrap_or(&args.file);
    author::write(out, &packed.bytes)?;
    let shown = text::line(&out.display().to_string()).into_owned();
    let tools: Vec<_> = packed.tools.iter().map(|tool| text::line(tool).into_owned()).collect();
    terminal.line(format!("{} {shown}: {}", terminal.ink(Ink::Good, "packed"), tools.join(", ")))?;
    terminal.line(format!("  component {}", Digest::of(&packed.bytes)))?;
    Ok(())
}
