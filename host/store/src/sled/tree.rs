//! sled's trees, with its errors as ours.
//!
//! sled's iterators repeat an error without end, so a scan here ends after its first error. sled panics
//! when it finds damaged data. Here that is an error as well, and the log has an excerpt of the message.

use std::cell::Cell;
use std::convert::Infallible;
use std::ops::RangeBounds;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock};
use std::thread;

use dispatch::ports::FaultKind;
use domain::journal::ValueChange;
use sled::transaction::{ConflictableTransactionError, TransactionError, TransactionalTree};
use sled::{Batch, IVec, Transactional as _};

use crate::fault::{Cause as _, DatabaseError};

type Result<T> = std::result::Result<T, DatabaseError>;

/// A tree of sled. All clones share one handle, which is replaced when the database is opened again.
#[derive(Clone)]
pub(crate) struct Tree {
    /// Without a handle, the kind of fault that every use of the tree gets.
    tree: Arc<RwLock<std::result::Result<sled::Tree, FaultKind>>>,
    damage: Damage,
}

/// Whether a page was found that is not as it was written.
#[derive(Clone, Default)]
pub(crate) struct Damage(Arc<AtomicBool>);

impl Damage {
    /// Takes note of a damaged page. The log has the first one.
    fn seen<T>(&self, step: Result<T>) -> Result<T> {
        step.inspect_err(|error| {
            if error.kind() == FaultKind::Damaged && !self.0.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "a page of the database is damaged; every read that needs it fails");
            }
        })
    }
}

impl Tree {
    pub(crate) fn new(tree: sled::Tree) -> Self {
        Self { tree: Arc::new(RwLock::new(Ok(tree))), damage: Damage::default() }
    }

    /// Whether a damaged page was found since the store was opened.
    pub(super) fn is_damaged(&self) -> bool {
        self.damage.0.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self, kind: FaultKind) {
        *self.tree.write().unwrap_or_else(PoisonError::into_inner) = Err(kind);
    }

    pub(super) fn reopen(&self, tree: sled::Tree) {
        *self.tree.write().unwrap_or_else(PoisonError::into_inner) = Ok(tree);
    }

    fn attempt<T>(&self, step: impl FnOnce(&sled::Tree) -> sled::Result<T>) -> Result<T> {
        match &*self.tree.read().unwrap_or_else(PoisonError::into_inner) {
            Ok(tree) => self.damage.seen(attempt(|| step(tree))),
            Err(kind) => Err(DatabaseError::Closed(*kind)),
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
        let tree = self.tree.read().unwrap_or_else(PoisonError::into_inner);
        match &*tree {
            Ok(tree) => Entries::Open(entries(tree), self.damage.clone()),
            Err(kind) => Entries::Closed(*kind),
        }
    }

    pub(crate) fn apply_batch(&self, batch: Batch) -> Result<()> {
        self.attempt(|tree| tree.apply_batch(batch))
    }

    /// Applies a batch, and changes of another tree of the same database, all of it or nothing.
    pub(super) fn apply_with(&self, batch: &Batch, other: &Self, changes: &[ValueChange]) -> Result<()> {
        let both = |(commits, values): &(TransactionalTree, TransactionalTree)| {
            commits.apply_batch(batch)?;
            for ValueChange { key, value, .. } in changes {
                match value {
                    Some(value) => values.insert(key.as_slice(), value.as_slice())?,
                    None => values.remove(key.as_slice())?,
                };
            }
            Ok::<_, ConflictableTransactionError<Infallible>>(())
        };
        let step = |tree: &sled::Tree, other: &sled::Tree| match (tree, other).transaction(both) {
            Ok(()) => Ok(()),
            Err(TransactionError::Storage(error)) => Err(error),
            Err(TransactionError::Abort(never)) => match never {},
        };
        match &*other.tree.read().unwrap_or_else(PoisonError::into_inner) {
            Ok(other) => self.attempt(|tree| step(tree, other)),
            Err(kind) => Err(DatabaseError::Closed(*kind)),
        }
    }

    /// Returns the number of bytes that this flush has written to the log.
    pub(crate) fn flush(&self) -> Result<usize> {
        self.attempt(|tree| tree.flush())
    }
}

/// Entries of a tree up to the first error.
pub(crate) enum Entries<I> {
    Open(I, Damage),
    /// The database was closed before the first entry.
    Closed(FaultKind),
    Ended,
}

impl<I> Entries<I> {
    fn step<T>(&mut self, step: impl FnOnce(&mut I) -> Option<sled::Result<T>>) -> Option<Result<T>> {
        let next = match self {
            Self::Open(entries, damage) => damage.seen(attempt(|| step(entries).transpose())).transpose(),
            Self::Closed(kind) => Some(Err(DatabaseError::Closed(*kind))),
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
        Err(_) => {
            let reason = "it found content that it never writes; the log has the details";
            Err(DatabaseError::Damaged(reason.to_owned()))
        }
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

/// The names of sled's own threads, which write its buffers, begin like this.
const THREADS: &str = "sled-io-";

/// The maximum length of a panic's message in the log. sled prints keys and values of whole pages.
const MAX_MESSAGE: usize = 120;

/// Keeps sled's panics, with their backtraces, from standard error: they become errors and entries of the log.
fn hide_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if IS_QUIET.get() || thread::current().name().is_some_and(|name| name.starts_with(THREADS)) {
                let place = panic.location().map(|place| format!("{}:{}", file_name(place.file()), place.line()));
                let message = excerpt(panic.payload_as_str().unwrap_or_default());
                tracing::error!(place, message, "the database panicked");
            } else {
                others(panic);
            }
        }));
    });
}

/// Without the folders, which are those of the machine that built the host.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn excerpt(message: &str) -> String {
    message.escape_debug().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// The file that tells a test that it is the child, in its working folder.
    const CHILD: &str = "panics";

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
        Entries::Open((0..usize::MAX).map(then), Damage::default())
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

    #[test]
    fn panics_of_the_database_are_not_printed() {
        if Path::new(CHILD).exists() {
            assert!(attempt::<()>(|| panic!("in a step")).is_err());
            let own = thread::Builder::new().name(format!("{THREADS}7")).spawn(|| panic!("in its own thread"));
            assert!(own.unwrap().join().is_err());
            assert!(thread::spawn(|| panic!("of somebody else")).join().is_err());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CHILD), "").unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sled::tree::tests::panics_of_the_database_are_not_printed", "--nocapture"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{printed}");
        assert_eq!(printed.matches("panicked at").count(), 1, "{printed}");
        assert!(printed.contains("of somebody else"), "{printed}");
    }

    #[test]
    fn log_has_no_folder_of_the_build() {
        assert_eq!(file_name("build/sled-0.34.7/src/lib.rs"), "lib.rs");
        assert_eq!(file_name("lib.rs"), "lib.rs");
    }

    #[test]
    fn log_has_only_the_beginning_of_a_panic() {
        let excerpt = excerpt(&format!("a node:\n{}", "1, ".repeat(MAX_MESSAGE)));
        assert!(excerpt.starts_with("a node:\\n1, ") && excerpt.len() == MAX_MESSAGE, "{excerpt}");
    }
}
