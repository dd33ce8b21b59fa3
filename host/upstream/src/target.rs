//! The program or URL of a server, as far as an acceptance covers it. It has no secrets, so it can be stored and shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use url::Url;

/// In the words of the configuration: paths are relative to it, so that the accepted file can move with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The variables that are not secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The names of the variables and tokens that are secret.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// The URL of a server that is not a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Target {
    /// Its parts with their texts. A missing part is left out.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let quote = domain::json::quote;
        let list = |words: &mut dyn Iterator<Item = &String>| {
            let words: Vec<String> = words.map(|word| quote(word)).collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        let variables: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("{name}={}", quote(value))).collect();
        let all = [
            ("url", self.url.clone()),
            ("command", list(&mut self.command.iter())),
            ("folder", self.folder.clone()),
            ("environment", (!variables.is_empty()).then(|| variables.join("\n"))),
            ("secrets", list(&mut self.secrets.iter())),
        ];
        all.into_iter().filter_map(|(part, text)| Some((part, text?))).collect()
    }

    /// The origin of its URL.
    pub(crate) fn origin(&self) -> Option<String> {
        Some(Url::parse(self.url.as_ref()?).ok()?.origin().ascii_serialization())
    }

    /// The names of the parts that differ.
    pub(crate) fn difference(&self, other: &Self) -> Vec<&'static str> {
        crate::parts::between(self.parts(), other.parts()).into_iter().map(|(part, ..)| part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_target_can_differ() {
        let target = Target {
            command: vec!["a".into(), "b c".into()],
            folder: Some("f".into()),
            environment: [("LANG".to_owned(), "C".to_owned())].into(),
            secrets: ["TOKEN".to_owned()].into(),
            url: None,
        };
        let changed = [
            ("command", Target { command: vec!["a".into(), "b".into(), "c".into()], ..target.clone() }),
            ("folder", Target { folder: None, ..target.clone() }),
            ("environment", Target { environment: [("LANG".to_owned(), "D".to_owned())].into(), ..target.clone() }),
            ("secrets", Target { secrets: BTreeSet::new(), ..target.clone() }),
            ("url", Target { url: Some("https://x.example/".into()), ..target.clone() }),
        ];
        for (part, other) in changed {
            assert_eq!(target.difference(&other), [part]);
        }
        assert_eq!(target.parts()[0], ("command", r#""a" "b c""#.to_owned()));
    }
}
