//! Which standing approval covers a call. The rows here are a copy of the store's. The store decides whether a use is
//! left, in the commit that uses it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::json::Value;
use domain::{
    Digest, Json, PrincipalId, StandingId, Timestamp,
    standing::{Pin, StandingActive, StandingRow, StandingState, StandingUse},
};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use crate::committer::{Observer, TurnChange};
use crate::ports::{Commit, KnownTool, NewFacts, Principals, RowChange, StandingApprovals, StoreFault};

/// How many rows are read at a time. Each may have a megabyte.
const PAGE: usize = 16;

/// The caller and the tool.
type Key = (PrincipalId, Arc<str>);

/// The standing approvals that may still be used.
#[derive(Default)]
pub(crate) struct Standings {
    state: Mutex<State>,
    read: OnceCell<()>,
    /// Whether another host may have given, used or revoked approvals since they were read.
    is_outdated: AtomicBool,
    /// The number of changes by this host.
    changes: AtomicU64,
    /// Held while they are read again.
    reading: AsyncMutex<()>,
}

#[derive(Default)]
struct State {
    rows: HashMap<Key, Vec<Arc<Known>>>,
    /// Approvals that are about to be given, by the caller whose calls they cover.
    announced: HashMap<PrincipalId, StandingActive>,
}

impl State {
    /// The usable rows of a key that fit. A key without usable rows is removed.
    fn of(&mut self, key: &Key, now: Timestamp, fits: impl Fn(&StandingRow) -> bool) -> Vec<Arc<Known>> {
        let Some(known) = self.rows.get_mut(key) else { return Vec::new() };
        known.retain(|known| known.row.state(now) == StandingState::Active);
        let fit = known.iter().filter(|known| fits(&known.row)).cloned().collect();
        if known.is_empty() {
            self.rows.remove(key);
        }
        fit
    }

    /// Removes rows that cannot be used any more, and keys without rows.
    fn forget(&mut self, now: Timestamp) {
        self.rows.retain(|_, known| {
            known.retain(|known| known.row.state(now) == StandingState::Active);
            !known.is_empty()
        });
    }
}

/// A row, and the value of its arguments: `None` if they cannot be read.
#[derive(Clone)]
struct Known {
    row: StandingRow,
    value: Option<Arc<Value>>,
}

