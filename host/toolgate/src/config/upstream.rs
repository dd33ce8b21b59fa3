//! The tables `[upstream.NAME]`: MCP servers whose tools the host offers.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use domain::{Limits, PluginName, Span};
use registry::PluginSettings;
use schemars::JsonSchema;
use serde::Deserialize;
use url::{Host, Url};

#[cfg(feature = "upstream")]
use super::secrets;
use super::source::Source;
use super::{Config, ConfigError, Parsed};

/// The time limit of a call, if the table does not say.
const TIMEOUT: Span = Span::from_secs(60);

/// The calls of one server that run at once, if the table does not say.
const CONCURRENCY: usize = 8;

/// The longest name of an upstream. The names of its tools begin with it.
const MAX_NAME: usize = 24;

/// The search path of a server without one.
#[cfg(feature = "upstream")]
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// An MCP server whose tools the host offers: a program that the host starts, or a service at a URL. It runs outside the sandbox. A
/// program has the rights of the host.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTable {
    /// The program and its arguments. It speaks MCP on its standard input and output. Either this or `url`.
    #[serde(default)]
    pub command: Vec<String>,
    /// The URL of a server that speaks MCP over HTTP ("Streamable HTTP"): `https`, or `http` to this machine. Not for secrets.
    /// Redirections are not followed.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub url: Option<Parsed<Url>>,
    /// The environment variable of the host with the token for the server at `url`. The host sends it as `Authorization: Bearer`, and
    /// redacts it in everything that the server says.
    #[serde(default)]
    pub token_env: Option<String>,
    /// The file with this token, relative to the configuration. A line break at its end is ignored.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Its folder, relative to the configuration. Default: the folder of the configuration.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// Its environment. It gets nothing else, except a `PATH` of "/usr/local/bin:/usr/bin:/bin" if none is named.
    #[serde(default)]
    pub env: BTreeMap<String, UpstreamValue>,
    /// Whether a person must approve a call of its tools. The statements of the server about its tools never change this. Default:
    /// "requires-approval".
    #[serde(default)]
    pub approval: Option<ApprovalWord>,
    /// Whether a call of its tools can be repeated. A call that a kill interrupted is repeated only if the server's hints say so
    /// too, and otherwise ends as `in_doubt`. Default: false.
    #[serde(default)]
    pub idempotent: bool,
    /// The time limit of a call, in milliseconds, with the start of the server. Default: 60000.
    #[serde(default)]
    pub timeout_ms: Option<NonZeroU64>,
    /// The number of calls that run at once. Default: 8.
    #[serde(default)]
    pub concurrency: Option<NonZeroUsize>,
    /// Decisions about single tools, by the server's own names.
    #[serde(default)]
    pub tools: BTreeMap<String, UpstreamToolTable>,
}

/// Decisions about one tool of an upstream.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamToolTable {
    /// Whether a person must approve a call. Default: as for the server.
    pub approval: Option<ApprovalWord>,
    /// Whether a call can be repeated. Default: as for the server.
    pub idempotent: Option<bool>,
}

/// A variable of the environment of an upstream. It has one source.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamValue {
    /// The value itself. Not for secrets.
    pub value: Option<String>,
    /// The environment variable of the host with a secret. The host redacts it in everything that the server says.
    pub env: Option<String>,
    /// The file with a secret, relative to the configuration. A line break at its end is ignored.
    pub file: Option<PathBuf>,
}

/// Whether a person must approve a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalWord {
    /// Calls run without an approval, unless a rule demands one.
    Auto,
    /// A person must approve each call.
    RequiresApproval,
}

