//! Grants of calls of other tools: their names.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::request::{GrantRequest, listing, string};
use crate::words::{InvalidWord, shown, written};

/// The name of a tool, or the beginning of names and `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern(String);

shown!(ToolPattern: |word| &word.0,);

written!(ToolPattern);

impl TryFrom<String> for ToolPattern {
    type Error = InvalidWord;

    fn try_from(text: String) -> Result<Self, InvalidWord> {
        let name = text.strip_suffix('*').unwrap_or(&text);
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if (1..=64).contains(&text.len()) && name.bytes().all(allowed) {
            return Ok(Self(text));
        }
        Err(InvalidWord(format!(
            "{text:?} is not the name of a tool: expected 1 to 64 of the characters a-z A-Z 0-9 _ -, and at most a `*` at the end"
        )))
    }
}

impl ToolPattern {
    #[must_use]
    pub fn matches(&self, tool: &str) -> bool {
        self.0.strip_suffix('*').map_or(self.0 == tool, |beginning| tool.starts_with(beginning))
    }

    /// Whether the other pattern matches every name that this one matches.
    fn is_within(&self, outer: &Self) -> bool {
        self == outer || (outer.0.ends_with('*') && outer.matches(self.0.strip_suffix('*').unwrap_or(&self.0)))
    }
}

/// A request for calls of other tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedTools {
    pub tool: ToolPattern,
    pub why: String,
}

impl GrantRequest for RequestedTools {
    type All = Vec<Self>;
    type Granted = Vec<ToolPattern>;
    type Table = Vec<ToolPattern>;
    type Opened = ();

    const IS_REPLAYABLE: bool = true;
    const EXAMPLE: Option<&'static str> = None;

    fn reaches_outside(granted: &Self::Granted) -> bool {
        !granted.is_empty()
    }

    fn may_change(granted: &Self::Granted) -> bool {
        // Another tool may have any access.
        !granted.is_empty()
    }

    fn words(&self) -> String {
        words(&self.tool)
    }

    fn name(&self) -> Option<String> {
        Some(format!("calls of `{}`", self.tool))
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        listing("calls", requests, |request| string(&request.tool))
    }

    fn made_up(requests: Option<&[Self]>) -> Self::Granted {
        requests.unwrap_or_default().iter().map(|request| request.tool.clone()).collect()
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        let mut both = Vec::new();
        for granted in granted {
            for RequestedTools { tool, .. } in requests {
                let narrower = if tool.is_within(granted) {
                    tool
                } else if granted.is_within(tool) {
                    granted
                } else {
                    continue;
                };
                if !both.contains(narrower) {
                    both.push(narrower.clone());
                }
            }
        }
        both
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        granted.iter().any(|pattern| self.tool.is_within(pattern))
    }

    fn each(granted: &Self::Granted, _shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        granted.iter().map(|pattern| (vec![pattern.clone()], words(pattern))).collect()
    }

    fn granted(table: &Self::Table, _beside: &Path, _opened: &()) -> Self::Granted {
        table.clone()
    }

    fn add_to(&self, table: &mut Self::Table) {
        table.push(self.tool.clone());
    }
}

fn words(pattern: &ToolPattern) -> String {
    format!("calls: {pattern}")
}
