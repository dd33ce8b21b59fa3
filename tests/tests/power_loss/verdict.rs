//! Opens a store after a loss of power, and looks for everything that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dispatch::ports::{Audit as _, Journals as _, Loaded, Log as _};
use domain::CallIndex;
use store::{SledStore, open, verify};

use super::SETTINGS;
use super::load::{self, KEYS};

/// The number of a turn that only this check writes.
const ANOTHER: u64 = 999_999;

/// Returns the first problem.
pub(crate) fn check(path: &Path, acknowledged: &[&str]) -> Result<(), String> {
    if !path.exists() && acknowledged.is_empty() {
        return Ok(());
    }
    let expected = Expected::of(acknowledged);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let store = open(path, &SETTINGS).map_err(|error| format!("it does not open: {error}"))?;
    runtime.block_on(expected.check(&store))?;
    let checked = store.check().map_err(|fault| fault.to_string())?;
    if let Some(problem) = checked.problems.first() {
        return Err(format!("{problem}; {} problems", checked.problems.len()));
    }
    // The store goes on after the loss.
    let head = runtime.block_on(async {
        store.append(&load::events(ANOTHER, 0)).await.map_err(|error| error.to_string())?;
        store.head().await.map_err(|error| error.to_string())
    })?;
    drop(store);
    match verify(path, &SETTINGS, Vec::new()) {
        Ok(verified) if verified == head => Ok(()),
        Ok(verified) => Err(format!("the head is {verified:?} instead of {head:?}")),
        Err(error) => Err(format!("it does not verify: {error}")),
    }
}

#[derive(Default)]
struct Expected {
    /// The commits of each turn.
    commits: BTreeMap<u64, u32>,
    /// Turns whose removal was begun, and turns that were removed.
    removing: BTreeSet<u64>,
    removed: BTreeSet<u64>,
    /// The newest synced write of each key of the plugin's data.
    values: BTreeMap<[u8; 8], u64>,
    /// The last entry of the journal of each durable call.
    entries: BTreeMap<u64, u32>,
}

impl Expected {
    fn of(acknowledged: &[&str]) -> Self {
        let mut expected = Self::default();
        for line in acknowledged {
            let mut words = line.split(' ');
            let kind = words.next().unwrap();
            let number: u64 = words.next().unwrap().parse().unwrap();
            match kind {
                "commit" => {
                    let commit: u32 = words.next().unwrap().parse().unwrap();
                    expected.commits.insert(number, commit + 1);
                }
                "entry" => drop(expected.entries.insert(number, words.next().unwrap().parse().unwrap())),
                "removing" => drop(expected.removing.insert(number)),
                "removed" => drop(expected.removed.insert(number)),
                "values" => expected.values.extend((number + 1 - KEYS..=number).map(|at| (load::key(at), at))),
                other => panic!("{other}"),
            }
        }
        expected
    }

    async fn check(&self, store: &SledStore) -> Result<(), String> {
        for (&number, &commits) in &self.commits {
            let loaded = store.load(load::turn(number)).await.map_err(|fault| format!("turn {number}: {fault}"))?;
            let is_right = match &loaded {
                Loaded::Removed(_) => self.removing.contains(&number),
                Loaded::Found(log) if !self.removed.contains(&number) => {
                    let expected = (0..commits).map(|commit| load::event(number, commit));
                    log.version >= commits && expected.eq(log.events.iter().take(commits as usize).cloned())
                }
                Loaded::Found(_) | Loaded::Absent => false,
            };
            if !is_right {
                let found = match loaded {
                    Loaded::Found(log) => format!("{} commits", log.version),
                    Loaded::Removed(_) => "a removed turn".to_owned(),
                    Loaded::Absent => "nothing".to_owned(),
                };
                return Err(format!("turn {number}: {found} instead of {commits} commits"));
            }
        }
        let data = store.key_value();
        for (&number, &last) in &self.entries {
            let found = store.journal(load::turn(number), CallIndex(0)).await.map_err(|fault| fault.to_string())?;
            let is_whole = found.iter().take(last as usize + 1).cloned().eq((0..=last).map(load::entry));
            let value = data.get("plugin", "durable", &number.to_be_bytes()).map_err(|error| error.to_string())?;
            let value = value.as_deref().and_then(|value| value.first_chunk()).map(|bytes| u64::from_be_bytes(*bytes));
            if !is_whole || value.is_none_or(|value| value + 1 != found.len() as u64) {
                let found = found.len();
                return Err(format!("journal {number}: {found} entries and the value {value:?} after entry {last}"));
            }
        }
        for (key, &written) in &self.values {
            let value = data.get("plugin", "bucket", key).map_err(|error| error.to_string())?;
            let number = value.as_deref().and_then(|value| value.first_chunk()).map(|bytes| u64::from_be_bytes(*bytes));
            if number.is_none_or(|number| number < written) {
                return Err(format!("write {written} of the plugin's data is lost: {number:?}"));
            }
        }
        Ok(())
    }
}
