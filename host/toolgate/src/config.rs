//! What the operator writes down: `toolgate.toml`. The only place that reads the file and the environment.
//!
//! The file is strict: a key that means nothing is an error with its line, its column and the key that was probably meant.
//! Paths in it are relative to the file. What is given on the command line stands over it.

mod approvals;
mod check;
mod compile;
mod door;
mod error;
mod grants;
mod limits;
mod manifest;
mod place;
mod policies;
mod policy;
mod quota;
mod secrets;
mod webhook;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

pub use approvals::ApprovalsTable;
pub use compile::CompileTable;
use domain::{Digest, Limits, PluginName, Rules, Span, ToolName};
pub use door::{DoorTable, Origin};
pub use error::ConfigError;
pub use grants::{FolderTable, Grant, GrantsTable, HolderTable, HttpTable, KeyValueTable, SecretTable};
pub use limits::LimitsTable;
pub use manifest::manifest;
use place::Source;
pub use policies::{ComponentTable, PolicyComponent};
pub use policy::{
    Bound, ConditionTable, EscalateTable, ExampleTable, NeedTable, PoliciesTable, PolicyTable, RiskName, RuleName,
    TriedRule,
};
pub use quota::{QuotaTable, QuotasTable};
use registry::{Holder, PluginSettings};
use schemars::JsonSchema;
pub use secrets::SecretValues;
use serde::{Deserialize, Deserializer, Serialize, de};
pub use webhook::{EventWord, KindWord, LinkTable, WebhookTable};

/// The file that is read if none is named.
pub const FILE: &str = "toolgate.toml";

/// Where the host listens if nobody says otherwise: nobody but this machine can reach it.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7420);

/// The folder of plugins if nobody says otherwise.
pub const PLUGINS: &str = "plugins";

/// The host's own folder if nobody says otherwise.
pub const DATA: &str = "toolgate-data";

/// The configuration of a host. Everything has a default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "toolgate.toml")]
pub struct Config {
    /// The address to listen on. Default: "127.0.0.1:7420", which only this machine reaches.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// The watched folder of plugins. Default: "plugins".
    pub plugins: Option<PathBuf>,
    /// The host's own folder: turns, components, compiled code, tokens. Default: "toolgate-data".
    pub data: Option<PathBuf>,
    /// Names under which the host is reached besides its own address, those of a proxy in front for instance. While it
    /// listens for this machine alone, requests under any other name are refused: they come from a web page that points its
    /// own name here.
    pub hosts: Vec<String>,
    /// Whether a caller may answer for its own calls.
    pub approve_own_calls: bool,
    /// The tools whose approval is taken as given when nobody answers and the tool asks for that.
    #[serde(deserialize_with = "tool_names")]
    #[schemars(with = "Vec<String>")]
    pub approve_on_expiry: BTreeSet<ToolName>,
    /// How long a call waits for a client to attach, in milliseconds. Default: 5000.
    pub client_grace_ms: Option<u64>,
    /// How long a wait takes at most where the tool does not say, in milliseconds. Default: 86400000, a day.
    pub expires_ms: Option<NonZeroU64>,
    /// How long a call waits for a free place to run in, in milliseconds. Default: 30000.
    pub queue_ms: Option<NonZeroU64>,
    /// The most attempts at one call that a kill of the host interrupts. Default: 5.
    pub max_attempts: Option<NonZeroU32>,
    /// The most calls of one turn. Default: 128.
    pub max_calls: Option<NonZeroUsize>,
    /// Whether turns may be ephemeral. If not, those that ask for it are written down like any other, so that the audit has every
    /// call. Default: true.
    pub ephemeral: Option<bool>,
    /// How many guests may exist at once. Each reserves about 9 GiB of address space and no memory. Default: 1000.
    pub pool: Option<NonZeroU32>,
    /// Whether a component has to carry its declaration in a section (`toolgate pack`), so that nothing of it runs before it
    /// was judged. Default: false.
    pub require_declaration: bool,
    /// What one component may cost before anything of it runs.
    pub compile: CompileTable,
    /// What one call of a guest may spend.
    pub limits: LimitsTable,
    /// What one principal may have at the host at once.
    pub quota: QuotasTable,
    /// What goes with the answers of people.
    pub approvals: ApprovalsTable,
    /// How long the HTTP door waits for its clients, and how many it lets in.
    pub door: DoorTable,
    /// What differs for single plugins, by name.
    #[schemars(with = "BTreeMap<String, PluginTable>")]
    pub plugin: BTreeMap<Parsed<PluginName>, PluginTable>,
    /// Rules over calls, beyond what tools declare.
    pub policy: Vec<PolicyTable>,
    /// Where further rules are.
    pub policies: PoliciesTable,
    /// Who outside is told of what waits.
    pub webhook: Vec<WebhookTable>,
    #[serde(skip)]
    #[schemars(skip)]
    operator_rules: ::policy::Rules,
    #[serde(skip)]
    #[schemars(skip)]
    tried_rules: Vec<TriedRule>,
    #[serde(skip)]
    #[schemars(skip)]
    source: Source,
}

