//! One case: a file with an attack and its expected outcome. A `.toml` file holds both as keys. A `.wat` file has the
//! keys in the comments (`;;`) at its top.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::Class;
use super::files::Content;
use super::generate::Generate;
use super::neighbour::Work;
use super::step::{Step, repeated};
use crate::wat::Encoding;

/// The keys of a file. Unknown keys are refused, because a misspelt one would be a check that never runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    attack: String,
    expect: String,
    says: Option<String>,
    #[serde(default)]
    never: Vec<String>,
    #[serde(default)]
    limits: toml::Table,
    #[serde(default)]
    plugin: toml::Table,
    #[serde(default)]
    settings: String,
    #[serde(default)]
    tables: String,
    memory_mib: Option<u64>,
    p99_ratio: Option<u16>,
    #[serde(default)]
    neighbour: Work,
    at_once: Option<usize>,
    #[serde(default)]
    ended: BTreeMap<String, usize>,
    arguments: Option<String>,
    world: Option<String>,
    options: Option<String>,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    catalog: Option<String>,
    section: Option<String>,
    guest: Option<String>,
    tool: Option<String>,
    generate: Option<Generate>,
    #[serde(default)]
    step: Vec<Step>,
    #[serde(default)]
    proven_by: Vec<String>,
}

/// One attack.
#[derive(Debug)]
pub struct Case {
    /// The class it belongs to.
    pub class: &'static Class,
    /// The name of the file without its ending; unique in its class.
    pub name: String,
    /// A sentence about the attack.
    pub says: String,
    /// The attack.
    pub attack: Attack,
    /// Other tests that prove the same, as files and functions.
    pub proven_by: Vec<(String, String)>,
    /// The expected outcome.
    pub expected: Expected,
    /// A text that the response must contain.
    pub holds: Option<String>,
    /// Texts that the response must not contain.
    pub never: Vec<String>,
    /// By how many MiB the host may grow.
    pub memory_mib: u64,
    /// The limit of the neighbour's p99, as a multiple of its p99 without an attack.
    pub p99_ratio: u16,
    /// The neighbour's requests during the attack.
    pub neighbour: Work,
    /// The number of concurrent calls.
    pub at_once: usize,
    /// The least number of calls with each outcome.
    pub ended: BTreeMap<String, usize>,
    /// The arguments of each call.
    pub arguments: serde_json::Value,
    /// The plugin's table in the host's configuration.
    pub plugin: toml::Table,
    /// Settings of the host. Only cases with equal settings share a host.
    pub settings: String,
    /// Tables of the host's configuration besides the plugin's.
    pub tables: String,
    /// Files that exist before the host starts, relative to its folder.
    pub(super) files: BTreeMap<String, Content>,
}

/// The material of an attack.
#[derive(Debug)]
pub enum Attack {
    /// A module or a component as text, and the world it needs besides ours.
    Text {
        /// The text.
        text: String,
        /// More of the world, in WIT.
        world: String,
        /// The options of its tool, as JSON.
        options: String,
        /// The encoding of its texts.
        encoding: Encoding,
    },
    /// Declarations that the fixture makes, and those that it is packed with.
    Catalog(serde_json::Value, Option<String>),
    /// A component of `tests/illegal` or `plugins`, which its arguments control, and its tool.
    Guest(String, String),
    /// Bytes that are too many for a file.
    Generate(Generate),
    /// Requests to the host, and the plugin that they are about, if there is one.
    Steps(Vec<Step>, Option<Box<Attack>>),
}

/// The expected outcome of an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The component is refused. This rule is among the findings, or this is the problem.
    Refused(String),
    /// Every call ends in one of these ways, in the words of [`crate::http::outcomes`].
    Ends(Vec<String>),
    /// Each step has its own expectation. The words are for the table.
    AsItsStepsSay(String),
}

