//! Collects the rules of a configuration: its own, and those of the files that it names.

use std::collections::BTreeSet;

use policy::{OperatorRule, Rules};
use serde::Deserialize;

use super::{PolicyTable, examples, reading};
use crate::config::place::Source;
use crate::config::{Config, ConfigError};

/// The largest file of rules that is read, in bytes.
const MOST: u64 = 4 << 20;

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    policy: Vec<PolicyTable>,
}

/// A rule that did what its examples say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedRule {
    /// Its name.
    pub name: String,
    /// How many calls it was to fit.
    pub matches: usize,
    /// How many it was not to fit.
    pub not_matches: usize,
}

#[derive(Default)]
struct Collected {
    rules: Vec<OperatorRule>,
    tried: Vec<TriedRule>,
    names: BTreeSet<String>,
}

/// Reads all rules, and tries all their examples.
pub(in crate::config) fn read(config: &Config, source: &Source) -> Result<(Rules, Vec<TriedRule>), ConfigError> {
    let mut collected = Collected::default();
    collected.add(&config.policy, source, "policy", false)?;
    for (n, file) in config.policies.files.iter().enumerate() {
        let path = source.beside().join(file);
        let text = text(&path).map_err(|why| {
            let message = format!("cannot read the rules in {}: {why}", path.display());
            let hint = "correct the path, which is relative to this file, or remove it";
            source.error(&["policies", "files", &n.to_string()], message, Some(hint.to_owned()))
        })?;
        let rules: RuleFile = toml::from_str(&text).map_err(|error| ConfigError::at(&path, &text, &error))?;
        collected.add(&rules.policy, &Source::new(&path, &text), &file.display().to_string(), true)?;
    }
    Ok((Rules::new(collected.rules), collected.tried))
}

fn text(path: &std::path::Path) -> Result<String, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > MOST {
        return Err(format!("it is no file of at most {MOST} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

impl Collected {
    /// Adds tables of one file, which are named after their place in it.
    fn add(
        &mut self,
        tables: &[PolicyTable],
        source: &Source,
        file: &str,
        must_have_examples: bool,
    ) -> Result<(), ConfigError> {
        for (n, table) in tables.iter().enumerate() {
            let position = n.to_string();
            let fail = |keys: &[&str], message: String, hint: &str| {
                let keys = [&["policy", position.as_str()], keys].concat();
                source.error(&keys, message, Some(hint.to_owned()))
            };
            let mut rule = reading::rule(table, format!("{file}[{n}]"), &fail)?;
            rule.place = Some(source.place(&["policy", position.as_str()]).into());
            if !self.names.insert(rule.name.to_string()) {
                let message = format!("there are two rules with the name {}", rule.name);
                return Err(fail(
                    &["name"],
                    message,
                    "rename one of them: names are shown to approvers and in the audit",
                ));
            }
            if must_have_examples && table.matches.is_empty() {
                let message = format!("nothing shows that the rule {} fits what it is meant for", rule.name);
                let hint = "add an example of a call that it fits: `match = [{ tool = \"NAME\", arguments = { … } }]`";
                return Err(fail(&[], message, hint));
            }
            examples::check(&rule, table, &fail)?;
            let (matches, not_matches) = (table.matches.len(), table.not_matches.len());
            self.tried.push(TriedRule { name: rule.name.to_string(), matches, not_matches });
            self.rules.push(rule);
        }
        Ok(())
    }
}
