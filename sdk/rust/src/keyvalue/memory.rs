//! The store of a native test: a map that several calls can share. It can kill the call that writes to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use super::{Error, Lost};

thread_local! {
    /// The store of calls on this thread. A test sets it for one call.
    static CURRENT: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// The panic payload of a killed call. [`Attempt::run_or_die`](crate::testing::Attempt::run_or_die) catches it.
pub(crate) struct Killed;

/// A key-value store in memory. Clones share their data, as calls on one host do.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    writes: u64,
    writes_left: Option<u64>,
}

#[derive(Clone)]
struct Entry {
    version: u64,
    value: Vec<u8>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows this many more writes, and kills the call at the next one. No code of the call runs after that, as with a
    /// killed host. It kills once.
    pub fn kill_after(&self, writes: u64) {
        self.state().writes_left = Some(writes);
    }

    /// Cancels [`kill_after`](Self::kill_after).
    pub fn spare(&self) {
        self.state().writes_left = None;
    }

    /// The number of writes so far.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Reads a value outside of a call.
    pub fn peek<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.state().entries.get(key).and_then(|entry| serde_json::from_slice(&entry.value).ok())
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.state().entries.keys().cloned().collect()
    }

    /// Runs `call` with this store.
    pub(crate) fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        /// Restores the previous store, even after a kill.
        struct Restore(Option<Memory>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.clone())));
        call()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs a write. It yields before and after, so that other threads can interleave.
    fn write<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        std::thread::yield_now();
        let mut state = self.state();
        if state.writes_left == Some(0) {
            state.writes_left = None;
            drop(state);
            panic::resume_unwind(Box::new(Killed));
        }
        state.writes_left = state.writes_left.map(|left| left - 1);
        state.writes += 1;
        let result = change(&mut state);
        drop(state);
        std::thread::yield_now();
        result
    }
}

impl State {
    fn put(&mut self, key: &str, value: &[u8]) {
        let version = self.writes;
        self.entries.insert(key.to_owned(), Entry { version, value: value.to_vec() });
    }
}

pub(super) struct Bucket(Memory);

impl Bucket {
    pub(super) fn open(_name: &str) -> Result<Self, Error> {
        CURRENT.with_borrow(Clone::clone).map(Self).ok_or(Error::NoSuchStore)
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.state().entries.get(key).map(|entry| entry.value.clone()))
    }

    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.0.write(|state| state.put(key, value));
        Ok(())
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.write(|state| state.entries.remove(key));
        Ok(())
    }

    pub(super) fn increment(&self, key: &str, by: i64) -> Result<i64, Error> {
        self.0.write(|state| {
            let old: i64 = match state.entries.get(key) {
                Some(entry) => serde_json::from_slice(&entry.value).map_err(|e| Error::Malformed(e.to_string()))?,
                None => 0,
            };
            let sum = old.checked_add(by).ok_or_else(|| Error::Other("the sum is too large".to_owned()))?;
            state.put(key, sum.to_string().as_bytes());
            Ok(sum)
        })
    }

    pub(super) fn list_keys(&self, _cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
        Ok((self.0.keys(), None))
    }

    pub(super) fn cas(&self, key: &str) -> Result<Cas, Error> {
        Ok(Cas { memory: self.0.clone(), key: key.to_owned(), seen: self.0.state().entries.get(key).cloned() })
    }
}

pub(super) struct Cas {
    memory: Memory,
    key: String,
    seen: Option<Entry>,
}

impl Cas {
    pub(super) fn current(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.seen.as_ref().map(|entry| entry.value.clone()))
    }

    pub(super) fn swap(self, value: &[u8]) -> Result<(), Lost<Self>> {
        let lost = self.memory.write(|state| {
            let now = state.entries.get(&self.key);
            if now.map(|entry| entry.version) == self.seen.as_ref().map(|entry| entry.version) {
                state.put(&self.key, value);
                return None;
            }
            Some(now.cloned())
        });
        match lost {
            None => Ok(()),
            Some(seen) => Err(Lost::Race(Self { seen, ..self })),
        }
    }
}
