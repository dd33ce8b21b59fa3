//! The tables `[[policies.component]]`: policies that are programs of their own, and which component each of them is.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::{Digest, Json, Need, Span};
use policy::{CallerPattern, Pattern};
use sandbox::{PolicyError, Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;

use super::grants::HolderForm;
use super::place::Source;
use super::policy::{NeedTable, any, check_name, json, need};
use super::{Config, ConfigError, HolderTable, Parsed};

/// How long a policy has for its answer, if nobody says otherwise.
const TIMEOUT_MS: u64 = 1_000;

/// The most that can be said: a call waits for it.
const MAX_TIMEOUT_MS: u64 = 10_000;

/// The most bytes of a policy's settings, as JSON. They are handed over with every question.
const MAX_SETTINGS: usize = 64 << 10;

/// A policy that is a component of the world `toolgate:policy/policy`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentTable {
    /// Its name, as approvers and the audit are shown it. No other component of this list has it.
    pub name: String,
    /// The component's file. Relative to the configuration's file.
    pub file: PathBuf,
    /// Which component that has to be: a digest ("sha256:…"), a list of digests, or "any" for whatever the file holds. The
    /// host does not start with another one.
    #[schemars(with = "HolderForm")]
    pub component: HolderTable,
    /// Which tools it is asked about: a pattern over their names, as in a rule. Default: "*".
    #[serde(default = "any")]
    #[schemars(with = "Option<String>")]
    pub tools: Parsed<Pattern>,
    /// Of which plugins. Default: of every plugin.
    #[schemars(with = "Option<String>")]
    pub plugin: Option<Parsed<Pattern>>,
    /// Called by whom. Default: by anybody.
    #[schemars(with = "Option<String>")]
    pub caller: Option<Parsed<CallerPattern>>,
    /// How long it has for its answer, in milliseconds; a person is asked when it takes longer. Default: 1000; at most 10000.
    pub timeout_ms: Option<NonZeroU64>,
    /// What it is told besides the call, in any form that it understands.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// Who must approve what it asks for, as in a rule. Default: whoever has the role approver.
    #[serde(default)]
    pub needs: Vec<NeedTable>,
}

/// A component of the configuration, found where it says and as it says.
pub struct PolicyComponent {
    /// Its name.
    pub name: Arc<str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// Which tools it is asked about.
    pub tools: Pattern,
    /// Of which plugins; `None`: of every plugin.
    pub plugin: Option<Pattern>,
    /// Called by whom; `None`: by anybody.
    pub caller: Option<CallerPattern>,
    /// How long it has for its answer.
    pub time: Span,
    /// What it is told besides the call: a JSON object.
    pub settings: Json,
    /// Who must approve what it asks for.
    pub needs: Arc<[Need]>,
}

impl Config {
    /// Reads the components of dynamic policies: each is the one that the configuration names, and a policy by what it exports
    /// and imports. Nothing of them is compiled.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of what is wrong, and the line to change.
    pub fn policy_components(&self) -> Result<Vec<PolicyComponent>, ConfigError> {
        self.policies.component.iter().enumerate().map(|(position, table)| self.read_policy(position, table)).collect()
    }

    /// That the component at this position of the list cannot be used as a policy.
    #[must_use]
    pub fn policy_refused(&self, position: usize, error: &PolicyError) -> ConfigError {
        let name = self.policies.component.get(position).map_or("", |table| table.name.as_str());
        let hint = match error {
            PolicyError::NotAPolicy => "a plugin belongs into the folder of plugins; build a policy against wit/policy",
            PolicyError::Imports(_) => "let it do without them: what it shall know, write into its `settings`",
            PolicyError::Load(_) => "build it again, or name another file",
        };
        fail(&self.source, position, &["file"], format!("the policy {name}: {error}"), hint)
    }

    fn read_policy(&self, position: usize, table: &ComponentTable) -> Result<PolicyComponent, ConfigError> {
        let name = &table.name;
        let file = self.source.beside().join(&table.file);
        let most = self.compile.component();
        let bytes = read(&file, most).map_err(|why| {
            let message = format!("the policy {name}: cannot read {}: {why}", file.display());
            fail(&self.source, position, &["file"], message, "the host starts only with every policy that it is given")
        })?;
        let digest = Digest::of(&bytes);
        if !table.component.0.covers(digest) {
            let message = format!("the policy {name}: {} is {digest}, another component", file.display());
            let hint = format!("look at what has changed, then write `component = \"{digest}\"`");
            return Err(fail(&self.source, position, &["component"], message, &hint));
        }
        Sandbox::inspect_policy(&bytes).map_err(|error| self.policy_refused(position, &error))?;
        Ok(PolicyComponent {
            name: name.as_str().into(),
            bytes,
            digest,
            tools: table.tools.0.clone(),
            plugin: table.plugin.as_ref().map(|pattern| pattern.0.clone()),
            caller: table.caller.as_ref().map(|pattern| pattern.0.clone()),
            time: Span::from_millis(table.timeout_ms.map_or(TIMEOUT_MS, NonZeroU64::get)),
            settings: settings(table, &self.source, position)?,
            needs: needs(table, &self.source, position)?,
        })
    }
}

/// Looks at everything that one value alone does not show, without reading a component.
pub(super) fn check(tables: &[ComponentTable], source: &Source) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (position, table) in tables.iter().enumerate() {
        let wrong = |keys: &[&str], message, hint| Err(fail(source, position, keys, message, hint));
        if let Err(message) = check_name(&table.name) {
            return wrong(&["name"], message, "choose another name");
        }
        if !names.insert(table.name.as_str()) {
            return wrong(&["name"], format!("two policies are called {}", table.name), "rename one of them");
        }
        if table.timeout_ms.is_some_and(|time| time.get() > MAX_TIMEOUT_MS) {
            let message = format!("a policy has at most {MAX_TIMEOUT_MS} ms: every call that it judges waits for it");
            return wrong(&["timeout_ms"], message, "give it less time");
        }
        settings(table, source, position)?;
        needs(table, source, position)?;
    }
    Ok(())
}

fn settings(table: &ComponentTable, source: &Source, position: usize) -> Result<Json, ConfigError> {
    let wrong = |message| fail(source, position, &["settings"], message, "say it in another form");
    let text = json(&toml::Value::Table(table.settings.clone())).map_err(wrong)?;
    if text.len() > MAX_SETTINGS {
        let message = format!("the settings have {} bytes as JSON, at most {MAX_SETTINGS} are taken", text.len());
        return Err(fail(source, position, &["settings"], message, "put what is so long into the policy itself"));
    }
    Ok(Json::new(text))
}

fn needs(table: &ComponentTable, source: &Source, position: usize) -> Result<Arc<[Need]>, ConfigError> {
    let read = |(n, table): (usize, &NeedTable)| {
        let n = n.to_string();
        need(table, &|keys, message, hint| {
            fail(source, position, &[&["needs", n.as_str()], keys].concat(), message, hint)
        })
    };
    table.needs.iter().enumerate().map(read).collect()
}

fn fail(source: &Source, position: usize, keys: &[&str], message: String, hint: &str) -> ConfigError {
    let position = position.to_string();
    let keys = [&["policies", "component", position.as_str()], keys].concat();
    source.error(&keys, message, Some(hint.to_owned()))
}

/// A regular file of at most so many bytes.
fn read(file: &Path, most: usize) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if usize::try_from(found.len()).unwrap_or(usize::MAX) > most {
        return Err(format!("it has {} bytes, at most {most} are taken", found.len()));
    }
    std::fs::read(file).map_err(|error| error.to_string())
}
