//! The command line: what can be asked of the binary, in words for people.

mod access;
mod answer;
mod build;
mod cache;
mod conform;
mod host;
mod look;
mod make;
mod policy;

use std::net::IpAddr;
use std::path::PathBuf;

pub(crate) use access::{Grants, Pack};
pub(crate) use answer::{Answer, Approve, Deny, Submit};
pub(crate) use build::{Build, Dev, Toolchains};
pub(crate) use cache::Cache;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use conform::Conform;
pub(crate) use host::{Call, Check, CompileComponent, Config, Export, Serve};
pub(crate) use look::{Audit, AuditCommand, Events, Pending, Show, Tools, Verify};
pub(crate) use make::{New, Token, TokenCommand};
pub(crate) use policy::{Explain, Policy, PolicyCommand, Test as TestPolicy};

/// A host for agent tools that are WebAssembly components: it checks them when they are loaded, runs them in a sandbox,
/// and keeps every call that waits for a person or a client, across restarts.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = 100, after_help = FIRST_STEPS)]
pub(crate) struct Toolgate {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What is logged to standard error, as in RUST_LOG: `info`, `debug`, `guest=debug`
    #[arg(long, global = true, env = "TOOLGATE_LOG", value_name = "FILTER", help_heading = "Logging")]
    pub(crate) log: Option<String>,
    /// How it is logged
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Logging")]
    pub(crate) log_format: LogFormat,
}

const FIRST_STEPS: &str = "\
First steps:
  toolgate new hello && cd hello          write a plugin to start from; --lang python, js, ts, go, c
  toolgate build                          build it, whatever its language: build/hello.wasm
  toolgate check build/hello.wasm         what keeps a component from being loaded
  toolgate conform build/hello.wasm       whether its tools behave as callers expect
  toolgate grants build/hello.wasm        what it wants, what it has, and the lines that grant what is missing
  toolgate call build/hello.wasm '{\"text\":\"a\"}'   one call, without a server
  toolgate serve                          serve the folder ./plugins on 127.0.0.1:7420
  toolgate submit answer.json             carry out what a model asked for
  toolgate pending                        what waits, and how to answer

Exit codes: 0 done; 1 refused or failed; 2 a mistake on the command line or in the configuration;
3 the host cannot be reached; 4 the host failed.";

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Check(Check),
    Conform(Conform),
    Pack(Pack),
    Grants(Grants),
    Call(Call),
    Tools(Tools),
    Submit(Submit),
    Pending(Pending),
    Show(Show),
    Approve(Approve),
    Deny(Deny),
    Answer(Answer),
    Events(Events),
    Audit(Audit),
    Policy(Policy),
    New(New),
    Build(Build),
    Dev(Dev),
    Token(Token),
    Config(Config),
    Export(Export),
    #[command(hide = true)]
    CompileComponent(CompileComponent),
}

impl Command {
    /// What is logged if nobody says otherwise. Only a host runs long enough to have a log; what the others have to say,
    /// they say themselves.
    pub(crate) fn log(&self) -> &'static str {
        match self {
            Self::Serve(_) => "info",
            // Plugins of the folder that the call has nothing to do with may be refused.
            Self::Call(_) | Self::Dev(_) => "error",
            _ => "warn",
        }
    }
}

/// How lines are logged.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Which host, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct Connection {
    /// The host's address. Default: that of the host that runs on the data folder, else http://127.0.0.1:7420
    #[arg(long, env = "TOOLGATE_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The bearer token. Default: the admin token in the data folder, for a host on this machine only
    #[arg(long, env = "TOOLGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// The host's own folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct Data {
    /// The host's own folder: turns, components, compiled code, tokens [default: ./toolgate-data]
    #[arg(long = "data", env = "TOOLGATE_DATA", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if there is one]
    #[arg(long = "config", env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The forms in which providers of models want things.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    Toolgate,
    Openai,
    OpenaiResponses,
    Anthropic,
    /// For tools only.
    Mcp,
}

impl Format {
    /// The name in a query.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Toolgate => "toolgate",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
        }
    }
}

/// Whether only this machine can reach an address.
pub(crate) fn is_private(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
