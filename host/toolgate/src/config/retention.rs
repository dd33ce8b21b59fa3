//! The table `[retention]`: how long ended turns are kept, and how much of the logs of their calls.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use dispatch::{Hold, LogBounds, RetentionRules};
use domain::{ConversationId, PrincipalId, Span, ToolName};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::Parsed;

/// How long ended turns are kept. The host removes the others at its start and from time to time. Default: everything
/// is kept.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionTable {
    /// How long an ended turn is kept, in days. Default: forever.
    pub turns_days: Option<NonZeroU32>,
    /// The size of the stored records of all ended turns that no hold keeps, in bytes. Beyond it, the turns that ended
    /// first are removed. Default: unlimited.
    pub turns_bytes: Option<NonZeroU64>,
    /// How long an ended turn is kept at least before `turns_bytes` removes it, in minutes. Default: 60.
    pub turns_bytes_minutes: Option<u32>,
    /// Shorter times for ended turns with a call of a tool, in days, by the name of the tool.
    #[serde(deserialize_with = "tools")]
    #[schemars(with = "BTreeMap<String, NonZeroU32>")]
    pub tools_days: BTreeMap<ToolName, NonZeroU32>,
    /// Lets tools shorten this: a live tool with `max_age_days` in its option `retention` is as if it was in `tools_days`. But
    /// no turn is removed for that before it has been kept for this many days. Default: the option has no effect here.
    pub declared_days_min: Option<NonZeroU32>,
    /// How long the host pauses between two removals, in milliseconds. Each looks at all ended turns if `turns_bytes` is set,
    /// and otherwise only at those to remove. Default: 3600000, an hour.
    pub interval_ms: Option<NonZeroU64>,
    /// How much of the log of a call is kept, in bytes: the last lines of each run. They are removed with the turn, and
    /// `turns_bytes` counts them when the turn has ended. 0 keeps none. Default: 16384, 16 KiB.
    pub call_log_bytes: Option<usize>,
    /// How many lines of the log of a call are kept, for each run. 0 keeps none. Default: 200.
    pub call_log_lines: Option<usize>,
    /// How long the logs of the calls of an ended turn are kept, in days. They are removed with the turn, if that is earlier.
    /// Default: as long as the turn.
    pub call_logs_days: Option<NonZeroU32>,
    /// How long the journals of the durable calls of an ended turn are kept, in days. They are removed with the turn, if that is
    /// earlier. Their receipts keep the length and the digest. Default: as long as the turn.
    pub journals_days: Option<NonZeroU32>,
    /// Turns that no rule removes.
    pub hold: HoldTable,
}

/// A legal hold: turns that no rule removes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoldTable {
    /// All turns of these conversations.
    #[schemars(with = "Vec<String>")]
    pub conversations: Vec<Parsed<ConversationId>>,
    /// All turns that these principals submitted.
    #[schemars(with = "Vec<String>")]
    pub callers: Vec<Parsed<PrincipalId>>,
}

impl RetentionTable {
    /// How much of the log of each run of a call is kept.
    #[must_use]
    pub fn logs(&self) -> LogBounds {
        let default = LogBounds::default();
        LogBounds {
            bytes: self.call_log_bytes.unwrap_or(default.bytes),
            lines: self.call_log_lines.unwrap_or(default.lines),
        }
    }

    /// The rules of this table.
    #[must_use]
    pub fn rules(&self) -> RetentionRules {
        let days = |days: NonZeroU32| Span::from_secs(u64::from(days.get()) * 24 * 60 * 60);
        let default = RetentionRules::default();
        let minutes = |minutes: u32| Span::from_secs(u64::from(minutes) * 60);
        RetentionRules {
            turns: self.turns_days.map(days),
            bytes: self.turns_bytes.map(NonZeroU64::get),
            bytes_after: self.turns_bytes_minutes.map_or(default.bytes_after, minutes),
            interval: self.interval_ms.map_or(default.interval, |pause| Span::from_millis(pause.get())),
            tools: self.tools_days.iter().map(|(tool, kept)| (tool.to_string(), days(*kept))).collect(),
            declared_min: self.declared_days_min.map(days),
            logs: self.call_logs_days.map(days),
            journals: self.journals_days.map(days),
            hold: Hold {
                conversations: self.hold.conversations.iter().map(|name| name.0.clone()).collect(),
                callers: self.hold.callers.iter().map(|name| name.0.clone()).collect(),
            },
        }
    }
}

fn tools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ToolName, NonZeroU32>, D::Error> {
    let tools = BTreeMap::<String, NonZeroU32>::deserialize(deserializer)?;
    tools.into_iter().map(|(name, days)| Ok((ToolName::new(&name).map_err(de::Error::custom)?, days))).collect()
}