impl Standings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all standing approvals, once, and again after another host may have changed them.
    pub(crate) async fn ready(&self, store: &dyn StandingApprovals, now: Timestamp) -> Result<(), StoreFault> {
        self.read.get_or_try_init(|| self.read_all(store, now)).await?;
        if self.is_outdated.load(Ordering::Acquire) {
            let _reading = self.reading.lock().await;
            if self.is_outdated.swap(false, Ordering::AcqRel) {
                self.read_again(store, now).await.inspect_err(|_| self.outdated())?;
            }
        }
        Ok(())
    }

    /// Another host may have changed them.
    pub(crate) fn outdated(&self) {
        self.is_outdated.store(true, Ordering::Release);
    }

    /// Replaces all rows at once. If this host changes some meanwhile, they are read once more.
    async fn read_again(&self, store: &dyn StandingApprovals, now: Timestamp) -> Result<(), StoreFault> {
        let changes = self.changes.load(Ordering::Acquire);
        let read = Self::default();
        read.read_all(store, now).await?;
        let rows = std::mem::take(&mut read.state().rows);
        if self.changes.load(Ordering::Acquire) == changes {
            self.state().rows = rows;
        } else {
            self.outdated();
        }
        Ok(())
    }

    async fn read_all(&self, store: &dyn StandingApprovals, now: Timestamp) -> Result<(), StoreFault> {
        let mut after = None;
        loop {
            let page = store.standings(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.standing.id);
            let active = page.into_iter().filter(|row| row.state(now) == StandingState::Active);
            active.for_each(|row| self.insert(row));
        }
    }

    fn insert(&self, row: StandingRow) {
        // Parsed before the lock is taken: arguments may have a megabyte.
        let value = row.arguments.value().ok();
        let mut state = self.state();
        let known = state.rows.entry((row.caller.clone(), row.tool.clone())).or_default();
        known.retain(|known| known.row.standing.id != row.standing.id);
        known.push(Arc::new(Known { row, value }));
    }

    /// Replaces a row that was used or revoked elsewhere. `None`: it does not exist any more.
    pub(crate) fn corrected(&self, id: StandingId, row: Option<StandingRow>) {
        self.state().rows.retain(|_, known| {
            known.retain(|known| known.row.standing.id != id);
            !known.is_empty()
        });
        if let Some(row) = row {
            self.insert(row);
        }
    }

    /// Announces that an approval of this size is about to be given for calls of this caller.
    pub(crate) fn announce(self: &Arc<Self>, caller: &PrincipalId, bytes: usize, now: Timestamp) -> AnnouncedApproval {
        let mut state = self.state();
        state.forget(now);
        let mut active = state.announced.get(caller).copied().unwrap_or_default();
        for known in state.rows.iter().filter(|((whose, _), _)| whose == caller).flat_map(|(_, known)| known) {
            active = StandingActive { count: active.count + 1, bytes: active.bytes + known.row.size() };
        }
        let announced = state.announced.entry(caller.clone()).or_default();
        *announced = StandingActive { count: announced.count + 1, bytes: announced.bytes + bytes };
        AnnouncedApproval { standings: self.clone(), caller: caller.clone(), bytes, active }
    }

    /// The active approvals of a caller's calls of a tool.
    pub(crate) fn active_for(&self, caller: &PrincipalId, tool: &KnownTool, now: Timestamp) -> Vec<CoveringApproval> {
        let key = (caller.clone(), tool.tool.name.as_str().into());
        let known = self.state().of(&key, now, |_| true);
        known.iter().map(|known| CoveringApproval::of(&known.row)).collect()
    }

    /// An approval that covers a call with this approval fingerprint and has a use left beside those that other calls of the
    /// turn `take`. The store decides finally.
    pub(crate) fn find(
        &self,
        caller: &PrincipalId,
        tool: &KnownTool,
        fingerprint: Digest,
        arguments: &Json,
        now: Timestamp,
        take: &[StandingId],
    ) -> Option<CoveringApproval> {
        let fits = |row: &StandingRow| {
            let taken = take.iter().filter(|id| **id == row.standing.id).count();
            let left = usize::try_from(row.standing.uses.saturating_sub(row.used)).unwrap_or(usize::MAX);
            taken < left
                && row.component == tool.tool.component
                && row.declaration == tool.tool.declaration
                && row.fingerprint == fingerprint
        };
        let key = (caller.clone(), tool.tool.name.as_str().into());
        let candidates = self.state().of(&key, now, fits);
        if candidates.is_empty() {
            return None;
        }
        let value = arguments.value().ok();
        let covers = |known: &&Arc<Known>| {
            let pin = &known.row.standing.pin;
            (*pin == Pin::All && known.row.arguments == *arguments)
                || matches!((&known.value, &value), (Some(approved), Some(value)) if pins(pin, approved, value))
        };
        candidates.iter().find(covers).map(|known| CoveringApproval::of(&known.row))
    }
}

impl Observer for Standings {
    fn committed(&self, commit: &Commit, _: Option<&TurnChange<'_>>) {
        if let Some(NewFacts::Revoked(revoked)) = &commit.facts {
            self.changes.fetch_add(1, Ordering::AcqRel);
            self.corrected(revoked.id, None);
        }
        for change in &commit.rows {
            match change {
                RowChange::Standing(row) => {
                    self.changes.fetch_add(1, Ordering::AcqRel);
                    self.insert(row.as_ref().clone());
                }
                RowChange::StandingUse(id) => {
                    self.changes.fetch_add(1, Ordering::AcqRel);
                    let mut state = self.state();
                    let used = state.rows.values_mut().flatten().filter(|known| known.row.standing.id == *id);
                    used.for_each(|known| Arc::make_mut(known).row.used += 1);
                }
                // A forgotten approval has expired, so it is not used again.
                RowChange::ForgetStanding(_)
                | RowChange::Owner { .. }
                | RowChange::Call { .. }
                | RowChange::Due { .. }
                | RowChange::Suspension(_)
                | RowChange::Audience(_)
                | RowChange::Kept(_)
                | RowChange::Open { .. }
                | RowChange::Length { .. }
                | RowChange::RetentionTime(_)
                | RowChange::Delivery(_)
                | RowChange::Denied(_)
                | RowChange::ForgetDenial(_)
                | RowChange::RunLog(_)
                | RowChange::Forget(..)
                | RowChange::JournalRun { .. }
                | RowChange::JournalEntry(_)
                | RowChange::Value(_)
                | RowChange::Ended(..) => {}
            }
        }
    }
}

