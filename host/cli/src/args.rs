//! Arguments that several commands share.

use std::net::IpAddr;
use std::path::PathBuf;

use api::Verbatim;
use api::formats::{Chosen, Part};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use domain::json::Malformed;
use domain::{ConversationId, Json, ToolName, ids::InvalidId};
use toolgate::config::{Config, ConfigError};

/// The conversation of commands that name none.
pub(crate) const CONVERSATION: &str = "cli";

/// The host to speak to, and the token to use.
#[derive(Debug, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct Connection {
    /// The host's address. Default: that of the host that runs on the data folder, if only you can access the folder
    #[arg(long, env = "TOOLGATE_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The bearer token. Default: the admin token in the data folder, for a host on this machine only
    #[arg(long, env = "TOOLGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// The data folder and the configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Data {
    /// The host's data folder: turns, components, compiled code, tokens [default: ./toolgate-data]
    #[arg(long = "data", env = "TOOLGATE_DATA", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long = "config", env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Data {
    /// The data folder: the command line's, or else the configuration's.
    pub(crate) fn folder(&self) -> Result<PathBuf, ConfigError> {
        let config = Config::read(self.config.as_deref())?;
        Ok(self.folder.clone().unwrap_or_else(|| config.data_folder()))
    }
}

/// The user's cache.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache")]
pub(crate) struct Cache {
    /// The folder for toolchains and for at most 2 GiB of compiled code [default: toolgate in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, env = "TOOLGATE_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Cache {
    /// The folder. `None` if neither the user nor the environment names one.
    pub(crate) fn folder(&self) -> Option<kit::Cache> {
        let folder = self.cache.clone().or_else(toolgate::config::user_cache)?;
        kit::Cache::at(&folder).ok()
    }

    /// The folder for compiled code.
    pub(crate) fn compiled(&self) -> Option<PathBuf> {
        self.folder().map(|cache| cache.compiled())
    }
}

/// Where toolchains come from.
#[derive(Debug, Args)]
pub(crate) struct Toolchains {
    /// Download nothing. If a tool is missing, the command fails and names it
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// A parser of the names of formats.
pub(crate) fn format<T: Part>() -> PossibleValuesParser {
    Chosen::<T>::names().collect::<Vec<_>>().into()
}

/// The name of an argument's value, as the API spells it.
pub(crate) fn value_name(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

/// Whether only this machine can reach an address.
pub(crate) fn is_private(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Parses a conversation's id.
pub(crate) fn conversation(text: &str) -> Result<ConversationId, InvalidId> {
    ConversationId::new(text)
}

/// Parses a tool's name.
pub(crate) fn tool(text: &str) -> Result<ToolName, InvalidId> {
    ToolName::new(text)
}

/// Checks a JSON text and keeps it as it is, so that numbers keep every digit.
pub(crate) fn json(text: &str) -> Result<Verbatim, String> {
    checked(text)
        .map(Verbatim)
        .map_err(|error| format!("not valid JSON: {error}; a JSON string needs its own quotes, as in '\"yes\"'"))
}

/// Checks a JSON text as a host does, without the white space around it.
pub(crate) fn checked(text: &str) -> Result<Json, Malformed> {
    Json::parse(text.trim_ascii())
}
