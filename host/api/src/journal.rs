//! The journals of durable calls, without what they hold.

use dispatch::ports::JournalPage;
use domain::Digest;
use domain::journal::{Entry, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Status, StepSummary, rfc3339};

/// A page of the journal of a durable call: what its runs did. The values of key-value data, the bodies of requests and
/// responses, and the arguments are not shown.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CallJournal {
    /// The turn of the call.
    pub turn: String,
    /// The caller's id.
    pub call: String,
    /// How far the call is. Until it has ended, more entries may follow.
    pub status: Status,
    /// The steps of its code, oldest first: its waits. Only on the first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepSummary>,
    /// The number of entries of the whole journal.
    pub length: u32,
    /// The entries of the page, in their order.
    pub entries: Vec<JournalEntry>,
    /// Where the next page begins: pass it as `after`. `null` on the last page.
    pub next: Option<u32>,
}

/// An entry of a journal: a host function that a run called. A later run gets the result from the journal.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct JournalEntry {
    /// From 0, without gaps.
    pub number: u32,
    /// The number of steps that had ended before it.
    pub after_step: u32,
    /// The run that recorded it, from 1. Absent if an older host recorded it.
    pub run: Option<u32>,
    /// When it was recorded.
    pub at: String,
    /// The function, such as `key-value set` or `http POST https://api.example.com/orders`: without arguments and without
    /// the query. Secrets of the host are redacted, and the text is escaped. Absent if an older host recorded it.
    pub function: Option<String>,
    /// Whether the effect has only begun, was refused for now, or has a recorded result.
    pub state: EntryState,
    /// The size of the recorded result.
    pub bytes: Option<u64>,
    /// A digest of the recorded result. Equal results of one journal have the same digest. It has a random salt, so it does
    /// not reveal the result. Absent if an older host began the journal.
    pub digest: Option<String>,
}

/// How far an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// The effect was about to begin. The next entry says how it ended. Without one, it may have happened.
    Begun,
    /// The server refused the request for now. The call waits, and then sends it again.
    Refused,
    /// The result is recorded.
    Done,
}

impl CallJournal {
    /// A page of the journal of a call. `salt` is that of the journal's first entry.
    #[must_use]
    pub fn new(turn: &domain::Turn, call: &domain::Call, page: &JournalPage, salt: Option<&Digest>) -> Self {
        let is_first = page.entries.first().is_none_or(|entry| entry.number == 0);
        let steps = if is_first { StepSummary::of_call(call).collect() } else { Vec::new() };
        let last = page.entries.last().map(|entry| entry.number);
        Self {
            turn: turn.id.to_string(),
            call: call.id.to_string(),
            status: (&call.status()).into(),
            steps,
            length: page.length,
            entries: page.entries.iter().map(|entry| JournalEntry::new(entry, salt)).collect(),
            next: last.filter(|last| last + 1 < page.length),
        }
    }
}

impl JournalEntry {
    fn new(entry: &Entry, salt: Option<&Digest>) -> Self {
        let (state, result) = match &entry.record {
            Record::Result(text) => (EntryState::Done, Some(text)),
            Record::Begun(_) => (EntryState::Begun, None),
            Record::Refused(_) => (EntryState::Refused, None),
        };
        let salted = |salt: &Digest, text: &str| Digest::of_parts(&[salt.as_bytes(), text.as_bytes()]).to_string();
        Self {
            number: entry.number,
            after_step: entry.step,
            run: entry.run,
            at: rfc3339(entry.at),
            function: entry.function.as_deref().map(str::to_owned),
            state,
            bytes: result.map(|text| text.len() as u64),
            digest: result.zip(salt).map(|(text, salt)| salted(salt, text)),
        }
    }
}
