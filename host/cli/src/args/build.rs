//! Commands for authors of plugins: from sources to a component.

use std::path::PathBuf;

use clap::Args;
use kit::Language;
use toolgate::config::Grant;

use super::Cache;

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
pub(crate) struct Toolchains {
    /// Fetch nothing, and say what is missing
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// Build a plugin whenever its sources change, load it, and call it.
///
/// The component is loaded into a host of its own, in this process; then the plugin's examples.json is run, or the one call that
/// is named, and each result is told. With --plugins it is also put into the folder that a running host watches. A build that
/// fails, and a component that is refused, are told, and what was loaded before stays. Gated calls are approved. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate dev
  toolgate dev plugins/stats --call stats_columns '{\"table\":\"a,b\"}'
  toolgate dev --plugins ../plugins        into a host that runs beside it: toolgate serve --plugins ../plugins")]
pub(crate) struct Dev {
    /// The plugin's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Its language, where its files could be of several: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
    /// Make this call after each build, in the place of the examples
    #[arg(long, num_args = 2, value_names = ["TOOL", "ARGUMENTS"])]
    pub(crate) call: Vec<String>,
    /// Put the component into this folder, too: that of a host that runs
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// Grant the component an access: keyvalue, http=URL
    #[arg(long, value_name = "ACCESS")]
    pub(crate) grant: Vec<Grant>,
    /// The configuration, for what else it is granted. None is read unless it is named
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) toolchains: Toolchains,
}
