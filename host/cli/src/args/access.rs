//! Commands about what plugins want and what they are granted. Neither grants anything: that is done in `toolgate.toml`.

use std::path::PathBuf;

use clap::Args;

use super::Cache;

/// Write what a component declares, and what it wants, into the component.
///
/// Asks the component for its tools once, in a sandbox without any grant, and adds a section with what it says. A host reads
/// the section before anything of the component is compiled or run. Do it last: `wasm-tools strip` removes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate pack hello.wasm
  toolgate pack hello.wasm -o dist/hello.wasm --manifest toolgate-plugin.toml

The manifest says what the plugin wants, and why:
  [[wants.http]]
  url = \"https://api.example.com/v1/\"
  why = \"looks up rates\"")]
pub(crate) struct Pack {
    /// The component
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to write it [default: in the place of FILE]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// What the plugin wants, and why
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// Show what a plugin wants, what it is granted, and what is missing.
///
/// Works without a host: reads the configuration and the component. Prints the exact lines that grant what is missing;
/// granting is done by writing them into toolgate.toml, and by nothing else.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate grants ledger                  of the plugins' folder
  toolgate grants dist/ledger.wasm        a file that is not there yet
  toolgate grants ledger --json")]
pub(crate) struct Grants {
    /// A plugin of the folder, or a component's file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) target: String,
    /// The folder of plugins [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if there is one]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