/// Who gave a standing approval, and when.
pub(crate) struct CoveringApproval {
    pub(crate) id: StandingId,
    by: PrincipalId,
    at: Timestamp,
}

impl CoveringApproval {
    pub(crate) fn of(row: &StandingRow) -> Self {
        Self { id: row.standing.id, by: row.by.clone(), at: row.created_at }
    }

    /// Whether the giver was not revoked since then.
    pub(crate) fn counts(&self, principals: &dyn Principals) -> bool {
        principals.is_current(&self.by, self.at)
    }

    pub(crate) fn used(&self) -> StandingUse {
        StandingUse { id: self.id, by: self.by.clone() }
    }
}

/// An approval that is about to be given. It counts until this is dropped, after its commit. So several that are given
/// at once do not exceed the limit.
pub(crate) struct AnnouncedApproval {
    standings: Arc<Standings>,
    caller: PrincipalId,
    bytes: usize,
    /// The caller's other approvals, those that are about to be given included.
    pub(crate) active: StandingActive,
}

impl Drop for AnnouncedApproval {
    fn drop(&mut self) {
        let mut state = self.standings.state();
        if let Some(announced) = state.announced.get_mut(&self.caller) {
            announced.count = announced.count.saturating_sub(1);
            announced.bytes = announced.bytes.saturating_sub(self.bytes);
            if announced.count == 0 {
                state.announced.remove(&self.caller);
            }
        }
    }
}

/// Whether the pinned arguments equal the approved ones.
fn pins(pin: &Pin, approved: &Value, arguments: &Value) -> bool {
    match pin {
        Pin::All => approved == arguments,
        Pin::Fields(pointers) => {
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

    fn row(id: u128, tool: &str, expires: u64) -> StandingRow {
        let expires_at = Timestamp::from_millis(expires);
        StandingRow {
            standing: domain::Standing { id: StandingId::from_bits(id), expires_at, uses: 1, pin: Pin::All },
            by: "ann".parse().unwrap(),
            created_at: Timestamp::from_millis(0),
            suspension: domain::SuspensionId::from_bits(1),
            conversation: domain::ConversationId::new("c").unwrap(),
            caller: "agent".parse().unwrap(),
            tool: tool.into(),
            plugin: domain::PluginName::new("p").unwrap(),
            component: domain::Digest::of("component"),
            declaration: domain::Digest::of("declaration"),
            fingerprint: domain::Digest::of("fingerprint"),
            arguments: Json::unchecked("{}"),
            used: 0,
            revoked: None,
        }
    }

    #[test]
    fn unusable_standing_approvals_are_dropped() {
        let (standings, at) = (Arc::new(Standings::default()), Timestamp::from_millis);
        let keys = || standings.state().rows.len();
        let key = |tool: &str| ("agent".parse().unwrap(), tool.into());
        for (id, tool) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
            standings.insert(row(id, tool, 10 * id as u64));
        }
        assert_eq!(keys(), 3);
        standings.corrected(StandingId::from_bits(3), None);
        assert_eq!(keys(), 2, "it was revoked");
        assert_eq!(standings.state().of(&key("a"), at(10), |_| true).len(), 1);
        assert_eq!(standings.state().of(&key("a"), at(20), |_| true).len(), 0);
        assert_eq!(keys(), 1, "their time is over");
        let others = standings.announce(&"agent".parse().unwrap(), 7, at(39));
        assert_eq!(others.active, StandingActive { count: 1, bytes: 2 });
        let next = standings.announce(&"agent".parse().unwrap(), 7, at(40));
        assert_eq!(next.active, StandingActive { count: 1, bytes: 7 }, "that which is coming");
        assert_eq!(keys(), 0, "the keys of callers who never return too");
        drop(others);
        let third = standings.announce(&"agent".parse().unwrap(), 7, at(40));
        assert_eq!(third.active, StandingActive { count: 1, bytes: 7 }, "what is no longer coming does not count");
        drop((next, third));
        assert!(standings.state().announced.is_empty());
    }

    #[test]
    fn only_pinned_arguments_must_equal_the_approved_ones() {
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
            let (approved, arguments) = (Value::parse(approved).unwrap(), Value::parse(arguments));
            let is_covered = arguments.as_ref().is_ok_and(|arguments| pins(&pin, &approved, arguments));
            assert_eq!(is_covered, covered, "{pin:?} {arguments:?}");
        }
    }
}
