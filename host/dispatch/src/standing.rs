//! Standing approvals at work: which of them covers a call. What is kept here is a copy of the store's rows; whether a use
//! is left is decided by the store, in the commit that uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Asked, Json, Pin, PrincipalId, StandingId, StandingRow, StandingState, StandingUse, Timestamp};
use tokio::sync::OnceCell;

use crate::exact::Exact;
use crate::ports::{Index, LiveTool, Store, StoreFault};

/// How many rows are read at a time.
const PAGE: usize = 256;

/// Whose calls of which tool.
type Key = (PrincipalId, Arc<str>);

/// The standing approvals that may still be used.
#[derive(Default)]
pub(crate) struct Standings {
    state: Mutex<State>,
    read: OnceCell<()>,
}

#[derive(Default)]
struct State {
    rows: HashMap<Key, Vec<Arc<Known>>>,
    /// How many are about to be given, for whose calls.
    coming: HashMap<PrincipalId, u32>,
}

/// A row, and its arguments as they are compared.
#[derive(Clone)]
struct Known {
    row: StandingRow,
    approved: Arc<Arguments>,
}

/// Arguments, read once.
struct Arguments {
    text: Json,
    value: Option<Exact>,
}

impl Arguments {
    fn read(text: &Json) -> Self {
        Self { text: text.clone(), value: Exact::parse(text.as_str()) }
    }
}

impl Standings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Read before the lock is taken: arguments may have a megabyte.
        let approved = Arc::new(Arguments::read(&row.arguments));
        let mut state = self.state();
        let known = state.rows.entry((row.caller.clone(), row.tool.clone())).or_default();
        known.retain(|known| known.row.standing.id != row.standing.id);
        known.push(Arc::new(Known { row, approved }));
    }

    /// Takes in what a commit changes of them.
    pub(crate) fn committed(&self, index: &[Index]) {
        for change in index {
            match change {
                Index::Standing(row) => self.insert(row.as_ref().clone()),
                Index::StandingUse(id) => {
                    let mut state = self.state();
                    let used = state.rows.values_mut().flatten().filter(|known| known.row.standing.id == *id);
                    used.for_each(|known| Arc::make_mut(known).row.used += 1);
                }
                _ => {}
            }
        }
    }

    /// Takes in how a row is by now: it was used or revoked elsewhere. Absent: it is gone.
    pub(crate) fn corrected(&self, id: StandingId, row: Option<StandingRow>) {
        for known in self.state().rows.values_mut() {
            known.retain(|known| known.row.standing.id != id);
        }
        if let Some(row) = row {
            self.insert(row);
        }
    }

    /// Announces that an approval is about to be given for the calls of this caller.
    pub(crate) fn coming(self: &Arc<Self>, caller: &PrincipalId, now: Timestamp) -> Coming {
        let mut state = self.state();
        let of_caller = state.rows.iter().filter(|((whose, _), _)| whose == caller).flat_map(|(_, known)| known);
        let active = of_caller.filter(|known| known.row.state(now) == StandingState::Active).count();
        let others = state.coming.entry(caller.clone()).or_default();
        let active = u32::try_from(active).unwrap_or(u32::MAX).saturating_add(*others);
        *others = others.saturating_add(1);
        Coming { standings: self.clone(), caller: caller.clone(), active }
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
        let ground = asked.ground();
        let fits = |row: &StandingRow| {
            let taken = take.iter().filter(|id| **id == row.standing.id).count();
            let left = usize::try_from(row.standing.uses.saturating_sub(row.used)).unwrap_or(usize::MAX);
            taken < left
                && row.component == live.tool.component
                && row.declaration == live.tool.declaration
                && row.ground == ground
        };
        let candidates: Vec<Arc<Known>> = {
            let mut state = self.state();
            let known = state.rows.get_mut(&(caller.clone(), live.tool.name.as_str().into()))?;
            known.retain(|known| known.row.state(now) == StandingState::Active);
            known.iter().filter(|known| fits(&known.row)).cloned().collect()
        };
        if candidates.is_empty() {
            return None;
        }
        let arguments = Arguments::read(arguments);
        let covers = |known: &&Arc<Known>| pins(&known.row.standing.pin, &known.approved, &arguments);
        let row = &candidates.iter().find(covers)?.row;
        Some(StandingUse { id: row.standing.id, by: row.by.clone() })
    }
}

/// That an approval is about to be given. It counts for others until this is dropped, which is after its commit: of many that
/// are given at once, no more come through than there may be.
pub(crate) struct Coming {
    standings: Arc<Standings>,
    caller: PrincipalId,
    /// How many the caller has besides, those included that are about to be given.
    pub(crate) active: u32,
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut state = self.standings.state();
        if let Some(coming) = state.coming.get_mut(&self.caller) {
            *coming = coming.saturating_sub(1);
            if *coming == 0 {
                state.coming.remove(&self.caller);
            }
        }
    }
}

/// What a commit changes of standing approvals.
pub(crate) fn of(index: &[Index]) -> Vec<Index> {
    let concerns = |change: &&Index| matches!(change, Index::Standing(_) | Index::StandingUse(_));
    index.iter().filter(concerns).cloned().collect()
}

/// Whether the pinned arguments are the ones that were approved.
fn pins(pin: &Pin, approved: &Arguments, arguments: &Arguments) -> bool {
    match (pin, &approved.value, &arguments.value) {
        (Pin::All, _, _) if approved.text == arguments.text => true,
        (Pin::All, Some(approved), Some(arguments)) => approved == arguments,
        (Pin::Fields(pointers), Some(approved), Some(arguments)) => {
            !pointers.is_empty()
                && pointers.iter().all(|pointer| {
                    let value = approved.pointer(pointer);
                    value.is_some() && value == arguments.pointer(pointer)
                })
        }
        _ => false,
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
            let read = |text: &str| Arguments::read(&Json::new(text));
            assert_eq!(pins(&pin, &read(approved), &read(arguments)), covered, "{pin:?} {arguments}");
        }
    }
}
