//! The table `[policies]`: files of rules, and policies that are components.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use domain::{Digest, Json, Span, approvers::Need};
use policy::{CallerPattern, Pattern};
use sandbox::{PolicyError, Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;

use super::grants::HolderForm;
use super::policy::{NeedTable, any, check_name, json};
use super::source::{Source, read_file};
use super::{Config, ConfigError, HolderTable, Parsed};

/// The default timeout of a policy.
const TIMEOUT_MS: u64 = 1_000;

/// The maximal timeout of a policy. Calls wait for its answer.
const MAX_TIMEOUT_MS: u64 = 10_000;

/// The maximal size of a policy's settings as JSON, in bytes. Every question contains them.
const MAX_SETTINGS: usize = 64 << 10;

/// Files of rules, and policy components.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoliciesTable {
    /// Files with `[[policy]]` tables and nothing else. Each rule in them needs at least one `match`.
    pub files: Vec<PathBuf>,
    /// Policy components. They check each call, and can only be stricter than the rules.
    pub component: Vec<ComponentTable>,
}

/// A policy that is a component of the world `toolgate:policy/policy`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentTable {
    /// Its unique name, for approvers and the audit log.
    pub name: String,
    /// The component's file, relative to the configuration.
    pub file: PathBuf,
    /// The expected component: a digest ("sha256:…"), a list of digests, or "any". The host does not start if the file has
    /// another one.
    #[schemars(with = "HolderForm")]
    pub component: HolderTable,
    /// The tools that it decides about: a pattern over their names, as in a rule. Default: "*".
    #[serde(default = "any")]
    #[schemars(with = "Option<String>")]
    pub tools: Parsed<Pattern>,
    /// The plugins whose tools it decides about. Default: all.
    #[schemars(with = "Option<String>")]
    pub plugin: Option<Parsed<Pattern>>,
    /// The callers whose calls it decides about. Default: all.
    #[schemars(with = "Option<String>")]
    pub caller: Option<Parsed<CallerPattern>>,
    /// Its timeout in milliseconds. After it, a person must approve the call. Default: 1000. Maximum: 10000.
    pub timeout_ms: Option<NonZeroU64>,
    /// Settings that every question contains, in a form that the policy understands.
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// Who must approve if it asks for an approval, as in a rule. Default: a principal with the role approver.
    #[serde(default)]
    pub needs: Vec<NeedTable>,
}

/// A policy component with its bytes and settings.
pub struct PolicyComponent {
    /// Its name.
    pub name: Arc<str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The tools that it decides about.
    pub tools: Pattern,
    /// The plugins whose tools it decides about. `None` means all.
    pub plugin: Option<Pattern>,
    /// The callers whose calls it decides about. `None` means all.
    pub caller: Option<CallerPattern>,
    /// Its timeout.
    pub time: Span,
    /// Its settings: a JSON object.
    pub settings: Json,
    /// Who must approve if it asks for an approval.
    pub needs: Arc<[Need]>,
}

impl Config {
    /// Reads the policy components. Checks their digests, exports and imports, and compiles nothing.
    ///
    /// # Errors
    /// [`ConfigError`] with the line to change.
    pub fn policy_components(&self) -> Result<Vec<PolicyComponent>, ConfigError> {
        self.policies.component.iter().enumerate().map(|(position, table)| self.read_policy(position, table)).collect()
    }

    /// The error for a component, by its position in the list, that is not a usable policy.
    #[must_use]
    pub fn policy_refused(&self, position: usize, error: &PolicyError) -> ConfigError {
        let name = self.policies.component.get(position).map_or("", |table| table.name.as_str());
        let hint = match error {
            PolicyError::NotAPolicy => "build a policy with wit/policy; a plugin belongs in the folder of plugins",
            PolicyError::Imports(_) => "remove the imports; a policy can get values from its `settings`",
            PolicyError::Load(_) => "build it again, or name another file",
        };
        fail(&self.source, position, &["file"], format!("the policy {name}: {error}"), hint)
    }

    fn read_policy(&self, position: usize, table: &ComponentTable) -> Result<PolicyComponent, ConfigError> {
        let name = &table.name;
        let file = self.source.beside().join(&table.file);
        let max = self.compile.component();
        let bytes = read_file(&file, max as u64).map_err(|why| {
            let message = format!("the policy {name}: cannot read {}: {why}", file.display());
            fail(&self.source, position, &["file"], message, "the host starts only if every policy is available")
        })?;
        let digest = Digest::of(&bytes);
        if !table.component.0.covers(digest) {
            let message = format!("the policy {name}: {} is another component, {digest}", file.display());
            let hint = format!("review the new component, then write `component = \"{digest}\"`");
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
            needs: needs(table, &self.source, position)?.into(),
        })
    }
}

/// Checks the tables for contradictions, without reading a component.
pub(super) fn check(tables: &[ComponentTable], source: &Source) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for (position, table) in tables.iter().enumerate() {
        let wrong = |keys: &[&str], message, hint| Err(fail(source, position, keys, message, hint));
        if let Err(message) = check_name(&table.name) {
            return wrong(&["name"], message, "choose another name");
        }
        if !names.insert(table.name.as_str()) {
            return wrong(&["name"], format!("two policies have the name {}", table.name), "rename one of them");
        }
        if table.timeout_ms.is_some_and(|time| time.get() > MAX_TIMEOUT_MS) {
            let message = format!("a policy has at most {MAX_TIMEOUT_MS} ms, because calls wait for its answer");
            return wrong(&["timeout_ms"], message, "write a shorter timeout");
        }
        settings(table, source, position)?;
        needs(table, source, position)?;
    }
    Ok(())
}

fn settings(table: &ComponentTable, source: &Source, position: usize) -> Result<Json, ConfigError> {
    let wrong = |message| fail(source, position, &["settings"], message, "write it in another form");
    let text = json(&toml::Value::Table(table.settings.clone())).map_err(wrong)?;
    if text.len() > MAX_SETTINGS {
        let message = format!("the settings have {} bytes as JSON, and {MAX_SETTINGS} are allowed", text.len());
        let hint = "these settings are too long; move the values into the policy component";
        return Err(fail(source, position, &["settings"], message, hint));
    }
    Ok(Json::unchecked(text))
}

fn needs(table: &ComponentTable, source: &Source, position: usize) -> Result<Vec<Need>, ConfigError> {
    super::policy::needs(&table.needs, true, &|keys, message, hint| fail(source, position, keys, message, hint))
}

fn fail(source: &Source, position: usize, keys: &[&str], message: String, hint: &str) -> ConfigError {
    let position = position.to_string();
    let keys = [&["policies", "component", position.as_str()], keys].concat();
    source.error(&keys, message, Some(hint.to_owned()))
}
