//! Standing approvals at work: which of them covers a call. What is kept here is a copy of the store's rows; whether a use
//! is left is decided by the store, in the commit that uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Asked, Json, Pin, PrincipalId, StandingId, StandingRow, StandingState, StandingUse, Timestamp};
use tokio::sync::OnceCell;

use crate::exact::{self, Exact};
use crate::ports::{Index, LiveTool, Store, StoreFault};

/// How many rows are read at a time.
const PAGE: usize = 256;

/// Whose calls of which tool.
type Key = (PrincipalId, Arc<str>);

/// The standing approvals that may still be used.
#[derive(Default)]
pub(crate) struct Standings {
    rows: Mutex<HashMap<Key, Vec<StandingRow>>>,
    read: OnceCell<()>,
}

impl Standings {
    fn rows(&self) -> MutexGuard<'_, HashMap<Key, Vec<StandingRow>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what there is, once.
    pub(crate) async fn ready(&self, store: &dyn Store, now: Timestamp) -> Result<(), StoreFault> {
        let read = self.read.get_or_try_init(|| async {
            let mut after = None;
            loop {
                let page = store.standings(after, PAGE).await?;
                let Some(last) = page.last() else { return Ok(()) };
                after = Some(last.standing.id);
                let active = page.into_iter().filter(|row| row.state(now) == StandingState::Active);
                active.for_each(|row| self.insert(row));
            }
        });
        read.await.copied()
    }

    fn insert(&self, row: StandingRow) {
        let mut rows = self.rows();
        let known = rows.entry((row.caller.clone(), row.tool.clone())).or_default();
        known.retain(|known| known.standing.id != row.standing.id);
        known.push(row);
    }

    /// Takes in what a commit changes of them.
    pub(crate) fn committed(&self, index: &[Index]) {
        for change in index {
            match change {
                Index::Standing(row) => self.insert(row.as_ref().clone()),
                Index::StandingUse(id) => {
                    let mut rows = self.rows();
                    let used = rows.values_mut().flatten().filter(|row| row.standing.id == *id);
                    used.for_each(|row| row.used += 1);
                }
                _ => {}
            }
        }
    }

    /// Takes in how a row is by now: it was used or revoked elsewhere. Absent: it is gone.
    pub(crate) fn corrected(&self, id: StandingId, row: Option<StandingRow>) {
        for known in self.rows().values_mut() {
            known.retain(|known| known.standing.id != id);
        }
        if let Some(row) = row {
            self.insert(row);
        }
    }

    /// An approval that covers a call, if there is one with a use left beside those that other calls of the turn `take`. The
    /// store has the last word on that.
    pub(crate) fn find(
        &self,
        caller: &PrincipalId,
        live: &LiveTool,
        asked: &Asked,
        arguments: &Json,
        now: Timestamp,
        take: &[StandingId],
    ) -> Option<StandingUse> {
        let mut rows = self.rows();
        let known = rows.get_mut(&(caller.clone(), live.tool.name.as_str().into()))?;
        known.retain(|row| row.state(now) == StandingState::Active);
        let ground = asked.ground();
        let covers = |row: &StandingRow| {
            let taken = take.iter().filter(|id| **id == row.standing.id).count();
            let left = usize::try_from(row.standing.uses.saturating_sub(row.used)).unwrap_or(usize::MAX);
            taken < left
                && row.component == live.tool.component
                && row.declaration == live.tool.declaration
                && row.ground == ground
                && pins(&row.standing.pin, &row.arguments, arguments)
        };
        let row = known.iter().find(|row| covers(row))?;
        Some(StandingUse { id: row.standing.id, by: row.by.clone() })
    }
}

/// What a commit changes of standing approvals.
pub(crate) fn of(index: &[Index]) -> Vec<Index> {
    let concerns = |change: &&Index| matches!(change, Index::Standing(_) | Index::StandingUse(_));
    index.iter().filter(concerns).cloned().collect()
}

/// Whether the pinned arguments are the ones that were approved.
fn pins(pin: &Pin, approved: &Json, arguments: &Json) -> bool {
    match pin {
        Pin::All => exact::same(approved.as_str(), arguments.as_str()),
        Pin::Fields(pointers) => {
            let (Some(approved), Some(arguments)) = (Exact::parse(approved.as_str()), Exact::parse(arguments.as_str()))
            else {
                return false;
            };
            !pointers.is_empty()
                && pointers.iter().all(|pointer| {
                    let value = approved.pointer(pointer);
                    value.is_some() && value == arguments.pointer(pointer)
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_arguments_are_those_that_were_approved_and_others_are_free() {
        let fields = |pointers: &[&str]| Pin::Fields(pointers.iter().map(|&pointer| pointer.to_owned()).collect());
        let approved = r#"{"to":"a","amount":1.0,"lines":[{"sku":"x"}]}"#;
        for (pin, arguments, covered) in [
            (Pin::All, r#"{ "amount": 1.0, "to": "a", "lines": [{"sku": "x"}] }"#, true),
            (Pin::All, r#"{"to":"a","amount":1.0,"lines":[{"sku":"x"}],"more":null}"#, false),
            (Pin::All, r#"{"to":"a","amount":1,"lines":[{"sku":"x"}]}"#, false),
            (fields(&["/to"]), r#"{"to":"a","amount":1e9}"#, true),
            (fields(&["/to"]), r#"{"to":"b","amount":1.0}"#, false),
            (fields(&["/to", "/lines/0/sku"]), r#"{"to":"a","lines":[{"sku":"x"},{"sku":"y"}]}"#, true),
            (fields(&["/to", "/lines/0/sku"]), r#"{"to":"a","lines":[{"sku":"y"}]}"#, false),
            (fields(&["/absent"]), r#"{"to":"a"}"#, false),
            (fields(&[]), approved, false),
            (fields(&["/to"]), r#"{"to":"a","to":"b"}"#, false),
        ] {
            assert_eq!(pins(&pin, &Json::new(approved), &Json::new(arguments)), covered, "{pin:?} {arguments}");
        }
    }
}
