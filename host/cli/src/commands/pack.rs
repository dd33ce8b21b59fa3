//! `pack`: writes a component's declaration and requests into the component.

use std::path::PathBuf;

use clap::Args;
use domain::{CatalogLimits, Digest};
use registry::Registry;
use serde_json::json;
use toolgate::config::manifest;

use super::{Run, author};
use crate::args::Cache;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Write a component's declaration and requests into the component.
///
/// Asks the component for its tools once, in a sandbox without grants, and adds a section with the answer. A host reads
/// the section before it compiles or runs any of the component. Pack last: `wasm-tools strip` removes the section.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate pack hello.wasm
  toolgate pack hello.wasm -o dist/hello.wasm --manifest toolgate-plugin.toml

The manifest lists the plugin's requests with reasons:
  [[wants.http]]
  url = \"https://api.example.com/v1/\"
  why = \"looks up rates\"")]
pub(crate) struct Pack {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write the packed component [default: FILE]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The manifest with the plugin's requests and reasons
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
}

impl Run for Pack {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let manifest = self.manifest.as_deref().map(manifest).transpose()?;
        let bytes = author::component(&self.file)?;
        let packed = Registry::pack(&author::sandbox(&self.cache)?, &CatalogLimits::MAX, &bytes, manifest)
            .map_err(|error| author::refused(&self.file.display().to_string(), &error))?;
        let out = self.out.as_deref().unwrap_or(&self.file);
        author::write(out, &packed.bytes)?;
        let component = Digest::of(&packed.bytes);
        if self.json {
            let value =
                json!({"file": out.to_string_lossy(), "component": component.to_string(), "tools": packed.tools});
            terminal.line(escape::json_line(&value.to_string()))?;
            return Ok(());
        }
        let tools = author::names(&packed.tools);
        terminal.line(format!("{} {}: {tools}", terminal.style(Style::Good, "packed"), author::shown(out)))?;
        terminal.line(format!("  component {component}"))?;
        Ok(())
    }
}
