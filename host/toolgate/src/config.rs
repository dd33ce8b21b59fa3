//! The operator's configuration, `toolgate.toml`. Only this module reads the file and the environment.
//!
//! An unknown key is an error with its line, its column and the most similar key. Paths are relative to the file. The command
//! line overrides the file.

mod approvals;
mod catalog;
mod check;
mod compile;
mod error;
mod folders;
mod grants;
mod http_server;
mod limits;
mod manifest;
mod oauth;
mod policies;
mod policy;
mod quota;
mod retention;
mod secrets;
#[cfg(feature = "postgres")]
mod shared;
mod source;
mod store;
mod upstream;
mod upstream_files;
mod webhook;
mod within;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

pub use approvals::ApprovalsTable;
pub use capabilities::GrantsTable;
pub use capabilities::http::HttpTable;
pub use catalog::CatalogTable;
pub use compile::CompileTable;
use dispatch::Bounds;
use domain::{Digest, Limits, PluginName, Span, ToolName, journal::JournalBounds, turn::TurnSettings};
pub use error::ConfigError;
pub use grants::{Grant, HolderTable};
pub use http_server::{ServerTable, TlsTable, WebOrigin};
pub use limits::LimitsTable;
pub use manifest::manifest;
pub use oauth::{AlgorithmName, OauthTable, ScopeGift, ScopeName, ServerUrl};
pub use policies::{ComponentTable, PoliciesTable, PolicyComponent};
pub use policy::{
    Bound, ChannelName, ConditionTable, EscalateTable, ExampleTable, NeedTable, PolicyTable, RiskName, RuleName,
    StepName, TriedRule,
};
pub use quota::{QuotaTable, QuotasTable};
use registry::{GrantHolder, PluginSettings};
pub use retention::{HoldTable, RetentionTable};
use schemars::JsonSchema;
pub use secrets::SecretValues;
use serde::{Deserialize, Deserializer, Serialize, de};
use source::Source;
pub use store::StoreTable;
pub use upstream::{ApprovalWord, UpstreamTable, UpstreamToolTable, UpstreamValue};
pub use webhook::{EventWord, KindWord, LinkTable, WebhookTable};
pub use within::Within;

/// The default file.
pub const FILE: &str = "toolgate.toml";

/// The default address. Only this machine can reach it.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7420);

/// The default folder of plugins.
pub const PLUGINS: &str = "plugins";

/// The default data folder.
pub const DATA: &str = "toolgate-data";

