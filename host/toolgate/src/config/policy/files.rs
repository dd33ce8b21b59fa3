//! Collects the rules of a configuration and of the files that it names.

use std::collections::BTreeSet;

use policy::{OperatorRule, OperatorRules};
use serde::Deserialize;

use super::{PolicyTable, examples, reading};
use crate::config::source::{Source, read_file};
use crate::config::{Config, ConfigError};

/// The maximal size of a file of rules, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    policy: Vec<PolicyTable>,
}

/// A rule that passed its examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedRule {
    /// Its name.
    pub name: String,
    /// The number of calls that it must match.
    pub matches: usize,
    /// The number of calls that it must not match.
    pub not_matches: usize,
}

#[derive(Default)]
struct Collected {
    rules: Vec<OperatorRule>,
    tried: Vec<TriedRule>,
    names: BTreeSet<String>,
}

/// Reads all rules and tests them with their examples.
pub(in crate::config) fn read(
    config: &Config,
    source: &Source,
) -> Result<(OperatorRules, Vec<TriedRule>), ConfigError> {
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
    Ok((OperatorRules::new(collected.rules), collected.tried))
}

fn text(path: &std::path::Path) -> Result<String, String> {
    String::from_utf8(read_file(path, MAX_FILE)?).map_err(|_| "it is not UTF-8".to_owned())
}

impl Collected {
    /// Adds the tables of one file. A rule without a name is named after its position.
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
            rule.place = Some(source.position(&["policy", position.as_str()]).into());
            if !self.names.insert(rule.name.to_string()) {
                let message = format!("two rules have the name {}", rule.name);
                return Err(fail(&["name"], message, "rename one of them; approvers and the audit log show the names"));
            }
            if must_have_examples && table.matches.is_empty() {
                let message = format!("the rule {} has no example of a call that it matches", rule.name);
                let hint = "add an example: `match = [{ tool = \"NAME\", arguments = { … } }]`";
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