impl Case {
    /// Reads a file.
    pub(super) fn parse(class: &'static Class, path: &Path, text: &str) -> Result<Self> {
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("it has no name")?.to_owned();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        ensure!(name.bytes().all(plain) && name.len() <= 40, "a case is named in lower case with dashes");
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        let (header, body) = match kind {
            "toml" => (text.to_owned(), None),
            "wat" => (above(text), Some(text.to_owned())),
            other => bail!("unknown file type {other:?}; a case is a .toml or .wat file"),
        };
        let written: Written = toml::from_str(&header).context("its keys are not those of a case")?;
        written.into_case(class, name, body)
    }

    /// The name of its plugin.
    #[must_use]
    pub fn plugin_name(&self) -> String {
        format!("{}-{}", self.class.name, self.name)
    }

    /// The folders that are granted to its plugin, relative to the host's configuration.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        let grants = self.plugin.get("grants").and_then(|grants| grants.get("folders"));
        let folders = grants.and_then(toml::Value::as_array).into_iter().flatten();
        folders.filter_map(|folder| folder.get("path")?.as_str())
    }

    /// The name of its tool.
    #[must_use]
    pub fn tool_name(&self) -> String {
        let plugin = match &self.attack {
            Attack::Steps(_, Some(plugin)) => plugin,
            attack => attack,
        };
        match plugin {
            Attack::Guest(_, tool) => tool.clone(),
            _ => self.plugin_name().replace('-', "_"),
        }
    }

    /// Checks that a response contains the required text and no forbidden one.
    pub(super) fn holds(&self, answer: &str) -> Result<()> {
        if let Some(words) = &self.holds {
            ensure!(answer.contains(words), "`{words}` is not in: {}", cut(answer.to_owned()));
        }
        for words in &self.never {
            ensure!(!answer.contains(words), "`{words}` is in: {}", cut(answer.to_owned()));
        }
        Ok(())
    }
}

impl Written {
    fn into_case(self, class: &'static Class, name: String, body: Option<String>) -> Result<Case> {
        let sentence = self.attack.chars().next().is_some_and(char::is_uppercase) && self.attack.ends_with('.');
        ensure!(sentence, "`attack` is a sentence");
        let arguments = repeated(self.arguments.as_deref().unwrap_or("{}"));
        let json = |text: &str| serde_json::from_str(text).with_context(|| format!("not JSON: {text}"));
        let tool = format!("{}-{name}", class.name).replace('-', "_");
        let named = |text: String| repeated(&text).replace("$tool", &tool);
        let catalog = self.catalog.map(|text| json(&named(text))).transpose()?;
        let section = self.section.map(named);
        ensure!(section.is_none() || catalog.is_some(), "a `section` belongs to a `catalog`");
        let world = self.world.unwrap_or_default();
        let encoding = self.encoding;
        let is_plain = world.is_empty() && self.options.is_none() && encoding == Encoding::default();
        ensure!(is_plain || body.is_some(), "only a module has a `world`, `options` and an `encoding`");
        let options = self.options.unwrap_or_else(|| "{}".to_owned());
        ensure!(self.guest.is_some() == self.tool.is_some(), "a `guest` and its `tool` come together");
        let mut made: Vec<Attack> =
            body.map(|text| Attack::Text { text, world, options, encoding }).into_iter().collect();
        made.extend(self.generate.map(Attack::Generate));
        made.extend(self.guest.zip(self.tool).map(|(guest, tool)| Attack::Guest(guest, tool)));
        made.extend(catalog.map(|tools| Attack::Catalog(tools, section)));
        let proven_by = self.proven_by.iter().map(|test| pointed(test)).collect::<Result<Vec<_>>>()?;
        let plugin = made.pop();
        ensure!(made.is_empty(), "a case has only one of a module, `catalog`, `guest` and `generate`");
        let attack = match plugin {
            plugin if !self.step.is_empty() => Attack::Steps(self.step, plugin.map(Box::new)),
            Some(plugin) => plugin,
            None => bail!("a case has a module, or one of `catalog`, `guest`, `generate`, `step`"),
        };
        let expected = Expected::parse(&attack, self.expect)?;
        let mut plugin = self.plugin;
        if !self.limits.is_empty() {
            plugin.insert("limits".into(), self.limits.into());
        }
        if plugin.contains_key("grants") {
            // A grant names a component, but the author of a case does not know its digest.
            plugin.entry("component").or_insert_with(|| "any".into());
        }
        Ok(Case {
            class,
            name,
            says: self.attack,
            attack,
            proven_by,
            expected,
            holds: self.says,
            never: self.never,
            memory_mib: self.memory_mib.unwrap_or(class.memory_mib),
            p99_ratio: self.p99_ratio.unwrap_or(class.p99_ratio),
            neighbour: self.neighbour,
            at_once: self.at_once.unwrap_or(1),
            ended: self.ended,
            arguments: json(&arguments)?,
            plugin,
            settings: self.settings,
            tables: self.tables,
            files: self.files,
        })
    }
}