/// The configuration of a host. Every key has a default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "toolgate.toml")]
pub struct Config {
    /// The address to listen on. Default: "127.0.0.1:7420", which only this machine can reach.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// The watched folder of plugins. Default: "plugins".
    pub plugins: Option<PathBuf>,
    /// The data folder: turns, components, compiled code, tokens. Default: "toolgate-data".
    pub data: Option<PathBuf>,
    /// The PostgreSQL database of the turns: a connection string, or a table with one. Default: none, so that the turns are in
    /// the data folder.
    #[serde(deserialize_with = "store::string_or_table")]
    #[schemars(with = "Option<store::StoreForm>")]
    pub store: Option<StoreTable>,
    /// Further names under which the host answers, such as a proxy's. A host that listens on loopback refuses all other names.
    /// Otherwise a web page could point its own name at this machine.
    pub hosts: Vec<String>,
    /// Whether a caller can approve its own calls. Default: false.
    pub approve_own_calls: bool,
    /// Whether the user of an MCP client can answer there what the client's own calls ask. It is never asked for approvals.
    /// Default: true.
    pub questions_in_clients: Option<bool>,
    /// The tools whose calls a timeout may approve. Each must also declare `on_expiry: "approve"`.
    #[serde(deserialize_with = "tool_names")]
    #[schemars(with = "Vec<String>")]
    pub approve_on_expiry: BTreeSet<ToolName>,
    /// How long a call waits for a client to attach, in milliseconds. Default: 5000.
    pub client_grace_ms: Option<u64>,
    /// How long a suspension waits, in milliseconds, if the tool does not say. Default: 86400000, a day.
    pub expires_ms: Option<NonZeroU64>,
    /// How long a call waits for permission to run, in milliseconds. Default: 30000.
    pub queue_ms: Option<NonZeroU64>,
    /// The maximum number of attempts at one call. The host tries again if it was killed during an attempt, and if a durable call
    /// could not be continued: then after a pause of 1 second, which doubles with each attempt up to 60 seconds. Attempts at a
    /// durable call count from the end of its last wait, or from the last run that recorded the result of a host function.
    /// Default: 5.
    pub max_attempts: Option<NonZeroU32>,
    /// The maximum number of steps of one durable call. Each run repeats all of them. Default: 1000. Maximum: 1000.
    pub max_steps: Option<NonZeroUsize>,
    /// The bytes of all questions, values and answers of one durable call together. Default: 4194304, 4 MiB.
    pub step_bytes: Option<NonZeroUsize>,
    /// How deep turns can be nested: a tool calls a tool that calls a tool, and so on. Default: 4.
    pub nesting_depth: Option<NonZeroU32>,
    /// The maximum number of calls of other tools below one call of a caller: its own, those of the tools that it calls, and so
    /// on. Default: 100.
    pub nested_calls: Option<NonZeroUsize>,
    /// The maximum number of results of host functions that are recorded for one durable call. Default: 10000.
    pub journal_entries: Option<NonZeroUsize>,
    /// The bytes of these results together. A running call holds them in memory. Default: 4194304, 4 MiB.
    pub journal_bytes: Option<NonZeroUsize>,
    /// The maximal number of calls in one turn. Default: 128.
    pub max_calls: Option<NonZeroUsize>,
    /// The bytes of all results of one turn together. A call whose result goes beyond them fails. Default: 33554432, 32 MiB.
    pub turn_results_bytes: Option<NonZeroUsize>,
    /// Whether turns can be ephemeral. If not, the host stores them like other turns, so that the audit log has every call.
    /// Default: true.
    pub ephemeral: Option<bool>,
    /// The maximal number of guests at once. Each reserves about 9 GiB of address space and no memory. Default: 1000.
    pub pool: Option<NonZeroU32>,
    /// The memory of all guests together, in bytes: their linear memories, `host_bytes`, and the journals that their runs
    /// repeat. Calls wait until there is room for them, or end as `busy`. Default: half of the memory of the machine or of its
    /// control group.
    pub guest_memory_bytes: Option<NonZeroUsize>,
    /// The free space of the data folder's disk, in bytes, that new turns leave. The host refuses them while less is free.
    /// Answers, cancellations, reads, and the calls that have begun go on. 0 turns this off. Default: 268435456, 256 MiB.
    pub disk_reserve_bytes: Option<u64>,
    /// The memory for pages of the database, in bytes. Its other parts take about half as much again. Default: 134217728, 128 MiB.
    pub database_cache_bytes: Option<NonZeroU64>,
    /// Whether a component must contain its declaration (`toolgate pack`), so that none of it runs before it is checked.
    /// Default: false.
    pub require_declaration: bool,
    /// Limits on compiling one component.
    pub compile: CompileTable,
    /// Limits on what one plugin declares.
    pub catalog: CatalogTable,
    /// Limits on one call of a guest.
    pub limits: LimitsTable,
    /// Limits on one principal.
    pub quota: QuotasTable,
    /// How long ended turns are kept.
    pub retention: RetentionTable,
    /// Standing approvals and repeated denials.
    pub approvals: ApprovalsTable,
    /// Limits on HTTP clients.
    #[serde(alias = "door")]
    pub server: ServerTable,
    /// The authorization server whose access tokens the host accepts. Default: none.
    pub oauth: Option<OauthTable>,
    /// Grants and limits of single plugins, by name.
    #[schemars(with = "BTreeMap<String, PluginTable>")]
    pub plugin: BTreeMap<Parsed<PluginName>, PluginTable>,
    /// MCP servers whose tools the host offers. They run outside the sandbox.
    pub upstream: BTreeMap<String, UpstreamTable>,
    /// Rules over calls, in addition to the declarations of tools.
    pub policy: Vec<PolicyTable>,
    /// Files of rules, and policy components.
    pub policies: PoliciesTable,
    /// Receivers of messages about suspensions.
    pub webhook: Vec<WebhookTable>,
    /// The user's folder for compiled code, which the command line names.
    #[serde(skip)]
    #[schemars(skip)]
    pub user_cache: Option<PathBuf>,
    #[serde(skip)]
    #[schemars(skip)]
    operator_rules: ::policy::OperatorRules,
    #[serde(skip)]
    #[schemars(skip)]
    tried_rules: Vec<TriedRule>,
    #[serde(skip)]
    #[schemars(skip)]
    source: Source,
}

