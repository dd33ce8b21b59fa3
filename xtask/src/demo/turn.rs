//! A turn of the host's API, with the parts that the demo shows.

use std::fmt;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::console::{self, Tone};

/// The maximum number of characters of a result in a line.
const MAX_EXCERPT: usize = 100;

/// A turn.
pub(crate) struct Turn {
    id: String,
    calls: Vec<Call>,
    waiting: Vec<Waiting>,
}

/// One call of it.
#[derive(PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) outcome: Option<String>,
    id: String,
    status: String,
    content: Value,
}

/// The suspension of a call.
#[derive(PartialEq)]
pub(crate) struct Waiting {
    pub(crate) suspension: String,
    pub(crate) kind: String,
    pub(crate) tool: String,
    pub(crate) prompt: String,
}

impl Turn {
    /// Reads it.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let turn: Value = serde_json::from_str(text).context("toolgate printed something other than a turn")?;
        let list = |name: &str| turn[name].as_array().cloned().unwrap_or_default();
        Ok(Self {
            id: turn["turn"].as_str().context("the turn has no id")?.to_owned(),
            calls: list("calls").iter().map(Call::read).collect(),
            waiting: list("pending").iter().map(Waiting::read).collect(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub(crate) fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    pub(crate) fn into_waiting(self) -> Vec<Waiting> {
        self.waiting
    }

    /// The values of its results.
    pub(crate) fn results(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.outcome.as_deref() == Some("ok"))
    }

    /// Whether both are the same turn in the same state.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.id == other.id && self.calls == other.calls && self.waiting == other.waiting
    }

    /// Shows each call in a line.
    pub(crate) fn show(&self) {
        console::line(&self.to_string());
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.calls.iter().map(Call::line).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Call {
    fn read(call: &Value) -> Self {
        Self {
            tool: text(&call["tool"]),
            outcome: call["outcome"].as_str().map(str::to_owned),
            id: text(&call["id"]),
            status: text(&call["status"]),
            content: call["content"].clone(),
        }
    }

    /// Its result, or null.
    pub(crate) fn result(&self) -> &Value {
        &self.content["result"]
    }

    /// The balance of an account, if this call returned it.
    pub(crate) fn balance_of(&self, account: &str) -> Option<u64> {
        let result = self.result();
        (result["account"] == account).then(|| result["balance_cents"].as_u64()).flatten()
    }

    fn line(&self) -> String {
        let (word, tone) = match self.outcome.as_deref() {
            Some("ok") => ("ok", Tone::Good),
            Some(other) => (other, Tone::Bad),
            None if self.status == "awaiting" => ("waits", Tone::Waiting),
            None => (self.status.as_str(), Tone::Dim),
        };
        let value = [&self.content["result"], &self.content["error"]["message"]];
        let value = value.into_iter().find(|value| !value.is_null());
        let said =
            value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        format!("  {:<17} {} {}", self.tool, console::toned(tone, &format!("{word:<7}")), excerpt(&said))
    }
}

impl Waiting {
    pub(crate) fn read(suspension: &Value) -> Self {
        Self {
            suspension: text(&suspension["suspension"]),
            kind: text(&suspension["kind"]),
            tool: text(&suspension["tool"]),
            prompt: text(&suspension["prompt"]),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The beginning of a text on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = r#"{"turn":"turn_1","state":"open","calls":[
        {"id":"a","tool":"text_stats","status":"resolved","outcome":"ok","content":{"ok":true,"result":{"words":2}}},
        {"id":"b","tool":"ledger_transfer","status":"awaiting","outcome":null,"content":null},
        {"id":"c","tool":"nope","status":"errored","outcome":"failed","content":{"ok":false,"error":{"code":"x","message":"no"}}}],
        "pending":[{"suspension":"susp_1","kind":"approval","tool":"ledger_transfer","prompt":"Transfer?"}]}"#;

    #[test]
    fn a_turn_is_shown_with_a_line_for_each_call() {
        let turn = Turn::parse(TURN).unwrap();
        assert_eq!(turn.waiting()[0].suspension, "susp_1");
        let shown = turn.to_string();
        let words: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["text_stats", "ok", r#"{"words":2}"#]);
        assert_eq!(words[1], ["ledger_transfer", "waits"]);
        assert_eq!(words[2], ["nope", "failed", "no"]);
    }

    #[test]
    fn a_turn_in_another_state_is_not_the_same() {
        let other = TURN.replace("awaiting", "running");
        assert!(Turn::parse(TURN).unwrap().same_as(&Turn::parse(TURN).unwrap()));
        assert!(!Turn::parse(TURN).unwrap().same_as(&Turn::parse(&other).unwrap()));
    }
}
