//! Commands that work on plugins and data themselves, without a host that runs.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use toolgate::config::Grant;

use super::{Cache, Data};

/// Serve a folder of plugins.
///
/// A first start makes an admin token and keeps it in the data folder, where the other commands find it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate serve
  toolgate serve --plugins ./plugins --data /var/lib/toolgate --listen 127.0.0.1:8080
  toolgate serve --memory                  forget every turn at the end

A component that is put into the folder is live within a second; one with a finding is refused, and what was live
before stays. Ctrl-C or SIGTERM stops: calls get a few seconds to end, what does not is carried out at the next start.")]
pub(crate) struct Serve {
    /// The watched folder of plugins [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// The address to listen on; with port 0 a free one is taken [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Keep turns in memory only: they end with the host
    #[arg(long)]
    pub(crate) memory: bool,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// Say what keeps components from being loaded.
///
/// All findings at once, each with the tool, the rule and what to change; the same that a host finds. Exit code 1 if there
/// are any.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate check target/wasm32-wasip2/release/hello.wasm
  toolgate check ledger.wasm --grant keyvalue
  toolgate check plugins/*.wasm --json")]
pub(crate) struct Check {
    /// The components
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Grant an access, as the operator would: keyvalue, or http=URL
    #[arg(long, value_name = "ACCESS")]
    pub(crate) grant: Vec<Grant>,
    /// Check against this configuration's grants, limits and policy
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: one object for each file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// Make one call, here and now, without a host that runs.
///
/// Prints progress and log lines to standard error and the result to standard output. Server tools only: what a person, a
/// client or a provider would carry out has no function to call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate call hello.wasm '{\"text\":\"to be or not\"}'           the only tool of the component
  toolgate call hello.wasm hello_count '{\"text\":\"to be\"}'      one of several
  toolgate call hello_count '{\"text\":\"to be\"}' --plugins ./plugins
  toolgate call ledger.wasm ledger_transfer '{…}' --grant keyvalue --approve

What the plugin keeps in wasi:keyvalue lasts as long as the call.")]
pub(crate) struct Call {
    /// A component's file, or a tool of the plugins' folder
    #[arg(value_name = "PLUGIN.wasm|TOOL")]
    pub(crate) target: String,
    /// The tool, where the component has several, and the arguments: a JSON object, `{}` if absent
    #[arg(value_name = "[TOOL] [ARGUMENTS]", num_args = 0..=2)]
    pub(crate) rest: Vec<String>,
    /// Approve the call, where the tool or the policy requires it
    #[arg(long)]
    pub(crate) approve: bool,
    /// Grant the component an access: keyvalue, or http=URL
    #[arg(long, value_name = "ACCESS")]
    pub(crate) grant: Vec<Grant>,
    /// The folder of plugins in which a tool is looked for [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if there is one]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// Say what the configuration means, or what it may say.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Print the JSON Schema of toolgate.toml, for editors
    #[arg(long)]
    pub(crate) schema: bool,
    /// The configuration to read [default: ./toolgate.toml, if there is one]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Write everything that the store holds to standard output, one JSON object a line.
///
/// For a data folder that no host runs on.
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) data: Data,
}

/// Compile one component, from standard input to standard output: what a host runs this binary for.
#[derive(Debug, Args)]
pub(crate) struct CompileComponent {
    /// Within these bounds
    #[arg(value_name = "NUMBER")]
    pub(crate) bounds: Vec<OsString>,
}