/// Checks the tables for contradictions.
pub(super) fn check(tables: &BTreeMap<String, UpstreamTable>, source: &Source) -> Result<(), ConfigError> {
    for (name, table) in tables {
        let fail = |keys: &[&str], message: String, hint: &str| {
            let keys: Vec<_> = ["upstream", name.as_str()].into_iter().chain(keys.iter().copied()).collect();
            Err(source.error(&keys, message, Some(hint.to_owned())))
        };
        let is_legal = PluginName::of_upstream(name).is_ok() && name.len() <= MAX_NAME;
        if !is_legal || name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            let message = format!("{} is not a name for an upstream", escape::quoted(name, 80));
            let hint = format!(
                "use 1 to {MAX_NAME} of the characters a-z A-Z 0-9 _ -, without `_` at the ends or twice in a row"
            );
            return fail(&[], message, &hint);
        }
        match &table.url {
            Some(url) => check_url(&url.0, table).or_else(|(key, message, hint)| fail(&[key], message, hint))?,
            None if table.token_env.is_some() || table.token_file.is_some() => {
                let key = if table.token_env.is_some() { "token_env" } else { "token_file" };
                return fail(&[key], "a program gets no token".into(), "use `env`, or write `url`");
            }
            None if table.command.first().is_none_or(String::is_empty)
                || table.command.iter().any(|it| it.contains('\0')) =>
            {
                let hint = "write `command = [\"PROGRAM\", \"ARGUMENT\"]`, or `url = \"https://…\"`";
                return fail(&["command"], "the command names no program".into(), hint);
            }
            None => {}
        }
        for (variable, UpstreamValue { value, env, file }) in &table.env {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                return fail(
                    &["env", variable],
                    format!("{variable:?} is not an environment variable"),
                    "write only its name",
                );
            }
            let sources = [value.is_some(), env.is_some(), file.is_some()].into_iter().filter(|is| *is).count();
            if sources != 1 {
                let message = format!("the variable {variable} has {sources} sources");
                return fail(
                    &["env", variable],
                    message,
                    "write one of `value`, `env` (for a secret) and `file` (for a secret)",
                );
            }
        }
    }
    Ok(())
}

fn check_url(url: &Url, table: &UpstreamTable) -> Result<(), (&'static str, String, &'static str)> {
    let fail = |key, message: &str, hint| Err((key, message.to_owned(), hint));
    let of_program =
        [("command", !table.command.is_empty()), ("folder", table.folder.is_some()), ("env", !table.env.is_empty())];
    if let Some((key, _)) = of_program.into_iter().find(|(_, is)| *is) {
        return fail(key, &format!("a server at a URL has no `{key}`"), "remove it, or remove `url`");
    }
    let is_near = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_near => {}
        "http" => return fail("url", "http does not encrypt the calls and the token", "use https"),
        scheme => return fail("url", &format!("an MCP server is at an https URL, not {scheme}"), "correct the URL"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        let hint = "remove them, and use `token_file` or `token_env`";
        return fail("url", "the URL contains a name or a password", hint);
    }
    if url.fragment().is_some() {
        return fail("url", "the URL has a fragment, which no server gets", "remove the part behind `#`");
    }
    match (&table.token_env, &table.token_file) {
        (Some(_), Some(_)) => fail("token_env", "the token has two sources", "remove one of the two"),
        (Some(name), None) if name.is_empty() || name.contains(['=', '\0']) => {
            fail("token_env", &format!("{name:?} is not an environment variable"), "write only its name")
        }
        _ => Ok(()),
    }
}

/// The environment of an upstream, and which of its values are secrets.
#[cfg(feature = "upstream")]
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, std::ffi::OsString>,
    pub(crate) secrets: Vec<capabilities::secrets::Secret>,
}

impl Config {
    /// The limits of the upstreams, as plugins.
    pub(super) fn upstream_limits(&self, general: Limits) -> impl Iterator<Item = (PluginName, PluginSettings)> {
        self.upstream.iter().filter_map(move |(name, table)| {
            let time = table.timeout_ms.map_or(TIMEOUT, |timeout| Span::from_millis(timeout.get()));
            let concurrency = table.concurrency.map_or(CONCURRENCY, NonZeroUsize::get);
            let limits = Some(Limits { time, concurrency, ..general });
            Some((PluginName::of_upstream(name).ok()?, PluginSettings { limits, ..PluginSettings::default() }))
        })
    }

    /// The file of accepted upstream tools: beside the configuration, with its name.
    #[must_use]
    pub fn upstream_pins(&self) -> PathBuf {
        let stem = self.source.file().and_then(|file| file.file_stem()).unwrap_or("toolgate".as_ref());
        let mut name = stem.to_owned();
        name.push(".upstreams.json");
        self.source.beside().join(name)
    }
}

