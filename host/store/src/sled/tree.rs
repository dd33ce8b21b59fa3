//! sled's trees, with its errors as ours.
//!
//! sled's iterators repeat an error without end, so a scan here ends after its first error. sled panics when it finds
//! what it does not expect; here that is an error as well.

use std::any::Any;
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sled::{Batch, IVec};

use crate::fault::DatabaseError;

type Result<T> = std::result::Result<T, DatabaseError>;

/// A tree of sled.
#[derive(Clone)]
pub(crate) struct Tree(sled::Tree);

impl Tree {
    pub(crate) fn new(tree: sled::Tree) -> Self {
        Self(tree)
    }

    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<IVec>> {
        attempt(|| self.0.get(key))
    }

    pub(crate) fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        attempt(|| self.0.contains_key(key))
    }

    pub(crate) fn insert(&self, key: impl AsRef<[u8]>, value: &[u8]) -> Result<Option<IVec>> {
        attempt(|| self.0.insert(key, value))
    }

    pub(crate) fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<IVec>> {
        attempt(|| self.0.remove(key))
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Entries<sled::Iter> {
        Entries(Some(self.0.range(range)))
    }

    pub(crate) fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Entries<sled::Iter> {
        Entries(Some(self.0.scan_prefix(prefix)))
    }

    pub(crate) fn apply_batch(&self, batch: Batch) -> Result<()> {
        attempt(|| self.0.apply_batch(batch))
    }

    pub(crate) fn flush(&self) -> Result<()> {
        attempt(|| self.0.flush()).map(drop)
    }
}

/// Entries of a tree up to the first error.
pub(crate) struct Entries<I>(Option<I>);

impl<I> Entries<I> {
    fn step<T>(&mut self, step: impl FnOnce(&mut I) -> Option<sled::Result<T>>) -> Option<Result<T>> {
        let entries = self.0.as_mut()?;
        let next = attempt(|| step(entries).transpose()).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
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
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(DatabaseError::from),
        Err(panic) => Err(DatabaseError::Damaged(text(&*panic))),
    }
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
        Entries(Some((0..usize::MAX).map(then)))
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