impl Expected {
    fn parse(attack: &Attack, text: String) -> Result<Self> {
        if matches!(attack, Attack::Steps(..)) {
            return Ok(Self::AsItsStepsSay(text));
        }
        if let Some(rule) = text.strip_prefix("refused(").and_then(|rest| rest.strip_suffix(')')) {
            return Ok(Self::Refused(rule.to_owned()));
        }
        let ends: Vec<_> = text.split(" or ").map(str::to_owned).collect();
        let is_end = |end: &String| matches!(end.as_str(), "ok" | "in_doubt") || end.starts_with("failed(");
        ensure!(
            ends.iter().all(is_end),
            "`expect` is refused(RULE), or ok, in_doubt or failed(CODE), with ` or ` between several"
        );
        Ok(Self::Ends(ends))
    }

    /// The words for the table.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Refused(rule) => format!("refused(`{rule}`)"),
            Self::Ends(outcomes) => outcomes.join(" or "),
            Self::AsItsStepsSay(outcome) => outcome.clone(),
        }
    }
}

/// The text of the comments at the top of a module.
fn above(text: &str) -> String {
    let comments = text.lines().map_while(|line| line.strip_prefix(";;"));
    comments.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// The beginning of a text, for messages.
pub(super) fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(4_000));
    text
}

/// `tests/tests/loading.rs::name` as a file and a function.
fn pointed(test: &str) -> Result<(String, String)> {
    let (file, function) = test.split_once("::").context("a test is named FILE::FUNCTION")?;
    Ok((file.to_owned(), function.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::CLASSES;
    use super::*;

    fn parse(file: &str, text: &str) -> Result<Case> {
        Case::parse(&CLASSES[0], Path::new(file), text)
    }

    #[test]
    fn ignored_file_is_refused() {
        let good = ";; attack = 'It spins.'\n;; expect = 'failed(out_of_time)'\n(func $run)";
        assert!(parse("a-b.wat", good).is_ok());
        assert!(parse("a-b.wat", &good.replace("failed(out_of_time)", "ok or in_doubt")).is_ok());
        for (file, text, wanted) in [
            ("a.wasm", "", "unknown file type"),
            ("A b.wat", good, "lower case"),
            ("a.wat", "(func $run)", "missing field"),
            ("a.wat", ";; attack = 'It spins.'\n(func $run)", "missing field `expect`"),
            ("a.wat", ";; attack = 'It spins.'\n;; expect = 'dies'\n(func)", "`expect` is"),
            ("a.wat", ";; attack = 'It spins.'\n;; expect = 'ok'\n;; expcet = 1\n(func)", "unknown field"),
            ("a.wat", ";; attack = 'spins'\n;; expect = 'ok'\n(func)", "a sentence"),
            ("a.toml", "attack = 'It spins.'\nexpect = 'ok'", "a case has"),
            ("a.toml", "attack = 'It spins.'\nexpect = 'ok'\ncatalog = '[]'\nguest = 'a'\ntool = 'b'", "only one of"),
            ("a.toml", "attack = 'It spins.'\nexpect = 'ok'\nproven_by = ['a.rs::b']", "a case has"),
            ("a.toml", "attack = 'It spins.'\nexpect = 'ok'\nsection = '{}'", "belongs to a `catalog`"),
        ] {
            let error = format!("{:#}", parse(file, text).expect_err(file));
            assert!(error.contains(wanted), "{file} {text}: {error}");
        }
    }
}