/// The grants and limits of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PluginTable {
    /// The components that get the grants: a digest ("sha256:…"), a list of digests, or "any" for any component of this name.
    /// Required if there are grants.
    #[schemars(with = "Option<grants::HolderForm>")]
    pub component: Option<HolderTable>,
    /// The grants of the plugin. Nothing is granted that is not listed.
    #[serde(skip_serializing_if = "GrantsTable::is_empty")]
    pub grants: GrantsTable,
    /// Limits on its calls that differ from the general ones. They apply to every component of the name.
    #[serde(skip_serializing_if = "LimitsTable::is_empty")]
    pub limits: LimitsTable,
}

impl Config {
    /// Reads the named file; without a name, `toolgate.toml` if there is one.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read or is invalid.
    pub fn read(file: Option<&Path>) -> Result<Self, ConfigError> {
        let path = file.unwrap_or(Path::new(FILE));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => return Ok(Self::default()),
            Err(reason) => return Err(ConfigError::Unreadable { file: path.to_owned(), reason }),
        };
        let mut config = Self::parse(&text, path)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let tls = config.server.tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        for path in [&mut config.plugins, &mut config.data].into_iter().flatten().chain(tls) {
            *path = beside.join(&*path);
        }
        folders::check(&config, &config.source)?;
        Ok(config)
    }

    /// Parses a text. Errors name `file`.
    ///
    /// # Errors
    /// [`ConfigError`] with the line and the column.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::at(file, text, &error))?;
        let mut config = Self { source: Source::new(file, text), ..config };
        check::check(&config, &config.source)?;
        (config.operator_rules, config.tried_rules) = policy::read(&config, &config.source)?;
        Ok(config)
    }

    /// Reads the values of granted secrets from the environment and from files, and opens granted folders.
    ///
    /// # Errors
    /// [`ConfigError`], which names the secret or folder and shows no value.
    pub fn secrets(&self) -> Result<SecretValues, ConfigError> {
        secrets::look_up(self, &self.source)
    }

    /// The operator's rules: those of this file and of the files that it names.
    #[must_use]
    pub fn operator_rules(&self) -> ::policy::OperatorRules {
        self.operator_rules.clone()
    }

    /// The same rules with the number of examples that each was tested with.
    #[must_use]
    pub fn tried_rules(&self) -> &[TriedRule] {
        &self.tried_rules
    }

    /// The JSON Schema of the file.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).into()
    }

    /// The folder of plugins.
    #[must_use]
    pub fn plugins_folder(&self) -> PathBuf {
        self.plugins.clone().unwrap_or_else(|| PLUGINS.into())
    }

    /// The data folder.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| DATA.into())
    }

    /// The settings for decisions about turns.
    #[must_use]
    pub fn turn_settings(&self) -> TurnSettings {
        let default = TurnSettings::default();
        TurnSettings {
            own_calls: self.approve_own_calls,
            grace: self.client_grace_ms.map_or(default.grace, Span::from_millis),
            queue: self.queue_ms.map_or(default.queue, |queue| Span::from_millis(queue.get())),
            max_calls: self.max_calls.map_or(default.max_calls, NonZeroUsize::get),
            turn_results: self.turn_results_bytes.map_or(default.turn_results, NonZeroUsize::get),
            max_attempts: self.max_attempts.map_or(default.max_attempts, NonZeroU32::get),
            max_steps: self.max_steps.map_or(default.max_steps, NonZeroUsize::get),
            step_bytes: self.step_bytes.map_or(default.step_bytes, NonZeroUsize::get),
            nesting_depth: self.nesting_depth.map_or(default.nesting_depth, NonZeroU32::get),
            nested_calls: self.nested_calls.map_or(default.nested_calls, NonZeroUsize::get),
            journal: JournalBounds {
                entries: self.journal_entries.map_or(default.journal.entries, NonZeroUsize::get),
                bytes: self.journal_bytes.map_or(default.journal.bytes, NonZeroUsize::get),
            },
            standing: self.approvals.standing(),
            standing_active: self.approvals.standing_active(),
            standing_bytes: self.approvals.standing_bytes(),
            denied_again: self.approvals.denied_again(),
            denied_bytes: self.approvals.denied_bytes(),
            ephemeral: self.ephemeral.unwrap_or(default.ephemeral),
        }
    }

    /// The limits on requests, with the limit on the arguments of one call.
    #[must_use]
    pub fn bounds(&self, arguments: usize) -> Bounds {
        let default = Bounds::default();
        Bounds { arguments, disk_reserve: self.disk_reserve_bytes.unwrap_or(default.disk_reserve), ..default }
    }

    /// The settings of the registry, without its folders. Secrets without values are granted with a placeholder, which is enough
    /// for checking plugins.
    #[must_use]
    pub fn registry(&self, data: &Path, secrets: &SecretValues) -> registry::RegistrySettings {
        let mut settings = registry::RegistrySettings::new(data);
        settings.limits = self.limits.over(Limits::default());
        settings.catalog = self.catalog.limits();
        settings.plugins = self
            .plugin
            .iter()
            .map(|(name, table)| {
                let grants = table.grants.grants(self.source.beside(), &secrets.of(&name.0));
                let holder = table.component.clone().map(|HolderTable(holder)| holder).unwrap_or_default();
                let limits = Some(table.limits.over(settings.limits));
                (name.0.clone(), PluginSettings { grants: Arc::new(grants), holder, limits })
            })
            .collect();
        settings.plugins.extend(self.upstream_limits(settings.limits));
        settings.upstreams = self.upstream.keys().cloned().collect();
        settings.rules = self.operator_rules();
        settings.approve_on_expiry = self.approve_on_expiry.clone();
        settings.default_expires =
            self.expires_ms.map_or(settings.default_expires, |expires| Span::from_millis(expires.get()));
        settings.queue = self.turn_settings().queue;
        settings.require_declaration = self.require_declaration;
        settings
    }

    /// Grants access to the components that hold the plugin's grants. Without such a component, it grants access to any
    /// component of this name.
    pub fn grant(&mut self, plugin: PluginName, grant: Grant) {
        let table = self.plugin.entry(Parsed(plugin)).or_default();
        table.component.get_or_insert(HolderTable(GrantHolder::AnyComponent));
        grant.add_to(&mut table.grants);
    }

    /// Grants access to one component of a plugin. Grants of other components of this name are dropped.
    pub fn grant_to(&mut self, plugin: PluginName, component: Digest, grants: &[Grant]) {
        let table = self.plugin.entry(Parsed(plugin)).or_default();
        if !table.component.as_ref().is_some_and(|HolderTable(holder)| holder.covers(component)) {
            table.grants = GrantsTable::default();
        }
        table.component = Some(HolderTable(GrantHolder::Components([component].into())));
        grants.iter().cloned().for_each(|grant| grant.add_to(&mut table.grants));
    }
}

/// Whether the user wants no colours (no-color.org).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module reads the environment")]
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The user's cache folder: in `XDG_CACHE_HOME`, or in `.cache` in the home folder.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module reads the environment")]
pub fn user_cache() -> Option<PathBuf> {
    // The XDG base directory specification ignores relative paths.
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("toolgate"))
}

/// A value that is parsed from a string while the file is read, so that an error has a line and a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parsed<T>(pub T);

impl<'de, T: FromStr<Err: std::fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

fn tool_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<ToolName>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| ToolName::new(name).map_err(de::Error::custom)).collect()
}