#[cfg(feature = "upstream")]
impl UpstreamTable {
    /// The source of the token, in words.
    fn token_source(&self) -> Option<String> {
        let file = self.token_file.as_ref().map(|file| format!("the file {}", file.display()));
        self.token_env.as_ref().map(|variable| format!("the environment variable {variable}")).or(file)
    }

    /// The part of the table that an acceptance covers.
    pub(crate) fn target(&self) -> upstream::Target {
        let (plain, secret): (Vec<_>, Vec<_>) = self.env.iter().partition(|(_, value)| value.value.is_some());
        upstream::Target {
            command: self.command.clone(),
            folder: self.folder.as_ref().map(|folder| folder.display().to_string()),
            environment: plain.into_iter().filter_map(|(name, it)| Some((name.clone(), it.value.clone()?))).collect(),
            secrets: secret.into_iter().map(|(name, _)| name.clone()).chain(self.token_source()).collect(),
            url: self.url.as_ref().map(|url| url.0.to_string()),
        }
    }
}

#[cfg(feature = "upstream")]
impl Config {
    /// The folder of an upstream.
    pub(crate) fn upstream_folder(&self, table: &UpstreamTable) -> PathBuf {
        let beside = self.source.beside();
        let beside = if beside.as_os_str().is_empty() { ".".as_ref() } else { beside };
        table.folder.as_ref().map_or_else(|| beside.to_owned(), |folder| beside.join(folder))
    }

    /// Reads the token of an upstream.
    ///
    /// # Errors
    /// [`ConfigError`], which names the source and shows no value.
    pub(crate) fn upstream_token(
        &self,
        name: &str,
        table: &UpstreamTable,
    ) -> Result<Option<(upstream::Token, capabilities::secrets::Secret)>, ConfigError> {
        let Some(source) = table.token_source() else { return Ok(None) };
        let is_header = |text: &str| text.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
        let text = secrets::read(table.token_env.as_deref(), table.token_file.as_ref(), self.source.beside());
        let text = text.and_then(|text| {
            if is_header(&text) { Ok(text) } else { Err("it has other than visible ASCII characters".to_owned()) }
        });
        let token = text.and_then(|text| Ok((secrets::value(text.clone())?, text)));
        let (value, text) = token.map_err(|why| {
            let key = if table.token_env.is_some() { "token_env" } else { "token_file" };
            let message = format!("the token of the upstream {name}: {why}");
            let hint = "the host starts only if every secret is available".to_owned();
            self.source.error(&["upstream", name, key], message, Some(hint))
        })?;
        let (hosts, places) = (Vec::new(), Vec::new());
        let secret = capabilities::secrets::Secret { name: "token".to_owned(), value, hosts, places };
        Ok(Some((upstream::Token { value: text, source }, secret)))
    }

    /// Reads the environment of an upstream, with its secrets.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable and shows no value.
    pub(crate) fn upstream_environment(&self, name: &str, table: &UpstreamTable) -> Result<Environment, ConfigError> {
        let mut environment = Environment::default();
        environment.variables.insert("PATH".to_owned(), PATH.into());
        for (variable, value) in &table.env {
            let text = match &value.value {
                Some(text) => text.clone(),
                None => {
                    let read = secrets::read(value.env.as_deref(), value.file.as_ref(), self.source.beside());
                    let secret = read.and_then(|text| Ok((secrets::value(text.clone())?, text)));
                    let (secret, text) = secret.map_err(|why| {
                        let message = format!("the secret `{variable}` of the upstream {name}: {why}");
                        let hint = "the host starts only if every secret is available".to_owned();
                        self.source.error(&["upstream", name, "env", variable], message, Some(hint))
                    })?;
                    let (hosts, places) = (Vec::new(), Vec::new());
                    environment.secrets.push(capabilities::secrets::Secret {
                        name: variable.clone(),
                        value: secret,
                        hosts,
                        places,
                    });
                    text
                }
            };
            environment.variables.insert(variable.clone(), text.into());
        }
        Ok(environment)
    }
}