/// What the operator decides about one plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PluginTable {
    /// Which components its grants are for: the digest of one ("sha256:…"), a list of digests, or "any" for whatever bears
    /// the name. Required where something is granted.
    #[schemars(with = "Option<grants::HolderForm>")]
    pub component: Option<HolderTable>,
    /// What it may use. Nothing is granted that is not listed.
    #[serde(skip_serializing_if = "GrantsTable::is_empty")]
    pub grants: GrantsTable,
    /// What a call of it may spend, where that differs from the others. Not bound to a component.
    #[serde(skip_serializing_if = "LimitsTable::is_empty")]
    pub limits: LimitsTable,
}

impl Config {
    /// Reads the named file; without a name, `toolgate.toml` if there is one.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read or says something that means nothing.
    pub fn read(file: Option<&Path>) -> Result<Self, ConfigError> {
        let path = file.unwrap_or(Path::new(FILE));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => return Ok(Self::default()),
            Err(reason) => return Err(ConfigError::Unreadable { file: path.to_owned(), reason }),
        };
        let mut config = Self::parse(&text, path)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        for path in [&mut config.plugins, &mut config.data].into_iter().flatten() {
            *path = beside.join(&*path);
        }
        Ok(config)
    }

    /// Reads a text; `file` is named in what is wrong with it.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of what is wrong.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::at(file, text, &error))?;
        let mut config = Self { source: Source::new(file, text), ..config };
        check::check(&config, &config.source)?;
        (config.operator_rules, config.tried_rules) = policy::read(&config, &config.source)?;
        Ok(config)
    }

    /// Looks up the values of the secrets that are granted, in the environment and in files, and whether the folders are
    /// there that are granted.
    ///
    /// # Errors
    /// [`ConfigError`], which names what is missing and shows no value.
    pub fn secrets(&self) -> Result<SecretValues, ConfigError> {
        secrets::look_up(self, &self.source)
    }

    /// The operator's rules over calls: those of this file and of the files that it names.
    #[must_use]
    pub fn operator_rules(&self) -> ::policy::Rules {
        self.operator_rules.clone()
    }

    /// The same rules, with how many examples each was tried with.
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

    /// The host's own folder.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| DATA.into())
    }

    /// The rules of the core.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let default = Rules::default();
        Rules {
            own_calls: self.approve_own_calls,
            grace: self.client_grace_ms.map_or(default.grace, Span::from_millis),
            queue: self.queue_ms.map_or(default.queue, |queue| Span::from_millis(queue.get())),
            max_calls: self.max_calls.map_or(default.max_calls, NonZeroUsize::get),
            max_attempts: self.max_attempts.map_or(default.max_attempts, NonZeroU32::get),
            standing: self.approvals.standing(),
            standing_active: self.approvals.standing_active(),
            standing_bytes: self.approvals.standing_bytes(),
            denied_again: self.approvals.denied_again(),
            ephemeral: self.ephemeral.unwrap_or(default.ephemeral),
        }
    }

    /// The settings of the registry, without its folders. Secrets that were not looked up are granted without their values,
    /// which is enough for whoever only looks at plugins.
    #[must_use]
    pub fn registry(&self, data: &Path, secrets: &SecretValues) -> registry::Settings {
        let mut settings = registry::Settings::new(data);
        settings.limits = self.limits.over(Limits::default());
        settings.plugins = self
            .plugin
            .iter()
            .map(|(name, table)| {
                let grants = table.grants.grants(self.source.beside(), &|secret| secrets.of(&name.0, secret));
                let holder = table.component.clone().map(|HolderTable(holder)| holder).unwrap_or_default();
                let limits = Some(table.limits.over(settings.limits));
                (name.0.clone(), PluginSettings { grants: Arc::new(grants), holder, limits })
            })
            .collect();
        settings.rules = self.operator_rules();
        settings.approve_on_expiry = self.approve_on_expiry.clone();
        settings.default_expires =
            self.expires_ms.map_or(settings.default_expires, |most| Span::from_millis(most.get()));
        settings.queue = self.rules().queue;
        settings.require_declaration = self.require_declaration;
        settings
    }

    /// Grants an access to a plugin: to the components that its grants are for already, else to whatever bears the name.
    pub fn grant(&mut self, plugin: PluginName, grant: Grant) {
        let table = self.plugin.entry(Parsed(plugin)).or_default();
        table.component.get_or_insert(HolderTable(Holder::AnyComponent));
        table.grants.add(grant);
    }

    /// Grants accesses to one component of a plugin. What is granted to another component of that name stays with that one
    /// and is left out.
    pub fn grant_to(&mut self, plugin: PluginName, component: Digest, grants: &[Grant]) {
        let table = self.plugin.entry(Parsed(plugin)).or_default();
        if !table.component.as_ref().is_some_and(|HolderTable(holder)| holder.covers(component)) {
            table.grants = GrantsTable::default();
        }
        table.component = Some(HolderTable(Holder::Components([component].into())));
        grants.iter().cloned().for_each(|grant| table.grants.add(grant));
    }
}

/// Whether the reader of a terminal asked for no colours (no-color.org).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this file reads what the operator says")]
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Where the user's programs keep what they can make again: `XDG_CACHE_HOME`, or `.cache` in the home.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this file reads what the operator says")]
pub fn user_cache() -> Option<PathBuf> {
    // As the XDG base directory specification has it, a path that is not from the root counts as none.
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("toolgate"))
}

/// A value that is written as a text and checked as it is read, so that what is wrong with it has a line and a column.
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
