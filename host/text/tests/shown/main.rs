//! What people are shown of hostile and of honest text: rows of what comes in and what is to come out.

#![expect(clippy::unwrap_used, reason = "a test ends where the rows are no JSON")]

extern crate toolgate_text as text;

mod holds;
mod honest;
mod hostile;
mod property;

use std::collections::BTreeMap;

use serde::Deserialize;

/// Texts and what people see of them, each under what it is an example of. The page has rules of its own, and its tests read the
/// same rows (`sdk/web/tests/text.test.ts`): what the host and the page show of a text is one thing.
#[derive(Deserialize)]
struct Rows {
    hostile: BTreeMap<String, Vec<(String, String)>>,
    /// Sentences of languages, some with what is hostile elsewhere: joiners, marks, full width, single letters that look like
    /// others, words of another script among them.
    honest: BTreeMap<String, Vec<String>>,
    meant_well: Vec<(String, String)>,
}

impl Rows {
    fn read() -> Self {
        serde_json::from_str(include_str!("rows.json")).unwrap()
    }
}
