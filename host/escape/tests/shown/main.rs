//! Tests of the escaper, with rows of texts and their expected forms.

#![expect(clippy::unwrap_used, reason = "a test fails if its rows are not JSON")]

extern crate toolgate_escape as escape;

mod holds;
mod honest;
mod hostile;
mod property;

use std::collections::BTreeMap;

use serde::Deserialize;

/// Texts and their escaped forms, grouped by what they are examples of. The page has its own implementation, and its
/// tests read the same rows (`sdk/web/tests/text.test.ts`).
#[derive(Deserialize)]
struct Rows {
    hostile: BTreeMap<String, Vec<(String, String)>>,
    /// Sentences in several languages. Some contain characters that are hostile elsewhere: joiners, marks, fullwidth forms,
    /// single letters that look like others, words in another script.
    honest: BTreeMap<String, Vec<String>>,
    meant_well: Vec<(String, String)>,
}

impl Rows {
    fn read() -> Self {
        serde_json::from_str(include_str!("rows.json")).unwrap()
    }
}
