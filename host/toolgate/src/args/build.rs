//! Commands for authors of plugins: from sources to a component.

use std::path::PathBuf;

use clap::Args;
use kit::Language;

/// Build a plugin in any language: a component that is packed, checked, and ready to be loaded.
///
/// The folder's files say which language it is: Cargo.toml, pyproject.toml, package.json, go.mod or plugin.c. What a language
/// needs and the machine has not is installed once into a folder of toolgate's own, in versions that are pinned by their
/// hashes. What the plugin wants to use, and why, is read from toolgate-plugin.toml beside its sources.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate build
  toolgate build plugins/stats --out plugins/stats.wasm

The result is DIR/build/NAME.wasm. A build that fails leaves the one before in its place.")]
pub(crate) struct Build {
    /// The plugin's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Its language, where its files could be of several: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
    /// Where to write the component [default: DIR/build/NAME.wasm]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) toolchains: Toolchains,
}

/// Where toolchains come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Toolchains")]
pub(crate) struct Toolchains {
    /// The folder that they are kept in [default: toolgate in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, env = "TOOLGATE_CACHE", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Fetch nothing, and say what is missing
    #[arg(long)]
    pub(crate) offline: bool,
}
