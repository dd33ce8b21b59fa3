//! The store of a native test: a map that several calls can share, and that can kill the call which writes to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use super::{Error, Lost};

thread_local! {
    /// The store that calls on this thread open. A test sets it for the length of one call.
    static CURRENT: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// What a killed call unwinds with. Caught by [`Attempt::run_or_die`](crate::testing::Attempt::run_or_die).
pub(crate) struct Killed;

/// A key-value store in memory. Clones share what is stored, like calls on one host.
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

    /// Lets so many more writes happen and kills the call that tries another, as a killed host would: no code of the call
    /// runs after that. Holds for one kill.
    pub fn kill_after(&self, writes: u64) {
        self.state().writes_left = Some(writes);
    }

    /// Kills nobody any more.
    pub fn spare(&self) {
        self.state().writes_left = None;
    }

    /// How many writes there were.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Reads a value from outside of any call.
    pub fn peek<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.state().entries.get(key).and_then(|entry| serde_json::from_slice(&entry.value).ok())
    }

    /// Every key, in order.
    pub fn keys(&self) -> Vec<String> {
        self.state().entries.keys().cloned().collect()
    }

    /// Makes this the store of whatever `call` opens.
    pub(crate) fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        /// Puts the previous store back, after a kill too.
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

    /// Every write passes here. Other threads get a chance to run on both sides of it.
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
