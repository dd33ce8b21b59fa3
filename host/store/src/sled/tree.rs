//! sled's trees, with its errors as ours.
//!
//! sled's iterators repeat an error without end, so a scan here ends after its first error. sled panics
//! when it finds damaged data. Here that is an error as well.

use std::any::Any;
use std::cell::Cell;
use std::ops::RangeBounds;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once, PoisonError, RwLock};

use sled::{Batch, IVec};

use crate::fault::DatabaseError;

type Result<T> = std::result::Result<T, DatabaseError>;

/// A tree of sled. All clones share one handle, which is replaced when the database is opened again.
#[derive(Clone)]
pub(crate) struct Tree(Arc<RwLock<Option<sled::Tree>>>);

impl Tree {
    pub(crate) fn new(tree: sled::Tree) -> Self {
        Self(Arc::new(RwLock::new(Some(tree))))
    }

    pub(super) fn close(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) fn reopen(&self, tree: sled::Tree) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).replace(tree);
    }

    fn attempt<T>(&self, step: impl FnOnce(&sled::Tree) -> sled::Result<T>) -> Result<T> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(tree) => attempt(|| step(tree)),
            None => Err(DatabaseError::Closed),
        }
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<IVec>> {
        self.attempt(|tree| tree.get(key))
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.attempt(|tree| tree.contains_key(key))
    }

    pub(crate) fn insert(&self, key: impl AsRef<[u8]>, value: &[u8]) -> Result<Option<IVec>> {
        self.attempt(|tree| tree.insert(key, value))
    }

    pub(crate) fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<IVec>> {
        self.attempt(|tree| tree.remove(key))
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Entries<sled::Iter> {
        self.entries(|tree| tree.range(range))
    }

    pub(crate) fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Entries<sled::Iter> {
        self.entries(|tree| tree.scan_prefix(prefix))
    }

    fn entries(&self, entries: impl FnOnce(&sled::Tree) -> sled::Iter) -> Entries<sled::Iter> {
        let tree = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tree.as_ref().map_or(Entries::Closed, |tree| Entries::Open(entries(tree)))
    }

    pub(crate) fn apply_batch(&self, batch: Batch) -> Result<()> {
        self.attempt(|tree| tree.apply_batch(batch))
    }

    /// Returns the number of bytes that this flush has written to the log.
    pub(crate) fn flush(&self) -> Result<usize> {
        self.attempt(|tree| tree.flush())
    }
}

/// Entries of a tree up to the first error.
pub(crate) enum Entries<I> {
    Open(I),
    /// The database was closed before the first entry.
    Closed,
    Ended,
}

impl<I> Entries<I> {
    fn step<T>(&mut self, step: impl FnOnce(&mut I) -> Option<sled::Result<T>>) -> Option<Result<T>> {
        let next = match self {
            Self::Open(entries) => attempt(|| step(entries).transpose()).transpose(),
            Self::Closed => Some(Err(DatabaseError::Closed)),
            Self::Ended => None,
        };
        if !matches!(next, Some(Ok(_))) {
            *self = Self::Ended;
        }
        next
    }
}

impl Entries<sled::Iter> {
    pub(crate) fn keys(self) -> impl DoubleEndedIterator<Item = Result<IVec>> {
        self.map(|entry| entry.map(|(key, _)| key))
    }
}

impl<T, I: Iterator<Item = sled::Result<T>>> Iterator for Entries<I> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }
}

impl<T, I: DoubleEndedIterator<Item = sled::Result<T>>> DoubleEndedIterator for Entries<I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }
}

/// Runs a step of sled. sled's structures are free of locks, and the ones it has are released when it panics.
pub(super) fn attempt<T>(step: impl FnOnce() -> sled::Result<T>) -> Result<T> {
    #[cfg(test)]
    READS.set(READS.get() + 1);
    hide_panics();
    IS_QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(step));
    IS_QUIET.set(false);
    match done {
        Ok(done) => done.map_err(DatabaseError::from),
        Err(panic) => Err(DatabaseError::Damaged(text(&*panic))),
    }
}

#[cfg(test)]
thread_local! {
    static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many steps of sled this thread has made.
#[cfg(test)]
pub(super) fn reads() -> usize {
    READS.get()
}

thread_local! {
    /// Whether this thread is in a step of sled.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps sled's panics, with their backtraces, from standard error: they become errors.
fn hide_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                others(info);
            }
        }));
    });
}

/// The message of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    tracing::error!(panic = text, "the database panicked");
    "it found content that it never writes; the log has the details".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many times an iterator may be asked before a test fails.
    const PATIENCE: usize = 100;

    /// One entry, and then what sled does at a damaged page, without end.
    fn damaged(then: fn() -> sled::Result<u8>) -> Entries<impl DoubleEndedIterator<Item = sled::Result<u8>>> {
        let then = move |asked| match asked {
            0 => Ok(0),
            asked => {
                assert!(asked < PATIENCE, "it is asked without end");
                then()
            }
        };
        Entries::Open((0..usize::MAX).map(then))
    }

    #[test]
    fn a_scan_ends_at_the_first_error() {
        let error = || Err(sled::Error::ReportableBug("a damaged page".into()));
        let read: Vec<_> = damaged(error).collect();
        assert!(matches!(read.as_slice(), [Ok(0), Err(DatabaseError::Damaged(_))]), "{read:?}");
        assert_eq!(damaged(error).map(|entry| entry.ok()).collect::<Vec<_>>(), [Some(0), None]);
    }

    #[test]
    fn a_panic_of_the_database_ends_a_scan() {
        let read: Vec<_> = damaged(|| panic!("of the database")).collect();
        assert!(matches!(read.as_slice(), [Ok(0), Err(DatabaseError::Damaged(_))]), "{read:?}");
    }
}
