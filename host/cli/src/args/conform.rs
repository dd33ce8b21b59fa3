//! The command that holds a component to what callers expect.

use std::path::PathBuf;

use clap::Args;

use super::Cache;

/// Hold a component to what hosts, models and people expect of one: the conformance kit.
///
/// Loads it, and calls its server tools with examples and with what programs get wrong: arguments that break the schema,
/// characters of every kind, empty and largest inputs, the same call twice. Prints a line for each requirement, and for each
/// that fails what to do. Nothing leaves this process: requests over HTTP are denied, values and secrets are made up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate conform build/hello.wasm
  toolgate conform build/hello.wasm --examples calls.json
  toolgate conform build/hello.wasm --json

Examples of calls are a JSON array beside the plugin's source:
  [{\"tool\": \"hello_count\", \"arguments\": {\"text\": \"to be\"}, \"result\": {\"words\": 2}},
   {\"tool\": \"hello_count\", \"arguments\": {\"text\": \"\"}, \"failure\": \"invalid-arguments\"}]")]
pub(crate) struct Conform {
    /// The component
    pub(crate) file: PathBuf,
    /// Examples of calls [default: examples.json beside the file, or beside the folder `build` that it is in]
    #[arg(long, value_name = "FILE")]
    pub(crate) examples: Option<PathBuf>,
    /// How long all calls together may take; what was not asked by then fails the requirement `time`
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) cache: Cache,
}
